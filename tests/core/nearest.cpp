// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("epcohs", "epochs"), 1);  // one swap
  EXPECT_EQ(edit_distance("resnet18", "resnet81"), 1);
  EXPECT_EQ(edit_distance("abc", "abd"), 1);
}

TEST(Nearest, PicksTheLikeliest) {
  const std::vector<std::string> models{"resnet18", "resnet20", "resnet34", "mobilenet"};
  EXPECT_EQ(nearest("resnet17", models), "resnet18");
  EXPECT_EQ(nearest("RESNET34", models), "resnet34");
  EXPECT_EQ(nearest("mobilenet_v2", models), "mobilenet");
  EXPECT_EQ(nearest("mob", models), "mobilenet");
  EXPECT_EQ(nearest("vgg16", models), std::nullopt);
  EXPECT_EQ(nearest("anything", {}), std::nullopt);
}

TEST(Nearest, SuggestsOrLists) {
  EXPECT_EQ(suggestion("sgb", {"sgd", "adamw"}), " Did you mean 'sgd'?");
  EXPECT_EQ(suggestion("rmsprop", {"sgd", "adamw"}), " Known: sgd, adamw.");
}

}  // namespace
}  // namespace weft
