// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"
#include "data/text/text_table.h"
#include "data/text/wordpiece.h"
#include "data/text/words.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;

void write(const TemporaryFolder& folder, const char* name, const std::string& text) {
  write_file(folder / name, {text.begin(), text.end()});
}

#if WEFT_HAVE_UTF8PROC

// The first lines are the examples of google-research/bert's own tests.
TEST(Words, OfManyScripts) {
  const auto lower = [](const char* text) { return split_words(text); };
  EXPECT_THAT(lower("ah\u535A\u63A8zz"), ElementsAre("ah", "\u535A", "\u63A8", "zz"));
  EXPECT_THAT(lower(" \tHeLLo!how  \n Are yoU?  "), ElementsAre("hello", "!", "how", "are", "you", "?"));
  EXPECT_THAT(lower("H\u00E9llo"), ElementsAre("hello"));
  EXPECT_THAT(split_words(" \tHeLLo!how  \n Are yoU?  ", {.lowercase = false}),
              ElementsAre("HeLLo", "!", "how", "Are", "yoU", "?"));
  EXPECT_THAT(split_words("H\u00E9llo", {.lowercase = false}), ElementsAre("H\u00E9llo"));

  EXPECT_THAT(lower("na\u00EFve Stra\u00DFe \u00C5ngstr\u00F6m"), ElementsAre("naive", "stra\u00DFe", "angstrom"));
  EXPECT_THAT(lower("e\u0301t\u00E9 \u0130zmir \u039F\u0394\u039F\u03A3"),
              ElementsAre("ete", "izmir", "\u03BF\u03B4\u03BF\u03C3"));
  EXPECT_THAT(lower("\u00ABHola\u00BB\u2014\u00BFqu\u00E9? 3.5%"),
              ElementsAre("\u00AB", "hola", "\u00BB", "\u2014", "\u00BF", "que", "?", "3", ".", "5", "%"));
  EXPECT_THAT(lower("$5 a+b ~x^y `q|"), ElementsAre("$", "5", "a", "+", "b", "~", "x", "^", "y", "`", "q", "|"));
  EXPECT_THAT(lower("good\u00A0day\u3000\u4F60\u597D\u3002"), ElementsAre("good", "day", "\u4F60", "\u597D", "\u3002"));
  EXPECT_THAT(lower("\uD55C"), ElementsAre("\u1112\u1161\u11AB")) << "a syllable of Hangul is decomposed";
  EXPECT_THAT(lower("ok\U0001F44D\U0001F3FD fine"), ElementsAre("ok\U0001F44D\U0001F3FD", "fine")) << "no punctuation";
  EXPECT_THAT(lower("\U0001F468\u200D\U0001F469"), ElementsAre("\U0001F468\U0001F469"))
      << "the joiner is a control character";
}

TEST(Words, LoseAccentsBeforePunctuationParts) {
  EXPECT_THAT(split_words("a\u2260b"), ElementsAre("a", "=", "b"));
  EXPECT_THAT(split_words("x\u1FEFy a\u037Eb"), ElementsAre("x", "`", "y", "a", ";", "b"));
  EXPECT_THAT(split_words("a\u2260b", {.lowercase = false}), ElementsAre("a\u2260b"));
}

TEST(Words, KeepUnassignedCharactersAndDropPrivateOnes) {
  EXPECT_THAT(split_words("x\u0378y x\uFFFFy"), ElementsAre("x\u0378y", "x\uFFFFy"));
  EXPECT_THAT(split_words("x\uE000y x\U000F0000y"), ElementsAre("xy", "xy"));
}

TEST(Words, WithoutControlCharactersAndBrokenBytes) {
  using namespace std::literals;
  EXPECT_THAT(split_words("a\0b\x07"
                          "c\u200B\uFEFF\uFFFDd"sv),
              ElementsAre("abcd"));
  EXPECT_THAT(split_words("x\xC3(y \xFF\xFE z\xE2\x82"), ElementsAre("x", "(", "y", "z"));
  EXPECT_THAT(split_words(""), ElementsAre());
  EXPECT_THAT(split_words(" \r\n\t "), ElementsAre());
}

WordPiece small() {
  return WordPiece({"[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn", "##ing", "[PAD]", ","});
}

TEST(WordPiece, TakesTheLongestPieceFromTheLeft) {
  EXPECT_THAT(small().pieces(""), ElementsAre());
  EXPECT_THAT(small().pieces("unwanted running"), ElementsAre("un", "##want", "##ed", "runn", "##ing"));
  EXPECT_THAT(small().pieces("unwantedX running"), ElementsAre("[UNK]", "runn", "##ing"));
  EXPECT_THAT(small().pieces("Want,WA"), ElementsAre("want", ",", "wa"));
}

TEST(WordPiece, AWordOfMoreThanAHundredCharactersIsUnknown) {
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "\u00DF";
  const WordPiece pieces({"[UNK]", "[CLS]", "[SEP]", "[PAD]", "\u00DF", "##\u00DF"});
  EXPECT_EQ(pieces.pieces(hundred).size(), 100u);
  EXPECT_THAT(pieces.pieces(hundred + "\u00DF"), ElementsAre("[UNK]"));
}

TEST(WordPiece, SpecialTokensInATextAreThemselves) {
  EXPECT_THAT(small().pieces("want[SEP]want [MASK] [sep]"),
              ElementsAre("want", "[SEP]", "want", "[UNK]", "[UNK]", "[UNK]", "[UNK]"))
      << "this vocabulary has no [MASK], and no brackets";
}

TEST(WordPiece, OfSpecialTokensAloneTakesNoQuadraticTime) {
  std::string text;
  for (int i = 0; i < 1 << 17; ++i) text += "[PAD]";
  EXPECT_EQ(small().ids_of(text).size(), 1u << 17);
}

TEST(Words, KeepCaseOrAccentsWhereTheyShould) {
  EXPECT_THAT(split_words("H\u00C9 \u0130", {.strip_accents = false}), ElementsAre("h\u00E9", "i\u0307"));
  EXPECT_THAT(split_words("H\u00C9", {.lowercase = false, .strip_accents = true}), ElementsAre("HE"));
  EXPECT_THAT(split_words("a\u535Ab", {.parts_ideographs = false}), ElementsAre("a\u535Ab"));
  EXPECT_THAT(split_words("a\u200Bb", {.cleans_text = false}), ElementsAre("a\u200Bb"));
}

TEST(Words, EachBlockOfIdeographsIsParted) {
  for (const std::string one : {"\u4E00", "\u3400", "\U00020000", "\U0002A700", "\uF900", "\U0002F800"})
    EXPECT_THAT(split_words("a" + one + "b", {.lowercase = false}), ElementsAre("a", one, "b"));
}

TEST(WordPiece, SearchesAddedTokensFirst) {
  const auto pieces = [](AddedToken token, const std::string& text) {
    token.id = 12;
    std::vector<std::string> tokens = small().vocabulary();
    const WordPiece words(tokens, {.added = {token}});
    EXPECT_EQ(words.size(), 13);
    return words.pieces(text);
  };
  EXPECT_THAT(pieces({.content = "WA nt"}, "want WA ntwant"), ElementsAre("want", "WA nt", "want"));
  EXPECT_THAT(pieces({.content = "WA nt"}, "wa nt"), ElementsAre("wa", "[UNK]")) << "not the same letters";
  EXPECT_THAT(pieces({.content = "WA nt", .normalized = true}, "Wa nTwant"), ElementsAre("WA nt", "want"));
  EXPECT_THAT(pieces({.content = "ed", .single_word = true}, "want ed, ed_"),
              ElementsAre("want", "ed", ",", "[UNK]", "[UNK]"));
  EXPECT_THAT(pieces({.content = "want un"}, "want unwant"), ElementsAre("want un", "want")) << "the longest one";
  const WordPiece named({"<u>", "<s>", "</s>", "<p>", "a"},
                        {.unknown = "<u>", .first = "<s>", .separator = "</s>", .padding = "<p>", .mask = "<m>"});
  EXPECT_THAT(named.encode("A </s>b", "a").ids, ElementsAre(1, 4, 2, 0, 2, 4, 2));
  EXPECT_EQ(named.padding_id(), 3);
  const WordPiece front({"[UNK]", "[CLS]", "[SEP]", "[PAD]", "a", "b", "c"},
                        {.marks_second = false, .cuts_front = true});
  EXPECT_THAT(front.encode("a b c", 4).ids, ElementsAre(1, 5, 6, 2));
  EXPECT_THAT(front.encode("a b c", "a b", 7).ids, ElementsAre(1, 5, 6, 2, 4, 5, 2));
  EXPECT_THAT(front.encode("a", "b").token_types, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(error_text([&] { pieces({.content = ""}, ""); }),
              HasSubstr("added tokens: expected a text and an id, got ''"));
  EXPECT_THAT(error_text([] { WordPiece(small().vocabulary(), {.added = {{.content = "x", .id = 3}}}); }),
              HasSubstr("the added token 'x' has the id 3 of 'want'"));
  EXPECT_THAT(error_text([] { WordPiece(small().vocabulary(), {.added = {{.content = "want", .id = 20}}}); }),
              HasSubstr("the added token 'want' has the id 20, the same token of the vocabulary 3"));
}

TEST(WordPiece, EncodesTextsAndPairs) {
  const Encoding one = small().encode("unwanted, want");
  EXPECT_THAT(one.ids, ElementsAre(1, 7, 4, 5, 11, 3, 2));
  EXPECT_THAT(one.token_types, ElementsAre(0, 0, 0, 0, 0, 0, 0));
  const Encoding two = small().encode("want", "running");
  EXPECT_THAT(two.ids, ElementsAre(1, 3, 2, 8, 9, 2));
  EXPECT_THAT(two.token_types, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(small().encode("unwanted want", 5).ids, ElementsAre(1, 7, 4, 5, 2));
  EXPECT_THAT(small().encode("unwanted want", "running", 7).ids, ElementsAre(1, 7, 4, 2, 8, 9, 2))
      << "the longer text is cut";
  const auto kept = [](int64_t first, int64_t second, int64_t most) {
    const auto text = [](int64_t words) {
      std::string all;
      while (words-- > 0) all += "want ";
      return all;
    };
    const std::vector<int64_t> types = small().encode(text(first), text(second), most).token_types;
    const int64_t ones = std::count(types.begin(), types.end(), 1);
    return std::pair<int64_t, int64_t>(static_cast<int64_t>(types.size()) - ones - 2, ones - 1);
  };
  using Kept = std::pair<int64_t, int64_t>;  // the values of tokenizers 0.23
  EXPECT_EQ(kept(5, 5, 8), Kept(2, 3));
  EXPECT_EQ(kept(5, 3, 8), Kept(3, 2));
  EXPECT_EQ(kept(3, 5, 8), Kept(2, 3));
  EXPECT_EQ(kept(40, 39, 10), Kept(4, 3));
  EXPECT_EQ(kept(2, 9, 10), Kept(2, 5));
  EXPECT_EQ(kept(9, 0, 8), Kept(5, 0));
  EXPECT_EQ(kept(5, 5, 9), Kept(3, 3));
  EXPECT_THAT(error_text([] { small().encode("want", 1); }),
              HasSubstr("TextEncoder: expected room for at least 2 tokens, got 1"));
  EXPECT_THAT(error_text([] { small().encode("a", "b", 2); }), HasSubstr("expected room for at least 3 tokens, got 2"));
}

TEST(WordPiece, ReadsAVocabularyFile) {
  const TemporaryFolder folder;
  write(folder, "vocab.txt", "[PAD]\r\n[UNK]\n[CLS]\n[SEP]\nhello\n");
  const WordPiece read = WordPiece::from_file(folder / "vocab.txt");
  EXPECT_EQ(read.size(), 5);
  EXPECT_THAT(read.encode("Hello").ids, ElementsAre(2, 4, 3));
  write(folder, "twice.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n");
  EXPECT_THAT(error_text([&] { WordPiece::from_file(folder / "twice.txt"); }),
              HasSubstr("twice.txt: vocabulary: token 'a' stands twice, the second time as number 5"));
  write(folder, "short.txt", "[PAD]\n[UNK]\n");
  EXPECT_THAT(error_text([&] { WordPiece::from_file(folder / "short.txt"); }),
              HasSubstr("expected the token [CLS] among 2 tokens"));
  EXPECT_THAT(error_text([&] { WordPiece::from_file(folder / "none.txt"); }),
              HasSubstr("none.txt: expected to open it, got 'No such file"));
  EXPECT_THAT(error_text([&] { read.token(5); }), HasSubstr("vocabulary: expected an id below 5, got 5"));
}

TEST(WordPiece, MakesAVocabularyThatLosesNothing) {
  const std::vector<std::string> texts{"The cat saw the dog .", "A dog saw \u00E9clairs !", "the end"};
  const std::vector<std::string> tokens = make_vocabulary(texts, 41);
  EXPECT_EQ(tokens.size(), 41u);
  const WordPiece pieces(tokens);
  EXPECT_THAT(pieces.pieces("the dog saw"), ElementsAre("the", "dog", "saw"));
  for (const std::string& text : texts)
    for (const std::string& piece : pieces.pieces(text)) EXPECT_NE(piece, "[UNK]") << text;
  EXPECT_EQ(tokens, make_vocabulary(texts, 41));
  EXPECT_THAT(error_text([&] { make_vocabulary(texts, 30); }), HasSubstr("got room for 30"));
}

#else

TEST(Words, SaysWhatIsMissing) {
  EXPECT_THAT(error_text([] { split_words("a"); }),
              HasSubstr("words: built without utf8proc. On Debian: apt-get install libutf8proc-dev"));
}

#endif

TEST(Characters, AreCodePoints) {
  EXPECT_THAT(characters_of("a\u00DF\u4F60\U0001F44Dz"), ElementsAre("a", "\u00DF", "\u4F60", "\U0001F44D", "z"));
}

// --- tables --------------------------------------------------------------------------------------------------------

TEST(TextTable, ReadsTheLayoutsOfGlue) {
  const TemporaryFolder folder;
  write(folder, "sst2.tsv", "sentence\tlabel\nso \"good\" \t1\r\n\nbad\t0\n");
  const TextTable sst2 = read_text_table(folder / "sst2.tsv");
  ASSERT_EQ(sst2.rows.size(), 2u);
  EXPECT_FALSE(sst2.pairs);
  EXPECT_EQ(sst2.rows[0].first, "so \"good\" ");
  EXPECT_EQ(sst2.rows[0].label, 1);
  EXPECT_EQ(sst2.description, "sst2.tsv: 2 sentences, 2 classes");

  write(folder, "mrpc.tsv",
        "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tone\ttwo\n1\t3\t4\tx\ty\n");
  const TextTable mrpc = read_text_table(folder / "mrpc.tsv");
  EXPECT_TRUE(mrpc.pairs);
  EXPECT_EQ(mrpc.rows[0].first + '|' + mrpc.rows[0].second, "one|two");
  EXPECT_EQ(mrpc.rows[1].label, 1);

  write(folder, "test.tsv", "index\tsentence\n0\tuneasy\n");
  EXPECT_EQ(read_text_table(folder / "test.tsv").rows[0].label, -1);
  write(folder, "words.tsv", "text\tlabel\na\tspam\nb\tham\n");
  EXPECT_THAT(read_text_table(folder / "words.tsv").classes, ElementsAre("ham", "spam"));
  write(folder, "many.tsv", "text\tlabel\na\t10\nb\t9\n");
  EXPECT_THAT(read_text_table(folder / "many.tsv").classes, ElementsAre("9", "10"));
}

TEST(TextTable, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { read_text_table(folder / "none.tsv"); }),
              HasSubstr("none.tsv: expected to open it, got 'No such file"));
  write(folder, "empty.tsv", "");
  EXPECT_THAT(error_text([&] { read_text_table(folder / "empty.tsv"); }), HasSubstr("empty.tsv is empty"));
  write(folder, "header.tsv", "a\tb\n1\t2\n");
  EXPECT_THAT(error_text([&] { read_text_table(folder / "header.tsv"); }),
              HasSubstr("header.tsv:1: expected a column named sentence, text, sentence1 or #1 String"));
  write(folder, "short.tsv", "sentence\tlabel\nfine\t1\nshort\n");
  EXPECT_THAT(error_text([&] { read_text_table(folder / "short.tsv"); }),
              HasSubstr("short.tsv:3: expected 2 columns, got 1"));
  write(folder, "tab.tsv", "sentence\tlabel\nfine\t1\nbut\tnot\t0\n");
  EXPECT_THAT(error_text([&] { read_text_table(folder / "tab.tsv"); }),
              HasSubstr("tab.tsv:3: expected 2 columns as in the first line, got 3. Is there a tab in a text?"));
  write(folder, "label.tsv", "sentence\tlabel\nfine\t1\nopen\t\n");
  EXPECT_THAT(error_text([&] { read_text_table(folder / "label.tsv"); }),
              HasSubstr("label.tsv:3: expected a label, got none"));
}

TextTable table_of(const TemporaryFolder& folder, const char* name, const std::string& text,
                   const TextTableOptions& options = {}) {
  write(folder, name, text);
  return read_text_table(folder / name, options);
}

TEST(TextTable, FindsTheColumnsOfEveryTask) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    const TextTable table = table_of(folder, "t.tsv", text);
    return table.rows[0].first + '|' + table.rows[0].second + '|' +
           (table.classes.empty() ? "none" : table.classes[static_cast<size_t>(table.rows[0].label)]) + '|' +
           joined(table.unused);
  };
  EXPECT_EQ(read("index\tquestion\tsentence\tlabel\n0\tq\ts\tentailment\n"), "q|s|entailment|");
  EXPECT_EQ(read("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta\tb\t0\n"), "a|b|0|");
  EXPECT_EQ(
      read("index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
           "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n0\t1\t2\tg\t(\t(\t(\t(\ta\tb\tx\tneutral\n"),
      "a|b|neutral|");
  EXPECT_EQ(read("premise\thypothesis\tlabels\np\th\t 2 \r\n"), "p|h|2|");
  EXPECT_EQ(read("question\tlabel\nq\t1\n"), "q||1|");
  EXPECT_EQ(read("Text\tTarget\tnote\nt\tx\tn\n"), "t||x|note");
  EXPECT_EQ(read("text\tlabel\tscore\nt\tx\t0.5\n"), "t||x|score") << "beside a label it is a confidence";
  EXPECT_EQ(read("sentence\tlabel\nt\t-1\n"), "t||none|") << "a test part";
  EXPECT_EQ(read("gj04\t1\t\tOur friends won't buy.\ngj04\t0\t*\tThey drank.\n"), "Our friends won't buy.||1|")
      << "CoLA names no columns";
  const TextTable chosen = table_of(folder, "t.tsv", "a\tb\tlabel\n1\t2\tx\n", {.texts = {"b", "a"}, .label = "label"});
  EXPECT_EQ(chosen.rows[0].first + chosen.rows[0].second, "21");
  const TextTable snli = table_of(folder, "t.tsv", "gold_label\tsentence1\tsentence2\n-\ta\tb\nneutral\tc\td\n");
  EXPECT_EQ(snli.rows.size(), 1u);
  EXPECT_EQ(snli.without_label, 1);
}

TEST(TextTable, TellsScoresFromClasses) {
  const TemporaryFolder folder;
  const TextTable scores = table_of(folder, "t.tsv", "sentence1\tsentence2\tscore\na\tb\t5.000\nc\td\t-1e-1\n");
  EXPECT_TRUE(scores.scores);
  EXPECT_EQ(scores.description, "t.tsv: 2 pairs, 2 different scores");
  EXPECT_FALSE(table_of(folder, "t.tsv", "text\tlabel\na\t1\nb\t0\n").scores);
  EXPECT_FALSE(table_of(folder, "t.tsv", "text\tlabel\na\t1.5\nb\tx\n").scores);
  double value = 0;
  EXPECT_TRUE(parse_score("+2.5", value));
  EXPECT_EQ(value, 2.5);
  EXPECT_TRUE(parse_score("+1e-400", value));
  EXPECT_EQ(value, 0);
  for (const char* text : {"", "nan", "inf", "+-5", "1.5x", " 1", "1e-400x", "-1e400"})
    EXPECT_FALSE(parse_score(text, value)) << text;
}

TEST(TextTable, ReadsCommasAndJson) {
  const TemporaryFolder folder;
  const TextTable csv =
      table_of(folder, "t.csv", "\xEF\xBB\xBFtext,label\r\n\"a, \"\"b\"\"\nand c\",1\r\n\r\nplain \"d\",\"0\"\r\n");
  ASSERT_EQ(csv.rows.size(), 2u);
  EXPECT_EQ(csv.rows[0].first, "a, \"b\"\nand c");
  EXPECT_EQ(csv.rows[1].first, "plain \"d\"");
  EXPECT_THAT(csv.classes, ElementsAre("0", "1"));
  EXPECT_EQ(table_of(folder, "t.tsv", "\"text\"\t\"label\"\n\"a\tb\"\t\"x\"\n").rows[0].first, "a\tb");
  EXPECT_EQ(table_of(folder, "t.csv", "text;label\n\"a;b, c\";0\n").rows[0].first, "a;b, c");
  EXPECT_EQ(table_of(folder, "t.jsonl", "{\"text\": \"a\", \"label\": 1, \"score\": NaN}\n").rows.size(), 1u);
  for (const char* json : {"{\"text\": \"a\", \"label\": 1}\n\n{\"label\": \"x\", \"text\": \"b\\n\", \"idx\": 3}\n",
                           "[{\"text\": \"a\", \"label\": 1}, {\"label\": \"x\", \"text\": \"b\\n\", \"idx\": 3}]"}) {
    const TextTable table = table_of(folder, "t.jsonl", json);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(table.rows[1].first, "b\n");
    EXPECT_THAT(table.classes, ElementsAre("1", "x"));
  }
}

TEST(TextTable, NamesTheLineThatIsWrong) {
  const TemporaryFolder folder;
  const auto error = [&](const char* name, const std::string& text) {
    return error_text([&] { table_of(folder, name, text); });
  };
  EXPECT_THAT(
      error("t.tsv", "text\tsentence\tlabel\n"),
      HasSubstr("t.tsv:1: expected one choice of texts, got 'sentence' and 'text'. --text-column-names says which"));
  EXPECT_THAT(error("t.tsv", "text\tlabel\ttarget\n"),
              HasSubstr("expected one choice of labels, got 'label' and 'target'"));
  EXPECT_THAT(error("t.tsv", "text\tlabel\tLabel\n"),
              HasSubstr("expected other names for each column, got 'Label' twice"));
  EXPECT_THAT(error("t.tsv", "text\tlabel\ncaf\xE9\t1\n"),
              HasSubstr("t.tsv:2: expected UTF-8, got '\\xe9'. Is it Latin-1?"));
  EXPECT_THAT(error("t.tsv", "\xFF\xFEt\0"), HasSubstr("t.tsv: expected UTF-8, got UTF-16"));
  EXPECT_THAT(error("t.csv", "text,label\n\"a\n,1\nb,0\n"),
              HasSubstr("t.csv:2: a quotation that begins in this row does not end"));
  EXPECT_THAT(error("t.csv", "text,label\n\"a\"b,1\n"),
              HasSubstr("t.csv:2: expected a separator after a quotation, got 'b'"));
  EXPECT_THAT(error("t.csv", "text,label\na\nb,0\n"), HasSubstr("t.csv:2: expected 2 columns, got 1"));
  EXPECT_THAT(error("t.csv", "text;label\nb;c;0\n"),
              HasSubstr("Is there a semicolon in a text without quotation marks?"));
  EXPECT_THAT(error("t.csv", "text,label\na,0\nb,nan\n"),
              HasSubstr("t.csv:3: expected a label, got nan, which other programs write for none"));
  EXPECT_THAT(error("t.jsonl", "{\"text\": \"a\", \"labels\": [2, 27]}\n"),
              HasSubstr("t.jsonl:1: expected one label, got a list or an object"));
  EXPECT_THAT(error("t.jsonl", "{\"text\": [\"a\", \"b\"], \"label\": 1}\n"),
              HasSubstr("t.jsonl:1: expected a text 'text', got a list or an object"));
  EXPECT_THAT(error("t.csv", "text,label\nb,c,0\n"),
              HasSubstr("t.csv:2: expected 2 columns as in the first line, got 3. Is there a comma in a text without"));
  EXPECT_THAT(error("t.json", "{\"text\": \"a\"}\n{\"text\": null}\n"),
              HasSubstr("t.json:2: expected a text 'text', got none"));
  EXPECT_THAT(error("t.json", "{\"text\": \"a\"}\n[1]\n"), HasSubstr("t.json:2: expected a JSON object, got array"));
  EXPECT_THAT(error("t.json", "{\"text\": \n\"a\"}\n"),
              HasSubstr("t.json:1: expected a JSON object a line, got {\"text\": "));
  EXPECT_THAT(error("t.json", "[{\"text\": "), HasSubstr("t.json: expected JSON, got '"));
}

TEST(TextTable, ReadsSst2) {
  const std::filesystem::path file = std::filesystem::path(WEFT_SHARED_DATA) / "text/sst2/dev.tsv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const TextTable table = read_text_table(file);
  EXPECT_EQ(table.rows.size(), 872u);
  EXPECT_EQ(table.classes.size(), 2u);
}

}  // namespace
}  // namespace weft::data::testing
