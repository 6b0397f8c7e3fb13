// SPDX-License-Identifier: Apache-2.0
// init() in processes of their own, started by hand.
#include <memory>

#include "dist/rendezvous/socket.h"
#include "tests/dist/child.h"
#include "tests/dist/meeting.h"
#include "tests/train/temporary_folder.h"

#if WEFT_HAVE_GLOO
#define WEFT_NEEDS_GLOO() WEFT_NEEDS_CRYPTO()
#else
#define WEFT_NEEDS_GLOO() GTEST_SKIP() << "needs Gloo"
#endif

namespace weft::dist {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Ranks = std::vector<std::unique_ptr<Child>>;

std::string free_port() {
  Listeners listeners;
  EXPECT_EQ(try_listen({"127.0.0.1", 0}, resolve({"127.0.0.1", 0}), listeners), 0);
  return std::to_string(listeners.address.port);
}

/// The variables of one rank.
std::vector<std::string> by_hand(int rank, int size, const std::string& port, std::vector<std::string> more = {}) {
  more.insert(more.end(), {str("RANK=", rank), str("WORLD_SIZE=", size), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
                           "WEFT_JOB_SECRET=0123456789abcdef", "WEFT_START_TIMEOUT=30"});
  return more;
}

Ranks start(int size, const std::string& action, const std::vector<std::string>& more = {}) {
  const std::string port = free_port();
  Ranks ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(
        std::make_unique<Child>(std::vector<std::string>{INIT_PROGRAM, action}, by_hand(rank, size, port, more)));
  return ranks;
}

TEST(Init, RanksStartedByHandFindEachOther) {
  WEFT_NEEDS_GLOO();
  const Ranks ranks = start(3, "sum");
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks[static_cast<size_t>(rank)]->exit_code(), 0);
    EXPECT_EQ(ranks[static_cast<size_t>(rank)]->output(),
              str("rank ", rank, " of 3, local ", rank, " of 3, RANK and WORLD_SIZE, gloo, sum 6\n"));
  }
}

TEST(Init, AllRanksRunTheSameCollectives) {
  WEFT_NEEDS_GLOO();
  for (const char* odd : {"library", "own", "pigeon"}) {
    const std::string port = free_port();
    Ranks ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.push_back(
          std::make_unique<Child>(std::vector<std::string>{INIT_PROGRAM, "sum"},
                                  by_hand(rank, 2, port, {str("WEFT_COLLECTIVES=", rank == 0 ? "library" : odd)})));
    const bool alike = odd == std::string("library");
    EXPECT_EQ(ranks[1]->exit_code(), alike ? 0 : 1);
    EXPECT_THAT(ranks[1]->output(),
                HasSubstr(alike                       ? "gloo, sum 3\n"
                          : odd == std::string("own") ? "rank 0 called barrier 'start' "
                                                        "(WEFT_COLLECTIVES=library), rank 1 called barrier 'start' "
                                                        "(WEFT_COLLECTIVES=own)"
                                                      : "WEFT_COLLECTIVES: expected own or library, got 'pigeon'"));
  }
}

TEST(Init, AllRanksProtectTensorsAlike) {
  WEFT_NEEDS_GLOO();
  for (const char* other : {"mac", "encrypt", "pigeon"}) {
    const std::string port = free_port();
    Ranks ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.push_back(
          std::make_unique<Child>(std::vector<std::string>{INIT_PROGRAM, "sum"},
                                  by_hand(rank, 2, port, {str("WEFT_SECURE=", rank == 0 ? "mac" : other)})));
    const bool alike = other == std::string("mac");
    EXPECT_EQ(ranks[1]->exit_code(), alike ? 0 : 1);
    EXPECT_THAT(ranks[1]->output(),
                HasSubstr(alike                            ? "gloo, sum 3\n"
                          : other == std::string("pigeon") ? "WEFT_SECURE: expected off, mac or encrypt, got 'pigeon'"
                                                           : "process group gloo: rank 0 has WEFT_SECURE=mac, rank 1 "
                                                             "encrypt: set the same on all ranks"));
  }
}

TEST(Init, VariablesOfDiagnosisHaveTheirValues) {
  WEFT_NEEDS_GLOO();
  for (const auto& [variable, error] :
       {std::pair("WEFT_STEP_TIMES=often", "WEFT_STEP_TIMES: expected steps, 1 to 1000000000, got 'often'"),
        std::pair("WEFT_CHECK=yes", "WEFT_CHECK: expected 0 or 1, got 'yes'")})
    for (const auto& rank : start(2, "sum", {variable})) {
      EXPECT_EQ(rank->exit_code(), 1);
      EXPECT_THAT(rank->output(), HasSubstr(error));
    }
}

TEST(Init, RanksMeetInAFolder) {
  WEFT_NEEDS_GLOO();
  const test::TemporaryFolder folder;
  for (int run = 0; run < 2; ++run) {  // the second finds what the first has left
    Ranks ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.push_back(std::make_unique<Child>(
          std::vector<std::string>{INIT_PROGRAM, "sum"},
          std::vector<std::string>{str("RANK=", rank), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "WEFT_JOB_SECRET=",
                                   "WEFT_START_TIMEOUT=30", "WEFT_RENDEZVOUS=" + folder.path().string()}));
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->exit_code(), 0);
      EXPECT_THAT(rank->output(), HasSubstr("sum 3"));
    }
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "cookie"));
}

// Both have one secret, and ranks look for their rank 0 on the ports after theirs, where the other job's is.
TEST(Init, AJobOnTheNextPortIsAnotherOne) {
  WEFT_NEEDS_GLOO();
  const std::string port = free_port(), next = std::to_string(std::stoi(port) + 1);
  Child one({INIT_PROGRAM, "sum"}, by_hand(1, 2, port));
  Child other_zero({INIT_PROGRAM, "sum"}, by_hand(0, 2, next));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // it has looked there
  Child other_one({INIT_PROGRAM, "sum"}, by_hand(1, 2, next));
  Child zero({INIT_PROGRAM, "sum"}, by_hand(0, 2, port));
  for (Child* rank : {&other_zero, &other_one, &zero, &one}) {
    EXPECT_EQ(rank->exit_code(), 0) << rank->output();
    EXPECT_THAT(rank->output(), HasSubstr("gloo, sum 3\n"));
  }
}

TEST(Init, KilledRankIsNamedByTheOthers) {
  WEFT_NEEDS_GLOO();
  const Ranks ranks = start(3, "die");
  const pid_t killed = ranks[1]->process();
  EXPECT_EQ(ranks[1]->exit_code(), 128 + SIGKILL);
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(ranks[rank]->exit_code(), 1);
    EXPECT_THAT(ranks[rank]->output(), HasSubstr(str("rank 1 (process ", killed, " on ", host_name(), ") has died")));
  }
}

TEST(Init, RankThatEndsWithAnErrorIsNamedByTheOthers) {
  WEFT_NEEDS_GLOO();
  const Ranks ranks = start(3, "throw");
  EXPECT_EQ(ranks[1]->exit_code(), 1);
  EXPECT_THAT(ranks[1]->output(), HasSubstr("error: the loss is not finite"));
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(ranks[rank]->exit_code(), 1);
    EXPECT_THAT(ranks[rank]->output(), HasSubstr(str("rank 1 on ", host_name(), " has ended with an error")));
  }
}

TEST(Init, MissingRankIsNamedInTime) {
  WEFT_NEEDS_CRYPTO();
  const std::string port = free_port();
  const TimePoint start_time = Clock::now();
  Child zero({INIT_PROGRAM, "sum"}, by_hand(0, 3, port, {"WEFT_START_TIMEOUT=6"}));
  Child one({INIT_PROGRAM, "sum"}, by_hand(1, 3, port, {"WEFT_START_TIMEOUT=6"}));
  EXPECT_EQ(zero.exit_code(), 1);
  EXPECT_EQ(one.exit_code(), 1);
  EXPECT_LT(Clock::now() - start_time, std::chrono::seconds(40));
  EXPECT_THAT(zero.output() + one.output(), HasSubstr("error: membership: 1 of 3 ranks did not join within "));
  EXPECT_THAT(zero.output() + one.output(), HasSubstr("missing rank 2"));
  // Rank 0 says so at half of its time: perhaps nobody starts the others.
  EXPECT_THAT(zero.output(),
              HasSubstr("init: rank 0 of 3 (RANK and WORLD_SIZE) still waits. membership: 1 of 3 ranks did "
                        "not join within 3 s: missing rank 2; "));
}

TEST(Init, ARankThatIsStoppedWhenAllHaveMetIsNamed) {
  WEFT_NEEDS_CRYPTO();
  const Ranks ranks = start(3, "stop", {"WEFT_START_TIMEOUT=12"});
  for (const int other : {0, 2}) {
    Child& rank = *ranks[static_cast<size_t>(other)];
    EXPECT_EQ(rank.exit_code(), 1);
    EXPECT_THAT(rank.output(), HasSubstr(str("silent rank 1 (process ", ranks[1]->process(), " on ")));
  }
}

TEST(Init, ErrorOfOneRankIsThatOfAll) {
  WEFT_NEEDS_CRYPTO();
  const std::string port = free_port();
  Child zero({INIT_PROGRAM, "sum"}, by_hand(0, 2, port));
  Child one({INIT_PROGRAM, "sum", "mpi"}, by_hand(1, 2, port));
  EXPECT_EQ(zero.exit_code(), 1);
  EXPECT_EQ(one.exit_code(), 1);
  for (const Child* rank : {&zero, &one})
    EXPECT_THAT(rank->output(),
                HasSubstr("error: init: backend mpi: this process is no MPI rank (RANK and WORLD_SIZE). Start with "
                          "mpirun or srun --mpi=pmix, or use backend gloo (rank 1 on "));
}

TEST(Init, ContradictionsEndAtOnce) {
  Child rank({INIT_PROGRAM, "sum"}, {"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1"});
  EXPECT_EQ(rank.exit_code(), 1);
  EXPECT_EQ(rank.output(),
            "error: launch environment: RANK=2 contradicts WORLD_SIZE=2: ranks run from 0 to size - 1\n");
  Child timeout({INIT_PROGRAM, "sum"}, by_hand(0, 2, "29500", {"WEFT_START_TIMEOUT=soon"}));
  EXPECT_EQ(timeout.exit_code(), 1);
  EXPECT_EQ(timeout.output(), "error: WEFT_START_TIMEOUT: expected seconds, 1 to 604800, got 'soon'\n");
}

TEST(Init, TooFewFilesAreSaidAtOnce) {
  WEFT_NEEDS_CRYPTO();
  Child rank({"sh", "-c", "ulimit -n 24; exec " INIT_PROGRAM " sum"}, by_hand(0, 12, free_port()));
  EXPECT_EQ(rank.exit_code(), 1);
  EXPECT_EQ(rank.output(),
            "error: store: expected that this process may have 32 files open, got a limit of 24. Raise it (ulimit -n), "
            "or start fewer ranks\n");
}

TEST(Init, NowhereToMeetSaysWhatToSet) {
  WEFT_NEEDS_CRYPTO();
  Child rank({INIT_PROGRAM, "sum"}, {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE=1", "WEFT_JOB_SECRET=0123456789abcdef"});
  EXPECT_EQ(rank.exit_code(), 1);
  EXPECT_EQ(rank.output(),
            "error: init: Open MPI has started 2 ranks on several hosts, and no variable names rank 0's host. Set "
            "MASTER_ADDR to its host on all ranks, as in "
            "mpirun -x MASTER_ADDR=HOST, or WEFT_RENDEZVOUS to a folder that all hosts share\n");
}

TEST(Init, OneProcessAloneNeedsNoSecret) {
  Child rank({"env", "-u", "RANK", "-u", "WORLD_SIZE", "-u", "HOME", INIT_PROGRAM, "sum"});
  EXPECT_EQ(rank.exit_code(), 0);
  EXPECT_EQ(rank.output(), "rank 0 of 1, local 0 of 1, alone, alone, sum 1\n");
}

}  // namespace
}  // namespace weft::dist
