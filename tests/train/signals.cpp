// SPDX-License-Identifier: Apache-2.0
#include "train/signals.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "dist/group/process_group.h"
#include "tests/train/temporary_folder.h"
#include "train/training_main.h"

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

TEST(Signals, AClosedSessionStopsARunUnlessNohupIgnoresIt) {
  {
    Signals signals;
    std::raise(SIGHUP);
    EXPECT_STREQ(signals.stop_signal(), "SIGHUP");
  }
  std::signal(SIGHUP, SIG_IGN);
  {
    Signals signals;
    std::raise(SIGHUP);
    EXPECT_FALSE(signals.stop_requested());
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(Signals, AskingOneRankForItsRecordsEndsNothing) {
  Signals signals;
  std::raise(SIGUSR2);
}

TEST(Signals, AGroupThatIsMadeLaterPrintsItsRecords) {
  const Signals signals;
  testing::internal::CaptureStderr();
  dist::run_ranks(2, [](const dist::ProcessGroupPtr& group) {
    group->all_reduce(Tensor::ones({3}), dist::ReduceOp::sum, {.name = "loss"})->wait();
    if (group->rank() == 0) std::raise(SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("the last collectives of rank 0 in group world:\n"));
}

TEST(Signals, WhoIgnoresSigusr2GoesOnDoingSo) {
  const auto before = std::signal(SIGUSR2, SIG_IGN);
  { Signals signals; }
  EXPECT_EQ(std::signal(SIGUSR2, before), SIG_IGN);
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

TEST(Signals, LeaveErrnoToWhomTheyInterrupt) {
  const int own = ::dup(STDERR_FILENO);
  Signals signals;
  ::close(STDERR_FILENO);  // so that the line of a first Ctrl-C cannot be written
  errno = ENOENT;
  std::raise(SIGINT);
  const int seen = errno;
  ::dup2(own, STDERR_FILENO);
  ::close(own);
  EXPECT_TRUE(signals.stop_requested());
  EXPECT_EQ(seen, ENOENT);
}

/// Ends as a training program.
[[noreturn]] void end_as(const std::function<int()>& body) { std::_Exit(training_main("train", body)); }

constexpr const char* kAtOnce = "SIGTERM outside of the training loop: nothing is lost";

TEST(TrainingMainDeathTest, SigtermAheadOfTheLoopEndsAtOnceWith75) {
  EXPECT_EXIT(end_as([] { return std::raise(SIGTERM), 0; }), testing::ExitedWithCode(kExitRequeue), kAtOnce);
}

TEST(TrainingMainDeathTest, SigtermAfterTheLoopEndsAtOnceWith75) {
  EXPECT_EXIT(end_as([] {
                const Signals signals;
                training_begins();
                training_pauses();
                return std::raise(SIGTERM), 0;
              }),
              testing::ExitedWithCode(kExitRequeue), kAtOnce);
}

TEST(TrainingMainDeathTest, TheLoopKeepsIt) {
  EXPECT_EXIT(end_as([] {
                const Signals signals;
                std::raise(SIGTERM);
                training_pauses();
                std::raise(SIGTERM);  // schedulers repeat it; the first one has been obeyed
                return signals.stop_requested() ? 7 : 8;
              }),
              testing::ExitedWithCode(7), "");
}

TEST(TrainingMainDeathTest, Sigusr1AheadOfTheLoopIsKeptForIt) {
  EXPECT_EXIT(end_as([] {
                std::raise(SIGUSR1);
                Signals signals;
                return signals.take_save_request() ? 7 : 8;
              }),
              testing::ExitedWithCode(7), "");
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
