// SPDX-License-Identifier: Apache-2.0
#include "data/text/byte_pair.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>

#include "core/text.h"
#include "data/text/words.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr int64_t kMostIds = 1 << 24;  // of a vocabulary: an id is an index

/// GPT-2's files write a byte as a character that can be seen: the visible ones of Latin-1 stand for themselves, the
/// others in their order for U+0100 and on.
std::array<char32_t, 256> visible_bytes() {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
    characters[byte] = visible ? byte : next++;
  }
  return characters;
}

/// Bytes as a file writes them.
std::string visible(std::string_view bytes) {
  static const std::array<char32_t, 256> characters = visible_bytes();
  std::string text;
  for (const char byte : bytes) {
    const char32_t c = characters[static_cast<uint8_t>(byte)];
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {  // all of them have two bytes of UTF-8
      text += static_cast<char>(0xC0 | (c >> 6));
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return text;
}

/// The bytes that a file's text stands for; a character that stands for none (of a special token) is itself.
std::string bytes_of(std::string_view text) {
  static const std::unordered_map<std::string, char> bytes = [] {
    std::unordered_map<std::string, char> map;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      map.emplace(visible({&c, 1}), c);
    }
    return map;
  }();
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t length = static_cast<uint8_t>(text[i]) < 0x80 ? 1 : 2;
    const auto found = bytes.find(std::string(text.substr(i, length)));
    if (found != bytes.end()) {
      result += found->second;
      i += length;
    } else {
      result += text[i++];
    }
  }
  return result;
}

uint64_t pair_key(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

BytePair::BytePair(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  for (size_t id = 0; id < tokens_.size(); ++id)
    if (!tokens_[id].empty()) ids_.emplace(tokens_[id], static_cast<int64_t>(id));
  const auto end = ids_.find(std::string(kEndOfText));
  if (end != ids_.end()) end_of_text_ = end->second;
}

BytePair BytePair::of_bytes(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (const char byte : text) occurs[static_cast<uint8_t>(byte)] = true;
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    if (occurs[static_cast<size_t>(byte)]) tokens.emplace_back(1, static_cast<char>(byte));
  return BytePair(std::move(tokens));
}

BytePair BytePair::from_files(const fs::path& vocabulary, const fs::path& merges) {
  std::vector<std::string> tokens;
  const std::string text = read_text(vocabulary, "vocabulary");
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const auto& [token, value] : json.items()) {
      if (!value.is_number()) static_cast<void>(value.get<int64_t>());  // whose error says what it is
      const auto id = json_integer<int64_t>(value, "vocabulary: " + vocabulary.string());
      WEFT_CHECK(id >= 0 && id < kMostIds, "vocabulary: ", vocabulary.string(), ": expected an id below ", kMostIds,
                 " for '", printable(token), "', got ", id);
      if (tokens.size() <= static_cast<size_t>(id)) tokens.resize(static_cast<size_t>(id) + 1);
      std::string& place = tokens[static_cast<size_t>(id)];
      WEFT_CHECK(place.empty() && !token.empty(), "vocabulary: ", vocabulary.string(), ": the id ", id, " of '",
                 printable(token), "' is another token's, or the token is empty");
      place = bytes_of(token);
    }
  } catch (const nlohmann::json::exception& error) {
    fail("vocabulary: ", vocabulary.string(), ": expected an object of tokens and their ids, got '",
         printable(error.what()), "'");
  }
  BytePair result(std::move(tokens));
  const std::vector<std::string> lines = read_lines(merges);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || (i == 0 && lines[i].starts_with("#version"))) continue;
    const size_t space = lines[i].find(' ');
    try {
      WEFT_CHECK(space != std::string::npos && lines[i].find(' ', space + 1) == std::string::npos,
                 "expected two tokens, got '", printable(lines[i]), "'");
      result.add_merge(bytes_of(std::string_view(lines[i]).substr(0, space)),
                       bytes_of(std::string_view(lines[i]).substr(space + 1)));
    } catch (const Error& error) {
      fail("merges: ", merges.string(), " line ", i + 1, ": ", error.what());
    }
  }
  return result;
}

BytePair BytePair::from_folder(const fs::path& folder) {
  for (const auto& [vocabulary, merges] :
       {std::pair{"vocab.json", "merges.txt"}, std::pair{"encoder.json", "vocab.bpe"}})
    if (fs::exists(folder / vocabulary)) return from_files(folder / vocabulary, folder / merges);
  fail("byte pairs: expected vocab.json and merges.txt in the folder ", folder.string(),
       ", as Hugging Face's gpt2 has them");
}

void BytePair::add_merge(std::string_view left, std::string_view right) {
  const auto id = [&](const std::string& token) {
    const auto found = ids_.find(token);
    WEFT_CHECK(found != ids_.end(), "the vocabulary has no token '", printable(visible(token)), "'");
    return found->second;
  };
  const int64_t a = id(std::string(left)), b = id(std::string(right));
  const Merge merge{static_cast<int64_t>(ordered_merges_.size()), id(std::string(left) + std::string(right))};
  merges_.emplace(pair_key(a, b), merge);
  ordered_merges_.emplace_back(a, b);
}

/// The neighbours stand in a linked list, their possible merges in a queue by rank and place; those that no longer hold
/// are passed over. A piece of n bytes takes n log n.
void BytePair::append_piece(std::string_view piece, std::vector<int64_t>& ids) const {
  struct Symbol {
    int64_t id, before, after;  // id -1: merged into the one before
  };
  struct Candidate {
    int64_t rank, left, left_id, right_id;
    bool operator>(const Candidate& o) const { return std::tie(rank, left) > std::tie(o.rank, o.left); }
  };
  std::vector<Symbol> symbols;
  const auto count = static_cast<int64_t>(piece.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = ids_.find(std::string(1, piece[static_cast<size_t>(i)]));
    WEFT_CHECK(byte != ids_.end(), "byte pairs: the vocabulary has no token for the byte ",
               static_cast<int>(static_cast<uint8_t>(piece[static_cast<size_t>(i)])), " of '", printable(piece, 40),
               "'");
    symbols.push_back({byte->second, i - 1, i + 1 < count ? i + 1 : -1});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](int64_t left) {
    if (left < 0) return;
    const Symbol& a = symbols[static_cast<size_t>(left)];
    if (a.after < 0) return;
    const int64_t right_id = symbols[static_cast<size_t>(a.after)].id;
    const auto found = merges_.find(pair_key(a.id, right_id));
    if (found != merges_.end()) candidates.push({found->second.rank, left, a.id, right_id});
  };
  for (int64_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& a = symbols[static_cast<size_t>(best.left)];
    if (a.id != best.left_id || a.after < 0 || symbols[static_cast<size_t>(a.after)].id != best.right_id) continue;
    Symbol& b = symbols[static_cast<size_t>(a.after)];
    a.id = merges_.at(pair_key(best.left_id, best.right_id)).merged;
    b.id = -1;
    a.after = b.after;
    if (a.after >= 0) symbols[static_cast<size_t>(a.after)].before = best.left;
    consider(a.before);
    consider(best.left);
  }
  for (int64_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].after)
    ids.push_back(symbols[static_cast<size_t>(i)].id);
}

std::vector<int64_t> BytePair::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  if (merges_.empty()) {
    for (const char& byte : text) append_piece({&byte, 1}, ids);
    return ids;
  }
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> known;  // where the ids of a piece stand in `ids`
  for (const std::string_view piece : split_pieces(text)) {
    const size_t begin = ids.size();
    const auto before = known.find(piece);
    if (before == known.end()) {
      append_piece(piece, ids);
      known.emplace(piece, std::pair{begin, ids.size()});
    } else {
      for (size_t i = before->second.first; i < before->second.second; ++i) ids.push_back(ids[i]);
    }
  }
  return ids;
}

std::string BytePair::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    WEFT_CHECK(id >= 0 && id < size() && !tokens_[static_cast<size_t>(id)].empty(),
               "byte pairs: expected the id of a token, below ", size(), ", got ", id);
    text += tokens_[static_cast<size_t>(id)];
  }
  return text;
}

void BytePair::save(const fs::path& folder) const {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  for (size_t id = 0; id < tokens_.size(); ++id)
    if (!tokens_[id].empty()) vocabulary[visible(tokens_[id])] = id;
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : ordered_merges_)
    merges += visible(tokens_[static_cast<size_t>(left)]) + ' ' + visible(tokens_[static_cast<size_t>(right)]) + '\n';
  write_atomically(folder / "vocab.json", vocabulary.dump(), "vocabulary");
  write_atomically(folder / "merges.txt", merges, "merges");
}

int64_t BytePair::find(std::string_view token) const {
  const auto found = ids_.find(bytes_of(token));
  return found == ids_.end() ? -1 : found->second;
}

RobertaPairs::RobertaPairs(BytePair pairs)
    : pairs_(std::move(pairs)),
      first_(pairs_.find("<s>")),
      separator_(pairs_.find("</s>")),
      padding_(pairs_.find("<pad>")) {
  WEFT_CHECK(first_ >= 0 && separator_ >= 0 && padding_ >= 0,
             "vocabulary: expected the tokens <s>, </s> and <pad> of RoBERTa among ", pairs_.size(), " tokens");
}

std::vector<int64_t> RobertaPairs::ids_of(std::string_view text) const {
  constexpr std::string_view kSpecial[] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
  std::vector<int64_t> ids;
  for (;;) {
    size_t at = 0;  // of the first special token, and no further: a text may be nothing but special tokens
    std::string_view special;
    for (; special.empty() && (at = text.find('<', at)) != std::string_view::npos; at += special.empty())
      for (const std::string_view one : kSpecial)
        if (text.substr(at).starts_with(one) && pairs_.find(one) >= 0) special = one;
    const std::vector<int64_t> more = pairs_.encode(text.substr(0, at));
    ids.insert(ids.end(), more.begin(), more.end());
    if (special.empty()) return ids;
    ids.push_back(pairs_.find(special));
    text.remove_prefix(at + special.size());
  }
}

}  // namespace weft::data
