// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/launch_environment.h"

#include "tests/support/error_text.h"

namespace weft::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NodeList, BracketsRangesAndPlainNames) {
  EXPECT_THAT(parse_node_list("gpu1"), ElementsAre("gpu1"));
  EXPECT_THAT(parse_node_list("jwb[0021-0024,0030]"),
              ElementsAre("jwb0021", "jwb0022", "jwb0023", "jwb0024", "jwb0030"));
  EXPECT_THAT(parse_node_list("jwb[0021-0022],login1,a[7]"), ElementsAre("jwb0021", "jwb0022", "login1", "a7"));
  EXPECT_THAT(parse_node_list("c1-[08-11].cluster"),
              ElementsAre("c1-08.cluster", "c1-09.cluster", "c1-10.cluster", "c1-11.cluster"));
  EXPECT_THAT(parse_node_list("rack[1-2]n[01-02]"), ElementsAre("rack1n01", "rack1n02", "rack2n01", "rack2n02"));
}

TEST(NodeList, ZerosInFrontAreTheWidth) {
  EXPECT_THAT(parse_node_list("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(parse_node_list("n[09-11]"), ElementsAre("n09", "n10", "n11"));
  EXPECT_THAT(parse_node_list("n[098-0101]"), ElementsAre("n098", "n099", "n100", "n101"));
}

TEST(NodeList, RefusesWhatIsNone) {
  const auto text = [](const std::string& list) { return error_text([&] { parse_node_list(list); }); };
  EXPECT_THAT(text(""), HasSubstr("it is empty"));
  EXPECT_THAT(text("a,,b"), HasSubstr("a name is empty"));
  EXPECT_THAT(text("a,"), HasSubstr("a name is empty"));
  EXPECT_THAT(text("a[1-"), HasSubstr("is not closed"));
  EXPECT_THAT(text("a1]"), HasSubstr("is not opened"));
  EXPECT_THAT(text("a[1[2]]"), HasSubstr("a bracket in a bracket"));
  EXPECT_THAT(text("a[]"), HasSubstr("'' is no number"));
  EXPECT_THAT(text("a[x]"), HasSubstr("'x' is no number"));
  EXPECT_THAT(text("a[-1]"), HasSubstr("'' is no number"));
  EXPECT_THAT(text("a[4-2]"), HasSubstr("the range 4-2 runs backwards"));
  EXPECT_THAT(text("a b"), HasSubstr("' ' in a name"));
  EXPECT_THAT(text("a\nb"), HasSubstr("'\\x0a' in a name"));
  EXPECT_THAT(text(std::string(2 << 20, 'a')), HasSubstr("longer than 1 MiB"));
}

TEST(NodeList, ExpansionIsBounded) {
  const auto text = [](const std::string& list) { return error_text([&] { parse_node_list(list); }); };
  EXPECT_EQ(parse_node_list("n[1-65536]").size(), 65536u);
  EXPECT_THAT(text("n[0-65536]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(text("n[0-99999999999999999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(text("n[0-999999999999999999999]"), HasSubstr("is no number"));
  EXPECT_THAT(text("a[1-999]b[1-999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(text("a[1-9]b[1-9]c[1-9]d[1-9]e[1-9]f[1-9]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(text("a[1-40000],b[1-40000]"), HasSubstr("more than 65536 hosts"));
}

TEST(NodeList, JscReachesHostsByTheNameWithAnI) {
  EXPECT_EQ(fast_network_name("jwb0021", "juwelsbooster"), "jwb0021i");
  EXPECT_EQ(fast_network_name("jwc01.juwels", "juwels"), "jwc01i.juwels");
  EXPECT_EQ(fast_network_name("jrc01", "jureca"), "jrc01i");
  EXPECT_EQ(fast_network_name("jwb0021", "jusuf"), "jwb0021");
  EXPECT_EQ(fast_network_name("nid0001", ""), "nid0001");
}

}  // namespace
}  // namespace weft::dist
