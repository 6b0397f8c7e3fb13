// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/unpickler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using test::error_of;
using namespace std::string_literals;

/// An object that keeps how many values it was given.
struct Bag final : PickleObject {
  const char* kind() const override { return "a bag"; }
  void build(const PickleValue& state, const ByteStream::Fail& fail) override {
    const auto* list = state.as<PickleList>();
    if (list == nullptr) fail(str("expected a list of values, got ", state.kind()));
    count = list->items.size();
  }

  size_t count = 0;
};

/// As above, without BUILD.
struct Label final : PickleObject {
  const char* kind() const override { return "a label"; }
};

void make_bag(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail) {
  if (!arguments.items.empty()) fail("bag: expected no arguments");
  result.is = std::make_unique<Bag>();
}

const PickleFunction kBag(make_bag);
const Label kLabel{};

const PickleObject* find_shop(const std::string& module, const std::string& name) {
  if (module != "shop") return nullptr;
  if (name == "bag") return &kBag;
  if (name == "label") return &kLabel;
  return nullptr;
}

const PickleVocabulary kShop{.holds = "shops", .advice = ". Ask the owner", .find = find_shop};

/// The machine's result for a pickle's bytes. The result is read within `body`.
template <class Body>
void with_pickle(const std::string& bytes, Body&& body, const PickleVocabulary& vocabulary = kShop) {
  const ByteStream::Fail fail = [](const std::string& text) { weft::fail(text); };
  ByteStream stream(bytes, fail);
  body(unpickle(stream, vocabulary, fail));
}

std::string pickle_error(const std::string& bytes, const PickleVocabulary& vocabulary = kShop) {
  return error_of([&] {
    with_pickle(
        bytes, [](const Pickle&) {}, vocabulary);
  });
}

TEST(Unpickler, PlainValues) {
  with_pickle(
      "\x80\2](K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\0\x8a\1\xff\x8a\5\0\0\0\0\1G?\xe0\0\0\0\0\0\0U\2abN\x88\x89)"
      "K\1\x85K\1K\2\x86"
      "X\2\0\0\0\xc3\xa4"
      "e."s,
      [](const Pickle& pickle) {
        const auto& items = pickle.root->as<PickleList>()->items;
        ASSERT_EQ(items.size(), 15u);
        const int64_t numbers[] = {255, 65535, -1, 0, -1, int64_t{1} << 32};
        for (size_t i = 0; i < 6; ++i) EXPECT_EQ(*items[i]->as<int64_t>(), numbers[i]);
        EXPECT_EQ(*items[6]->as<double>(), 0.5);
        EXPECT_EQ(*items[7]->as<std::string>(), "ab");
        EXPECT_TRUE(items[8]->as<PickleNone>());
        EXPECT_TRUE(*items[9]->as<bool>());
        EXPECT_FALSE(*items[10]->as<bool>());
        EXPECT_TRUE(items[11]->as<PickleList>()->is_tuple);
        EXPECT_EQ(items[12]->as<PickleList>()->items.size(), 1u);
        EXPECT_EQ(items[13]->as<PickleList>()->items.size(), 2u);
        EXPECT_EQ(*items[14]->as<std::string>(), "ä");
      });
}

TEST(Unpickler, TextsOfEveryLength) {
  const auto expect_text = [&](const std::string& opcode) {
    with_pickle(opcode + "ab.", [&](const Pickle& pickle) {
      ASSERT_NE(pickle.root->as<std::string>(), nullptr) << opcode;
      EXPECT_EQ(*pickle.root->as<std::string>(), "ab") << opcode;
    });
  };
  for (const char* opcode : {"U", "\x8c", "C"}) expect_text(opcode + "\2"s);
  for (const char* opcode : {"T", "X", "B"}) expect_text(opcode + "\2\0\0\0"s);
  for (const char* opcode : {"\x8d", "\x8e", "\x96"}) expect_text(opcode + "\2\0\0\0\0\0\0\0"s);
}

// Protocols 0 and 1, whose arguments are lines of text (CPython's Lib/pickletools.py).
TEST(Unpickler, LinesOfText) {
  with_pickle(
      "(I12\nI-3\nI01\nI00\nL70000000000L\nF1.5\nFinf\nS'a\\'\\x41\\n\\\\'\nS\"b\"\nV\xe4\\u20ac\\U0001f600\\u000a\n("
      "lp0\nI7\n"
      "ag0\n(Vk\nI1\ndl."s,
      [](const Pickle& pickle) {
        const auto& items = pickle.root->as<PickleList>()->items;
        ASSERT_EQ(items.size(), 13u);
        EXPECT_EQ(*items[0]->as<int64_t>(), 12);
        EXPECT_EQ(*items[1]->as<int64_t>(), -3);
        EXPECT_TRUE(*items[2]->as<bool>());
        EXPECT_FALSE(*items[3]->as<bool>());
        EXPECT_EQ(*items[4]->as<int64_t>(), 70000000000);
        EXPECT_EQ(*items[5]->as<double>(), 1.5);
        EXPECT_EQ(*items[6]->as<double>(), INFINITY);
        EXPECT_EQ(*items[7]->as<std::string>(), "a'A\n\\");
        EXPECT_EQ(*items[8]->as<std::string>(), "b");
        EXPECT_EQ(*items[9]->as<std::string>(), "ä€😀\n");
        EXPECT_EQ(*items[10]->as<PickleList>()->items.at(0)->as<int64_t>(), 7);
        EXPECT_EQ(items[10], items[11]);
        EXPECT_EQ(*items[12]->as<PickleDict>()->items.at(0).first->as<std::string>(), "k");
      });
  EXPECT_EQ(pickle_error("I1x\n."), "pickle: INT at byte 0: expected a whole number of 64 bits, got '1x'");
  EXPECT_EQ(pickle_error("L9223372036854775808L\n."),
            "pickle: LONG at byte 0: expected a whole number of 64 bits, got '9223372036854775808'");
  EXPECT_EQ(pickle_error("Fone\n."), "pickle: FLOAT at byte 0: expected a number, got 'one'");
  EXPECT_EQ(pickle_error("Sab\n."), "pickle: STRING at byte 0: expected text between quotes, got 'ab'");
  EXPECT_EQ(pickle_error("S'\\q'\n."), "pickle: STRING at byte 0: expected an escape such as \\x0a, got '\\q''");
  EXPECT_EQ(pickle_error("S'\\x4'\n."), "pickle: STRING at byte 0: expected 2 hexadecimal digits, got '4''");
  EXPECT_EQ(pickle_error("V\\u12\n."), "pickle: UNICODE at byte 0: expected 4 hexadecimal digits, got '12'");
  EXPECT_EQ(pickle_error("V\\Uffffffff\n."), "pickle: UNICODE at byte 0: expected characters up to U+10FFFF");
  EXPECT_EQ(pickle_error("Np99999999\n."),
            "pickle: PUT at byte 1: expected a number below 10000000 for a value in the memo, got 99999999");
  EXPECT_EQ(pickle_error("gx\n."), "pickle: GET at byte 0: expected a number of the memo, got 'x'");
}

TEST(Unpickler, SetsOfProtocol4AreListsInOrder) {
  with_pickle("\x8f(K\2K\1\x90(K\3\x91\x86."s, [](const Pickle& pickle) {
    const auto& both = pickle.root->as<PickleList>()->items;
    ASSERT_EQ(both[0]->as<PickleList>()->items.size(), 2u);
    EXPECT_EQ(*both[0]->as<PickleList>()->items[0]->as<int64_t>(), 2);
    EXPECT_EQ(*both[1]->as<PickleList>()->items.at(0)->as<int64_t>(), 3);
  });
}

TEST(Unpickler, TheVocabularyMakesObjects) {
  with_pickle("](cshop\nbag\n)R](NNNebcshop\nlabel\n}Nbe."s, [](const Pickle& pickle) {
    const auto& items = pickle.root->as<PickleList>()->items;
    ASSERT_EQ(items.size(), 3u);
    ASSERT_NE(items[0]->as<Bag>(), nullptr);
    EXPECT_EQ(items[0]->as<Bag>()->count, 3u);
    EXPECT_EQ(items[0]->as<Label>(), nullptr);
    EXPECT_STREQ(items[0]->kind(), "a bag");
    EXPECT_NE(items[1]->as<Label>(), nullptr);
    EXPECT_NE(items[2]->as<PickleDict>(), nullptr);
  });
  with_pickle("\x80\4\x8c\4shop\x8c\3bag\x93)R.",
              [](const Pickle& pickle) { EXPECT_NE(pickle.root->as<Bag>(), nullptr); });
}

TEST(Unpickler, ErrorsOfTheVocabularySayWhere) {
  EXPECT_EQ(pickle_error("cshop\ntill\n."),
            "pickle: GLOBAL at byte 0: the file names 'shop.till', which shops do not need; nothing of it was run. "
            "Ask the owner");
  EXPECT_EQ(pickle_error("cshop\nbag\nN\x85R."), "pickle: REDUCE at byte 12: bag: expected no arguments");
  EXPECT_EQ(pickle_error("cshop\nbag\n]R."), "pickle: REDUCE at byte 11: expected a tuple of arguments, got a list");
  EXPECT_EQ(pickle_error("cshop\nlabel\n)R."), "pickle: REDUCE at byte 13: expected a function to call, got a label");
  EXPECT_EQ(pickle_error("cshop\nbag\n)RNb."), "pickle: BUILD at byte 13: expected a list of values, got None");
  EXPECT_EQ(pickle_error("cshop\nbag\nNb."),
            "pickle: BUILD at byte 11: expected a dict to give attributes to, got a function's name");
  EXPECT_EQ(pickle_error("NNb."), "pickle: BUILD at byte 2: expected a dict to give attributes to, got None");
}

TEST(Unpickler, PersistentIdsAreTheVocabularys) {
  PickleVocabulary shop = kShop;
  shop.load_persistent = [](const PickleValue& id, PickleValue& result, const ByteStream::Fail& fail) {
    if (id.as<std::string>() == nullptr) fail(str("expected a shelf, got ", id.kind()));
    result.is = std::make_unique<Label>();
  };
  with_pickle(
      "U\1aQ.", [](const Pickle& pickle) { EXPECT_NE(pickle.root->as<Label>(), nullptr); }, shop);
  EXPECT_EQ(pickle_error("K\1Q.", shop), "pickle: BINPERSID at byte 2: expected a shelf, got a whole number");
  EXPECT_EQ(pickle_error("U\1aQ."), "pickle: BINPERSID at byte 3: shops do not need this opcode, and it is not run");
}

// Only the opcodes of the table do anything; all other bytes are refused where they stand.
TEST(Unpickler, EveryOtherByteIsRefused) {
  const auto refused = [](const PickleVocabulary& vocabulary) {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text = pickle_error(std::string(1, static_cast<char>(byte)) + std::string(64, 'N'), vocabulary);
      if (text.ends_with("at byte 0: shops do not need this opcode, and it is not run"))
        bytes += static_cast<char>(byte);
    }
    return bytes;
  };
  const std::string known =
      "(.N\x88\x89JKM\x8aGX\x8c\x8dTU)t\x85\x86\x87]ae}suqr\x94hjc\x93Rb\x80\x95"
      "BC\x8e\x96\x81ILFSVldpg\x8f\x90\x91";
  const std::string others = refused(kShop);
  EXPECT_EQ(others.size(), 256 - known.size());
  EXPECT_EQ(others.find_first_of(known), std::string::npos);

  PickleVocabulary everything = kShop;
  everything.load_persistent = [](const PickleValue&, PickleValue&, const ByteStream::Fail&) {};
  const std::string fewer = refused(everything);
  EXPECT_EQ(fewer.size(), others.size() - 1);
  EXPECT_EQ(fewer.find_first_of("Q"), std::string::npos);
}

TEST(Unpickler, TheStackIsGuarded) {
  EXPECT_EQ(pickle_error("."), "pickle: STOP at byte 0: expected a value on the stack, got none");
  EXPECT_EQ(pickle_error("NN."), "pickle: STOP at byte 2: expected one value at the end, got more");
  EXPECT_EQ(pickle_error("(N."), "pickle: STOP at byte 2: expected one value at the end, got more");
  EXPECT_EQ(pickle_error("N(\x85."), "pickle: TUPLE1 at byte 2: expected a value on the stack, got none");
  EXPECT_EQ(pickle_error("Nt."), "pickle: TUPLE at byte 1: expected a MARK before, got none");
  EXPECT_EQ(pickle_error("Na."), "pickle: APPEND at byte 1: expected a value on the stack, got none");
  EXPECT_EQ(pickle_error(")Na."), "pickle: APPEND at byte 2: expected a list, got a tuple");
  EXPECT_EQ(pickle_error("NNa."), "pickle: APPEND at byte 2: expected a list, got None");
  EXPECT_EQ(pickle_error("]NNs."), "pickle: SETITEM at byte 3: expected a dict, got a list");
  EXPECT_EQ(pickle_error("}(Nu."), "pickle: SETITEMS at byte 3: expected keys with values, got 1 of both");
  EXPECT_EQ(pickle_error("h\7."), "pickle: BINGET at byte 0: expected a value in the memo under number 7, got none");
  EXPECT_EQ(pickle_error("q\0."s), "pickle: BINPUT at byte 0: expected a value on the stack, got none");
  EXPECT_EQ(pickle_error("\x80\7."), "pickle: PROTO at byte 0: expected pickle protocol 0 to 5, got 7");
  EXPECT_EQ(pickle_error("NN\x93."), "pickle: STACK_GLOBAL at byte 2: expected a string, got None");
}

// Sizes that a few bytes claim cost nothing: they are first compared with the bytes that are there.
TEST(Unpickler, BombsAreErrors) {
  EXPECT_EQ(pickle_error("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."),
            "expected 9223372036854775807 bytes of text at byte 9, got 1. Is the file cut short?");
  EXPECT_EQ(pickle_error("T\xff\xff\xff\xff."),
            "expected 4294967295 bytes of text at byte 5, got 1. Is the file cut short?");
  EXPECT_EQ(pickle_error("c" + std::string(300, 'a')), "expected a module's name of at most 256 bytes, got more");
  EXPECT_EQ(pickle_error(""), "expected 1 byte of a pickle at byte 0, got 0. Is the file cut short?");
  EXPECT_EQ(pickle_error("Nr\xff\xff\xff\xff."),
            "pickle: LONG_BINPUT at byte 1: expected a number below 10000000 for a value in the memo, got 4294967295");
  EXPECT_EQ(pickle_error("Nr\x7f\x96\x98\0."s), "(no error)");  // 9999999
  EXPECT_EQ(pickle_error("N" + std::string(10'000'000, '\x94')),
            "pickle: MEMOIZE at byte 10000000: expected at most 10000000 opcodes, got more");
  EXPECT_EQ(pickle_error(std::string(10'000'001, '(')),
            "pickle: MARK at byte 10000000: expected at most 10000000 opcodes, got more");
  PickleVocabulary few = kShop;
  few.most_opcodes = 4;
  EXPECT_EQ(pickle_error("NNt.", few), "pickle: TUPLE at byte 2: expected a MARK before, got none");
  EXPECT_EQ(pickle_error("(NNt.", few), "pickle: STOP at byte 4: expected at most 4 opcodes, got more");
  with_pickle(std::string(200'000, '(') + std::string(200'000, 't') + ".", [](const Pickle& pickle) {
    EXPECT_TRUE(pickle.root->as<PickleList>()->is_tuple);  // deep, and neither built nor freed by recursion
  });
}

/// A dict of a list's values, each under itself.
void make_twins(const PickleList& arguments, PickleValue& result, const ByteStream::Fail&) {
  PickleDict twins;
  for (const PickleRef item : arguments.items.at(0)->as<PickleList>()->items) twins.items.emplace_back(item, item);
  result.is = std::move(twins);
}

// A few bytes that refer to a long value could ask for it again and again.
TEST(Unpickler, RepetitionIsBounded) {
  const std::string name = "X\x2c\1\0\0"s + std::string(300, 'a');
  EXPECT_EQ(pickle_error("U\4shop" + name + "\x93."),
            "pickle: STACK_GLOBAL at byte 311: expected a name of at most 256 bytes, got 300");
  EXPECT_EQ(pickle_error(name + "U\3bag\x93."),
            "pickle: STACK_GLOBAL at byte 310: expected a name of at most 256 bytes, got 300");
  const PickleFunction twin(make_twins);
  PickleVocabulary twins = kShop;
  twins.find = [&](const std::string&, const std::string&) { return &twin; };
  const std::string list = "](" + std::string(100, 'N') + "e\x85q\0"s, start = "ctwin\ns\n" + list + "R";
  EXPECT_EQ(pickle_error(start + ".", twins), "(no error)");
  std::string again = "(" + start;
  for (int i = 0; i < 9; ++i) again += "ctwin\ns\nh\0R"s;
  EXPECT_THAT(pickle_error(again + "t.", twins),
              testing::EndsWith("expected about as many values as the file describes, got far more by repetition"));
}

TEST(Unpickler, BytesOfAFileAreReadOnceAndInOrder) {
  const std::string text(100'000, 'x');
  const std::string pickle = "(K\7B\xa0\x86\1\0"s + text + "K\x08t."s;
  uint64_t read_to = 10;
  const ByteStream::Fail fail = [](const std::string& problem) { weft::fail(problem); };
  ByteStream stream(
      [&](uint64_t offset, void* to, uint64_t count) {
        EXPECT_EQ(offset, read_to);
        read_to = offset + count;
        pickle.copy(static_cast<char*>(to), count, offset - 10);
      },
      10, 10 + pickle.size(), fail);
  const Pickle read = unpickle(stream, kShop, fail);
  const auto& items = read.root->as<PickleList>()->items;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(*items[1]->as<std::string>(), text);
  EXPECT_EQ(*items[2]->as<int64_t>(), 8);
  EXPECT_EQ(read.end, 10 + pickle.size());
}

}  // namespace
}  // namespace weft
