// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer_json.h"

namespace weft::data {

/// Tokens that are searched in the text before the model cuts the parts between, as Hugging Face's tokenizers do: the
/// first in the text, and the longest if several begin at a place.
class AddedTokens {
 public:
  using Normalizer = std::function<std::string(std::string_view)>;

  AddedTokens() = default;
  /// Tokens with the flag `normalized` are searched in the normalised text, the others before. No normalizer: the text
  /// stays as it is. Errors: a token without text or id.
  explicit AddedTokens(std::vector<AddedToken> tokens, Normalizer normalizer = nullptr);

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  /// Nothing: there is no such token.
  const AddedToken* find(std::string_view content) const;

  /// Appends the ids of a text to `ids`: an added token is its id; the text between two is normalised, and `cut`
  /// appends its ids. Without a normalizer `cut` gets parts of `text` itself.
  void append_ids(std::string_view text, std::vector<int64_t>& ids,
                  const std::function<void(std::string_view)>& cut) const {
    append_ids(text, ids, cut, normalizer_);
  }
  /// As above by a normalizer that depends on the place in `text`.
  void append_ids(std::string_view text, std::vector<int64_t>& ids, const std::function<void(std::string_view)>& cut,
                  const Normalizer& normalizer) const;

 private:
  /// Tokens by their first byte, as they are written in the text that is searched.
  struct Index {
    struct Entry {
      std::string written;
      size_t token;
    };
    std::string starts;
    std::map<char, std::vector<Entry>> entries;
  };
  struct Found {
    size_t begin = std::string_view::npos, end = 0;  ///< with the white space that goes
    int64_t id = -1;
  };
  void add(Index& index, std::string written, size_t token) const;
  Found find_first(std::string_view text, size_t from, const Index& index) const;
  void part(std::string_view text, const Index& index, std::vector<int64_t>& ids,
            const std::function<void(std::string_view)>& between) const;

  std::vector<AddedToken> tokens_;
  Normalizer normalizer_;
  Index raw_, normalized_;
};

}  // namespace weft::data
