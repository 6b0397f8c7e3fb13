// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Printable, ControlCharactersBecomeHex) {
  EXPECT_EQ(printable("plain ä 'text'"), "plain ä 'text'");
  EXPECT_EQ(printable(std::string_view("a\nb\0c\x1b\x7f", 7)), "a\\x0ab\\x00c\\x1b\\x7f");
  EXPECT_EQ(printable(""), "");
}

// Characters that move a cursor, turn the reading direction or are no UTF-8 are shown byte by byte; letters of all
// scripts stay.
TEST(Printable, NothingReachesTheTerminalButLetters) {
  EXPECT_EQ(printable("\u20ac \u5b57 \U0001F600 \u0627"), "\u20ac \u5b57 \U0001F600 \u0627");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a\\xc2\\x9b31m")
      << "C1: CSI";
  EXPECT_EQ(printable("gpj\xe2\x80\xae.exe"), "gpj\\xe2\\x80\\xae.exe") << "right-to-left override";
  for (const char* mark : {"\u200b", "\u200f", "\u2028", "\u2029", "\u202a", "\u2066", "\u2069", "\u061c", "\ufeff"})
    EXPECT_EQ(printable(mark).substr(0, 2), "\\x") << printable(mark);
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "longer than needed";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "longer than needed";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
}

TEST(Printable, LongTextsLoseTheirMiddle) {
  const std::string long_name(60'000'000, 'a');
  const std::string shown = printable("tensor '" + long_name + "': expected a shape");
  EXPECT_LT(shown.size(), 4200u);
  EXPECT_EQ(shown.substr(0, 10), "tensor 'aa");
  EXPECT_NE(shown.find("… (60000027 bytes) …"), std::string::npos);
  EXPECT_EQ(shown.substr(shown.size() - 19), "': expected a shape");
  std::string letters;
  for (int i = 0; i < 3000; ++i) letters += "ä";
  EXPECT_EQ(printable(letters).find("\\x"), std::string::npos) << "cut between two letters";
  EXPECT_EQ(printable("abcdefgh", 4), "abc… (8 bytes) …h");
}

TEST(Printable, LinesStayLines) { EXPECT_EQ(printable_lines("a\x1b\nb\t\n"), "a\\x1b\nb\\x09\n"); }

}  // namespace
}  // namespace weft
