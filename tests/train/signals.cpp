// SPDX-License-Identifier: Apache-2.0
#include "train/signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

TEST(Signals, StopAndSaveRequests) {
  Signals signals;
  EXPECT_FALSE(signals.stop_requested());
  EXPECT_STREQ(signals.stop_signal(), "");
  std::raise(SIGUSR1);
  EXPECT_FALSE(signals.stop_requested());
  EXPECT_TRUE(signals.take_save_request());
  EXPECT_FALSE(signals.take_save_request());
  std::raise(SIGTERM);
  EXPECT_TRUE(signals.stop_requested());
  EXPECT_STREQ(signals.stop_signal(), "SIGTERM");
  std::raise(SIGTERM);  // schedulers repeat it
  std::raise(SIGINT);
  EXPECT_STREQ(signals.stop_signal(), "SIGINT");
}

TEST(Signals, ANewObjectStartsAfresh) {
  {
    Signals signals;
    std::raise(SIGINT);
    EXPECT_TRUE(signals.stop_requested());
  }
  Signals signals;
  EXPECT_FALSE(signals.stop_requested());
  EXPECT_EQ(test::error_of([] { Signals second; }), "signals: expected one Signals object at a time, got a second");
}

TEST(Signals, EarlierHandlersComeBack) {
  static volatile std::sig_atomic_t seen = 0;
  std::signal(SIGUSR1, [](int) { seen = 1; });
  { Signals signals; }
  std::raise(SIGUSR1);
  EXPECT_EQ(seen, 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(Signals, NoRunEndsWithTheReaderOfItsLines) {
  std::signal(SIGPIPE, SIG_DFL);
  {
    Signals signals;
    std::raise(SIGPIPE);
    EXPECT_FALSE(signals.stop_requested());
  }
  EXPECT_EQ(std::signal(SIGPIPE, SIG_DFL), SIG_DFL);
}

TEST(SignalsDeathTest, SecondCtrlCExitsAtOnce) {
  EXPECT_EXIT(
      {
        Signals signals;
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::_Exit(0);
      },
      testing::ExitedWithCode(130), "second Ctrl-C: exit without saving");
}

}  // namespace
}  // namespace weft::train
