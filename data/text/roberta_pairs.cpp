// SPDX-License-Identifier: Apache-2.0
#include "data/text/roberta_pairs.h"

#include <algorithm>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// The special tokens, as added tokens where the vocabulary has them and `added` does not say more.
std::vector<AddedToken> with_special(const RobertaOptions& options, const BytePair& pairs) {
  std::vector<AddedToken> tokens = options.added;
  for (const std::string* special :
       {&options.first, &options.padding, &options.separator, &options.unknown, &options.mask}) {
    const int64_t id = pairs.find(*special);
    if (id >= 0 &&
        std::none_of(tokens.begin(), tokens.end(), [&](const AddedToken& token) { return token.content == *special; }))
      tokens.push_back({.content = *special, .id = id, .special = true});
  }
  return tokens;
}

}  // namespace

RobertaPairs::RobertaPairs(BytePair pairs, const RobertaOptions& options)
    : pairs_(std::move(pairs)),
      options_(options),
      added_(with_special(options, pairs_)),
      size_(pairs_.size()),
      first_(id_of(options.first)),
      separator_(id_of(options.separator)),
      padding_(id_of(options.padding)) {
  WEFT_CHECK(first_ >= 0 && separator_ >= 0 && padding_ >= 0, "vocabulary: expected the tokens ",
             printable(options.first), ", ", printable(options.separator), " and ", printable(options.padding),
             " of RoBERTa among ", pairs_.size(), " tokens");
  for (const AddedToken& token : added_.tokens()) size_ = std::max(size_, token.id + 1);
  pairs_.set_special({});  // added_ finds all
}

int64_t RobertaPairs::id_of(const std::string& token) const {
  const AddedToken* const added = added_.find(token);
  return added != nullptr ? added->id : pairs_.find(token);
}

std::vector<int64_t> RobertaPairs::ids_of(std::string_view text) const {
  std::vector<int64_t> ids;
  added_.append_ids(text, ids, [&](std::string_view between) {
    const bool spaced = !options_.adds_prefix_space || between.starts_with(' ');
    const std::vector<int64_t> more = spaced ? pairs_.encode(between) : pairs_.encode(' ' + std::string(between));
    ids.insert(ids.end(), more.begin(), more.end());
  });
  return ids;
}

std::string RobertaPairs::token_text(int64_t id) const {
  for (const AddedToken& token : added_.tokens())
    if (token.id == id) return token.content;
  return pairs_.decode(std::vector<int64_t>{id});
}

}  // namespace weft::data
