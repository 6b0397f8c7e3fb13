// SPDX-License-Identifier: Apache-2.0
#include "data/text/added_tokens.h"

#include <algorithm>

#include "core/text.h"
#include "data/text/words.h"
#include "kernels/error.h"

namespace weft::data {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, Normalizer normalizer)
    : tokens_(std::move(tokens)), normalizer_(std::move(normalizer)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    WEFT_CHECK(!token.content.empty() && token.id >= 0, "added tokens: expected a text and an id, got '",
               printable(token.content), "' with the id ", token.id);
    if (token.normalized)
      add(normalized_, normalizer_ ? normalizer_(token.content) : token.content, i);
    else
      add(raw_, token.content, i);
  }
}

void AddedTokens::add(Index& index, std::string written, size_t token) const {
  if (written.empty()) return;  // a token of accents alone, say, which no normalised text has
  const char start = written[0];
  if (!index.entries.contains(start)) index.starts += start;
  index.entries[start].push_back({std::move(written), token});
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) { return token.content == content; });
  return found == tokens_.end() ? nullptr : &*found;
}

/// At or after `from`. Looks no further than the first token: a text may be nothing but tokens.
AddedTokens::Found AddedTokens::find_first(std::string_view text, size_t from, const Index& index) const {
  for (size_t at = text.find_first_of(index.starts, from); at != std::string_view::npos;
       at = text.find_first_of(index.starts, at + 1)) {
    const Index::Entry* best = nullptr;
    for (const Index::Entry& entry : index.entries.at(text[at])) {
      if (!text.substr(at).starts_with(entry.written)) continue;
      if (best != nullptr && best->written.size() >= entry.written.size()) continue;
      if (!tokens_[entry.token].single_word ||
          !(ends_in_word(text.substr(0, at)) || begins_in_word(text.substr(at + entry.written.size()))))
        best = &entry;
    }
    if (best == nullptr) continue;
    const AddedToken& token = tokens_[best->token];
    Found found{at, at + best->written.size(), token.id};
    if (token.lstrip) found.begin -= trailing_space(text.substr(from, at - from));
    if (token.rstrip) found.end += leading_space(text.substr(found.end));
    return found;
  }
  return {};
}

void AddedTokens::part(std::string_view text, const Index& index, std::vector<int64_t>& ids,
                       const std::function<void(std::string_view)>& between) const {
  size_t done = 0;
  for (Found found; (found = find_first(text, done, index)).id >= 0; done = found.end) {
    if (found.begin > done) between(text.substr(done, found.begin - done));
    ids.push_back(found.id);
  }
  if (done < text.size()) between(text.substr(done));
}

void AddedTokens::append_ids(std::string_view text, std::vector<int64_t>& ids,
                             const std::function<void(std::string_view)>& cut, const Normalizer& normalizer) const {
  part(text, raw_, ids, [&](std::string_view between) {
    if (normalizer)
      part(normalizer(between), normalized_, ids, cut);
    else
      part(between, normalized_, ids, cut);
  });
}

}  // namespace weft::data
