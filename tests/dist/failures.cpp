// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "dist/group/group_record.h"
#include "tests/dist/memory_store.h"
#include "tests/dist/ranks.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Failures : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string backend_ = GetParam();
};

/// Calls that no library runs.
class FailuresOfOurs : public Failures {};

/// With a membership, which threads of one process do without.
class FailuresOfJobs : public Failures {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FailuresOfJobs);

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

Tensor ones(int64_t n) { return Tensor::ones({n}); }

TEST_P(Failures, AnotherCollectiveNamesBoth) {
  const std::vector<std::string> errors = errors_on(backend_, 3, [](const ProcessGroupPtr& group) {
    group->barrier();
    if (group->rank() == 1)
      group->all_reduce(ones(4), ReduceOp::sum, {.name = "a"})->wait();
    else
      group->broadcast(ones(4), 0, {.name = "b"})->wait();
    group->barrier();  // a root whose neighbours agree may have sent before it hears
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 called all_reduce 'a' f32[4]"),
                                 HasSubstr("called broadcast 'b' f32[4] from rank 0"),
                                 HasSubstr("as collective 2 of group world. All ranks must"))));
  EXPECT_THAT(errors[1], HasSubstr("all_reduce #2 'a' f32[4] of group world on rank 1: rank "));
}

TEST_P(Failures, NeighboursThatAgreeHearOfOthersThatDiffer) {
  // 0 and 1 agree, 2 and 3 agree.
  const std::vector<std::string> errors = errors_on(backend_, 4, [](const ProcessGroupPtr& group) {
    group->all_reduce(ones(group->rank() < 2 ? 100 : 300), ReduceOp::sum, {.name = "x"})->wait();
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("all_reduce 'x' f32[100]"), HasSubstr("all_reduce 'x' f32[300]"))));
}

TEST_P(Failures, OtherNamesDtypesOpsAndRootsDiffer) {
  const auto differ = [&](auto call) {
    for (const std::string& error : errors_on(backend_, 2, call)) EXPECT_THAT(error, HasSubstr("rank 0 called "));
  };
  differ(
      [](const ProcessGroupPtr& g) { g->all_reduce(ones(4), ReduceOp::sum, {.name = g->rank() ? "a" : "b"})->wait(); });
  differ([](const ProcessGroupPtr& g) {
    g->all_reduce(Tensor::ones({4}, g->rank() ? DType::f32 : DType::i32), ReduceOp::sum)->wait();
  });
  differ([](const ProcessGroupPtr& g) { g->all_reduce(ones(4), g->rank() ? ReduceOp::max : ReduceOp::sum)->wait(); });
  differ([](const ProcessGroupPtr& g) { g->broadcast(ones(4), g->rank())->wait(); });
  differ([](const ProcessGroupPtr& g) { g->reduce(ones(4), g->rank())->wait(); });
}

TEST_P(FailuresOfOurs, OtherPartsDifferAndAreNamed) {
  const auto errors = errors_on(backend_, 2, [](const ProcessGroupPtr& g) {
    g->scatter(ones(2), g->rank() == 0 ? ones(5) : Tensor(), 0,
               {.name = "x", .rows = g->rank() == 0 ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{4, 2}})
        ->wait();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 0 called scatter 'x (parts of 2 3)' f32[5] from rank 0, rank 1 called "
                                     "scatter 'x (parts of 4 2)' f32[6] from rank 0 as collective 1")));
}

TEST_P(FailuresOfOurs, PairsOfAnAllToAllThatDifferAreNamed) {
  const auto errors = errors_on(backend_, 3, [](const ProcessGroupPtr& g) {
    std::vector<int64_t> rows(3, 2);
    const std::vector<int64_t> sent = rows;
    if (g->rank() == 2) rows[0] = 5;
    g->all_to_all(Tensor::empty({rows[0] + 4, 2}), Tensor::ones({6, 2}), rows, sent, {.name = "x"})->wait();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 0 sends rank 2 4 elements, which expects 10: output_rows and input_rows of "
                                     "the two differ")));
  EXPECT_THAT(errors[2], HasSubstr("all_to_all #1 'x' f32[12] of group world on rank 2: "));
}

TEST_P(FailuresOfOurs, AMonitoredBarrierNamesAllThatAreMissing) {
  const auto errors = errors_on(backend_, 4, [](const ProcessGroupPtr& group) {
    group->monitored_barrier(Milliseconds(60'000), "all here");
    if (group->rank() >= 2) return group->receive(ones(1), 0)->wait();  // ends with the group
    group->monitored_barrier(Milliseconds(3000), "step 7");
  });
  for (const std::string& error : {errors[0], errors[1]})
    EXPECT_THAT(error, HasSubstr("monitored_barrier #2 'step 7' of group world passed its deadline of 3 s on rank 0: "
                                 "missing rank 2; missing rank 3"));
  EXPECT_THAT(errors[2], HasSubstr("missing rank 2; missing rank 3"));
}

TEST_P(FailuresOfOurs, AMonitoredBarrierWithoutRank0NamesIt) {
  const auto errors = errors_on(backend_, 2, [](const ProcessGroupPtr& group) {
    group->barrier();
    if (group->rank() == 0) return group->receive(ones(1), 1)->wait();
    group->monitored_barrier(Milliseconds(100));
  });
  EXPECT_THAT(errors, Each(HasSubstr("passed its deadline of 0.1 s on rank 1: missing rank 0")));
}

TEST_P(Failures, MessagesThatDifferNameBoth) {
  const std::vector<std::string> errors = errors_on(backend_, 2, [](const ProcessGroupPtr& group) {
    if (group->rank() == 0)
      group->send(ones(4), 1, {.name = "m"})->wait();
    else
      group->receive(ones(5), 0, {.name = "m"})->wait();
  });
  EXPECT_THAT(errors[1], HasSubstr("rank 0 called send 'm' f32[4], rank 1 called receive 'm' f32[5] as message 1"));
}

TEST_P(Failures, ARankThatStaysAwayIsNamedAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> errors =
      errors_on(backend_, 3,
                [](const ProcessGroupPtr& group) {
                  group->barrier("all here");
                  if (group->rank() == 2) return std::this_thread::sleep_for(std::chrono::milliseconds(4000));
                  group->all_reduce(ones(8), ReduceOp::sum, {.name = "fc.bias"})->wait();
                },
                {.timeout = Milliseconds(2000)});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(errors[2], IsEmpty());
  EXPECT_THAT(errors[0], AllOf(HasSubstr("all_reduce #2 'fc.bias' f32[8] of group world passed its deadline of 2 s"),
                               HasSubstr("missing rank ")));
  // In a ring of messages only the neighbour knows that rank 2 is missing; the others hear so from the first failing
  // rank.
  EXPECT_THAT(errors[1], HasSubstr("passed its deadline of 2 s"));
  if (backend_ == "threads") {
    EXPECT_THAT(errors[1], HasSubstr("missing rank 2"));
  }
}

TEST_P(FailuresOfJobs, TheMembershipSaysWhoIsMissingAndWhatItDidLast) {
  const auto job = std::make_shared<FakeJob>(3);
  job->set_silent(2, 12);
  ::testing::internal::CaptureStderr();
  const std::vector<std::string> errors = errors_on(
      backend_, 3,
      [](const ProcessGroupPtr& group) {
        group->barrier("all here");
        if (group->rank() == 2) return std::this_thread::sleep_for(std::chrono::milliseconds(4000));
        group->all_reduce(ones(8), ReduceOp::sum, {.name = "fc.bias"})->wait();
      },
      {.timeout = Milliseconds(2000), .stall_report = Milliseconds(200)}, job);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  constexpr const char* missing =
      "missing rank 2 (process 102 on host2, last heard of 12 s ago), last seen in barrier #1 'all here' of group "
      "world";
  EXPECT_THAT(errors[0], AllOf(HasSubstr("passed its deadline of 2 s"), HasSubstr(missing)));
  EXPECT_THAT(errors[1], HasSubstr(missing));
  EXPECT_THAT(printed, AllOf(ContainsRegex("all_reduce #2 'fc.bias' .* of group world waits 0.2 s on rank [01]: "),
                             HasSubstr(std::string(": ") + missing)));
  EXPECT_THAT(printed, HasSubstr("the last collectives of rank 0 in group world:\n"));
}

TEST_P(FailuresOfJobs, ARankThatWorksOnAFileIsWaitedFor) {
  const auto job = std::make_shared<FakeJob>(3);
  job->set_disk(2, "writing run/checkpoint_last.safetensors", 0.4);
  ::testing::internal::CaptureStderr();
  const std::vector<std::string> errors = errors_on(
      backend_, 3,
      [&](const ProcessGroupPtr& group) {
        group->barrier("all here");
        if (group->rank() == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1400));
          job->set_disk(2, "", 0);
          std::this_thread::sleep_for(std::chrono::milliseconds(100));  // work before it comes
        }
        group->all_reduce(ones(8), ReduceOp::sum, {.name = "fc.bias"})->wait();
      },
      {.timeout = Milliseconds(1000), .stall_report = Milliseconds(200)}, job);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(errors, Each(IsEmpty())) << printed;
  EXPECT_THAT(printed, HasSubstr("missing rank 2 (process 102 on host2, last heard of 0 s ago, writing "
                                 "run/checkpoint_last.safetensors for 0 s), last seen in barrier #1"));
}

TEST_P(FailuresOfJobs, NoDiskIsWaitedForWithoutEnd) {
  const auto waited = [&](double writing, double silent) {
    const auto job = std::make_shared<FakeJob>(2);
    job->set_disk(1, "writing run/checkpoint_last.safetensors", writing);
    job->set_silent(1, silent);
    return errors_on(
        backend_, 2,
        [&](const ProcessGroupPtr& group) {
          group->barrier("all here");
          if (group->rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(3000));
          group->all_reduce(ones(8), ReduceOp::sum, {.name = "fc.bias"})->wait();
        },
        {.timeout = Milliseconds(2000)}, job)[0];
  };
  EXPECT_THAT(waited(601, 0), AllOf(HasSubstr("passed its deadline of 2 s"),
                                    HasSubstr("writing run/checkpoint_last.safetensors for 601 s)")));
  EXPECT_THAT(waited(7, 4), HasSubstr("last heard of 4 s ago, writing run/")) << "it may be stopped";
}

TEST_P(FailuresOfJobs, TheMembershipsFailureEndsTheGroup) {
  const auto job = std::make_shared<FakeJob>(2);
  const std::vector<std::string> errors = errors_on(
      backend_, 2,
      [&](const ProcessGroupPtr& group) {
        group->barrier();
        if (group->rank() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          return job->declare({1, "host1", "rank 1 (process 101 on host1) has died"});
        }
        group->all_reduce(ones(8), ReduceOp::sum, {.name = "x"})->wait();
      },
      {}, job);
  EXPECT_EQ(errors[0], "all_reduce #2 'x' f32[8] of group world on rank 0: rank 1 (process 101 on host1) has died");
}

TEST_P(Failures, AbortEndsWhatRunsAndWhatComes) {
  const std::vector<std::string> errors = errors_on(backend_, 2, [](const ProcessGroupPtr& group) {
    group->barrier();
    if (group->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      group->abort("the user said so");
      EXPECT_THAT(error_text([&] { group->barrier("later"); }),
                  AllOf(HasSubstr("barrier #2 'later' of group world on rank 1: "), HasSubstr("the user said so")));
      return;
    }
    const WorkPtr first = group->all_reduce(ones(8), ReduceOp::sum, {.name = "first"});
    const WorkPtr second = group->all_reduce(ones(8), ReduceOp::sum, {.name = "second"});
    EXPECT_THAT(error_text([&] { second->wait(); }), HasSubstr("the user said so"));
    EXPECT_TRUE(first->done());
    EXPECT_THAT(error_text([&] { first->wait(); }), HasSubstr("'first'"));
    group->all_reduce(ones(8))->wait();
  });
  EXPECT_THAT(errors[0], HasSubstr("the user said so"));
}

TEST_P(Failures, TheFlightLogTellsWhatRanAndWhatDidNot) {
  const auto logs = std::make_shared<std::vector<std::string>>(2);
  std::atomic<bool> has_ended = false;
  ::testing::internal::CaptureStderr();
  errors_on(backend_, 2,
            [&](const ProcessGroupPtr& group) {
              for (int i = 0; i < 300; ++i)
                group->all_reduce(ones(3), ReduceOp::sum, {.name = str("step ", i)})->wait();
              if (group->rank() == 0) std::raise(SIGUSR2);
              std::this_thread::sleep_for(std::chrono::milliseconds(1000));
              if (group->rank() == 0) {
                const WorkPtr alone = group->all_reduce(ones(3), ReduceOp::sum, {.name = "alone"});
                EXPECT_THAT(error_text([&] { alone->wait(); }), HasSubstr("deadline"));
                has_ended = true;
              }
              while (!has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
              (*logs)[static_cast<size_t>(group->rank())] = group->flight_log();
            },
            {.timeout = Milliseconds(2000)});
  const std::string printed = ::testing::internal::GetCapturedStderr();
  const auto& log = (*logs)[1];
  EXPECT_TRUE(contains(log, "done     all_reduce #300 'step 299' f32[3]  queued ") && contains(log, ", ran ")) << log;
  EXPECT_TRUE(contains((*logs)[0], "failed   all_reduce #301 'alone' f32[3]")) << (*logs)[0];
  EXPECT_TRUE(!contains(log, "'step 43'") && contains(log, "'step 44'")) << log;  // the last 256
  // By the signal, both ranks of the process; by the failure, rank 0 again.
  EXPECT_TRUE(contains(printed, "the last collectives of rank 1 in group world:\n")) << printed;
  EXPECT_TRUE(contains(printed, "failed   all_reduce #301 'alone'")) << printed;
}

// Each group counts its own collectives: a rank that has come to one and then works in another group is not missing.
TEST(FailuresOfGroups, ARankThatWorksInAnotherGroupIsNotMissing) {
  const auto job = std::make_shared<FakeJob>(4);
  const GroupRecord world("world", 0, 4, {}, std::make_shared<FakeMembership>(job, 0));
  job->report(1, {"world", 5, 4, "all_reduce #5 'x' f32[4]"});
  job->report(1, {"part", 1, 0, "all_reduce #1 'y' f32[4]"});
  job->report(2, {"world", 4, 4, "all_reduce #4 'w' f32[4]"});
  job->report(2, {"part", 7, 6, "all_reduce #7 'z' f32[4]"});
  job->report(3, {"world", 5, 4, "all_reduce #5 'x' f32[4]"});
  EXPECT_EQ(
      world.missing({.kind = CollectiveKind::all_reduce, .number = 5}, {}),
      "missing rank 2 (process 102 on host2, last heard of 0 s ago), last seen in all_reduce #7 'z' f32[4] of group "
      "part");
}

TEST(FailuresOfGroups, SixteenMissingRanksAreDescribedAndTheOthersNumbered) {
  const auto job = std::make_shared<FakeJob>(40);
  const GroupRecord world("world", 0, 40, {}, std::make_shared<FakeMembership>(job, 0));
  EXPECT_THAT(
      world.missing({.kind = CollectiveKind::all_reduce, .number = 5}, {}),
      AllOf(StartsWith("missing rank 1 (process 101 on host1, last heard of 0 s ago); missing rank 2 (process 102 "),
            EndsWith("; missing rank 16 (process 116 on host16, last heard of 0 s ago); and 23 more: 17 to 39")));
}

// Parts of one split have the same name and numbers, and other ranks.
TEST(FailuresOfGroups, OneRankOfEachGroupLooksForWhoIsMissing) {
  const auto job = std::make_shared<FakeJob>(4);
  const auto claims = [&](int rank, const Collective& collective) {
    const int first = rank / 2 * 2;
    const GroupRecord part("model", rank % 2, 2, {}, std::make_shared<FakeMembership>(job, rank), {first, first + 1});
    return part.claims("stall", collective, Milliseconds(600'000));
  };
  const Collective seventh{.kind = CollectiveKind::all_reduce, .number = 7};
  EXPECT_TRUE(claims(1, seventh));
  EXPECT_FALSE(claims(0, seventh));
  EXPECT_TRUE(claims(2, seventh));
  EXPECT_FALSE(claims(3, seventh));
  EXPECT_TRUE(claims(0, {.kind = CollectiveKind::all_reduce, .number = 8}));
  const Collective message{.kind = CollectiveKind::receive, .number = 7};
  EXPECT_TRUE(claims(0, message));
  EXPECT_TRUE(claims(1, message)) << "the others do not know of it";
}

TEST(FailuresOfGroups, OneRankOfAGroupSaysThatAnotherOneFailed) {
  for (const int failed : {0, 2})
    for (int rank = 0; rank < 3; ++rank) {
      GroupRecord part("part", rank, 3, {}, nullptr, {4, 5, 6});
      ::testing::internal::CaptureStderr();
      part.fail_told({4 + failed, "gpu1", "it has died"});
      const std::string printed = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(part.failure(), "it has died");
      if (rank == (failed == 0 ? 1 : 0))
        EXPECT_EQ(printed, str("weft: it has died\nweft: the last collectives of rank ", rank, " in group part:\n"));
      else
        EXPECT_EQ(printed, "");
    }
}

// Ten thousand ranks that asked again and again would hold up the answer of rank 0's store.
TEST(FailuresOfGroups, ARankThatWaitsForAnExplanationAsksTheStoreOnce) {
  const auto store = std::make_shared<MemoryStore>();
  GroupRecord waiting("world", 0, 2, {}, nullptr);
  waiting.explain_in(store, "why");
  std::thread other([&] {
    std::this_thread::sleep_for(Milliseconds(200));
    store->set("why", "rank 1 ran out of memory");
  });
  waiting.wait_for_explanation(Milliseconds(60'000));
  other.join();
  EXPECT_EQ(waiting.failure(), "rank 1 ran out of memory");
  EXPECT_TRUE(waiting.was_aborted());
  EXPECT_EQ(store->asked, 0) << "has() polls";

  GroupRecord told("world", 0, 2, {}, nullptr);
  told.explain_in(store, "another key");
  store->end_waits("rank 1 has died");
  std::thread membership([&] {
    std::this_thread::sleep_for(Milliseconds(50));
    told.fail("rank 1 has died", GroupRecord::Cause::abort);
  });
  told.wait_for_explanation(Milliseconds(60'000));
  membership.join();
  EXPECT_EQ(told.failure(), "rank 1 has died");
}

INSTANTIATE_TEST_SUITE_P(, Failures, ::testing::ValuesIn(with_libraries(backends())),
                         [](const auto& param) { return param.param; });
INSTANTIATE_TEST_SUITE_P(, FailuresOfOurs, ::testing::ValuesIn(backends()),
                         [](const auto& param) { return param.param; });
INSTANTIATE_TEST_SUITE_P(, FailuresOfJobs, ::testing::ValuesIn(with_libraries(connected_backends())),
                         [](const auto& param) { return param.param; });

TEST(RunRanks, ThrowsWhatTheFirstRankThrew) {
  EXPECT_EQ(error_text([] {
              run_ranks(3, [](const ProcessGroupPtr& group) {
                if (group->rank() == 1) fail("bad batch");
                group->barrier();
              });
            }),
            "bad batch");
  EXPECT_EQ(error_text([] { run_ranks(0, [](const ProcessGroupPtr&) {}); }),
            "run_ranks: expected a positive number of ranks, got 0");
}

TEST(RunRanks, ARankThatThrowsEndsTheOthersInSplitGroupsToo) {
  EXPECT_EQ(error_text([] {
              run_ranks(4, [](const ProcessGroupPtr& group) {
                const ProcessGroupPtr pair = group->split(group->rank() % 2, 0, "pair");
                if (group->rank() == 3) fail("bad batch");
                pair->barrier();
                pair->barrier();
              });
            }),
            "bad batch");
}

}  // namespace
}  // namespace weft::dist::testing
