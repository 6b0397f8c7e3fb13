// SPDX-License-Identifier: Apache-2.0
#include "data/text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "core/utf8.h"
#include "data/text/words.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"

namespace weft::data {
namespace {

using Json = nlohmann::json;

/// A part of tokenizer.json, or the parts of a Sequence, whose list is called `parts`.
std::vector<Json> sequence(const Json& json, const char* key, const char* parts) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  if (found->at("type") != "Sequence") return {*found};
  return found->at(parts).get<std::vector<Json>>();
}

size_t character_size(std::string_view text, size_t at) {
  uint32_t number = 0;
  return std::max<size_t>(decode_utf8(text, at, number), 1);
}

}  // namespace

Unigram Unigram::from_tokenizer_json(const std::filesystem::path& path) {
  Unigram made;
  made.file_ = read_text(path, "tokenizer");
  check_nesting(made.file_, path.string());
  try {
    const Json json = Json::parse(made.file_), &model = json.at("model");
    const std::string type = model.value("type", "Unigram");
    WEFT_CHECK(type == "Unigram", "expected a model of type Unigram, got '", printable(type), "'");
    double least = std::numeric_limits<double>::infinity();
    for (const Json& one : model.at("vocab")) {
      const std::string token = one.at(0);
      const double score = one.at(1);
      WEFT_CHECK(std::isfinite(score), "expected a finite score of the token '", printable(token), "', got ", score);
      const auto id = static_cast<int64_t>(made.tokens_.size());
      made.tokens_.push_back(token);
      if (!token.empty()) made.entries_.insert_or_assign(token, Entry{id, score});
      made.longest_ = std::max(made.longest_, token.size());
      least = std::min(least, score);
    }
    WEFT_CHECK(!made.tokens_.empty(), "expected tokens in the vocabulary, got none");
    constexpr double kUnknown = 10;  // SentencePiece's distance from the least score
    made.unknown_score_ = least - kUnknown;
    if (model.contains("unk_id") && !model["unk_id"].is_null()) {
      made.unknown_ = json_integer<int64_t>(model["unk_id"], "unk_id");
      WEFT_CHECK(made.unknown_ >= 0 && made.unknown_ < made.size(), "expected an unk_id below ", made.size(), ", got ",
                 made.unknown_);
    }
    made.byte_fallback_ = model.value("byte_fallback", false);
    for (const Json& one : sequence(json, "normalizer", "normalizers")) {
      const std::string kind = one.at("type");
      if (kind == "Precompiled") {
        made.characters_ = CharacterMap(one.at("precompiled_charsmap").get<std::string>());
        made.steps_.push_back({Step::map});
      } else if (kind == "NFC" || kind == "NFKC") {
        made.steps_.push_back({kind == "NFC" ? Step::compose : Step::compose_compatible});
      } else if (kind == "Lowercase") {
        made.steps_.push_back({Step::lowercase});
      } else if (kind == "Strip") {
        made.steps_.push_back({Step::strip, "", "", one.value("strip_left", true), one.value("strip_right", true)});
      } else if (kind == "Prepend") {
        made.steps_.push_back({Step::prepend, "", one.at("prepend")});
      } else if (kind == "Replace" && one.at("pattern").contains("String")) {
        made.steps_.push_back({Step::replace, one["pattern"]["String"], one.at("content")});
        WEFT_CHECK(!made.steps_.back().from.empty(), "Replace: expected a text to replace, got an empty one");
      } else if (kind == "Replace" && one.at("pattern").value("Regex", "") == " {2,}") {
        made.steps_.push_back({Step::merge_spaces, "", one.at("content")});
      } else {
        fail("the normalizer ", printable(one.dump(), 120), " is not supported");
      }
    }
    for (const Json& one : sequence(json, "pre_tokenizer", "pretokenizers")) {
      const std::string kind = one.at("type");
      if (kind == "WhitespaceSplit") {
        made.splits_white_space_ = true;
        continue;
      }
      WEFT_CHECK(kind == "Metaspace", "the pre_tokenizer ", printable(one.dump(), 120), " is not supported");
      made.space_ = one.value("replacement", "▁");
      const std::string scheme = one.value("prepend_scheme", one.value("add_prefix_space", true) ? "always" : "never");
      made.prefix_ = metaspace_named(scheme);
      made.cuts_words_ = one.value("split", true);
    }
    std::vector<AddedToken> added;
    for (const Json& one : json.value("added_tokens", Json::array())) {
      AddedToken token{.content = one.at("content"), .id = json_integer<int64_t>(one.at("id"), "the id of a token")};
      constexpr int64_t kMostIds = 1 << 24;
      WEFT_CHECK(token.id >= 0 && token.id < kMostIds, "expected an id below ", kMostIds, " of the token '",
                 printable(token.content), "', got ", token.id);
      token.special = one.value("special", false);
      token.normalized = one.value("normalized", !token.special);
      token.lstrip = one.value("lstrip", false);
      token.rstrip = one.value("rstrip", false);
      token.single_word = one.value("single_word", false);
      if (made.size() <= token.id) made.tokens_.resize(static_cast<size_t>(token.id) + 1);
      made.tokens_[static_cast<size_t>(token.id)] = token.content;
      added.push_back(std::move(token));
    }
    made.added_ = AddedTokens(std::move(added));
  } catch (const Json::exception& error) {
    fail(path.string(), ": expected a tokenizer of Hugging Face's tokenizers, got '", printable(error.what()), "'");
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
  return made;
}

int64_t Unigram::find(std::string_view token) const {
  if (const AddedToken* const added = added_.find(token)) return added->id;
  const auto found = entries_.find(token);
  return found == entries_.end() ? -1 : found->second.id;
}

std::string Unigram::token_text(int64_t id) const {
  WEFT_CHECK(id >= 0 && id < size(), "Unigram: expected an id below ", size(), ", got ", id);
  return tokens_[static_cast<size_t>(id)];
}

void Unigram::save(const std::filesystem::path& folder) const {
  write_atomically(folder / "tokenizer.json", file_, "tokenizer");
}

TextEncoder::Frame Unigram::frame() const {
  const int64_t first = find("<s>"), separator = find("</s>");
  WEFT_CHECK(first >= 0 && separator >= 0, "Unigram: expected the tokens <s> and </s> around a text, got none");
  return {.first = first, .separator = separator, .between = 2, .marks_second = false};
}

std::string Unigram::normalized(std::string_view given) const {
  std::string text(given);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::map:
        text = characters_.apply(text);
        break;
      case Step::compose:
        text = composed_text(text);
        break;
      case Step::compose_compatible:
        text = compatible_text(text);
        break;
      case Step::lowercase:
        text = normalized_text(text, {.strip_accents = false, .parts_ideographs = false, .cleans_text = false});
        break;
      case Step::strip: {
        const size_t left = step.left ? leading_space(text) : 0;
        text.erase(0, left);
        text.resize(text.size() - (step.right ? trailing_space(text) : 0));
        break;
      }
      case Step::prepend:
        if (!text.empty()) text = step.to + text;
        break;
      case Step::replace:
        text = replaced_in(text, step.from, step.to);
        break;
      case Step::merge_spaces: {
        std::string merged;
        for (size_t at = 0; at < text.size();) {
          const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
          if (end - at >= 2)
            merged += step.to;
          else if (end > at)
            merged += ' ';
          if (end < text.size()) merged += text[end];
          at = end + 1;
        }
        text = merged;
        break;
      }
    }
  }
  return text;
}

std::vector<int64_t> Unigram::ids_of(std::string_view text) const {
  std::vector<int64_t> ids;
  const char* const begin = text.data();
  added_.append_ids(text, ids, [&](std::string_view part) {
    const std::string normal = normalized(part);
    const bool begins = part.data() == begin;
    if (!splits_white_space_) return append_words(normal, begins, ids);
    bool first = begins;
    for (std::string_view rest = normal; !rest.empty();) {
      rest.remove_prefix(leading_space(rest));
      size_t end = 0;
      while (end < rest.size() && leading_space(rest.substr(end, 4)) == 0) end += character_size(rest, end);
      if (end > 0) append_words(rest.substr(0, end), first, ids);
      first = false;
      rest.remove_prefix(end);
    }
  });
  return ids;
}

void Unigram::append_words(std::string_view text, bool begins, std::vector<int64_t>& ids) const {
  if (text.empty()) return;
  if (space_.empty()) return append_ids(text, ids);
  std::string marked = replaced_in(text, " ", space_);
  const bool prepends = prefix_ == Metaspace::always || (prefix_ == Metaspace::first && begins);
  if (prepends && !marked.starts_with(space_)) marked = space_ + marked;
  if (!cuts_words_) return append_ids(marked, ids);
  for (size_t at = 0; at < marked.size();) {
    const size_t end = std::min(
        marked.find(space_, at + (marked.compare(at, space_.size(), space_) == 0 ? space_.size() : 1)), marked.size());
    append_ids(std::string_view(marked).substr(at, end - at), ids);
    at = end;
  }
}

void Unigram::append_ids(std::string_view word, std::vector<int64_t>& ids) const {
  struct Best {
    double score = 0;
    size_t begin = std::string_view::npos;  ///< where the last token begins; npos: not reached
    int64_t id = -1;                        ///< -1: an unknown character
  };
  std::vector<Best> best(word.size() + 1);
  best[0].begin = 0;
  const auto reach = [&](size_t end, const Best& by) {
    if (best[end].begin == std::string_view::npos || by.score > best[end].score) best[end] = by;
  };
  for (size_t at = 0; at < word.size();) {
    const size_t one = std::min(character_size(word, at), word.size() - at);
    bool has_one = false;
    for (size_t length = 1; length <= std::min(longest_, word.size() - at); ++length) {
      const auto found = entries_.find(word.substr(at, length));
      if (found == entries_.end()) continue;
      reach(at + length, {best[at].score + found->second.score, at, found->second.id});
      has_one = has_one || length == one;
    }
    if (!has_one) reach(at + one, {best[at].score + unknown_score_, at, -1});
    at += one;
  }
  struct Piece {
    size_t begin, end;
    int64_t id;
  };
  std::vector<Piece> pieces;  // from the last on
  for (size_t end = word.size(); end > 0; end = best[end].begin) {
    const bool is_unknown = best[end].id == -1;
    if (is_unknown && !pieces.empty() && pieces.back().id == -1)
      pieces.back().begin = best[end].begin;
    else
      pieces.push_back({best[end].begin, end, best[end].id});
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->id >= 0) {
      ids.push_back(piece->id);
      continue;
    }
    const std::string_view unknown = word.substr(piece->begin, piece->end - piece->begin);
    std::vector<int64_t> bytes;
    for (const char c : unknown) bytes.push_back(byte_fallback_ ? find(byte_token(static_cast<uint8_t>(c))) : -1);
    if (std::find(bytes.begin(), bytes.end(), -1) == bytes.end()) {
      ids.insert(ids.end(), bytes.begin(), bytes.end());
      continue;
    }
    WEFT_CHECK(unknown_ >= 0, "Unigram: the vocabulary has no token for '", printable(unknown, 60), "' and no unk_id");
    ids.push_back(unknown_);
  }
}

std::string Unigram::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) append_token(text, token_text(id), space_, byte_fallback_);
  if (prefix_ != Metaspace::never && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace weft::data
