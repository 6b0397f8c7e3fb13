// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <future>
#include <limits>
#include <thread>

#include "dist/rendezvous/message.h"
#include "io/atomic_file.h"
#include "tests/dist/child.h"
#include "tests/dist/meeting.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::MatchesRegex;
using namespace std::chrono_literals;
using Members = std::vector<std::unique_ptr<TcpMembership>>;

Members join_all(const Meeting& meeting, int size) {
  Members members;
  for (int rank = 0; rank < size; ++rank) members.push_back(meeting.member(rank, size));
  for (const auto& member : members) member->wait_for_all(10s);
  return members;
}

/// The first failure that a member hears of, or "none" after a minute.
std::string first_failure(TcpMembership& member) {
  std::promise<std::string> heard;
  const int number = member.on_failure([&](const Failure& failure) { heard.set_value(failure.reason); });
  std::future<std::string> text = heard.get_future();
  const bool came = text.wait_for(60s) == std::future_status::ready;
  member.remove(number);
  return came ? text.get() : "none";
}

TEST(Membership, StatesSayHowFarEveryRankIs) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Members members = join_all(meeting, 2);
  members[1]->report({"world", 412, 411, "all_reduce layer3.0.conv1.weight f32[2097152]"});
  ASSERT_TRUE(comes_true([&] { return members[0]->states()[1].progress.begun == 412; }));
  EXPECT_TRUE(members[0]->states()[1].earlier.empty());
  const std::vector<MemberState> states = members[0]->states();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[1].rank, 1);
  EXPECT_EQ(states[1].host, host_name());
  EXPECT_EQ(states[1].process, ::getpid());
  EXPECT_LT(states[1].seconds_since_heard, 20.0);
  EXPECT_EQ(states[1].progress.group, "world");
  EXPECT_EQ(states[1].progress.finished, 411u);
  EXPECT_EQ(states[1].progress.name, "all_reduce layer3.0.conv1.weight f32[2097152]");
  EXPECT_FALSE(states[1].left);
  for (int i = 0; i < 20; ++i) members[1]->report({str("part ", i), 1, 0, "barrier #1"});
  members[1]->report({"part 19", 2, 1, "barrier #2"});
  ASSERT_TRUE(comes_true([&] { return members[0]->states()[1].progress.begun == 2; }));
  const std::vector<Progress> earlier = members[0]->states()[1].earlier;
  ASSERT_EQ(earlier.size(), kMaxGroups - 1) << "those that it reported last";
  EXPECT_EQ(earlier.front().group, "part 4");
  EXPECT_EQ(earlier.back().group, "part 18");
  members[1]->leave();
  EXPECT_TRUE(comes_true([&] { return members[0]->states()[1].left; }));
}

TEST(Membership, StatesNameTheFileThatTakesTheLongest) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Members members = join_all(meeting, 2);
  const tests::TemporaryFolder folder;
  {
    const AtomicFile first(folder / "a\nb", "test"), second(folder / "later", "test");
    ASSERT_TRUE(comes_true([&] { return members[0]->states()[1].disk_seconds > 0; }));
    const MemberState state = members[0]->states()[1];
    EXPECT_EQ(state.disk, "writing " + folder / "a\\x0ab");
    EXPECT_THAT(state.disk_seconds, AllOf(Gt(0.0), Lt(60.0)));
  }
  const DiskWork work(std::string(300, 'x'));
  EXPECT_TRUE(comes_true([&] { return members[0]->states()[1].disk == std::string(kMaxName, 'x'); }));
}

TEST(Membership, StatesOfTheSilentAreThoseOfTheSilent) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  const auto first = meeting.member(0, 2);
  const TcpMembership quiet(meeting.connect(), {.rank = 1, .size = 2, .heartbeat = 1h});
  std::vector<MemberState> silent;
  ASSERT_TRUE(comes_true([&] {
    silent = first->states(1);
    return silent.size() == 1 && silent[0].rank == 1;
  })) << "rank 0 is heard of each 50 ms";
  EXPECT_GE(silent[0].seconds_since_heard, 1);
  EXPECT_EQ(first->states().size(), 2u);
  EXPECT_THAT(first->states(std::numeric_limits<double>::infinity()), ::testing::IsEmpty());
}

TEST(Membership, OneRankGetsAClaimUntilItEnds) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Members members = join_all(meeting, 2);
  EXPECT_TRUE(members[0]->claim("stall 7 of world", 600s));
  EXPECT_FALSE(members[1]->claim("stall 7 of world", 600s));
  EXPECT_TRUE(members[1]->claim("stall 8 of world", 0ms));
  EXPECT_TRUE(comes_true([&] { return members[0]->claim("stall 8 of world", 600s); })) << "it has ended";
}

TEST(Membership, LeavingIsNoFailure) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Members members = join_all(meeting, 2);
  members[1]->leave();
  members[1].reset();
  std::this_thread::sleep_for(200ms);
  int failures = 0;
  members[0]->on_failure([&](const Failure&) { ++failures; });
  EXPECT_EQ(failures, 0);
  members[0]->leave();
}

TEST(Membership, BrokenConnectionIsADeadRankAndAllAreTold) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(3);
  Members members = join_all(meeting, 3);
  members[2].reset();
  const std::string text = first_failure(*members[0]);
  EXPECT_EQ(text, str("rank 2 (process ", ::getpid(), " on ", host_name(), ") has died"));
  EXPECT_EQ(first_failure(*members[1]), text) << "and who registers late hears it too";
  members[1].reset();
  EXPECT_EQ(first_failure(*members[0]), text) << "the first failure stays the first";
}

TEST(Membership, AnnouncementsReachEverybody) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Members members = join_all(meeting, 2);
  members[1]->announce("rank 1: the loss is not finite");
  for (const auto& member : members) EXPECT_EQ(first_failure(*member), "rank 1: the loss is not finite");
  Failure failure;
  members[0]->on_failure([&](const Failure& first) { failure = first; });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.host, host_name());
}

TEST(Membership, CallbacksRunOnceAndNotAfterRemove) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Members members = join_all(meeting, 2);
  std::atomic<int> removed{0}, kept{0};
  const int number = members[0]->on_failure([&](const Failure&) { ++removed; });
  members[0]->on_failure([&](const Failure&) { ++kept; });
  members[0]->remove(number);
  members[1]->announce("once");
  members[1]->announce("twice");
  EXPECT_EQ(first_failure(*members[0]), "once");
  EXPECT_TRUE(comes_true([&] { return kept == 1; }));
  EXPECT_EQ(removed, 0);
}

TEST(Membership, MissingRanksAreNamedInTime) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(8);
  auto first = meeting.member(0, 8), third = meeting.member(3, 8);
  const TimePoint start = Clock::now();
  EXPECT_EQ(error_text([&] { first->wait_for_all(200ms); }),
            "membership: 6 of 8 ranks did not join within 0.2 s: missing ranks 1 to 2, 4 to 7");
  EXPECT_LT(Clock::now() - start, 20s);
  EXPECT_THAT(error_text([&] { third->wait_for_all(10ms); }), HasSubstr(": missing ranks 1 to 2, 4 to 7"));
  EXPECT_EQ(rank_list({5}), "5");
  EXPECT_EQ(rank_list({0, 2, 3, 4, 9}), "0, 2 to 4, 9");
}

TEST(Membership, DeathBeforeAllHaveComeEndsTheWait) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(3);
  auto first = meeting.member(0, 3), second = meeting.member(1, 3);
  second.reset();
  EXPECT_THAT(error_text([&] { first->wait_for_all(10s); }),
              MatchesRegex("membership: rank 1 .* has died before all ranks had joined"));
}

TEST(Membership, TwoProcessesWithOneRankAreRefused) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  auto first = meeting.member(1, 2);
  EXPECT_THAT(error_text([&] { meeting.member(1, 2); }),
              HasSubstr(") has joined before. Every process needs a rank of its own"));
  EXPECT_EQ(error_text([&] { meeting.member(7, 8); }), "membership: expected ranks 0 to 1, got rank 7");
  first->leave();
}

TEST(Membership, KilledProcessIsNamed) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(3);
  const std::string port = std::to_string(meeting.server.address().port);
  Child one({RANK_PROGRAM, port, "1", "3"}), two({RANK_PROGRAM, port, "2", "3"});
  auto zero = meeting.member(0, 3);
  zero->wait_for_all(20s);
  ASSERT_TRUE(one.prints("all here"));
  const std::string expected = str("rank 2 (process ", two.process(), " on ", host_name(), ") has died");
  const TimePoint start = Clock::now();
  two.signal(SIGKILL);
  EXPECT_EQ(first_failure(*zero), expected);
  EXPECT_EQ(one.exit_code(), 3);
  EXPECT_LT(Clock::now() - start, 30s);
  EXPECT_THAT(one.output(), HasSubstr("failure: " + expected));
}

TEST(Membership, KilledRankZeroIsNoticedByAll) {
  WEFT_NEEDS_CRYPTO();
  Child zero({RANK_PROGRAM, "0", "0", "3", "serve"});
  ASSERT_TRUE(zero.prints("\n"));
  const std::string port = zero.output().substr(5, zero.output().find('\n') - 5);
  Child one({RANK_PROGRAM, port, "1", "3"}), two({RANK_PROGRAM, port, "2", "3"});
  ASSERT_TRUE(one.prints("all here"));
  ASSERT_TRUE(two.prints("all here"));
  const std::string expected = str("failure: rank 0 (process ", zero.process(), " on ", host_name(), ") has died");
  zero.signal(SIGKILL);
  for (Child* child : {&one, &two}) {
    EXPECT_EQ(child->exit_code(), 3);
    EXPECT_THAT(child->output(), HasSubstr(expected));
  }
}

TEST(Membership, ProcessesEndInOrder) {
  WEFT_NEEDS_CRYPTO();
  Child zero({RANK_PROGRAM, "0", "0", "3", "serve"});
  ASSERT_TRUE(zero.prints("\n"));
  const std::string port = zero.output().substr(5, zero.output().find('\n') - 5);
  Child one({RANK_PROGRAM, port, "1", "3"}), two({RANK_PROGRAM, port, "2", "3"});
  for (Child* child : {&zero, &one, &two}) ASSERT_TRUE(child->prints("all here"));
  const TimePoint start = Clock::now();
  zero.close_input();  // rank 0 ends first, and waits for the others
  std::this_thread::sleep_for(100ms);
  one.close_input();
  two.close_input();
  for (Child* child : {&one, &two, &zero}) {
    EXPECT_EQ(child->exit_code(), 0) << child->output();
    EXPECT_THAT(child->output(), ::testing::Not(HasSubstr("failure")));
  }
  EXPECT_LT(Clock::now() - start, 9s) << "rank 0 goes when the others have left, not when its patience ends";
}

// A stopped process is no dead one, but its silence is in the states.
TEST(Membership, StoppedProcessShowsInTheStates) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(2);
  Child one({RANK_PROGRAM, std::to_string(meeting.server.address().port), "1", "2"});
  auto zero = meeting.member(0, 2);
  zero->wait_for_all(20s);
  one.signal(SIGSTOP);
  std::vector<MemberState> states;
  ASSERT_TRUE(comes_true([&] {
    states = zero->states();
    return states.size() == 2 && states[1].seconds_since_heard > 0.5 && states[0].seconds_since_heard < 0.5;
  }));
  EXPECT_EQ(states[1].process, one.process());
  one.signal(SIGCONT);
  EXPECT_TRUE(comes_true([&] {
    states = zero->states();
    return states.size() == 2 && states[1].seconds_since_heard < 0.2;
  }));
  one.close_input();
  EXPECT_EQ(one.exit_code(), 0);
  zero->leave();
}

TEST(Membership, StoppedRankZeroDoesNotHangTheQuestion) {
  WEFT_NEEDS_CRYPTO();
  Child zero({RANK_PROGRAM, "0", "0", "2", "serve"});
  ASSERT_TRUE(zero.prints("\n"));
  const auto port = static_cast<uint16_t>(std::stoi(zero.output().substr(5)));
  TcpMembership one(find_store({"127.0.0.1", port}, kSecret, "rank 1", 10s, 1),
                    {.rank = 1, .size = 2, .heartbeat = 50ms, .patience = 300ms});
  one.wait_for_all(20s);
  zero.signal(SIGSTOP);
  std::vector<MemberState> states;
  const TimePoint start = Clock::now();
  ASSERT_TRUE(comes_true([&] { return (states = one.states()).size() == 1; }));
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_EQ(states[0].rank, 0);
  EXPECT_GT(states[0].seconds_since_heard, 0.2);
  zero.signal(SIGCONT);
  EXPECT_TRUE(comes_true([&] { return one.states().size() == 2; }));
  one.leave();
  zero.close_input();
  EXPECT_EQ(zero.exit_code(), 0);
}

TEST(Membership, StoppedRankZeroIsNamed) {
  WEFT_NEEDS_CRYPTO();
  for (const int size : {2, 3}) {  // among three one does not connect
    Child zero({RANK_PROGRAM, "0", "0", std::to_string(size), "serve"});
    ASSERT_TRUE(zero.prints("\n"));
    const auto port = static_cast<uint16_t>(std::stoi(zero.output().substr(5)));
    TcpMembership one(find_store({"127.0.0.1", port}, kSecret, "rank 1", 10s, 1),
                      {.rank = 1, .size = size, .heartbeat = 50ms, .patience = 300ms});
    EXPECT_TRUE(comes_true([&] { return silence_in(one.states()) == ""; }));
    if (size == 3) {
      zero.signal(SIGSTOP);
      EXPECT_THAT(
          error_text([&] { one.wait_for_all(1s); }),
          MatchesRegex(str("membership: silent rank 0 \\(at 127.0.0.1:", port,
                           ", last heard of [1-9][0-9]* s ago: is it stopped\\?\\) before all ranks had joined")));
    } else {
      one.wait_for_all(20s);
      zero.signal(SIGSTOP);
      ASSERT_TRUE(comes_true([&] { return silence_in(one.states()) != ""; }));
      EXPECT_THAT(silence_in(one.states()),
                  MatchesRegex(str("silent rank 0 \\(process ", zero.process(), " on ", host_name(),
                                   ", last heard of [0-9]+ s ago: is it stopped\\?\\)")));
    }
  }
}

TEST(Membership, LateRankZeroIsWaitedFor) {
  WEFT_NEEDS_CRYPTO();
  uint16_t port;
  {
    Meeting meeting;
    port = meeting.server.address().port;
  }
  Child one({RANK_PROGRAM, std::to_string(port), "1", "2"});
  std::this_thread::sleep_for(300ms);
  Child zero({RANK_PROGRAM, std::to_string(port), "0", "2", "serve"});
  EXPECT_TRUE(one.prints("all here")) << one.output();
  one.close_input();
  zero.close_input();
  EXPECT_EQ(one.exit_code(), 0);
  EXPECT_EQ(zero.exit_code(), 0);
}

}  // namespace
}  // namespace weft::dist
