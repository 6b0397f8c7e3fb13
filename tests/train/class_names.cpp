// SPDX-License-Identifier: Apache-2.0
#include "train/record/class_names.h"

#include <gmock/gmock.h>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::IsEmpty;
using Names = std::vector<std::string>;

std::string saved_text(const Names& names) { return class_names_text(names); }

TEST(ClassNames, AnyNameIsATextAndBack) {
  const Names names{"a \"b\", c", "Käfer", "\xff\n"};
  EXPECT_EQ(saved_text(names), R"(["a \"b\", c","Käfer","\\xff\\x0a"])");
  EXPECT_THAT(class_names_of({{kClassNames, saved_text(names)}}), ElementsAre("a \"b\", c", "Käfer", R"(\xff\x0a)"));
  for (const char* other : {"", "cat", "[1]", R"({"0": "cat"})"})
    EXPECT_THAT(class_names_of({{kClassNames, other}}), IsEmpty());
  EXPECT_THAT(class_names_of({}), IsEmpty());
  // They are matched as they are printed, and count under the set's own names.
  const MatchedClasses matched = match_classes("f", {R"(\xff)", "a"}, {"a", "\xff"}, MatchClasses::evaluate);
  EXPECT_THAT(matched.classes, ElementsAre("\xff", "a"));
  EXPECT_THAT(match_classes("f", {R"(\xff)", "a", "b"}, {"\xff"}, MatchClasses::evaluate).classes,
              ElementsAre("\xff", "a", "b"));
}

TEST(ClassNames, FewerAreOnlyEvaluated) {
  EXPECT_EQ(error_of([] {
              match_classes("f", {"a", "b"}, {"b"}, MatchClasses::same);
            }),
            "classes: expected those of f, got others (only in the file: 'a'). --weights-strict no trains on from its "
            "weights with other classes");
  EXPECT_THAT(match_classes("f", {"a", "b"}, {"b"}, MatchClasses::start_from).classes, IsEmpty());
  EXPECT_EQ(error_of([] {
              match_classes("f", {"a", "b", "c", "d", "e", "f", "g"}, {"z"}, MatchClasses::evaluate);
            }),
            "classes: expected those of f, got others (only in the data: 'z', only in the file: 'a', 'b', 'c', 'd', "
            "'e' and 2 more). Name the folders as the weights know the classes");
}

TEST(ClassNames, ARunGoesOnWithoutThem) {
  require_same_classes("f", {}, {"a"});
  require_same_classes("f", {{kClassNames, saved_text({"0"})}}, {"a"});
  EXPECT_EQ(error_of([] {
              require_same_classes("f", {{kClassNames, saved_text({"a", "b"})}}, {"b", "a"});
            }),
            "checkpoint f: expected its classes, in their order, got another order in the data. Name the folders as "
            "the checkpoint knows the classes, or begin a new run");
}

}  // namespace
}  // namespace weft::train
