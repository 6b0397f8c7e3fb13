// SPDX-License-Identifier: Apache-2.0
#include "data/text/tokenizer_json.h"

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;

TokenizerJson read_tokenizer(const std::string& text, const std::string& type) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", {text.begin(), text.end()});
  return read_tokenizer_json(folder / "tokenizer.json", type);
}

std::string tokenizer_of(const std::string& rest) { return R"({"model": {)" + rest + "}}"; }

TEST(TokenizerJson, OfABert) {
  const TokenizerJson bert = read_tokenizer(
      R"({"added_tokens": [{"id": 2, "content": "<new>", "normalized": true, "lstrip": true, "single_word": true},
                           {"id": 0, "content": "[UNK]", "special": true, "rstrip": true}],
          "normalizer": {"type": "BertNormalizer", "lowercase": false, "strip_accents": true,
                         "handle_chinese_chars": false, "clean_text": false},
          "pre_tokenizer": {"type": "BertPreTokenizer"}, "truncation": null,
          "model": {"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 9,
                    "vocab": {"[UNK]": 0, "b": 3}}})",
      "WordPiece");
  EXPECT_THAT(bert.vocabulary, ElementsAre("[UNK]", "", "", "b"));
  ASSERT_EQ(bert.added.size(), 2u);
  EXPECT_EQ(bert.added[0].content, "[UNK]");
  EXPECT_TRUE(bert.added[0].special && bert.added[0].rstrip && !bert.added[0].normalized && !bert.added[0].lstrip);
  EXPECT_EQ(bert.added[1].id, 2);
  EXPECT_TRUE(bert.added[1].normalized && bert.added[1].lstrip && bert.added[1].single_word && !bert.added[1].special);
  EXPECT_EQ(bert.unknown, "[UNK]");
  EXPECT_EQ(bert.continuation, "##");
  EXPECT_EQ(bert.longest_word, 9);
  EXPECT_THAT(bert.normalizers, ElementsAre("BertNormalizer"));
  EXPECT_THAT(bert.pre_tokenizers, ElementsAre("BertPreTokenizer"));
  EXPECT_FALSE(bert.lowercase || bert.parts_ideographs || bert.cleans_text);
  EXPECT_EQ(bert.strip_accents, true);
}

TEST(TokenizerJson, OfBytePairsOldAndNew) {
  for (const char* merges : {R"(["t h", "th e"])", R"([["t", "h"], ["th", "e"]])"}) {
    const TokenizerJson pairs = read_tokenizer(
        std::string(R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
                        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
                        "model": {"dropout": null, "unk_token": null, "vocab": {"t": 0, "h": 1, "th": 2},
                                  "byte_fallback": true, "ignore_merges": true, "merges": )") +
            merges + "}}",
        "BPE");
    EXPECT_EQ(pairs.type, "BPE");
    ASSERT_EQ(pairs.merges.size(), 2u);
    EXPECT_EQ(pairs.merges[1].first + '|' + pairs.merges[1].second, "th|e");
    EXPECT_THAT(pairs.normalizers, ElementsAre("NFC", "Lowercase"));
    EXPECT_TRUE(pairs.lowercase && pairs.byte_fallback && pairs.ignores_merges);
    EXPECT_FALSE(pairs.adds_prefix_space || pairs.uses_pattern || pairs.strip_accents.has_value());
    EXPECT_EQ(pairs.unknown + pairs.continuation, "");
  }
}

TEST(TokenizerJson, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) { return error_text([&] { read_tokenizer(text, "BPE"); }); };
  EXPECT_THAT(error(tokenizer_of(R"("type": "Unigram", "vocab": [["a", 0.5]])")),
              HasSubstr("tokenizer.json: expected a model of type BPE, got 'Unigram'"));
  EXPECT_THAT(error(tokenizer_of(R"("type": "BPE", "vocab": {"a": 0, "b": 0})")),
              HasSubstr("tokenizer.json: the id 0 is both of 'a' and of 'b'"));
  EXPECT_THAT(error(tokenizer_of(R"("type": "BPE", "vocab": {"a": -1})")),
              HasSubstr("expected an id below 16777216 for 'a', got -1"));
  EXPECT_THAT(error(tokenizer_of(R"("type": "BPE", "vocab": {}, "merges": ["abc"])")),
              HasSubstr("expected a merge of two tokens, got \"abc\""));
  EXPECT_THAT(error(tokenizer_of(R"("type": "BPE", "vocab": {"a": 0})")), HasSubstr("key 'merges' not found"));
  EXPECT_THAT(error(tokenizer_of(R"("type": "BPE", "vocab": {"a": 0}, "merges": null)")),
              HasSubstr("type must be array, but is null"));
  EXPECT_THAT(error("{}"), HasSubstr("expected a tokenizer of Hugging Face's tokenizers, got "));
  EXPECT_THAT(error("[1, "), HasSubstr("expected a tokenizer of Hugging Face's tokenizers, got "));
}

}  // namespace
}  // namespace weft::data::testing
