// SPDX-License-Identifier: Apache-2.0
#include "dist/group/step_times.h"

#include <gmock/gmock.h>

#include "dist/rendezvous/socket.h"

namespace weft::dist::testing {
namespace {

TEST(StepTimes, TheSlowestRankIsNamed) {
  EXPECT_EQ(describe_step_times(2, 51, 0.112, {0.0901, 0.0904, 0.1103, 0.0907}, {"gpu6", "gpu6", "gpu7", "gpu7"}),
            "steps 2 to 51: 112 ms each, 90.1 ms to 110 ms of it outside of collectives; slowest: rank 2 on gpu7 with "
            "110 ms, the median rank has 90.4 ms");
}

TEST(StepTimes, ComeEverySoManySteps) {
  ::testing::internal::CaptureStderr();
  run_ranks(2, [](const ProcessGroupPtr& group) {
    StepTimes times(World::around(group), 3), none(World::around(group), 0);
    for (int step = 0; step < 7; ++step) {
      group->all_reduce(Tensor::ones({8}))->wait();
      times.step();
      none.step();
    }
    const double all = group->seconds_in_collectives();
    EXPECT_GT(all, 0);
    group->split(0, group->rank(), "part")->barrier();
    EXPECT_GT(group->seconds_in_collectives(), all) << "a part's count, too";
  });
  const std::string rest =
      ": [0-9.e-]+ ms each, [0-9.e-]+ ms to [0-9.e-]+ ms of it outside of collectives; slowest: rank [01] on " +
      host_name() + " with [0-9.e-]+ ms, the median rank has [0-9.e-]+ ms\n";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("weft: steps 2 to 3" + rest + "weft: steps 4 to 6" + rest));
}

}  // namespace
}  // namespace weft::dist::testing
