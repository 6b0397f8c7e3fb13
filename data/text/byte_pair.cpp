// SPDX-License-Identifier: Apache-2.0
#include "data/text/byte_pair.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>

#include "core/text.h"
#include "core/utf8.h"
#include "data/text/words.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::string_view kSpace = "▁";  // sentencepiece's
constexpr int64_t kMostIds = 1 << 24;     // limit of a vocabulary: an id is an index

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

AddedToken added_token(const nlohmann::json& json, bool special) {
  return {.content = json.at("content"),
          .special = json.value("special", special),
          .normalized = json.value("normalized", false),
          .lstrip = json.value("lstrip", false),
          .rstrip = json.value("rstrip", false),
          .single_word = json.value("single_word", false)};
}

/// The patterns of published files. Errors: another one.
PiecePattern pattern_of(const fs::path& path, const std::string& pattern) {
  constexpr const char* kWords = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+)";
  constexpr const char* kCased = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                 R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)";
  const auto with = [](const char* words, const char* digits, const char* ends) {
    return str(words, '|', digits, R"(| ?[^\s\p{L}\p{N}]+)", ends, R"(*|\s*[\r\n]+|\s+(?!\S)|\s+)");
  };
  if (pattern == with(kWords, R"(\p{N}{1,3})", R"([\r\n])")) return PiecePattern::llama3;
  if (pattern == with(kWords, R"(\p{N})", R"([\r\n])")) return PiecePattern::qwen2;
  if (pattern == with(kCased, R"(\p{N})", R"([\r\n/])")) return PiecePattern::tekken;
  fail(path.string(), ": expected the isolated pattern of Llama-3's, Qwen-2's or Tekken's Split, got '",
       printable(pattern, 200), "'");
}

uint64_t pair_key(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

BytePair::BytePair(std::vector<std::string> tokens, Metaspace metaspace)
    : tokens_(std::move(tokens)), metaspace_(metaspace) {
  for (size_t id = 0; id < tokens_.size(); ++id)
    if (!tokens_[id].empty()) ids_.emplace(tokens_[id], static_cast<int64_t>(id));
  set_special({kEndOfText});
}

int64_t BytePair::end_of_text() const { return find(kEndOfText); }

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
      if (!value.is_number()) static_cast<void>(value.get<int64_t>());  // throws an error that names the type
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
  result.files_ = {{"vocab.json", text}, {"merges.txt", read_text(merges, "merges")}};
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

BytePair BytePair::from_tokenizer_json(const fs::path& path) {
  const TokenizerJson json = read_tokenizer_json(path, "BPE");
  const auto expect = [&](bool right, const char* what, const auto&... got) {
    WEFT_CHECK(right, path.string(), ": expected ", what,
               json.byte_fallback ? ", as sentencepiece's byte pairs, got " : ", as byte-level tokenizers, got ",
               printable(str(got...)));
  };
  const std::vector<std::string>& cuts = json.pre_tokenizers;
  const bool composes = json.normalizers == std::vector<std::string>{"NFC"};
  PiecePattern pattern = PiecePattern::gpt2;
  if (json.byte_fallback) {
    expect(json.metaspace != Metaspace::absent,
           "the normalizers Prepend and Replace, or a pre_tokenizer Metaspace that does not split, with `▁`",
           json.normalizers.empty() ? "" : joined(json.normalizers) + " and ", cuts.empty() ? "none" : joined(cuts));
    expect(json.decodes_metaspace, "the decoders Replace, ByteFallback and Fuse, or Strip of a space after them",
           "others");
    expect(!json.ignores_merges, "no ignore_merges", "true");
    for (int byte = 0; byte < 256; ++byte) {
      const std::string token = byte_token(static_cast<uint8_t>(byte));
      const auto end = json.vocabulary.end();
      expect(std::find(json.vocabulary.begin(), end, token) != end, "a token for each byte", "no ", token);
    }
  } else {
    expect(json.normalizers.empty() || composes, "no normalizer but NFC", joined(json.normalizers));
    expect(cuts.empty() || cuts.back() == "ByteLevel", "the pre_tokenizer ByteLevel", joined(cuts));
    if (cuts.size() < 2) {
      expect(json.uses_pattern, "ByteLevel's use_regex", "false");
    } else {
      expect(cuts.size() == 2 && (cuts[0] == "Split" || cuts[0] == "Digits"), "Split or Digits before ByteLevel",
             joined(cuts));
      const bool splits = cuts[0] == "Split";
      pattern = splits ? pattern_of(path, json.pattern) : PiecePattern::digits;
      expect(splits || json.parts_digits, "Digits' individual_digits", "false");
      expect(json.uses_pattern != splits, "ByteLevel's use_regex after Digits and not after Split",
             json.uses_pattern ? "true" : "false");
      expect(!json.adds_prefix_space, "no add_prefix_space after another pre_tokenizer", "true");
    }
  }
  expect(json.dropout == 0, "no dropout of merges", json.dropout);
  expect(json.continuation.empty(), "no continuing_subword_prefix", json.continuation);
  expect(json.word_end.empty(), "no end_of_word_suffix", json.word_end);
  std::vector<std::string> tokens = json.vocabulary;
  const Metaspace metaspace = json.byte_fallback ? json.metaspace : Metaspace::absent;
  if (!json.byte_fallback) std::transform(tokens.begin(), tokens.end(), tokens.begin(), bytes_of);
  BytePair result(std::move(tokens), metaspace);
  for (const auto& [left, right] : json.merges) {
    try {
      result.add_merge(result.read(left), result.read(right));
    } catch (const Error& error) {
      fail(path.string(), ": merge ", result.merges_.size() + 1, ": ", error.what());
    }
  }
  for (const AddedToken& token : json.added) result.add_named(token, path.string());
  result.prefix_space_ = json.adds_prefix_space;
  result.composes_ = composes;
  result.whole_pieces_ = json.ignores_merges;
  result.pattern_ = pattern;
  result.strips_space_ = json.byte_fallback && json.strips_space;
  expect(!json.is_other_template, "a post_processor that puts at most one token before a text and one after it",
         "another");
  if (const std::string& begin = json.begin.empty() ? json.first : json.begin; !begin.empty()) {
    result.begin_ = result.find(begin);
    expect(result.begin_ >= 0, "a post_processor with tokens of the vocabulary", begin);
  }
  return result;
}

BytePair BytePair::from_folder(const fs::path& folder) {
  const auto has = [&](const char* name) { return fs::exists(folder / name); };
  WEFT_CHECK(has("tokenizer.json") || has("vocab.json") || has("encoder.json"),
             "byte pairs: expected tokenizer.json, or vocab.json and merges.txt, in the folder ", folder.string(),
             ", as Hugging Face's gpt2 has them");
  BytePair result = has("tokenizer.json") ? from_tokenizer_json(folder / "tokenizer.json")
                    : has("vocab.json")   ? from_files(folder / "vocab.json", folder / "merges.txt")
                                          : from_files(folder / "encoder.json", folder / "vocab.bpe");
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"})
    if (has(name)) result.files_.emplace(name, read_text(folder / name, "tokenizer"));
  result.read_special_tokens(folder);
  result.set_special({kEndOfText});
  return result;
}

/// Ids are in added_tokens.json, in tokenizer_config.json since transformers 4.34; the special ones among them are
/// also named with their purpose, by their text or as an object.
void BytePair::read_special_tokens(const fs::path& folder) {
  using Json = nlohmann::json;
  const auto named = [&](const std::string& content) {
    return std::any_of(named_.begin(), named_.end(), [&](const AddedToken& token) { return token.content == content; });
  };
  std::map<std::string, int64_t> added;
  const auto add_special = [&](const Json& value, const std::string& path) {
    AddedToken token = value.is_string() ? AddedToken{.content = value, .special = true} : added_token(value, true);
    const auto id = added.find(token.content);
    if (id != added.end()) token.id = id->second;
    if (!token.content.empty() && !named(token.content)) add_named(std::move(token), path);
  };
  for (const char* name : {"added_tokens.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = files_.find(name);
    if (file == files_.end()) continue;
    const std::string path = (folder / name).string();
    check_nesting(file->second, path);
    try {
      const Json json = Json::parse(file->second);
      if (file->first == "added_tokens.json") {
        for (const auto& [content, id] : json.items()) added[content] = json_integer<int64_t>(id, path);
        continue;
      }
      const Json decoder = json.value("added_tokens_decoder", Json::object());
      for (const auto& [id, value] : decoder.items()) {
        AddedToken token = added_token(value, false);
        token.id = json_integer<int64_t>(Json::parse(id), path);
        if (!named(token.content)) add_named(std::move(token), path);
      }
      for (const char* key : {"add_bos_token", "add_eos_token"})
        WEFT_CHECK(
            !json.contains(key) || json[key] != true || (begin_ >= 0 && key == std::string_view("add_bos_token")), path,
            ": expected no ", key, ", got true");
      if (json.contains("add_prefix_space") && metaspace_ == Metaspace::absent)
        prefix_space_ = json["add_prefix_space"].get<bool>();
      for (const auto& [key, value] : json.items()) {
        if (key.ends_with("_token") && (value.is_string() || value.is_object())) add_special(value, path);
        if (key.ends_with("_special_tokens") && value.is_array())
          for (const Json& one : value) add_special(one, path);
      }
    } catch (const Json::exception& error) {
      fail(path, ": expected the special tokens of a tokenizer, got '", printable(error.what()), "'");
    }
  }
  for (const auto& [content, id] : added)
    if (!named(content))
      add_named({.content = content, .id = id, .normalized = true}, (folder / "added_tokens.json").string());
}

void BytePair::add_named(AddedToken token, const std::string& file) {
  const std::string shown = printable(token.content, 100);
  WEFT_CHECK(!token.content.empty(), file, ": expected the text of an added token, got none");
  WEFT_CHECK(!token.single_word, file, ": expected no single_word, got it for '", shown, "'");
  auto known = ids_.find(token.content);
  if (known == ids_.end()) known = ids_.find(read(token.content));
  if (token.id < 0 && known != ids_.end()) token.id = known->second;
  WEFT_CHECK(token.id >= 0 && token.id < kMostIds, file, ": expected an id below ", kMostIds, " of the token '", shown,
             "' in the vocabulary or among the added tokens, got ", token.id < 0 ? std::string("none") : str(token.id));
  WEFT_CHECK(known == ids_.end() || known->second == token.id, file, ": the token '", shown, "' has the ids ", token.id,
             " and, in the vocabulary, ", known->second);
  if (size() <= token.id) tokens_.resize(static_cast<size_t>(token.id) + 1);
  std::string& place = tokens_[static_cast<size_t>(token.id)];
  WEFT_CHECK(place.empty() || known != ids_.end(), file, ": the id ", token.id, " of '", shown,
             "' is another token's: '", printable(written(place), 100), "'");
  if (known != ids_.end()) ids_.erase(known);
  ids_[token.content] = token.id;
  place = metaspace_ == Metaspace::prepend && token.normalized ? str(kSpace, token.content) : token.content;
  named_.push_back(std::move(token));
}

void BytePair::set_special(std::initializer_list<std::string_view> tokens) {
  std::vector<AddedToken> all = named_;
  for (const std::string_view content : tokens) {
    const bool named =
        std::any_of(named_.begin(), named_.end(), [&](const auto& token) { return token.content == content; });
    const int64_t id = find(content);
    if (!named && id >= 0 && metaspace_ == Metaspace::absent)
      all.push_back({.content = std::string(content), .id = id, .special = true});
  }
  AddedTokens::Normalizer normalizer = composes_ ? composed_text : AddedTokens::Normalizer();
  if (metaspace_ == Metaspace::prepend)
    normalizer = [](std::string_view text) { return replaced_in(str(kSpace, text), " ", kSpace); };
  special_ = AddedTokens(std::move(all), std::move(normalizer));
}

void BytePair::add_merge(std::string_view left, std::string_view right) {
  const auto id = [&](const std::string& token) {
    const auto found = ids_.find(token);
    WEFT_CHECK(found != ids_.end(), "the vocabulary has no token '", printable(written(token)), "'");
    return found->second;
  };
  const int64_t a = id(std::string(left)), b = id(std::string(right));
  const int64_t merged = id(std::string(left) + std::string(right));
  merges_words_ = merges_words_ || (right.starts_with(kSpace) && !left.ends_with(kSpace));
  merges_.emplace(pair_key(a, b), Merge{static_cast<int64_t>(merges_.size()), merged});
}

/// The bytes of a token as files write it, and back.
std::string BytePair::read(std::string_view written) const {
  return metaspace_ == Metaspace::absent ? bytes_of(written) : std::string(written);
}
std::string BytePair::written(std::string_view token) const {
  return metaspace_ == Metaspace::absent ? visible(token) : std::string(token);
}

/// A part of a text between added tokens with its `▁`; `first`: the text begins with it.
std::string BytePair::marked(std::string_view part, bool first, std::string_view before) const {
  const bool prepends = metaspace_ == Metaspace::prepend;
  const auto ends = [&](const AddedToken& token) {
    return before.ends_with(token.content) && !(prepends && token.normalized);
  };
  const std::vector<AddedToken>& added = special_.tokens();
  const bool inside = first && !before.empty() && std::none_of(added.begin(), added.end(), ends);
  const bool prefixed =
      metaspace_ == Metaspace::first ? first && before.empty() : metaspace_ != Metaspace::never && !inside;
  std::string text = replaced_in(part, " ", kSpace);
  if (prefixed && (prepends || !text.starts_with(kSpace))) text.insert(0, kSpace);
  return text;
}

/// The tokens of one text. Pieces occur again and again: where their ids stand is known.
struct BytePair::Encoder {
  explicit Encoder(const BytePair& tokenizer) : pairs(tokenizer) {}

  void add(std::string_view text, std::string_view before) {
    const auto marked = [&](std::string_view part) { return pairs.marked(part, part.data() == text.data(), before); };
    if (pairs.metaspace_ == Metaspace::absent)
      pairs.special_.append_ids(text, ids, [this](std::string_view part) { add_pieces(part); });
    else if (pairs.metaspace_ == Metaspace::prepend)
      pairs.special_.append_ids(
          text, ids, [this](std::string_view part) { add_words(std::string(part)); }, marked);
    else
      pairs.special_.append_ids(text, ids, [&](std::string_view part) { add_words(marked(part)); });
  }

  /// No merge goes beyond a word, which begins with `▁`; or the text is one piece.
  void add_words(std::string text) {
    std::string_view rest = kept.emplace_back(std::move(text));
    for (size_t end = 0; !rest.empty(); rest.remove_prefix(end)) {
      for (end = 0; rest.substr(end).starts_with(kSpace);) end += kSpace.size();
      end = pairs.merges_words_ ? rest.size() : std::min(rest.find(kSpace, end), rest.size());
      add_known(rest.substr(0, end));
    }
  }

  void add_pieces(std::string_view text) {
    if (pairs.merges_.empty()) {
      for (const char& byte : text) add_piece({&byte, 1});
      return;
    }
    const bool spaces = pairs.prefix_space_ && !text.starts_with(' ');
    if (spaces || pairs.composes_) text = kept.emplace_back((spaces ? " " : "") + std::string(text));
    for (const std::string_view piece : split_pieces(text, pairs.pattern_)) add_known(piece);
  }

  void add_known(std::string_view piece) {
    const size_t begin = ids.size();
    const auto before = known.find(piece);
    if (before == known.end()) {
      add_piece(piece);
      known.emplace(piece, std::pair{begin, ids.size()});
    } else {
      for (size_t i = before->second.first; i < before->second.second; ++i) ids.push_back(ids[i]);
    }
  }

  void add_piece(std::string_view piece);

  const BytePair& pairs;
  std::deque<std::string> kept;  // `known` points into them
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> known;
  std::vector<int64_t> ids;
};

/// The neighbours stand in a linked list, their possible merges in a queue by rank and place; those that no longer hold
/// are passed over. A piece of n bytes takes n log n.
void BytePair::Encoder::add_piece(std::string_view piece) {
  struct Symbol {
    int64_t id, before, after;  // id -1: merged into the one before
  };
  struct Candidate {
    int64_t rank, left, left_id, right_id;
    bool operator>(const Candidate& o) const { return std::tie(rank, left) > std::tie(o.rank, o.left); }
  };
  if (pairs.whole_pieces_)
    if (const auto whole = pairs.ids_.find(std::string(piece)); whole != pairs.ids_.end())
      return ids.push_back(whole->second);
  std::vector<Symbol> symbols;
  const auto add = [&](const std::string& token) {
    const auto found = pairs.ids_.find(token);
    const auto place = static_cast<int64_t>(symbols.size());
    if (found != pairs.ids_.end()) symbols.push_back({found->second, place - 1, place + 1});
    return found != pairs.ids_.end();
  };
  for (size_t i = 0, size = 1; i < piece.size(); i += size) {
    uint32_t number = 0;
    if (pairs.metaspace_ != Metaspace::absent) size = std::max<size_t>(decode_utf8(piece, i, number), 1);
    if (add(std::string(piece.substr(i, size)))) continue;
    WEFT_CHECK(pairs.metaspace_ != Metaspace::absent, "byte pairs: the vocabulary has no token for the byte ",
               static_cast<int>(static_cast<uint8_t>(piece[i])), " of '", printable(piece, 40), "'");
    for (const char byte : piece.substr(i, size)) add(byte_token(static_cast<uint8_t>(byte)));
  }
  symbols.back().after = -1;
  const auto count = static_cast<int64_t>(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](int64_t left) {
    if (left < 0) return;
    const Symbol& a = symbols[static_cast<size_t>(left)];
    if (a.after < 0) return;
    const int64_t right_id = symbols[static_cast<size_t>(a.after)].id;
    const auto found = pairs.merges_.find(pair_key(a.id, right_id));
    if (found != pairs.merges_.end()) candidates.push({found->second.rank, left, a.id, right_id});
  };
  for (int64_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& a = symbols[static_cast<size_t>(best.left)];
    if (a.id != best.left_id || a.after < 0 || symbols[static_cast<size_t>(a.after)].id != best.right_id) continue;
    Symbol& b = symbols[static_cast<size_t>(a.after)];
    a.id = pairs.merges_.at(pair_key(best.left_id, best.right_id)).merged;
    b.id = -1;
    a.after = b.after;
    if (a.after >= 0) symbols[static_cast<size_t>(a.after)].before = best.left;
    consider(a.before);
    consider(best.left);
  }
  for (int64_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].after)
    ids.push_back(symbols[static_cast<size_t>(i)].id);
}

std::vector<int64_t> BytePair::encode(std::string_view text, std::string_view before) const {
  Encoder encoder(*this);
  encoder.add(text, before);
  return std::move(encoder.ids);
}

std::string BytePair::decode(std::span<const int64_t> ids, bool continues) const {
  std::string text;
  for (const int64_t id : ids) {
    WEFT_CHECK(id >= 0 && id < size() && !tokens_[static_cast<size_t>(id)].empty(),
               "byte pairs: expected the id of a token, below ", size(), ", got ", id);
    const std::string& token = tokens_[static_cast<size_t>(id)];
    if (metaspace_ == Metaspace::absent)
      text += token;
    else
      append_token(text, token, kSpace, true);
  }
  if (strips_space_ && !continues && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

void BytePair::save(const fs::path& folder) const {
  std::map<std::string, std::string> files = files_;
  if (files.empty()) {
    nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
    for (size_t id = 0; id < tokens_.size(); ++id) vocabulary[visible(tokens_[id])] = id;
    // Hugging Face's class would add `<|endoftext|>`, which the model lacks.
    const nlohmann::ordered_json config{
        {"tokenizer_class", "GPT2Tokenizer"}, {"bos_token", nullptr}, {"eos_token", nullptr}, {"unk_token", nullptr}};
    files = {{"vocab.json", vocabulary.dump()},
             {"merges.txt", "#version: 0.2\n"},
             {"tokenizer_config.json", config.dump(2) + '\n'}};
  }
  for (const auto& [name, text] : files) write_atomically(folder / name, text, "tokenizer");
}

int64_t BytePair::find(std::string_view token) const {
  const auto found = ids_.find(read(token));
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace weft::data
