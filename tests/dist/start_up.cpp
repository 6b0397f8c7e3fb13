// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <future>

#include "benchmarks/dist/herd.h"
#include "tests/dist/meeting.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist {
namespace {

using benchmarks::HerdResult;
using benchmarks::Traffic;

/// Rank 0 runs in a thread, the others in this one.
HerdResult start(int ranks, int roots) {
  const tests::TemporaryFolder folder;
  const benchmarks::HerdOptions options{.ranks = ranks, .roots = roots, .folder = folder.path()};
  std::future<void> first = std::async(std::launch::async, [&] { benchmarks::start_rank_0(options); });
  HerdResult result = benchmarks::play_herd(options);
  first.get();
  return result;
}

int64_t most(const std::vector<Traffic>& ranks, int64_t Traffic::*field) {
  int64_t largest = 0;
  for (const Traffic& one : ranks) largest = std::max(largest, one.*field);
  return largest;
}

class StartUp : public ::testing::TestWithParam<int> {};

TEST_P(StartUp, CostsEachRankTheSame) {
  WEFT_NEEDS_CRYPTO();
  const int ranks = GetParam(), roots = (ranks + 127) / 128;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < static_cast<rlim_t>(4 * ranks + 300))
    GTEST_SKIP() << ranks << " ranks in one process need " << 4 * ranks + 300 << " descriptors, " << limit.rlim_max
                 << " are allowed";
  const HerdResult result = start(ranks, roots);
  // Two messages of each handshake, join, four of the places, an id, and at most one request for each id.
  EXPECT_LE(most(result.sent, &Traffic::messages), 10 + roots);
  // Answers to these, the number of the rank on its machine, and the ids, each in a frame of its own at the worst.
  constexpr int64_t kFrame = 60, kId = 128;
  EXPECT_LE(most(result.received, &Traffic::bytes), 14 * 128 + roots * (kFrame + kId));
  EXPECT_EQ(result.tellers, 1) << "one rank asks for the states of all";
  std::vector<int64_t> stall;
  for (const Traffic& one : result.stall_received) stall.push_back(one.bytes);
  std::ranges::sort(stall);
  EXPECT_LE(stall[stall.size() - 2], 64) << "of the ranks that do not tell";
  EXPECT_LE(stall.back(), 256 * ranks);
}

INSTANTIATE_TEST_SUITE_P(Ranks, StartUp, ::testing::Values(2, 64, 300, 1000));

}  // namespace
}  // namespace weft::dist
