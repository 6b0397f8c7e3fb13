// SPDX-License-Identifier: Apache-2.0
// A checkpoint write dies, or its disk fails, at each of its system calls in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <random>

#include "io/atomic_file.h"
#include "tests/crash/disk_calls.h"
#include "tests/crash/known_state.h"
#include "tests/train/temporary_folder.h"

namespace weft::crash {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 20'000;
constexpr int kKilled = 128 + SIGKILL;

class EveryCall : public testing::Test {
 protected:
  void SetUp() override {
    save_checkpoint(path, state_of(1, kElements));
    watch_disk(folder.path().string(), [&](const DiskCall& call) {
      calls.push_back(call);
      return Fate{};
    });
    save_checkpoint(path, state_of(2, kElements));
    watch_disk("", {});
    ASSERT_EQ(step_of(path), 2);
    for (size_t i = 0; i < calls.size(); ++i)
      if (calls[i].kind == DiskCall::rename) renamed = i;
    ASSERT_GT(renamed, 4u);
  }

  /// Puts step 1 back, then writes step 2 in a child whose disk calls meet the fate; its exit code.
  int write_with(const std::function<Fate(size_t index, const DiskCall&)>& fate) {
    save_checkpoint(path, state_of(1, kElements));
    return in_child([&] {
      size_t index = 0;
      watch_disk(folder.path().string(), [&](const DiskCall& call) { return fate(index++, call); });
      try {
        save_checkpoint(path, state_of(2, kElements));
      } catch (const Error& error) {
        watch_disk("", {});
        test::write_file(folder.path().string() + ".error", error.what());
        return 1;
      }
      return 0;
    });
  }
  std::string error() const { return test::read_file(folder.path().string() + ".error"); }
  void TearDown() override { std::filesystem::remove(folder.path().string() + ".error"); }

  test::TemporaryFolder folder;
  std::string path = (folder / "checkpoint_last.safetensors").string();
  std::vector<DiskCall> calls;  ///< calls of a whole write
  size_t renamed = 0;
};

// After a power loss a file has what was fsynced, and a folder the names that were fsynced.
TEST_F(EveryCall, TheOrderSurvivesPowerLoss) {
  ASSERT_EQ(calls.size(), renamed + 2);
  EXPECT_EQ(calls[renamed].path, path);
  EXPECT_EQ(calls[renamed + 1].kind, DiskCall::sync);
  EXPECT_EQ(calls[renamed + 1].path, folder.path().string());
  EXPECT_EQ(calls[renamed - 1].kind, DiskCall::sync) << "the content is forced to the disk right before the rename";
  EXPECT_THAT(calls[renamed - 1].path, HasSubstr("/.checkpoint_last.safetensors."));
  for (size_t i = 0; i < renamed; ++i) EXPECT_NE(calls[i].path, path) << "nothing touches the old file";
}

TEST_F(EveryCall, AKillBeforeAnyCallLeavesOneOfTheTwoStates) {
  for (size_t last = 0; last < calls.size(); ++last) {
    SCOPED_TRACE(str("killed before call ", last, " of ", calls.size()));
    EXPECT_EQ(write_with([&](size_t i, const DiskCall&) { return Fate{i == last ? Fate::kills : Fate::happens}; }),
              kKilled);
    EXPECT_EQ(step_of(path), last <= renamed ? 1 : 2);
  }
  std::cout << calls.size() << " system calls, killed before each: " << calls.size() << " survivors\n";
}

// If one of them is damaged later, the other is there to go on from.
TEST_F(EveryCall, AKillBeforeAnyCallLeavesTwoStates) {
  const std::string before = kept_file(path, 1);
  size_t last = 0;
  for (bool killed = true; killed; ++last) {
    SCOPED_TRACE(str("killed before call ", last));
    std::filesystem::remove(before);
    for (const int step : {1, 2}) save_checkpoint(path, state_of(step, kElements), 2);
    killed = in_child([&] {
               size_t index = 0;
               watch_disk(folder.path().string(),
                          [&](const DiskCall&) { return Fate{index++ == last ? Fate::kills : Fate::happens}; });
               save_checkpoint(path, state_of(3, kElements), 2);
               return 0;
             }) == kKilled;
    EXPECT_GE(step_of(path), 2);
    EXPECT_GE(step_of(before), 1);
    EXPECT_LT(step_of(before), step_of(path));
  }
  EXPECT_GT(last, calls.size());
}

TEST_F(EveryCall, AKillAfterAnyByteLeavesTheOldState) {
  size_t total = 0;
  for (const DiskCall& call : calls) total += call.bytes;
  std::mt19937_64 random{std::random_device{}()};
  std::vector<size_t> ends{1, 2, 511, total / 4, total / 2, total - 21, total - 20, total - 1, total};
  while (ends.size() < 60) ends.push_back(random() % total);
  for (const size_t end : ends) {
    SCOPED_TRACE(str("killed after ", end, " of ", total, " bytes"));
    size_t written = 0;
    const auto fate = [&](size_t, const DiskCall& call) {
      const size_t before = written;
      written += call.bytes;
      return call.bytes > 0 && written >= end ? Fate{Fate::kills, 0, end - before} : Fate{};
    };
    EXPECT_EQ(write_with(fate), kKilled);
    EXPECT_EQ(step_of(path), 1);
  }
  std::cout << ends.size() << " kills after 1 to " << total << " bytes: " << ends.size() << " survivors\n";
}

TEST_F(EveryCall, ADiskThatFillsUpAtAnyCallIsOneError) {
  for (size_t first = 0; first < renamed; ++first) {
    if (calls[first].kind != DiskCall::write) continue;
    SCOPED_TRACE(str("full from call ", first, " of ", calls.size()));
    const auto fate = [&](size_t i, const DiskCall& call) {
      return call.kind == DiskCall::write && i >= first ? Fate{Fate::fails, ENOSPC} : Fate{};
    };
    EXPECT_EQ(write_with(fate), 1);
    EXPECT_THAT(error(), testing::MatchesRegex("checkpoint: expected to write " + path +
                                               ", got 'No space left on device'. The old file is unchanged. Free some "
                                               "space \\([0-9.]+ [KMGT]iB are left\\) or write elsewhere."));
    EXPECT_EQ(step_of(path), 1);
    EXPECT_EQ(folder.files(), 1u) << "the temporary file is gone";
  }
}

TEST_F(EveryCall, FailingSyncAndRename) {
  for (const DiskCall::Kind kind : {DiskCall::sync, DiskCall::rename}) {
    const auto fate = [&](size_t, const DiskCall& call) { return call.kind == kind ? Fate{Fate::fails, EIO} : Fate{}; };
    EXPECT_EQ(write_with(fate), 1);
    EXPECT_EQ(error(),
              "checkpoint: expected to write " + path + ", got 'Input/output error'. The old file is unchanged.");
    EXPECT_EQ(step_of(path), 1);
    EXPECT_EQ(folder.files(), 1u);
  }
}

}  // namespace
}  // namespace weft::crash
