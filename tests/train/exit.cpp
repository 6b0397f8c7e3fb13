// SPDX-License-Identifier: Apache-2.0
#include "train/exit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

/// Runs the body as a program would and returns its exit code and its stderr.
std::pair<int, std::string> outcome(const std::function<int()>& body) {
  testing::internal::CaptureStderr();
  const int code = guarded_main("train", body);
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(GuardedMain, PassesTheExitCodeOn) {
  EXPECT_EQ(outcome([] { return 7; }), std::pair(7, std::string()));
}

TEST(GuardedMain, AnErrorIsOneLine) {
  EXPECT_EQ(outcome([]() -> int { fail("conv2d: expected 3 channels, got 4"); }),
            std::pair(1, std::string("train: error: conv2d: expected 3 channels, got 4\n")));
}

TEST(GuardedMain, NoNameOfAFileMovesTheCursor) {
  EXPECT_EQ(outcome([]() -> int { fail("folder: cannot read a\x1b[2J\xff\nsecond line"); }),
            std::pair(1, std::string("train: error: folder: cannot read a\\x1b[2J\\xff\nsecond line\n")));
}

TEST(GuardedMain, UsageErrorsAreTwo) {
  EXPECT_EQ(outcome([]() -> int { throw UsageError("unknown flag --epoch."); }),
            std::pair(2, std::string("train: error: unknown flag --epoch. (train --help lists the flags)\n")));
}

TEST(GuardedMain, OtherExceptions) {
  EXPECT_EQ(
      outcome([]() -> int { throw std::bad_alloc(); }),
      std::pair(1, std::string("train: error: the machine's memory is exhausted. A smaller batch or fewer workers "
                               "need less\n")));
  EXPECT_EQ(outcome([]() -> int { throw std::logic_error("odd"); }), std::pair(1, std::string("train: error: odd\n")));
  EXPECT_EQ(outcome([]() -> int { throw 3; }),
            std::pair(1, std::string("train: error: an exception of an unknown type\n")));
}

TEST(GuardedMain, WhatIsPrintedLandsInNoFile) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "checkpoint").string();
  const pid_t process = ::fork();
  if (process == 0) {
    for (const int fd : {0, 1, 2}) ::close(fd);
    ::_exit(guarded_main("train", [&] {
      const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
      for (const int standard : {1, 2})
        if (::write(standard, "epoch 1\n", 8) != 8) return 3;
      return ::write(fd, "weights", 7) == 7 ? 0 : 4;
    }));
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(test::read_file(file), "weights");
}

}  // namespace
}  // namespace weft::train
