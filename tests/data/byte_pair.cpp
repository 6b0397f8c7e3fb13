// SPDX-License-Identifier: Apache-2.0
// GPT-2's tokenizer against tests/golden/byte_pair.py, which asked tiktoken and Hugging Face's tokenizers.
#include "data/text/byte_pair.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/text/roberta_pairs.h"
#include "data/text/words.h"
#include "io/file_reader.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;

using Ids = std::vector<int64_t>;

void write(const std::filesystem::path& path, const std::string& text) { write_file(path, {text.begin(), text.end()}); }

TEST(BytePair, OfBytesAreTheCharactersOfAnAsciiText) {
  const BytePair characters = BytePair::of_bytes("hello world\n");
  EXPECT_EQ(characters.size(), 9);
  EXPECT_EQ(characters.encode("\n hold"), (Ids{0, 1, 4, 6, 5, 2}));
  EXPECT_EQ(characters.decode(characters.encode("low rod")), "low rod");
  EXPECT_EQ(characters.end_of_text(), -1);
  EXPECT_EQ(error_text([&] { characters.encode("x"); }),
            "byte pairs: the vocabulary has no token for the byte 120 of 'x'");
  EXPECT_EQ(error_text([&] { characters.decode(Ids{9}); }), "byte pairs: expected the id of a token, below 9, got 9");
}

TEST(BytePair, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const BytePair bytes = BytePair::of_bytes(all);
  const TemporaryFolder folder;
  bytes.save(folder / "");
  const BytePair saved = BytePair::from_folder(folder / "");
  EXPECT_EQ(saved.size(), 256);
  EXPECT_EQ(saved.encode(all), bytes.encode(all));
  EXPECT_EQ(saved.decode(saved.encode(all)), all);
}

#if WEFT_HAVE_UTF8PROC

// `composes`: what comes back is the text in its normal form C.
void expect_cases(const BytePair& pairs, const std::filesystem::path& path, bool composes = false) {
  const nlohmann::json cases = nlohmann::json::parse(read_text(path, "cases"));
  ASSERT_GT(cases.size(), 20u);
  for (const auto& entry : cases) {
    const auto text = entry["text"].get<std::string>();
    const Ids expected = entry["ids"].get<Ids>(), got = pairs.encode(text);
    ASSERT_EQ(got, expected) << text.substr(0, 200);
    ASSERT_EQ(pairs.decode(got), composes ? composed_text(text) : text);
  }
}

TEST(BytePair, EqualsTheTwoPublishedTokenizers) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_GOLDEN) / "byte_pair";
  const BytePair pairs = BytePair::from_folder(folder);
  EXPECT_EQ(pairs.size(), 50257);
  EXPECT_EQ(pairs.end_of_text(), 50256);
  expect_cases(pairs, folder / "cases.json");
  const TemporaryFolder copy;
  pairs.save(copy / "");
  expect_cases(BytePair::from_folder(copy / ""), folder / "cases.json");
  EXPECT_EQ(read_text(copy / "merges.txt", "merges"), read_text(folder / "merges.txt", "merges"));
}

std::string golden_text(const char* name) {
  return read_text(std::filesystem::path(WEFT_GOLDEN) / "byte_pair" / name, "golden");
}

/// The golden vocabulary as in tokenizer.json, each merge as one text or as two.
nlohmann::json golden_tokenizer_json(bool pairs) {
  nlohmann::json merges = nlohmann::json::array();
  std::istringstream lines(golden_text("merges.txt"));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    merges.push_back(pairs ? nlohmann::json{line.substr(0, space), line.substr(space + 1)} : nlohmann::json(line));
  }
  const nlohmann::json end{{"id", 50256}, {"content", "<|endoftext|>"}, {"special", true}};
  return {
      {"added_tokens", {end}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model", {{"type", "BPE"}, {"vocab", nlohmann::json::parse(golden_text("vocab.json"))}, {"merges", merges}}}};
}

TEST(BytePair, OfTokenizerJsonAlone) {
  const TemporaryFolder folder, copy;
  for (const bool pairs : {false, true}) {
    write(folder / "tokenizer.json", golden_tokenizer_json(pairs).dump());
    const BytePair tokens = BytePair::from_folder(folder / "");
    EXPECT_EQ(tokens.size(), 50257);
    expect_cases(tokens, std::filesystem::path(WEFT_GOLDEN) / "byte_pair/cases.json");
    tokens.save(copy / "");
    EXPECT_EQ(read_text(copy / "tokenizer.json", "copy"), read_text(folder / "tokenizer.json", "original"));
  }
}

// The results of transformers 5.24 on these folders.
TEST(BytePair, FollowsTheTokensThatAFolderAdds) {
  const TemporaryFolder folder;
  write(folder / "vocab.json", golden_text("vocab.json"));
  write(folder / "merges.txt", golden_text("merges.txt"));
  const auto ids = [&](const char* text) { return BytePair::from_folder(folder / "").encode(text); };
  write(folder / "added_tokens.json", R"({"<pad>": 50257, "<my tok>": 50258, "<é>": 50259})");
  EXPECT_EQ(ids("a <pad> b<pad>"), (Ids{64, 220, 50257, 275, 50257}));
  EXPECT_EQ(ids("<my tok> x <my tok>"), (Ids{50258, 2124, 220, 50258}));
  EXPECT_EQ(ids("\u00E9<\u00E9>x"), (Ids{127, 102, 50259, 87}));
  const BytePair tokens = BytePair::from_folder(folder / "");
  EXPECT_EQ(tokens.size(), 50260);
  EXPECT_EQ(tokens.decode(Ids{50258, 50259}), "<my tok><\u00E9>");
  const TemporaryFolder copy;
  tokens.save(copy / "");
  EXPECT_EQ(BytePair::from_folder(copy / "").encode("<my tok>"), (Ids{50258}));

  const auto decoder = [](const char* flags) {
    return R"({"added_tokens_decoder": {"50257": {"content": "<pad>", "rstrip": true},
               "50258": {"content": "<|im|>", "lstrip": true, "normalized": true)" +
           std::string(flags) + "}}}";
  };
  std::filesystem::remove(folder / "added_tokens.json");
  write(folder / "tokenizer_config.json", decoder(""));
  EXPECT_EQ(ids("a <pad> b<pad>\u3000\n c"), (Ids{64, 220, 50257, 65, 50257, 66}));
  EXPECT_EQ(ids("x \u3000<|im|>\t y"), (Ids{87, 50258, 197, 331}));
  EXPECT_EQ(ids("<pad> <|im|><pad><pad>"), (Ids{50257, 50258, 50257, 50257}));
  write(folder / "tokenizer_config.json", decoder(R"(, "single_word": true)"));
  EXPECT_THAT(error_text([&] { ids("a"); }),
              HasSubstr("tokenizer_config.json: expected no single_word, got it for '<|im|>'"));

  write(folder / "tokenizer_config.json", R"({"add_prefix_space": true, "eos_token": "<|endoftext|>"})");
  EXPECT_EQ(ids("say<|endoftext|> say"), (Ids{910, 50256, 910}));
  write(folder / "tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_THAT(error_text([&] { ids("a"); }), HasSubstr("tokenizer_config.json: expected no add_bos_token, got true"));
  write(folder / "tokenizer_config.json", "[]");
  EXPECT_THAT(error_text([&] { ids("a"); }),
              HasSubstr("tokenizer_config.json: expected the special tokens of a tokenizer, got '"));
  write(folder / "tokenizer_config.json", R"({"pad_token": "<pad>"})");
  EXPECT_THAT(error_text([&] { ids("a"); }),
              HasSubstr("tokenizer_config.json: expected an id below 16777216 of the token '<pad>' in the vocabulary "
                        "or among the added tokens, got none"));
  std::filesystem::remove(folder / "tokenizer_config.json");
  write(folder / "special_tokens_map.json", R"({"pad_token": {"content": "<pad>", "lstrip": true}})");
  write(folder / "added_tokens.json", R"({"<pad>": 50257})");
  EXPECT_EQ(ids("a <pad> a"), (Ids{64, 50257, 257}));
  write(folder / "added_tokens.json", R"({"<pad>": 50256})");
  EXPECT_THAT(error_text([&] { ids("a"); }),
              HasSubstr("special_tokens_map.json: the id 50256 of '<pad>' is another token's: '<|endoftext|>'"));
  write(folder / "added_tokens.json", R"({"<pad>": 50257, "<|endoftext|>": 50258})");
  EXPECT_THAT(
      error_text([&] { ids("a"); }),
      HasSubstr("added_tokens.json: the token '<|endoftext|>' has the ids 50258 and, in the vocabulary, 50256"));
}

/// The golden vocabulary with RoBERTa's special tokens after it.
void write_roberta(const TemporaryFolder& folder, std::initializer_list<const char*> special) {
  const std::filesystem::path golden = std::filesystem::path(WEFT_GOLDEN) / "byte_pair";
  auto vocabulary = nlohmann::json::parse(read_text(golden / "vocab.json", "vocabulary"));
  for (int64_t id = 50257; const char* token : special) vocabulary[token] = id++;
  write(folder / "vocab.json", vocabulary.dump());
  write(folder / "merges.txt", read_text(golden / "merges.txt", "merges"));
}

TEST(RobertaPairs, EqualHuggingFacesTokenizer) {
  const TemporaryFolder folder;
  write_roberta(folder, {"<s>", "<pad>", "</s>", "<unk>", "<mask>"});
  const RobertaPairs pairs(BytePair::from_folder(folder / ""));
  EXPECT_EQ(pairs.size(), 50262);
  EXPECT_EQ(pairs.padding_id(), 50258);
  const auto cases =
      nlohmann::json::parse(read_text(std::filesystem::path(WEFT_GOLDEN) / "byte_pair/roberta.json", "cases"));
  ASSERT_GT(cases.size(), 20u);
  for (const auto& entry : cases) {
    const auto first = entry["first"].get<std::string>();
    const auto most = entry["most"].get<int64_t>();
    const Encoding got = entry["second"].is_null() ? pairs.encode(first, most)
                                                   : pairs.encode(first, entry["second"].get<std::string>(), most);
    EXPECT_EQ(got.ids, entry["ids"].get<Ids>()) << entry;
    EXPECT_EQ(got.token_types, Ids(got.ids.size())) << entry;
  }
  EXPECT_EQ(error_text([&] { pairs.encode("a", "b", 3); }), "TextEncoder: expected room for at least 4 tokens, got 3");
  write_roberta(folder, {"<s>"});
  EXPECT_THAT(error_text([&] { RobertaPairs(BytePair::from_folder(folder / "")); }),
              HasSubstr("vocabulary: expected the tokens <s>, </s> and <pad> of RoBERTa"));
}

// The whole vocabulary is no part of this repository: byte_pair.py says how to run this.
TEST(BytePair, EqualsThemWithTheWholeVocabulary) {
  const char* folder = std::getenv("WEFT_GPT2_VOCABULARY");
  if (folder == nullptr)
    GTEST_SKIP() << "WEFT_GPT2_VOCABULARY names no folder of vocab.json, merges.txt and cases.json";
  expect_cases(BytePair::from_folder(folder), std::filesystem::path(folder) / "cases.json");
}

TEST(BytePair, KeepsInvalidUtf8) {
  const BytePair pairs = BytePair::from_folder(std::filesystem::path(WEFT_GOLDEN) / "byte_pair");
  const std::string text = "a\xC3(b \xFF\xFE \xE2\x82 end\x80";
  EXPECT_EQ(pairs.decode(pairs.encode(text)), text);
}

TEST(BytePair, OfAVeryLongWordTakesNoQuadraticTime) {
  const BytePair pairs = BytePair::from_folder(std::filesystem::path(WEFT_GOLDEN) / "byte_pair");
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(pairs.decode(pairs.encode(text)), text);
}

TEST(RobertaPairs, OfSpecialTokensAloneTakeNoQuadraticTime) {
  const TemporaryFolder folder;
  write_roberta(folder, {"<s>", "<pad>", "</s>", "<unk>", "<mask>"});
  std::string text;
  for (int i = 0; i < 1 << 17; ++i) text += "<pad>";
  EXPECT_EQ(RobertaPairs(BytePair::from_folder(folder / "")).encode(text, 1 << 20).ids.size(), (1u << 17) + 2);
}

TEST(Pieces, AreTheWholeText) {
  EXPECT_THAT(split_pieces("I'll say  it's 42%\n\n ok"),
              ElementsAre("I", "'ll", " say", " ", " it", "'s", " 42", "%", "\n\n", " ok"));
  EXPECT_THAT(split_pieces(" \u4F60\u597D\u3000x  "), ElementsAre(" \u4F60\u597D", "\u3000", "x", "  "));
  EXPECT_THAT(split_pieces(""), ElementsAre());
}

// byte_level.py's families; WEFT_BYTE_LEVEL names a folder of more texts.
TEST(ByteLevel, EqualsHuggingFacesTokenizers) {
  const char* const more = std::getenv("WEFT_BYTE_LEVEL");
  const std::filesystem::path folder = more ? more : std::filesystem::path(WEFT_GOLDEN) / "byte_level";
  for (const char* name : {"llama3", "qwen2", "smollm", "tekken"}) {
    SCOPED_TRACE(name);
    const BytePair pairs = BytePair::from_folder(folder / name);
    expect_cases(pairs, folder / name / "cases.json", std::string(name) == "qwen2");
    EXPECT_EQ(pairs.begin_of_text(), std::string(name) == "llama3" ? pairs.find("<|begin|>") : -1);
  }
}

// byte_fallback.py's forms; WEFT_BYTE_FALLBACK names a folder of more texts.
TEST(ByteFallback, EqualsHuggingFacesTokenizers) {
  const char* const more = std::getenv("WEFT_BYTE_FALLBACK");
  const std::filesystem::path folder = more ? more : std::filesystem::path(WEFT_GOLDEN) / "byte_fallback";
  for (const char* name : {"llama2", "first", "always", "never"}) {
    SCOPED_TRACE(name);
    const BytePair pairs = BytePair::from_folder(folder / name);
    const nlohmann::json cases = nlohmann::json::parse(read_text(folder / name / "cases.json", "cases"));
    ASSERT_GT(cases.size(), 40u);
    for (const auto& entry : cases) {
      const auto text = entry["text"].get<std::string>();
      const Ids got = pairs.encode(text, entry.value("before", ""));
      ASSERT_EQ(got, entry["ids"].get<Ids>()) << entry;
      if (!entry.contains("decoded")) continue;
      ASSERT_EQ(pairs.decode(got), entry["decoded"].get<std::string>());
      std::string grown;
      for (const int64_t& id : got) grown += pairs.decode({&id, 1}, /*continues=*/&id != &got.front());
      ASSERT_EQ(grown, pairs.decode(got)) << entry;
    }
    EXPECT_EQ(pairs.begin_of_text(), pairs.find("<s>"));
    EXPECT_EQ(pairs.decode(pairs.encode("\xFF\xC3(")), "\xFF\xC3(");
    const std::string word(1 << 18, 'a');
    EXPECT_EQ(pairs.decode(pairs.encode(word)), word);
    const TemporaryFolder saved;
    pairs.save(saved / "");
    write(saved / "tokenizer_config.json", R"({"add_bos_token": true, "add_prefix_space": null, "bos_token": "<s>"})");
    EXPECT_EQ(BytePair::from_folder(saved / "").encode("<s> hi"), pairs.encode("<s> hi"));
  }
}

#else

TEST(BytePair, SaysWithoutUtf8procHowToGetIt) {
  const BytePair pairs = BytePair::from_folder(std::filesystem::path(WEFT_GOLDEN) / "byte_pair");
  EXPECT_THAT(error_text([&] { pairs.encode("a"); }), HasSubstr("built without utf8proc"));
}

#endif

// The settings of other families' tokenizer.json would give other tokens.
TEST(BytePair, RefusesOtherTokenizers) {
  const TemporaryFolder folder;
  const auto read = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json{
        {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", nlohmann::json::array()}}}};
    json[nlohmann::json::json_pointer(pointer)] = value;
    write(folder / "tokenizer.json", json.dump());
    return BytePair::from_folder(folder / "");
  };
  const auto error = [&](const char* pointer, const nlohmann::json& value) {
    return error_text([&] { read(pointer, value); });
  };
  using Json = nlohmann::json;
  EXPECT_THAT(
      error("/model/byte_fallback", true),
      HasSubstr("tokenizer.json: expected the normalizers Prepend and Replace, or a pre_tokenizer Metaspace that "
                "does not split, with `▁`, as sentencepiece's byte pairs, got none"));
  EXPECT_THAT(error("/model/dropout", 0.1),
              HasSubstr("expected no dropout of merges, as byte-level tokenizers, got 0.1"));
  EXPECT_THAT(error("/model/end_of_word_suffix", "</w>"), HasSubstr("expected no end_of_word_suffix"));
  EXPECT_THAT(error("/model/continuing_subword_prefix", "##"), HasSubstr("expected no continuing_subword_prefix"));
  EXPECT_THAT(error("/normalizer", Json{{"type", "NFKC"}}),
              HasSubstr("expected no normalizer but NFC, as byte-level tokenizers, got NFKC"));
  EXPECT_THAT(error("/pre_tokenizer", Json{{"type", "Metaspace"}}),
              HasSubstr("expected the pre_tokenizer ByteLevel, as byte-level tokenizers, got Metaspace"));
  const Json split{{"type", "Split"}, {"pattern", {{"Regex", "x"}}}, {"behavior", "Isolated"}},
      digits{{"type", "Digits"}, {"individual_digits", false}},
      bytes{{"type", "ByteLevel"}, {"use_regex", false}, {"add_prefix_space", false}},
      pattern{{"type", "ByteLevel"}, {"add_prefix_space", false}}, spaced{{"type", "ByteLevel"}};
  const auto sequence = [&](const std::vector<Json>& parts) {
    return error("/pre_tokenizer", Json{{"type", "Sequence"}, {"pretokenizers", parts}});
  };
  EXPECT_THAT(sequence({split, bytes}),
              HasSubstr("expected the isolated pattern of Llama-3's, Qwen-2's or Tekken's Split, got 'x'"));
  EXPECT_THAT(sequence({{{"type", "Punctuation"}}, bytes}),
              HasSubstr("expected Split or Digits before ByteLevel, as byte-level tokenizers, got Punctuation"));
  EXPECT_THAT(sequence({digits, pattern}), HasSubstr("expected Digits' individual_digits"));
  const Json each{{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_THAT(sequence({each, bytes}), HasSubstr("expected ByteLevel's use_regex after Digits and not after Split"));
  EXPECT_THAT(sequence({each, spaced}), HasSubstr("expected no add_prefix_space after another pre_tokenizer"));
  EXPECT_THAT(error("/pre_tokenizer", bytes),
              HasSubstr("expected ByteLevel's use_regex, as byte-level tokenizers, got false"));
  const Json text{{"Sequence", {{"id", "A"}}}}, token{{"SpecialToken", {{"id", "b"}}}},
      unknown{{"SpecialToken", {{"id", "<s>"}}}};
  const auto around = [&](const std::vector<Json>& parts) {
    return Json{{"type", "TemplateProcessing"}, {"single", parts}};
  };
  const char* const after = "/post_processor";
  EXPECT_THAT(error(after, around({token, token, text})),
              HasSubstr("expected a post_processor that puts at most one token before a text and one after it"));
  EXPECT_EQ(read(after, around({text, token})).begin_of_text(), -1);
  EXPECT_THAT(error(after, around({unknown, text})), HasSubstr("expected a post_processor with tokens of the vocab"));
  EXPECT_EQ(read(after, around({text})).begin_of_text(), -1);
  EXPECT_EQ(read(after, around({token, text})).begin_of_text(), 1);
  EXPECT_EQ(read(after, around({token, text, token})).begin_of_text(), 1);
  nlohmann::json pieces = nlohmann::json::parse(
      read_text(std::filesystem::path(WEFT_GOLDEN) / "byte_fallback" / "first" / "tokenizer.json", "tokenizer"));
  const auto changed = [&](const char* pointer, const Json& value) {
    Json json = pieces;
    json[Json::json_pointer(pointer)] = value;
    write(folder / "tokenizer.json", json.dump());
    return error_text([&] { BytePair::from_folder(folder / ""); });
  };
  EXPECT_THAT(changed("/pre_tokenizer/split", true),
              HasSubstr("a pre_tokenizer Metaspace that does not split, with `▁`, "
                        "as sentencepiece's byte pairs, got Metaspace"));
  EXPECT_THAT(changed("/pre_tokenizer/replacement", "_"), HasSubstr("byte pairs, got Metaspace"));
  EXPECT_THAT(changed("/pre_tokenizer/prepend_scheme", "last"),
              HasSubstr("expected the prepend_scheme always, first or never, got 'last'"));
  EXPECT_THAT(changed("/normalizer", Json{{"type", "NFKC"}}), HasSubstr("byte pairs, got NFKC and Metaspace"));
  EXPECT_THAT(changed("/decoder", nullptr), HasSubstr("expected the decoders Replace, ByteFallback and Fuse"));
  EXPECT_THAT(changed("/decoder/decoders/3/start", 2),
              HasSubstr("expected the decoders Replace, ByteFallback and Fuse"));
  EXPECT_THAT(changed("/model/ignore_merges", true), HasSubstr("expected no ignore_merges, as sentencepiece's"));
  Json vocabulary = pieces["model"]["vocab"];
  vocabulary.erase("<0x0A>");
  EXPECT_THAT(changed("/model/vocab", vocabulary),
              HasSubstr("expected a token for each byte, as sentencepiece's byte pairs, got no <0x0A>"));
  EXPECT_THAT(error("/model/merges", Json{"a b"}),
              HasSubstr("tokenizer.json: merge 1: the vocabulary has no token 'ab'"));
}

TEST(BytePair, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& vocabulary, const std::string& merges) {
    write(folder / "vocab.json", vocabulary);
    write(folder / "merges.txt", merges);
    return error_text([&] { BytePair::from_folder(folder / ""); });
  };
  EXPECT_THAT(error("[", ""), HasSubstr("vocab.json: expected an object of tokens and their ids, got '"));
  EXPECT_THAT(error(R"({"a": "b"})", ""), HasSubstr("expected an object of tokens and their ids"));
  EXPECT_THAT(error(R"({"a": 0, "b": 0})", ""), HasSubstr("vocab.json: the id 0 of 'b' is another token's"));
  EXPECT_THAT(error(R"({"a": -1})", ""), HasSubstr("expected an id below 16777216 for 'a', got -1"));
  EXPECT_THAT(error(R"({"a": 0, "b": 1})", "#version: 0.2\na b\n"),
              HasSubstr("merges.txt line 2: the vocabulary has no token 'ab'"));
  EXPECT_THAT(error(R"({"a": 0, "b": 1})", "\xEF\xBB\xBF#version: 0.2\na b\n"),  // a byte order mark
              HasSubstr("merges.txt line 2: the vocabulary has no token 'ab'"));
  EXPECT_THAT(error(R"({"a": 0, "b": 1})", "a\n"), HasSubstr("merges.txt line 1: expected two tokens, got 'a'"));
  EXPECT_THAT(error_text([&] { BytePair::from_folder(folder / "none"); }),
              HasSubstr("byte pairs: expected tokenizer.json, or vocab.json and merges.txt, in the folder "));
}

}  // namespace
}  // namespace weft::data::testing
