// SPDX-License-Identifier: Apache-2.0
#include "dist/group/flight_record.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/dist/ranks.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

TEST(FlightRecord, OneTextSaysHowRanksDiffer) {
  const tests::TemporaryFolder folder;
  const auto write = [&](int rank, const std::string& second, const std::string& rest,
                         const std::string& failure = "") {
    write_flight_record(
        folder.path(),
        {.group = "world",
         .members = {0, 1, 2, 3},
         .rank = rank,
         .failure = failure,
         .log = "  done     all_reduce #7 'x y' f32[4]  queued 3.1 s ago, ran 12.0 ms\n" + second + rest});
  };
  const std::string sum = "  running  all_reduce #8 'b' f32[8]  queued 2.0 s ago, runs for 2000.0 ms\n";
  write(0, sum, "");
  write(1, "  running  broadcast #8 'b' f32[8]  queued 2.0 s ago, runs for 2000.0 ms\n", "", "it passed\nits deadline");
  write(2, sum, "  queued   send #1 'm' f32[2] to rank 3  queued 1.0 s ago\n");
  EXPECT_EQ(explain_flight_records(folder.path()),
            "group world of ranks 0 to 3:\n"
            "  rank 3 left no file: killed, or stopped, or on another disk\n"
            "  they differ first in call #8:\n"
            "    ranks 0, 2: all_reduce #8 'b' f32[8]\n"
            "    rank 1: broadcast #8 'b' f32[8]\n"
            "  where they are:\n"
            "    ranks 0, 2: all_reduce #8 'b' f32[8], running\n"
            "    rank 1: broadcast #8 'b' f32[8], running\n"
            "  why it ended:\n"
            "    rank 1: it passed its deadline\n");
  write(1, "", "");
  write(3, sum, "");
  EXPECT_EQ(explain_flight_records(folder.path()),
            "group world of ranks 0 to 3:\n"
            "  no two ranks differ in a call that all logs have\n"
            "  where they are:\n"
            "    ranks 0, 2 to 3: all_reduce #8 'b' f32[8], running\n"
            "    rank 1: all_reduce #7 'x y' f32[4], done\n"
            "  rank 1 has called up to #7, others up to #8\n");
}

TEST(FlightRecord, PartsOfDifferentSizesAreNoDifference) {
  const tests::TemporaryFolder folder;
  run_on("threads", 2, [&](const ProcessGroupPtr& group) {
    const int64_t rows = group->rank() == 0 ? 3 : 1;
    group->all_gather(Tensor::ones({4}), Tensor::ones({rows}), {.name = "x", .rows = {3, 1}})->wait();
    const Tensor output = Tensor::ones({rows + 1}), input = Tensor::ones({rows + 1});
    group->all_to_all(output, input, {rows, 1}, {rows, 1}, {.name = "y"})->wait();
    write_flight_record(
        folder.path(),
        {.group = "world", .members = {0, 1}, .rank = group->rank(), .failure = "", .log = group->flight_log()});
  });
  EXPECT_THAT(explain_flight_records(folder.path()), HasSubstr("  no two ranks differ in a call that all logs have\n"));
}

TEST(FlightRecord, AGroupThatFailsLeavesOneForEachRank) {
  const tests::TemporaryFolder folder;
  const std::vector<std::string> errors =
      errors_on("gloo", 3,
                [](const ProcessGroupPtr& group) {
                  group->all_reduce(Tensor::ones({2}))->wait();
                  group->all_reduce(Tensor::ones({group->rank() == 2 ? 5 : 4}), ReduceOp::sum, {.name = "a"})->wait();
                  group->barrier();
                },
                {.timeout = Milliseconds(30'000), .records = folder.path()});
  EXPECT_THAT(errors, ::testing::Each(::testing::Not("")));
  EXPECT_THAT(explain_flight_records(folder.path()), HasSubstr("  they differ first in call #2:\n"
                                                               "    ranks 0 to 1: all_reduce #2 'a' f32[4]\n"
                                                               "    rank 2: all_reduce #2 'a' f32[5]\n"));
}

TEST(FlightRecord, WhatIsNoneIsAnError) {
  const tests::TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { explain_flight_records(folder / "none"); }),
              HasSubstr("/none'. Ranks write one where WEFT_FLIGHT_RECORDS names a folder"));
  EXPECT_THAT(error_text([&] { explain_flight_records(folder.path()); }),
              HasSubstr("expected files rank_N.GROUP.txt, got none"));
  std::ofstream(folder / "rank_0.world.txt") << "something else\n";
  EXPECT_THAT(error_text([&] { explain_flight_records(folder.path()); }),
              HasSubstr("rank_0.world.txt: expected a flight record, got 'something else'"));
  EXPECT_THAT(error_text([&] {
                write_flight_record(folder / "rank_0.world.txt",
                                    {.group = "g", .members = {0}, .rank = 0, .failure = "", .log = ""});
              }),
              HasSubstr("flight record: "));
}

}  // namespace
}  // namespace weft::dist::testing
