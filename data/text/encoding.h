// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace weft::data {

/// One text, or two, as a model reads them.
struct Encoding {
  std::vector<int64_t> ids;          ///< [CLS] first [SEP], or [CLS] first [SEP] second [SEP]
  std::vector<int64_t> token_types;  ///< 1 for the second text and its [SEP], else 0
};

/// Turns texts into the ids that a classifier of sentences or pairs reads.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  /// Ids are below it.
  virtual int64_t size() const = 0;
  virtual int64_t padding_id() const = 0;
  /// The ids of a text alone. A special token written out in it is that token.
  virtual std::vector<int64_t> ids_of(std::string_view text) const = 0;
  /// The token as the files write it. Errors: no token has this id.
  virtual std::string token_text(int64_t id) const = 0;
  /// Writes the vocabulary under its publisher's file names.
  virtual void save(const std::filesystem::path& folder) const = 0;

  /// The text, or the pair where `second` is given, between the special tokens; cut to `most` ids in all. A pair's
  /// longer text (the second of equals) is cut first; if both are cut, the longer keeps the odd piece, as with
  /// Hugging Face's tokenizers. Errors: `most` leaves no room for the special tokens.
  Encoding encode(std::string_view first, int64_t most = 512) const;
  Encoding encode(std::string_view first, std::string_view second, int64_t most = 512) const;

 protected:
  struct Frame {
    int64_t first = 0, separator = 0;
    int between = 1;           ///< separators between two texts
    bool marks_second = true;  ///< shows the second text by token types
    bool cuts_front = false;   ///< cuts the front of texts that are too long
  };
  virtual Frame frame() const = 0;
};

}  // namespace weft::data
