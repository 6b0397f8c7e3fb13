// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::data {

/// One line of a text table: a sentence or a pair of them, and its class.
struct LabelledText {
  std::string first, second;  ///< second: empty where the table has one text a line
  int64_t label = -1;         ///< -1: the table has none (a test part)
};

struct TextTable {
  bool pairs = false;
  std::vector<LabelledText> rows;
  std::vector<std::string> classes;  ///< the labels as written, in the order of numbers or of the alphabet

  /// `train.tsv: 67349 sentences, 2 classes`.
  std::string description;
};

/// Reads tab-separated values whose first line names the columns: `sentence`, `text` or `sentence1` and `sentence2`
/// (or, as in GLUE's MRPC, `#1 String` and `#2 String`), and `label` (or `Quality`); others are passed over. Quotation
/// marks are characters like any other. Errors: the file cannot be read, the first line names no text, a line has too
/// few columns; the text names file and line.
TextTable read_text_table(const std::filesystem::path& path);

}  // namespace weft::data
