// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <gtest/gtest.h>

#include "io/checkpoint_index.h"
#include "tests/support/error_text.h"

namespace weft::tests {
namespace {

/// An object of `names` names, in a list.
std::string object(int names) {
  std::string text = "[1, {";
  for (int i = 0; i < names; ++i) text += str(i ? "," : "", "\"n", i, "\":0");
  return text + "}, {\"a\":1}]";
}

TEST(Json, DeepTextsAreRefused) {
  EXPECT_EQ(json_nesting(R"({"a":["[[[","\"[",{"b":1}]})"), 3);
  EXPECT_EQ(json_nesting("]]]" + std::string(5, '[')), 5) << "what the text closes too often opens nothing";
  EXPECT_NO_THROW(check_nesting(std::string(64, '['), "x"));
  EXPECT_EQ(error_text([] { check_nesting(std::string(65, '['), "x\n"); }),
            "x\\x0a: expected JSON of at most 64 levels, got 65");
}

TEST(Json, ObjectsOfManyNamesAreRefusedWhereTheyAreSearchedOneByOne) {
  EXPECT_NO_THROW(check_ordered(object(1000), "x"));
  EXPECT_EQ(error_text([] { check_ordered(object(1001), "x"); }),
            "x: expected at most 1000 names in a JSON object, got 1001");
  EXPECT_EQ(error_text([] { check_ordered(std::string(70, ']') + std::string(64, '[') + "{\"a\":1", "x"); }),
            "x: expected JSON of at most 64 levels, got 65");
  EXPECT_NO_THROW(check_ordered("{\"a:::" + std::string(2000, ':') + "\":0}", "x"));
  for (const std::string& text : {object(100'000), "{\"facts\":" + object(100'000) + "}"})
    EXPECT_EQ(error_text([&] { parse_index(text, "run/last", "its index"); }),
              "run/last: expected at most 1000 names in a JSON object, got 100000");
  EXPECT_EQ(error_text([] { read_note(object(1001)); }),
            "sharded checkpoint: a rank's note: expected at most 1000 names in a JSON object, got 1001");
}

}  // namespace
}  // namespace weft::tests
