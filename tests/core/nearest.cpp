// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Nearest, PicksTheLikeliest) {
  const std::vector<std::string> models{"resnet18", "resnet20", "resnet34", "mobilenet"};
  EXPECT_EQ(nearest("resnet17", models), "resnet18");
  EXPECT_EQ(nearest("RESNET34", models), "resnet34");
  EXPECT_EQ(nearest("mobilenet_v2", models), "mobilenet");
  EXPECT_EQ(nearest("mob", models), "mobilenet");
  EXPECT_EQ(nearest("vgg16", models), std::nullopt);
  EXPECT_EQ(nearest("anything", {}), std::nullopt);
  EXPECT_EQ(nearest("gsd", {"sgd"}), "sgd") << "a swap is one step";
  EXPECT_EQ(nearest("sittin", {"kitten"}), "kitten");
  EXPECT_EQ(nearest("sitting", {"kitten"}), std::nullopt) << "three steps of seven letters";
}

TEST(Nearest, SuggestsOrLists) {
  EXPECT_EQ(suggestion("sgb", {"sgd", "adamw"}), " Did you mean 'sgd'?");
  EXPECT_EQ(suggestion("rmsprop", {"sgd", "adamw"}), " Known: sgd, adamw.");
}

}  // namespace
}  // namespace weft
