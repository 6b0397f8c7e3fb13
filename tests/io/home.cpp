// SPDX-License-Identifier: Apache-2.0
#include "io/home.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace weft {
namespace {

TEST(Home, StandsForATildeAloneOrBehindAKind) {
  const char* before = std::getenv("HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("HOME", "/home/ann", 1);
  EXPECT_EQ(expand_home("~"), "/home/ann");
  EXPECT_EQ(expand_home("~/data"), "/home/ann/data");
  EXPECT_EQ(expand_home("cifar100-coarse:~/data"), "cifar100-coarse:/home/ann/data");
  for (const char* text : {"", "a", "~bob/x", "a/~/x", "/~", "folder:a/~", "C:~x", ":~/x", "folder:", "no kind:~/x"})
    EXPECT_EQ(expand_home(text), text);
  before != nullptr ? ::setenv("HOME", kept.c_str(), 1) : ::unsetenv("HOME");
}

}  // namespace
}  // namespace weft
