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

constexpr std::string_view kPadding = "[PAD]", kUnknown = "[UNK]", kFirst = "[CLS]", kSeparator = "[SEP]",
                           kMask = "[MASK]";
constexpr std::string_view kSpecial[] = {kPadding, kUnknown, kFirst, kSeparator, kMask};
constexpr size_t kLongestWord = 100;

/// The first special token in the text and where it begins; npos where there is none. Looks no further than that: a
/// text may be nothing but special tokens.
std::pair<size_t, std::string_view> find_special(std::string_view text) {
  for (size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1))
    for (const std::string_view special : kSpecial)
      if (text.substr(at).starts_with(special)) return {at, special};
  return {std::string_view::npos, {}};
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> vocabulary, bool lowercase)
    : vocabulary_(std::move(vocabulary)), lowercase_(lowercase) {
  for (size_t i = 0; i < vocabulary_.size(); ++i)
    WEFT_CHECK(ids_.emplace(vocabulary_[i], static_cast<int64_t>(i)).second, "vocabulary: token '",
               printable(vocabulary_[i]), "' stands twice, the second time as number ", i);
  unknown_ = require(kUnknown);
  first_ = require(kFirst);
  separator_ = require(kSeparator);
  padding_ = require(kPadding);
}

WordPiece WordPiece::from_file(const std::filesystem::path& path, bool lowercase) {
  std::istringstream in(read_text(path, "vocabulary"));
  std::vector<std::string> tokens;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    tokens.push_back(line);
  }
  try {
    return WordPiece(std::move(tokens), lowercase);
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

int64_t WordPiece::require(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  WEFT_CHECK(found != ids_.end(), "vocabulary: expected the token ", token, " among ", vocabulary_.size(), " tokens");
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
  while (begin < characters.size() && characters.size() <= kLongestWord) {
    std::string piece = begin > 0 ? "##" : "";
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

void WordPiece::append_ids(std::string_view text, std::vector<int64_t>& ids) const {
  for (const std::string& word : split_words(text, lowercase_)) append_word(word, ids);
}

std::vector<int64_t> WordPiece::ids_of(std::string_view text) const {
  std::vector<int64_t> ids;
  for (;;) {
    const auto [at, special] = find_special(text);
    append_ids(text.substr(0, at), ids);
    if (at == std::string_view::npos) return ids;
    const auto found = ids_.find(std::string(special));
    ids.push_back(found != ids_.end() ? found->second : unknown_);
    text.remove_prefix(at + special.size());
  }
}

std::vector<std::string> WordPiece::pieces(std::string_view text) const {
  std::vector<std::string> result;
  for (const int64_t id : ids_of(text)) result.push_back(token(id));
  return result;
}

void WordPiece::save(const std::filesystem::path& folder) const {
  std::string lines;
  for (const std::string& token : vocabulary_) lines += token + '\n';
  write_atomically(folder / "vocab.txt", lines, "vocabulary");
}

std::vector<std::string> make_vocabulary(const std::vector<std::string>& texts, int64_t size, bool lowercase) {
  std::map<std::string, int64_t> counts;
  std::set<std::string> characters;
  for (const std::string& text : texts)
    for (const std::string& word : split_words(text, lowercase)) {
      ++counts[word];
      for (const std::string_view character : characters_of(word)) characters.emplace(character);
    }
  std::vector<std::string> tokens(std::begin(kSpecial), std::end(kSpecial));
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
