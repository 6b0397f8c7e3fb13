// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Printable, ControlCharactersBecomeHex) {
  EXPECT_EQ(printable("plain ä 'text'"), "plain ä 'text'");
  EXPECT_EQ(printable(std::string_view("a\nb\0c\x1b\x7f", 7)), "a\\x0ab\\x00c\\x1b\\x7f");
  EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace weft
