// SPDX-License-Identifier: Apache-2.0
// Programs that call init(), below real launchers.
#include "tests/support/shell.h"
#include "tests/weft_run/launch.h"

#if WEFT_HAVE_GLOO
#define WEFT_NEEDS_GLOO() WEFT_NEEDS_CRYPTO()
#else
#define WEFT_NEEDS_GLOO() GTEST_SKIP() << "needs Gloo"
#endif

namespace weft::weft_run {
namespace {

TEST(Init, BelowWeftRun) {
  WEFT_NEEDS_GLOO();
  Child run({WEFT_RUN, "--nproc_per_node=3", INIT_PROGRAM, "sum"}, {"OMP_NUM_THREADS=1"});
  EXPECT_EQ(run.exit_code(), 0) << run.output();
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(
        count(run.output(), str("rank ", rank, " of 3, local ", rank, " of 3, RANK and WORLD_SIZE, gloo, sum 6\n")), 1)
        << run.output();
}

TEST(Init, KilledRankIsStartedAgainWithAllOthers) {
  WEFT_NEEDS_GLOO();
  Child run(
      line({"--nproc_per_node=2", "--max_restarts=1"}, str("if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exec ",
                                                           INIT_PROGRAM, " die; fi; exec ", INIT_PROGRAM, " sum")),
      {"OMP_NUM_THREADS=1"});
  EXPECT_EQ(run.exit_code(), 0) << run.output();
  EXPECT_EQ(count(run.output(), "sum 3\n"), 4) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("weft-run: rank 1 was ended by signal 9 (Killed)"));
}

TEST(Init, BelowMpirun) {
  WEFT_NEEDS_GLOO();
  if (tests::shell("mpirun --version").exit_code != 0) GTEST_SKIP() << "NOT TESTED: there is no mpirun";
  const test::TemporaryFolder folder;
  Child run({"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", INIT_PROGRAM, "sum"},
            {"HOME=" + folder.path().string()});
  EXPECT_EQ(run.exit_code(60), 0) << run.output();
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_THAT(run.output(), HasSubstr(str("rank ", rank, " of 2, local ", rank, " of 2, Open MPI, ",
                                            WEFT_HAVE_MPI ? "mpi" : "gloo", ", sum 3\n")));
}

// The ranks of one weft-run below mpirun share one MPI identity: RANK wins, and MPI is left alone.
TEST(Init, BelowWeftRunBelowMpirun) {
  WEFT_NEEDS_GLOO();
  if (tests::shell("mpirun --version").exit_code != 0) GTEST_SKIP() << "NOT TESTED: there is no mpirun";
  Child run({"mpirun", "--allow-run-as-root", "-np", "1", WEFT_RUN, "--nproc_per_node=2", INIT_PROGRAM, "sum"},
            {"OMP_NUM_THREADS=1"});
  EXPECT_EQ(run.exit_code(60), 0) << run.output();
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_THAT(run.output(),
                HasSubstr(str("rank ", rank, " of 2, local ", rank, " of 2, RANK and WORLD_SIZE, gloo, sum 3\n")));
}

}  // namespace
}  // namespace weft::weft_run
