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
  bool scores = false;               ///< the labels are real numbers, at least one with a fraction
  std::vector<std::string> columns;  ///< names, as in the first line
  std::vector<std::string> unused;   ///< columns that are neither read nor known to say nothing to a model (an index)
  int64_t without_label = 0;         ///< rows of SNLI's label `-`, on which its annotators disagree; left out

  /// `train.tsv: 67349 sentences, 2 classes`.
  std::string description;
};

struct TextTableOptions {
  std::vector<std::string> texts = {};  ///< names of one or two columns; none: those that are known, see below
  std::string label = {};               ///< name of a column; none: the one that is known
};

/// Reads a file of read_text_rows(). The texts are GLUE's columns or of a similar name: `sentence`, `text`, `sentence1`
/// and `sentence2`, `question1` and `question2`, `question` and `sentence`, `premise` and `hypothesis`, `#1 String` and
/// `#2 String`, … ; labels are `label`, `labels`, `gold_label`, `target`, `Quality`, `is_duplicate`, else `score`.
/// Capitals do not matter; blanks around labels go. Errors: those of read_text_rows(); the first line names no texts,
/// or several that may be meant; a row lacks a text or label; the text names file and line.
TextTable read_text_table(const std::filesystem::path& path, const TextTableOptions& options = {});

/// Whether a text is a finite real number as a whole, which `value` becomes.
bool parse_score(const std::string& text, double& value);

}  // namespace weft::data
