// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <future>

#include "benchmarks/dist/herd.h"
#include "dist/rendezvous/file_store.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/rank_place.h"
#include "dist/rendezvous/session.h"
#include "tests/dist/meeting.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist {
namespace {

using benchmarks::HerdResult;
using benchmarks::Traffic;

/// Rank 0 runs in a thread, the others in this one. A busy machine ends handshakes of a large crowd (bench_start).
HerdResult start(int ranks, int roots) {
  const tests::TemporaryFolder folder;
  const benchmarks::HerdOptions options{.ranks = ranks, .roots = roots, .folder = folder.path(), .at_once = 8};
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

// Rank 0 names a rank that joins and says no more, to all.
TEST(StartUpErrors, ARankThatDoesNotSayItsPlaceIsNamed) {
  WEFT_NEEDS_CRYPTO();
  using namespace std::chrono_literals;
  const tests::TemporaryFolder folder;
  LaunchEnvironment environment{.launcher = "test", .rank = 0, .size = 2};
  environment.local_size = 2;
  environment.job = "job";
  const EnvironmentVariables variables{{"WEFT_JOB_SECRET", "0123456789abcdef"},
                                       {"WEFT_RENDEZVOUS", folder.path().string()}};
  std::future<std::string> first = std::async(std::launch::async, [&] {
    return error_text([&] {
      Session session(environment, variables, 60s);
      exchange_places(session, "host", {}, environment, 4s);  // ranks are silent from 3 s on
    });
  });
  const Address address = parse_address("test", FileStore(folder.path()).get("store job start 0", 60s));
  const std::string secret = keyed_hash(job_secret(variables, "job", folder.path() / "cookie"), "start 0");
  TcpMembership silent(find_store(address, secret, "rank 1", 60s, 1), {.rank = 1, .size = 2, .heartbeat = 1h});
  std::promise<std::string> told;
  silent.on_failure([&](const Failure& failure) { told.set_value(failure.reason); });
  const std::string expected = str("init: no rank has set 'host/1' within 4 s; silent rank 1 \\(process ", ::getpid(),
                                   " on ", host_name(), ", last heard of [0-9]+ s ago: is it stopped\\?\\)");
  EXPECT_THAT(told.get_future().get(),
              ::testing::MatchesRegex(str("rank 0 on ", host_name(), " has ended with an error: ", expected)));
  silent.leave();
  EXPECT_THAT(first.get(), ::testing::MatchesRegex(expected));
}

INSTANTIATE_TEST_SUITE_P(Ranks, StartUp, ::testing::Values(2, 64, 200));

}  // namespace
}  // namespace weft::dist
