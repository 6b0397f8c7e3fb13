// SPDX-License-Identifier: Apache-2.0
#include "data/pickled_dict.h"

#include "tests/data/fixture.h"
#include "tests/data/python2_pickle.h"
#include "tests/support/shell.h"

namespace weft::data::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class PickledDictTest : public ::testing::Test {
 protected:
  PickledDict read(const std::vector<uint8_t>& bytes) const {
    write_file(folder_ / "file", bytes);
    return PickledDict(folder_ / "file");
  }
  std::string refusal(const std::vector<uint8_t>& bytes) const {
    return error_text([&] { static_cast<void>(read(bytes)); });
  }
  const TemporaryFolder folder_;
};

std::vector<uint8_t> everything() {
  Python2Pickle file;
  file.op("}").put().op("(").text("numbers").integers({0, 255, 256, 65535, 65536, -1}).text("names").texts({"ä b", ""});
  return file.text("data").array(2, 3, {1, 2, 3, 4, 5, 6}).text("more").op("N").op("u.").bytes;
}

TEST_F(PickledDictTest, ReadsNumbersTextsAndArrays) {
  const PickledDict file = read(everything());
  EXPECT_THAT(file.integers("numbers"), ElementsAre(0, 255, 256, 65535, 65536, -1));
  EXPECT_THAT(file.texts("names"), ElementsAre("ä b", ""));
  const PickledDict::Rows data = file.rows("data");
  EXPECT_EQ(data.rows, 2);
  EXPECT_EQ(data.columns, 3);
  EXPECT_THAT(std::vector<uint8_t>(data.values, data.values + 6), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(PickledDictTest, ItsPicklesArePythons) {
  write_file(folder_ / "file", everything());
  const tests::Outcome python = tests::shell(
      "/usr/bin/python3 -c \"import numpy, pickle; d = pickle.load(open('" + (folder_ / "file").string() +
      "', 'rb'), encoding='latin1'); print(d['numbers'], d['data'].tolist(), d['data'].dtype, d['more'])\"");
  if (python.output.find("ModuleNotFoundError") != std::string::npos || python.exit_code == 127)
    GTEST_SKIP() << "NOT TESTED against Python: install python3-numpy to do so";
  EXPECT_EQ(python.output, "[0, 255, 256, 65535, 65536, -1] [[1, 2, 3], [4, 5, 6]] uint8 None\n");
}

TEST_F(PickledDictTest, ReadsWhatPython3WritesOfThem) {
  for (const char* protocol : {"0", "1", "2", "3", "4", "5"}) {
    const tests::Outcome python = tests::shell(
        "/usr/bin/python3 -c \"import numpy, pickle; pickle.dump({'data': numpy.arange(600, dtype='u1').reshape(2, "
        "300), "
        "'labels': [7, 7000, -7], 'array': numpy.array([7, 7000, -7], dtype='>i4'), 'mixed': [numpy.int64(3), 4], "
        "'names': ['a', 'a' * 300]}, open('" +
        (folder_ / "file").string() + "', 'wb'), protocol=" + protocol + ")\"");
    if (python.exit_code != 0) GTEST_SKIP() << "NOT TESTED against Python: install python3-numpy to do so";
    const PickledDict file(folder_ / "file");
    EXPECT_THAT(file.integers("labels"), ElementsAre(7, 7000, -7));
    EXPECT_THAT(file.integers("array"), ElementsAre(7, 7000, -7));
    EXPECT_THAT(file.integers("mixed"), ElementsAre(3, 4));
    EXPECT_THAT(file.texts("names"), ElementsAre("a", std::string(300, 'a')));
    ASSERT_EQ(file.rows("data").columns, 300);
    EXPECT_EQ(file.rows("data").values[599], 599 % 256);
  }
}

// tests/golden/cifar_pickles.py
TEST_F(PickledDictTest, EveryProtocolOfPython3AndNumPy2IsReadTheSame) {
  const std::vector<uint8_t> pixels{0, 1, 10, 92, 127, 128, 254, 255};
  const fs::path golden = fs::path(WEFT_GOLDEN) / "pickles";
  for (const char* name : {"protocol0.pkl", "protocol1.pkl", "protocol2.pkl", "protocol3.pkl", "protocol4.pkl",
                           "protocol5.pkl", "frozen.pkl"}) {
    SCOPED_TRACE(name);
    const PickledDict file(golden / name);
    const PickledDict::Rows data = file.rows("data");
    ASSERT_EQ(data.rows, 2);
    ASSERT_EQ(data.columns, 4);
    EXPECT_EQ(std::vector<uint8_t>(data.values, data.values + 8), pixels);
    if (name == std::string("frozen.pkl")) continue;
    EXPECT_THAT(file.integers("list"), ElementsAre(7, 70000, -7));
    EXPECT_THAT(file.integers("array"), ElementsAre(7, 70000, -7));
    EXPECT_THAT(file.integers("column"), ElementsAre(1, 2));
    EXPECT_THAT(file.integers("scalars"), ElementsAre(3, 4));
    EXPECT_THAT(file.integers("set"), ElementsAre(5));
    EXPECT_THAT(file.texts("names"), ElementsAre("ant", "ä\n\\€"));
    EXPECT_THAT(file.texts("bytes"), ElementsAre("\xff\n", "bee"));
    EXPECT_EQ(file.rows("empty").rows, 0);
    EXPECT_THAT(error_text([&] { file.integers("data"); }),
                HasSubstr("expected an array of one dimension as 'data', got 2"));
  }
  const PickledDict fortran(golden / "fortran.pkl");
  EXPECT_THAT(
      error_text([&] { fortran.rows("data"); }),
      HasSubstr("expected an array in C's order as 'data', got Fortran's. Write numpy.ascontiguousarray of it"));
}

TEST_F(PickledDictTest, SaysWhichKeyIsMissingOrOther) {
  const PickledDict file = read(everything());
  EXPECT_THAT(error_text([&] { file.integers("labels"); }),
              HasSubstr("file: expected a key 'labels', got none. There are: numbers, names, data, more"));
  EXPECT_THAT(error_text([&] { file.rows("numbers"); }), HasSubstr("expected an array as 'numbers', got a list"));
  EXPECT_THAT(error_text([&] { file.integers("names"); }),
              HasSubstr("expected a list of which each is a whole number as 'names', got a text in it"));
  EXPECT_THAT(error_text([&] { file.rows("more"); }), HasSubstr("got None"));
}

TEST_F(PickledDictTest, RefusesWhatIsNoArrayOfBytes) {
  const auto with = [](int64_t rows, int64_t columns, size_t bytes, std::string_view type) {
    Python2Pickle file;
    file.op("}").put().op("(").text("data").array(rows, columns, std::vector<uint8_t>(bytes), type);
    return file.op("u.").bytes;
  };
  EXPECT_THAT(refusal(with(2, 3, 47, "f8")),
              ContainsRegex("file: pickle: BUILD at byte [0-9]+: expected an array of 48 bytes, got 47"));
  EXPECT_THAT(error_text([&] { read(with(2, 3, 48, "f8")).rows("data"); }),
              HasSubstr("file: expected an array of u1 (uint8) as 'data', got f8"));
  EXPECT_THAT(error_text([&] { read(with(6, 1, 48, "f8")).integers("data"); }),
              HasSubstr("file: 'data': expected whole numbers, got an array of f8"));
  EXPECT_THAT(refusal(with(2, 3, 5, "u1")), HasSubstr("expected an array of 6 bytes, got 5"));
  EXPECT_THAT(refusal(with(2, 3, 7, "u1")), HasSubstr("expected an array of 6 bytes, got 7"));
  EXPECT_THAT(refusal(with(-1, 3, 3, "u1")), HasSubstr("expected sizes of an array of 3 bytes, got -1"));
  EXPECT_THAT(refusal(with(1 << 30, 1 << 30, 3, "u1")),
              HasSubstr("expected an array of 1152921504606846976 bytes, got 3"));
}

/// An array by hand, under the key "data".
std::string array_of(const std::string& sizes, const std::string& order, const std::string& dtype = "cnumpy\ndtype\n") {
  return "}U\4data"
         "cnumpy.core.multiarray\n_reconstruct\n)R(K\1" +
         sizes + dtype + "U\2u1\x85R" + order + "U\1atbs.";
}

TEST_F(PickledDictTest, RefusesArraysThatImagesAreNot) {
  const auto refused = [&](const std::string& text) { return refusal({text.begin(), text.end()}); };
  const std::string ones = "(K\1K\1t", c_order = "\x89";
  const std::string good = array_of(ones, c_order);
  EXPECT_EQ(read({good.begin(), good.end()}).rows("data").columns, 1);
  const std::string fortran = array_of(ones, "\x88");
  EXPECT_THAT(
      error_text([&] {
        read({fortran.begin(), fortran.end()}).rows("data");
      }),
      HasSubstr("expected an array in C's order as 'data', got Fortran's. Write numpy.ascontiguousarray of it"));
  EXPECT_THAT(refused(array_of("(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", c_order)),
              HasSubstr("expected an array of at most 8 dimensions, got 9"));
  EXPECT_THAT(refused(array_of("(Nt", c_order)), HasSubstr("expected a size, got None"));
  EXPECT_THAT(refused(array_of(ones, c_order, "cevil\ndtype\n")), HasSubstr("the file names 'evil.dtype'"));
  EXPECT_THAT(refused("cnumpy\nndarray\n)R."), HasSubstr("expected an array by _reconstruct, got a call of ndarray"));
  EXPECT_THAT(refused("cnumpy\ndtype\n)R."), HasSubstr("dtype: expected its name, got none"));
  const std::string line = array_of("(K\1t", c_order);
  EXPECT_THAT(error_text([&] {
                read({line.begin(), line.end()}).rows("data");
              }),
              HasSubstr("expected an array of two dimensions as 'data', got 1"));
}

// A few bytes could ask for the same long name a million times.
TEST_F(PickledDictTest, TextsAreNoLongerThanTheFile) {
  Python2Pickle file;
  file.op("}(").text("names").op("](").text(std::string(200, 'a'));  // kept under number 2
  for (int i = 0; i < 50; ++i) file.op("h\2");
  const PickledDict read_back = read(file.op("eu.").bytes);
  EXPECT_THAT(error_text([&] { read_back.texts("names"); }),
              HasSubstr("file: expected texts as 'names' no longer than the file, got longer by repetition"));
}

TEST_F(PickledDictTest, TheLastValueOfAKeyCounts) {
  Python2Pickle file;
  file.op("}(").text("labels").integers({1}).text("labels").integers({2});
  EXPECT_THAT(read(file.op("u.").bytes).integers("labels"), ElementsAre(2));
}

TEST_F(PickledDictTest, RunsAndImportsNothing) {
  Python2Pickle file;
  file.op("cos\nsystem\n").text("touch here").op("\x85R.");
  EXPECT_THAT(refusal(file.bytes), HasSubstr("file: pickle: GLOBAL at byte 2: the file names 'os.system', which "
                                             "images and labels do not need; nothing of it was run"));
}

TEST_F(PickledDictTest, RefusesBrokenPickles) {
  EXPECT_THAT(refusal({}), HasSubstr("file: it is an empty file, expected a pickled dict of arrays and lists"));
  EXPECT_THAT(refusal({0x80, 2, 'N', '.'}), HasSubstr("file: expected a pickled dict of arrays and lists, got None"));
  EXPECT_THAT(refusal({0x80, 2, '.'}),
              HasSubstr("file: pickle: STOP at byte 2: expected a value on the stack, got none"));
  EXPECT_THAT(refusal({0x80, 2, 'N', 'N', '(', 'a'}),
              HasSubstr("APPEND at byte 5: expected a value on the stack, got none"));
  EXPECT_THAT(refusal({0x80, 2, 'e'}), HasSubstr("APPENDS at byte 2: expected a MARK before, got none"));
  EXPECT_THAT(refusal({0x80, 2, '}', '(', 'N', 'u'}),
              HasSubstr("SETITEMS at byte 5: expected keys with values, got 1 of both"));
  EXPECT_THAT(refusal({0x80, 2, 'K', 1, 'N', 'a'}), HasSubstr("APPEND at byte 5: expected a list, got a whole number"));
  EXPECT_THAT(refusal({0x80, 2, 'h', 7}),
              HasSubstr("BINGET at byte 2: expected a value in the memo under number 7, got none"));
  EXPECT_THAT(refusal({0x80, 2, 'Y'}),
              HasSubstr("pickle: opcode 0x59 at byte 2: images and labels do not need this opcode"));
  EXPECT_THAT(refusal({0x80, 2, 'T', 255, 255, 255, 255}),
              HasSubstr("expected 4294967295 bytes of text at byte 7, got 0. Is the file cut short?"));
  std::vector<uint8_t> bytes = everything();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THAT(refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
                StartsWith("data: " + (folder_ / "file").string() + ": "));
}

}  // namespace
}  // namespace weft::data::testing
