// SPDX-License-Identifier: Apache-2.0
#include "data/pickled_dict.h"

#include "tests/data/fixture.h"
#include "tests/data/python2_pickle.h"
#include "tests/support/shell.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;

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
  for (const char* protocol : {"3", "4"}) {
    const tests::Outcome python = tests::shell(
        "/usr/bin/python3 -c \"import numpy, pickle; pickle.dump({'data': numpy.arange(600, dtype='u1').reshape(2, "
        "300), "
        "'labels': [7, 7000, -7], 'names': ['a', 'a' * 300]}, open('" +
        (folder_ / "file").string() + "', 'wb'), protocol=" + protocol + ")\"");
    if (python.exit_code != 0) GTEST_SKIP() << "NOT TESTED against Python: install python3-numpy to do so";
    const PickledDict file(folder_ / "file");
    EXPECT_THAT(file.integers("labels"), ElementsAre(7, 7000, -7));
    EXPECT_THAT(file.texts("names"), ElementsAre("a", std::string(300, 'a')));
    ASSERT_EQ(file.rows("data").columns, 300);
    EXPECT_EQ(file.rows("data").values[599], 599 % 256);
  }
}

TEST_F(PickledDictTest, SaysWhichKeyIsMissingOrOther) {
  const PickledDict file = read(everything());
  EXPECT_THAT(error_text([&] { file.integers("labels"); }), HasSubstr("file: expected a key 'labels', got none"));
  EXPECT_THAT(error_text([&] { file.rows("numbers"); }), HasSubstr("expected an array as 'numbers', got a list"));
  EXPECT_THAT(error_text([&] { file.integers("names"); }),
              HasSubstr("expected a list of which each is a number as 'names', got a text in it"));
  EXPECT_THAT(error_text([&] { file.rows("more"); }), HasSubstr("got None"));
}

TEST_F(PickledDictTest, RefusesWhatIsNoArrayOfBytes) {
  const auto with = [](int64_t rows, int64_t columns, size_t bytes, std::string_view type) {
    Python2Pickle file;
    file.op("}").put().op("(").text("data").array(rows, columns, std::vector<uint8_t>(bytes), type);
    return file.op("u.").bytes;
  };
  EXPECT_THAT(refusal(with(2, 3, 48, "f8")), HasSubstr("got an array of f8 instead of u1"));
  EXPECT_THAT(refusal(with(2, 3, 5, "u1")), HasSubstr("an array whose sizes and 5 bytes do not fit"));
  EXPECT_THAT(refusal(with(2, 3, 7, "u1")), HasSubstr("got an array of 6 bytes with 7 of them"));
  EXPECT_THAT(refusal(with(-1, 3, 3, "u1")), HasSubstr("do not fit"));
  EXPECT_THAT(refusal(with(1 << 30, 1 << 30, 3, "u1")), HasSubstr("do not fit"));
}

TEST_F(PickledDictTest, RunsAndImportsNothing) {
  Python2Pickle file;
  file.op("cos\nsystem\n").text("touch here").op("\x85R.");
  EXPECT_THAT(refusal(file.bytes), HasSubstr("got os.system, which pictures and labels do not need"));
}

TEST_F(PickledDictTest, RefusesBrokenPickles) {
  EXPECT_THAT(refusal({}), HasSubstr("got a file that ends at byte 0"));
  EXPECT_THAT(refusal({0x80, 2, 'N', '.'}), HasSubstr("got None"));
  EXPECT_THAT(refusal({0x80, 2, '.'}), HasSubstr("an opcode that finds nothing, at byte 2"));
  EXPECT_THAT(refusal({0x80, 2, 'N', 'N', '(', 'a'}), HasSubstr("an opcode that finds nothing, at byte 5"));
  EXPECT_THAT(refusal({0x80, 2, 'e'}), HasSubstr("an opcode without a mark, at byte 2"));
  EXPECT_THAT(refusal({0x80, 2, '}', '(', 'N', 'u'}), HasSubstr("a key without a value"));
  EXPECT_THAT(refusal({0x80, 2, 'K', 1, 'N', 'a'}), HasSubstr("a number where a list should be, at byte 5"));
  EXPECT_THAT(refusal({0x80, 2, 'h', 7}), HasSubstr("a value that was never remembered"));
  EXPECT_THAT(refusal({0x80, 2, 'Y'}), HasSubstr("got opcode 89 at byte 2"));
  EXPECT_THAT(refusal({0x80, 2, 'T', 255, 255, 255, 255}), HasSubstr("a file that ends at byte 7"));
  std::vector<uint8_t> bytes = everything();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THAT(refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), HasSubstr("pickle: "));
}

}  // namespace
}  // namespace weft::data::testing
