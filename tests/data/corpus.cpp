// SPDX-License-Identifier: Apache-2.0
// What may stand where a language model's text is expected.
#include "data/text/corpus.h"

#include "data/text/token_windows.h"

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

template <class Number>
std::string bytes_of_numbers(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(std::data(numbers)), numbers.size() * sizeof(Number)};
}

std::string llm_c(uint32_t magic, uint32_t version, uint32_t count, const std::string& tokens) {
  std::string header = bytes_of_numbers<uint32_t>({magic, version, count});
  header.resize(1024);
  return header + tokens;
}

TEST(Corpus, ATextLosesItsByteOrderMark) {
  EXPECT_EQ(text_of("\xEF\xBB\xBFThe caf\xC3\xA9", "t"), "The caf\xC3\xA9");
  EXPECT_EQ(text_of("a\tb\r\n\f\x1B[0m", "t"), "a\tb\r\n\f\x1B[0m");
  EXPECT_EQ(text_of("{\"a\": 1}\n", "t"), "{\"a\": 1}\n");
}

TEST(Corpus, NamesWhatIsNoText) {
  using namespace std::string_view_literals;
  const auto error = [](std::string_view bytes) { return error_text([&] { text_of(bytes, "--data x"); }); };
  EXPECT_EQ(error(""), "--data x: expected a text, got an empty one");
  EXPECT_EQ(error("\xEF\xBB\xBF"), "--data x: expected a text, got an empty one");
  for (const auto& [bytes, name] : {std::pair{"\x1F\x8B\x08\0"sv, "gzip. Unpack it first"},
                                    {"PK\x03\x04"sv, "a zip archive. Unpack it first"},
                                    {"\x28\xB5\x2F\xFD"sv, "zstd"},
                                    {"\xFD"
                                     "7zXZ\0"sv,
                                     "xz"},
                                    {"BZh9"sv, "bzip2"},
                                    {"PAR1"sv, "Parquet. Write its texts"},
                                    {"ARROW1\0\0"sv, "Arrow. Write its texts"},
                                    {"\xFF\xFF\xFF\xFF\x10\0\0\0"sv, "an Arrow stream"},
                                    {"\x93NUMPY"sv, "a NumPy array. `array.astype('uint16').tofile('train.bin')`"},
                                    {"\x89HDF"sv, "HDF5"},
                                    {"\x80\x04\x95"sv, "a pickle"},
                                    {"%PDF-1.7"sv, "PDF"},
                                    {"\xFF\xFE"
                                     "a\0"sv,
                                     "UTF-16. `iconv -f UTF-16"},
                                    {"\xFE\xFF\0a"sv, "UTF-16"},
                                    {"\xFF\xFE\0\0a\0\0\0"sv, "UTF-32"},
                                    {"\0\0\xFE\xFF\0\0\0a"sv, "UTF-32"}})
    EXPECT_THAT(error(bytes), HasSubstr("--data x: expected a UTF-8 text, got " + std::string(name)));
  EXPECT_EQ(error("one\ntwo caf\xE9 three"),
            "--data x: expected a UTF-8 text, got the byte 233 at position 11 (line 2), where no character begins. "
            "`iconv -f LATIN1 -t UTF-8 FILE > TEXT` converts Latin-1");
  EXPECT_THAT(error("cut \xC3"), HasSubstr("got the byte 195 at position 4 (line 1)"));
  EXPECT_THAT(error("a\0b"sv),
              HasSubstr("got the byte 0 at position 1 (line 1). A file of tokens' numbers ends in .bin"));
}

TEST(Corpus, JsonLinesHaveTexts) {
  const auto texts = [](std::string_view bytes) { return json_texts(bytes, "--data x"); };
  EXPECT_EQ(texts("{\"text\": \"One\\nday\", \"id\": 1}\r\n\n{\"text\": \"\"}"),
            (std::vector<std::string>{"One\nday", ""}));
  EXPECT_EQ(texts("\xEF\xBB\xBF{\"text\": \"\xC3\xA9\"}\n"), (std::vector<std::string>{"\xC3\xA9"}));
  for (const std::string_view other :
       {"", "\n", "a text", "{ a text", "{\"texts\": 1}\n", "{\"text\": 1}", "[{\"text\": \"\"}]"})
    EXPECT_FALSE(texts(other)) << other;
  EXPECT_EQ(error_text([&] { texts("{\"text\": \"One\"}\n{\"txt\": \"Two\"}\n"); }),
            "--data x: expected JSON lines of objects with a \"text\", got another line 2: {\"txt\": \"Two\"}");
}

TEST(Corpus, KnowsFilesOfTokens) {
  EXPECT_TRUE(holds_tokens("train.bin", bytes_of_numbers<uint16_t>({15496, 11, 995})));
  EXPECT_TRUE(holds_tokens("train.bin", bytes_of_numbers<uint16_t>({300, 300})));
  EXPECT_FALSE(holds_tokens("text.bin", "a text\n")) << "the content decides";
  EXPECT_FALSE(holds_tokens("text.txt", "a text\n"));
  EXPECT_TRUE(holds_tokens("tokens.dat", llm_c(20240520, 1, 0, "")));
}

TEST(Corpus, ReadsNanoGptsAndLlmCsTokens) {
  const auto read = [](const std::string& bytes, int64_t vocabulary) {
    const auto file = std::make_shared<const std::string>(bytes);
    const TokenNumbers tokens = tokens_of(file, vocabulary, "t");
    EXPECT_EQ(file.use_count(), 2) << "they are no copy";
    return tokens.tensor(0, tokens.size()).to_vector<int64_t>();
  };
  const auto numbers16 = bytes_of_numbers<uint16_t>({3, 1, 2, 50256});
  const auto numbers32 = bytes_of_numbers<uint32_t>({3, 100'000, 2});
  EXPECT_THAT(read(numbers16, 50257), ElementsAre(3, 1, 2, 50256));
  EXPECT_THAT(read(numbers32, 128'256), ElementsAre(3, 100'000, 2));
  EXPECT_THAT(read(bytes_of_numbers<uint32_t>({3, 1, 2}), 4), ElementsAre(3, 1, 2));
  EXPECT_THAT(read(bytes_of_numbers<uint16_t>({3, 1, 2, 0}), 4), ElementsAre(3, 1, 2, 0)) << "few letters";
  EXPECT_THAT(read(llm_c(20240520, 1, 4, numbers16), 50257), ElementsAre(3, 1, 2, 50256));
  EXPECT_THAT(read(llm_c(20240520, 7, 3, numbers32), 128'256), ElementsAre(3, 100'000, 2));
}

TEST(Corpus, WindowsOfNarrowTokensAreWide) {
  const auto file = std::make_shared<const std::string>(bytes_of_numbers<uint16_t>({9, 65535, 2, 3, 4}));
  const TokenWindows windows(tokens_of(file, 65536, "t").part(1, 4), 2, 1);
  EXPECT_EQ(windows.size(), 2);
  const auto [x, y] = windows.get(0);
  EXPECT_THAT(x.to_vector<int64_t>(), ElementsAre(65535, 2));
  EXPECT_THAT(y.to_vector<int64_t>(), ElementsAre(2, 3));
}

TEST(Corpus, SaysWhatIsWrongWithTokens) {
  const auto error = [](const std::string& bytes) {
    return error_text([&] { tokens_of(std::make_shared<const std::string>(bytes), 257, "--data x.bin"); });
  };
  const auto numbers = bytes_of_numbers<uint16_t>({3, 257, 2});
  EXPECT_EQ(error(numbers), "--data x.bin: expected tokens below the 257 of the tokenizer, got 257 at position 1");
  EXPECT_EQ(error(""), "--data x.bin: expected tokens of 2 or 4 bytes, got 0 bytes");
  EXPECT_EQ(error("abc"), "--data x.bin: expected tokens of 2 or 4 bytes, got 3 bytes");
  EXPECT_EQ(error(bytes_of_numbers<int64_t>({3, 1, 2})),
            "--data x.bin: expected tokens of 2 or 4 bytes, got 8 bytes for each");
  EXPECT_EQ(error("PK\x03\x04"), "--data x.bin: expected the numbers of tokens, got a zip archive");
  EXPECT_THAT(error(llm_c(20240520, 2, 3, numbers)), EndsWith("expected version 1 or 7 of llm.c's tokens, got 2"));
  EXPECT_THAT(error(llm_c(20240520, 1, 4, numbers)),
              EndsWith("expected 4 tokens of 2 bytes after llm.c's header, got 6 bytes"));
  EXPECT_THAT(error(llm_c(20240326, 1, 3, numbers)),
              EndsWith("expected llm.c's tokens (20240520 and a header of 1024 bytes), got 20240326 and 1030 bytes"));
}

}  // namespace
}  // namespace weft::data::testing
