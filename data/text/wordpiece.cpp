// SPDX-License-Identifier: Apache-2.0
#include "data/text/wordpiece.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/text.h"
#include "data/text/words.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// The special tokens, as added tokens where the vocabulary has them and `added` does not say more.
std::vector<AddedToken> with_special(const WordPieceOptions& options,
                                     const std::unordered_map<std::string, int64_t>& ids, int64_t unknown) {
  std::vector<AddedToken> tokens = options.added;
  for (const std::string* special :
       {&options.padding, &options.unknown, &options.first, &options.separator, &options.mask}) {
    const auto found = ids.find(*special);
    const bool known =
        std::any_of(tokens.begin(), tokens.end(), [&](const AddedToken& token) { return token.content == *special; });
    // One that the vocabulary lacks is searched all the same: it is unknown as a whole.
    if (!known && !special->empty())
      tokens.push_back({.content = *special, .id = found != ids.end() ? found->second : unknown, .special = true});
  }
  return tokens;
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> vocabulary, const WordPieceOptions& options)
    : options_(options), vocabulary_(std::move(vocabulary)), listed_(vocabulary_.size()) {
  for (size_t i = 0; i < vocabulary_.size(); ++i)
    WEFT_CHECK(vocabulary_[i].empty() || ids_.emplace(vocabulary_[i], static_cast<int64_t>(i)).second,
               "vocabulary: token '", printable(vocabulary_[i]), "' stands twice, the second time as number ", i);
  for (const AddedToken& token : options_.added) {
    const auto id = static_cast<size_t>(std::max<int64_t>(token.id, 0));
    if (vocabulary_.size() <= id) vocabulary_.resize(id + 1);
    WEFT_CHECK(vocabulary_[id].empty() || vocabulary_[id] == token.content, "vocabulary: the added token '",
               printable(token.content), "' has the id ", id, " of '", printable(vocabulary_[id]), "'");
    vocabulary_[id] = token.content;
    const auto listed = ids_.find(token.content);  // others are no pieces of words
    WEFT_CHECK(listed == ids_.end() || listed->second == token.id, "vocabulary: the added token '",
               printable(token.content), "' has the id ", token.id, ", the same token of the vocabulary ",
               listed->second);
  }
  unknown_ = require(options_.unknown);
  first_ = require(options_.first);
  separator_ = require(options_.separator);
  padding_ = require(options_.padding);
  added_ = AddedTokens(with_special(options_, ids_, unknown_),
                       [words = options_.words](std::string_view text) { return normalized_text(text, words); });
}

std::vector<std::string> read_vocabulary(const std::filesystem::path& path) {
  std::istringstream in(read_text(path, "vocabulary"));
  std::vector<std::string> tokens;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    tokens.push_back(line);
  }
  return tokens;
}

WordPiece WordPiece::from_file(const std::filesystem::path& path, const WordPieceOptions& options) {
  try {
    return WordPiece(read_vocabulary(path), options);
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

int64_t WordPiece::require(std::string_view token) const {
  for (const AddedToken& added : options_.added)
    if (added.content == token) return added.id;
  const auto found = ids_.find(std::string(token));
  WEFT_CHECK(found != ids_.end(), "vocabulary: expected the token ", printable(token), " among ", vocabulary_.size(),
             " tokens");
  return found->second;
}

const std::string& WordPiece::token(int64_t id) const {
  WEFT_CHECK(id >= 0 && id < size(), "vocabulary: expected an id below ", size(), ", got ", id);
  return vocabulary_[static_cast<size_t>(id)];
}

void WordPiece::append_word(const std::string& word, std::vector<int64_t>& ids) const {
  const std::vector<std::string_view> characters = characters_of(word);
  const size_t before = ids.size();
  size_t begin = 0;
  while (begin < characters.size() && static_cast<int64_t>(characters.size()) <= options_.longest_word) {
    std::string piece = begin > 0 ? options_.continuation : "";
    const size_t prefix = piece.size();
    int64_t best = -1;
    size_t best_end = begin;
    for (size_t end = begin; end < characters.size(); ++end) {
      piece += characters[end];
      if (const auto found = ids_.find(piece); found != ids_.end()) best = found->second, best_end = end + 1;
    }
    if (best < 0 || piece.size() == prefix) break;
    ids.push_back(best);
    begin = best_end;
  }
  if (begin == characters.size() && !characters.empty()) return;
  ids.resize(before);
  ids.push_back(unknown_);
}

std::vector<int64_t> WordPiece::ids_of(std::string_view text) const {
  std::vector<int64_t> ids;
  added_.append_ids(text, ids, [&](std::string_view between) {
    for (const std::string& word : split_normalized(between)) append_word(word, ids);
  });
  return ids;
}

std::vector<std::string> WordPiece::pieces(std::string_view text) const {
  std::vector<std::string> result;
  for (const int64_t id : ids_of(text)) result.push_back(token(id));
  return result;
}

void WordPiece::save(const std::filesystem::path& folder) const {
  std::string lines;
  for (size_t id = 0; id < listed_; ++id) lines += vocabulary_[id] + '\n';
  write_atomically(folder / "vocab.txt", lines, "vocabulary");
}

std::vector<std::string> make_vocabulary(const std::vector<std::string>& texts, int64_t size) {
  std::map<std::string, int64_t> counts;
  std::set<std::string> characters;
  for (const std::string& text : texts)
    for (const std::string& word : split_words(text)) {
      ++counts[word];
      for (const std::string_view character : characters_of(word)) characters.emplace(character);
    }
  const WordPieceOptions names;
  std::vector<std::string> tokens{names.padding, names.unknown, names.first, names.separator, names.mask};
  for (const std::string& character : characters) tokens.push_back(character);
  for (const std::string& character : characters) tokens.push_back("##" + character);
  WEFT_CHECK(static_cast<int64_t>(tokens.size()) <= size, "vocabulary: ", characters.size(), " characters alone need ",
             tokens.size(), " tokens, got room for ", size);

  std::vector<std::pair<std::string, int64_t>> words;
  for (const auto& [word, count] : counts)
    if (!characters.contains(word)) words.emplace_back(word, count);
  std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [word, count] : words) {
    if (static_cast<int64_t>(tokens.size()) >= size) break;
    tokens.push_back(word);
  }
  return tokens;
}

std::vector<std::string_view> characters_of(std::string_view word) {
  std::vector<std::string_view> characters;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = begin + 1;
    while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) ++end;  // the bytes that follow
    characters.push_back(word.substr(begin, end - begin));
    begin = end;
  }
  return characters;
}

}  // namespace weft::data
