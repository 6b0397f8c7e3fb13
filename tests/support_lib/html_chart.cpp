// SPDX-License-Identifier: Apache-2.0
#include "apps/support/html_chart.h"

#include <gtest/gtest.h>

namespace weft::support {
namespace {

TEST(HtmlChart, NamesAreText) { EXPECT_EQ(html_text("a\"'<>&\xff"), "a&quot;&#39;&lt;&gt;&amp;\xEF\xBF\xBD"); }

}  // namespace
}  // namespace weft::support
