// SPDX-License-Identifier: Apache-2.0
// SentencePiece's unigram model of a tokenizer.json against a search of all segmentations, and its parts alone.
#include "data/text/unigram.h"

#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/text.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

/// A trie as a double array, by the first offset that fits: entries are byte strings and their values.
class TrieMaker {
 public:
  explicit TrieMaker(const std::map<std::string, uint32_t>& entries) : units_(256), used_(256) {
    used_[0] = true;
    place(entries, 0, 0);
  }
  std::string bytes() const {
    std::string result;
    for (const uint32_t unit : units_)
      for (int i = 0; i < 4; ++i) result += static_cast<char>(unit >> (8 * i) & 0xFF);
    return result;
  }

 private:
  /// The children of the node at `at`, whose entries have `depth` bytes in common.
  void place(const std::map<std::string, uint32_t>& entries, size_t at, size_t depth) {
    std::map<uint8_t, std::map<std::string, uint32_t>> children;
    const uint32_t* value = nullptr;
    for (const auto& [key, entry] : entries) {
      if (key.size() == depth)
        value = &entry;
      else
        children[static_cast<uint8_t>(key[depth])].emplace(key, entry);
    }
    size_t offset = 1;
    const auto fits = [&] {
      std::vector<size_t> places;
      if (value) places.push_back(at ^ offset);
      for (const auto& [byte, more] : children) places.push_back(at ^ offset ^ byte);
      for (const size_t one : places) {
        if (units_.size() <= one) units_.resize((one | 255) + 1), used_.resize(units_.size());
        if (used_[one]) return false;
      }
      return true;
    };
    while (!fits()) ++offset;
    units_[at] |= static_cast<uint32_t>(offset) << 10 | (value ? 1u << 8 : 0);
    if (value) units_[at ^ offset] = *value | 1u << 31, used_[at ^ offset] = true;
    for (const auto& [byte, more] : children) units_[at ^ offset ^ byte] = byte, used_[at ^ offset ^ byte] = true;
    for (const auto& [byte, more] : children) place(more, at ^ offset ^ byte, depth + 1);
  }

  std::vector<uint32_t> units_;
  std::vector<bool> used_;
};

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// `precompiled_charsmap` of these replacements.
std::string charsmap(const std::map<std::string, std::string>& rules) {
  std::map<std::string, uint32_t> entries;
  std::string texts;
  for (const auto& [from, to] : rules) {
    entries[from] = static_cast<uint32_t>(texts.size());
    texts += to + '\0';
  }
  const std::string trie = TrieMaker(entries).bytes();
  std::string size;
  for (int i = 0; i < 4; ++i) size += static_cast<char>(trie.size() >> (8 * i) & 0xFF);
  return base64(size + trie + texts);
}

Unigram tokenizer(const Json& json) {
  const TemporaryFolder folder;
  std::ofstream(folder / "tokenizer.json") << json.dump();
  return Unigram::from_tokenizer_json(folder / "tokenizer.json");
}

Json model(const Json& vocabulary, bool bytes = false) {
  return {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}, {"byte_fallback", bytes}}}};
}

// Random vocabularies of a and b, whose best segmentation is searched among all.
TEST(Unigram, FindsTheSegmentationOfTheLargestScore) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> score(-9, -1);
  for (int round = 0; round < 30; ++round) {
    std::map<std::string, double> scores{{"a", score(random)}, {"b", score(random)}};
    for (int i = 0; i < 8; ++i) {
      std::string token;
      for (uint64_t n = 2 + random() % 3; n > 0; --n) token += random() % 2 ? 'a' : 'b';
      scores[token] = score(random);
    }
    Json vocabulary = Json::array({{"<unk>", 0.0}});
    for (const auto& [token, value] : scores) vocabulary.push_back({token, value});
    const Unigram tokens = tokenizer(model(vocabulary));
    std::string text;
    for (int i = 0; i < 10; ++i) text += random() % 2 ? 'a' : 'b';
    double best = -1e9;
    for (uint32_t cuts = 0; cuts < 1u << 9; ++cuts) {
      double sum = 0;
      std::string piece;
      for (size_t i = 0; i < text.size(); ++i) {
        piece += text[i];
        if (i + 1 < text.size() && (cuts >> i & 1) == 0) continue;
        sum += scores.contains(piece) ? scores[piece] : -1e6;
        piece.clear();
      }
      best = std::max(best, sum);
    }
    double got = 0;
    std::string joined_text;
    for (const int64_t id : tokens.ids_of(text))
      got += scores[tokens.token_text(id)], joined_text += tokens.token_text(id);
    EXPECT_EQ(joined_text, text);
    EXPECT_NEAR(got, best, 1e-12) << text;
  }
}

#if WEFT_HAVE_UTF8PROC

TEST(CharacterMap, ReplacesCharactersAndClusters) {
  const CharacterMap map(
      charsmap({{"ﬁ", "fi"}, {"①", "1"}, {"\u3000", " "}, {"e\u0301", "é"}, {"\u200b", ""}, {"Ａ", "A"}, {"Ｂ", "B"}}));
  EXPECT_EQ(map.apply("ﬁne\u3000①ＡＢ\u200b."), "fine 1AB.");
  EXPECT_EQ(map.apply("cafe\u0301"), "café");
  EXPECT_EQ(map.apply(""), "");
  EXPECT_EQ(map.apply("\xFFx\xC3"), "\xFFx\xC3") << "invalid bytes stay";
  // A cluster of six bytes counts by its characters.
  EXPECT_EQ(map.apply("Ａ\u0301\u0302"), "A\u0301\u0302");
}

TEST(CharacterMap, SaysWhatIsWrong) {
  EXPECT_THAT(error_text([] { CharacterMap("a b"); }),
              HasSubstr("precompiled_charsmap: expected base64, got the byte 32"));
  EXPECT_THAT(error_text([] { CharacterMap(base64("abc")); }), HasSubstr("expected a trie of 0 bytes"));
  EXPECT_THAT(error_text([] { CharacterMap(base64(std::string("\x08\0\0\0abcd", 8))); }),
              HasSubstr("expected a trie of 8 bytes and replacements that end with zeros, got 8 bytes"));
  // The root's children would lie beyond the trie.
  const CharacterMap beyond(base64(std::string("\x04\0\0\0\0\xFF\xFF\0x", 9) + '\0'));
  EXPECT_THAT(error_text([&] { beyond.apply("a"); }), HasSubstr("its trie leaves its 1 units"));
}

TEST(Unigram, ReadsTheFormOfXlmRoberta) {
  Json json = model(Json::array({{"<s>", 0.0},
                                 {"<pad>", 0.0},
                                 {"</s>", 0.0},
                                 {"<unk>", 0.0},
                                 {"▁", -5.0},
                                 {"▁a", -1.0},
                                 {"b", -2.0},
                                 {"▁ab", -4.0},
                                 {"c", -3.0}}));
  json["model"]["unk_id"] = 3;
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "Precompiled"}, {"precompiled_charsmap", charsmap({{"Ａ", "a"}})}},
                          {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}}}};
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", true}}}}};
  json["added_tokens"] = Json::array();
  for (const auto& [id, content] : std::map<int, std::string>{{0, "<s>"}, {1, "<pad>"}, {2, "</s>"}, {9, "<mask>"}})
    json["added_tokens"].push_back({{"id", id}, {"content", content}, {"special", true}, {"lstrip", id == 9}});
  const Unigram tokens = tokenizer(json);
  EXPECT_EQ(tokens.size(), 10);
  EXPECT_EQ(tokens.padding_id(), 1);
  EXPECT_THAT(tokens.ids_of("ab"), ElementsAre(5, 6)) << "-3 is more than -4";
  EXPECT_THAT(tokens.ids_of("  Ａb\t\n cc "), ElementsAre(5, 6, 4, 8, 8));
  EXPECT_THAT(tokens.ids_of("xyb"), ElementsAre(4, 3, 6)) << "unknown neighbours are one";
  EXPECT_THAT(tokens.ids_of("a <mask> c"), ElementsAre(5, 9, 4, 8));
  EXPECT_THAT(tokens.encode("a", "c").ids, ElementsAre(0, 5, 2, 2, 4, 8, 2));
  EXPECT_THAT(tokens.ids_of(""), ElementsAre());
  EXPECT_EQ(tokens.decode(tokens.ids_of("ab  cc a")), "ab cc a");
  const TemporaryFolder folder;
  tokens.save(folder / "");
  EXPECT_THAT(Unigram::from_tokenizer_json(folder / "tokenizer.json").ids_of("ab"), ElementsAre(5, 6));
}

// unigram.py's pipelines; WEFT_UNIGRAM names a folder of more texts.
TEST(Unigram, EqualsHuggingFacesTokenizers) {
  const char* const more = std::getenv("WEFT_UNIGRAM");
  const std::filesystem::path folder = more ? more : std::filesystem::path(WEFT_GOLDEN) / "unigram";
  for (const char* name : {"xlm_roberta", "t5", "deberta", "bytes"}) {
    Json json = Json::parse(read_text(folder / name / "tokenizer.json", "tokenizer"));
    json["normalizer"]["normalizers"][0]["precompiled_charsmap"] = read_text(folder / "characters", "characters");
    const Unigram tokens = tokenizer(json);
    const Json cases = Json::parse(read_text(folder / name / "cases.json", "cases"));
    ASSERT_GT(cases.size(), 80u);
    for (const auto& one : cases) {
      const auto text = one["text"].get<std::string>();
      EXPECT_EQ(tokens.ids_of(text), one["ids"].get<std::vector<int64_t>>()) << name << ": " << text;
    }
  }
}

#endif

TEST(Unigram, WritesUnknownCharactersAsBytes) {
  Json vocabulary = Json::array({{"<unk>", 0.0}, {"▁", -2.0}, {"a", -1.0}});
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    vocabulary.push_back(
        {str("<0x", kDigits[static_cast<size_t>(byte) / 16], kDigits[static_cast<size_t>(byte) % 16], ">"), 0.0});
  }
  Json json = model(vocabulary, /*bytes=*/true);
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}};
  const Unigram tokens = tokenizer(json);
  EXPECT_THAT(tokens.ids_of("a\u00e9"), ElementsAre(1, 2, 3 + 0xC3, 3 + 0xA9));
  for (const std::string text : {"a é a", "日本\n", "\xFF"})
    EXPECT_EQ(tokens.decode(tokens.ids_of(text)), text) << text;
}

TEST(Unigram, SaysWhatIsWrong) {
  const auto error = [](const Json& json) { return error_text([&] { tokenizer(json); }); };
  const Json vocabulary = Json::array({{"<unk>", 0.0}});
  EXPECT_THAT(error({{"model", {{"type", "BPE"}}}}),
              HasSubstr("tokenizer.json: expected a model of type Unigram, got 'BPE'"));
  EXPECT_THAT(error(model(Json::array())), HasSubstr("expected tokens in the vocabulary, got none"));
  EXPECT_THAT(error(model(Json::array({{"a", "b"}}))),
              HasSubstr("expected a tokenizer of Hugging Face's tokenizers, got"));
  Json json = model(vocabulary);
  json["model"]["unk_id"] = 1;
  EXPECT_THAT(error(json), HasSubstr("expected an unk_id below 1, got 1"));
  json = model(vocabulary);
  json["normalizer"] = {{"type", "Nmt"}};
  EXPECT_THAT(error(json), HasSubstr("the normalizer {\"type\":\"Nmt\"} is not supported"));
  json = model(vocabulary);
  json["pre_tokenizer"] = {{"type", "Digits"}};
  EXPECT_THAT(error(json), HasSubstr("the pre_tokenizer {\"type\":\"Digits\"} is not supported"));
  json = model(vocabulary);
  json["model"]["unk_id"] = nullptr;
  EXPECT_THAT(error_text([&] { tokenizer(json).ids_of("x"); }), HasSubstr("no token for 'x' and no unk_id"));
  EXPECT_THAT(error_text([&] { tokenizer(model(vocabulary)).encode("x"); }),
              HasSubstr("expected the tokens <s> and </s>"));
}

}  // namespace
}  // namespace weft::data::testing
