// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "data/text/added_tokens.h"
#include "data/text/byte_pair.h"
#include "data/text/encoding.h"

namespace weft::data {

struct RobertaOptions {  // `{}`: g++ then allows designated initialisers of some members only
  std::string unknown{"<unk>"}, first{"<s>"}, separator{"</s>"}, padding{"<pad>"}, mask{"<mask>"};
  std::vector<AddedToken> added{};  ///< more tokens than the five above, or the same with other flags
  bool adds_prefix_space = false;   ///< a text, and what follows an added token, begins as after a space
  bool cuts_front = false;          ///< cuts the front of texts that are too long
};

/// RoBERTa's encoding (Liu et al. 2019): byte pairs between `<s>` and `</s>`, two texts as `<s> first </s></s> second
/// </s>`, all of token type 0.
class RobertaPairs final : public TextEncoder {
 public:
  /// Errors: the vocabulary has no `<s>`, `</s>` or `<pad>`.
  explicit RobertaPairs(BytePair pairs, const RobertaOptions& options = {});
  int64_t size() const override { return size_; }
  int64_t padding_id() const override { return padding_; }
  std::vector<int64_t> ids_of(std::string_view text) const override;
  std::string token_text(int64_t id) const override;
  void save(const std::filesystem::path& folder) const override { pairs_.save(folder); }

 private:
  int64_t id_of(const std::string& token) const;
  Frame frame() const override {
    return {.first = first_,
            .separator = separator_,
            .between = 2,
            .marks_second = false,
            .cuts_front = options_.cuts_front};
  }
  BytePair pairs_;
  RobertaOptions options_;
  AddedTokens added_;
  int64_t size_, first_, separator_, padding_;
};

}  // namespace weft::data
