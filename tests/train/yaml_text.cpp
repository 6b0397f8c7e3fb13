// SPDX-License-Identifier: Apache-2.0
#include "train/record/yaml_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::train {
namespace {

TEST(YamlText, IsAlwaysQuoted) {
  EXPECT_EQ(yaml_text("resnet18"), R"("resnet18")");
  EXPECT_EQ(yaml_text(""), R"("")");
  EXPECT_EQ(yaml_text("no"), R"("no")");
  EXPECT_EQ(yaml_text("a: b # c"), R"("a: b # c")");
  EXPECT_EQ(yaml_text("C:\\x \"y\"\n\t\x01\x7f"), R"("C:\\x \"y\"\n\t\x01\x7f")");
}

TEST(YamlText, Utf8) {
  EXPECT_EQ(yaml_text("Jülich, 東京 😀"), "\"Jülich, 東京 😀\"");
  EXPECT_EQ(yaml_text("\u0085 \u00a0 \u2028 \ufeff"), R"("\x85 \xa0 \u2028 \ufeff")");  // line ends, a byte-order mark
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(yaml_text("\xff"), '"' + bad + '"');
  EXPECT_EQ(yaml_text("\xc3"), '"' + bad + '"');                                   // cut short
  EXPECT_EQ(yaml_text("\xc0\x80"), '"' + bad + bad + '"');                         // longer than it must be
  EXPECT_EQ(yaml_text("\xed\xa0\x80"), '"' + bad + bad + bad + '"');               // a surrogate
  EXPECT_EQ(yaml_text("\xf4\x90\x80\x80x"), '"' + bad + bad + bad + bad + "x\"");  // above U+10FFFF
}

TEST(YamlKey, PlainWhereItCanBe) {
  EXPECT_EQ(yaml_key("batch_size"), "batch_size");
  EXPECT_EQ(yaml_key("optim.lr"), "optim.lr");
  EXPECT_EQ(yaml_key("validation accuracy"), "\"validation accuracy\"");
  EXPECT_EQ(yaml_key("No"), "\"No\"");
  EXPECT_EQ(yaml_key("1e5"), "\"1e5\"");
  EXPECT_EQ(yaml_key("-x"), "\"-x\"");
  EXPECT_EQ(yaml_key(""), "\"\"");
}

TEST(YamlNumber, HasAPointBeforeItsExponent) {
  EXPECT_EQ(yaml_number(32), "32");
  EXPECT_EQ(yaml_number(-0.5), "-0.5");
  EXPECT_EQ(yaml_number(1e-5), "1.0e-05");
  EXPECT_EQ(yaml_number(2.5e-7), "2.5e-07");
  EXPECT_EQ(yaml_number(1e20), "1.0e+20");
  EXPECT_EQ(yaml_number(std::nan("")), ".nan");
  EXPECT_EQ(yaml_number(-HUGE_VAL), "-.inf");
  EXPECT_EQ(yaml_number(HUGE_VAL), ".inf");
}

}  // namespace
}  // namespace weft::train
