// SPDX-License-Identifier: Apache-2.0
// Ranks that are lost in init(), below real launchers.
#include <csignal>
#include <fstream>
#include <regex>

#include "tests/support/shell.h"
#include "tests/weft_run/launch.h"

#if WEFT_HAVE_GLOO
#define WEFT_NEEDS_GLOO() WEFT_NEEDS_CRYPTO()
#else
#define WEFT_NEEDS_GLOO() GTEST_SKIP() << "needs Gloo"
#endif

namespace weft::weft_run {
namespace {

/// A line of bash that starts the program; a rank gets `signal` at one of its connects. `first`: the first
/// time.
std::string lost_at_connect(const char* rank, const char* first, int connect, int signal,
                            const std::string& arguments) {
  return str("if [ ", rank, " = 2 ] && [ ", first,
             " = 0 ]; then export LD_PRELOAD=" KILL_AT_CONNECT_LIBRARY " KILL_AT_CONNECT=", connect,
             " KILL_WITH=", signal, "; fi; exec ", INIT_PROGRAM, ' ', arguments);
}

// To the store, to the membership, to both others.
TEST(Init, ARankThatIsLostWhileItConnectsIsStartedAgainWithAllOthers) {
  WEFT_NEEDS_GLOO();
  std::vector<std::unique_ptr<Child>> jobs;
  for (const int signal : {SIGKILL, SIGSTOP})
    for (int connect = 1; connect <= 4; ++connect)
      jobs.push_back(
          std::make_unique<Child>(line({"--nproc_per_node=3", "--max_restarts=1", "--grace=1"},
                                       lost_at_connect("$RANK", "$TORCHELASTIC_RESTART_COUNT", connect, signal, "sum")),
                                  std::vector<std::string>{"OMP_NUM_THREADS=1", "WEFT_TIMEOUT=12"}));
  const dist::TimePoint begin = dist::Clock::now();
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i]->exit_code(60), 0) << jobs[i]->output();
    EXPECT_EQ(count(jobs[i]->output(), "sum 6\n"), 3) << jobs[i]->output();
    EXPECT_THAT(jobs[i]->output(), HasSubstr(i < 4 ? "weft-run: rank 2 was ended by signal 9 (Killed)"
                                                   : "; rank 2 has been stopped for "));
  }
  EXPECT_LT(dist::Clock::now() - begin, std::chrono::seconds(80)) << "the deadline of 12 s, and a second start";
}

/// Whether a process that it started is alive; one that has ended and that nobody has asked for does not count.
bool has_living_children(pid_t process) {
  std::ifstream children(str("/proc/", process, "/task/", process, "/children"));
  for (pid_t child = 0; children >> child;) {
    std::string stat;
    std::getline(std::ifstream(str("/proc/", child, "/stat")), stat);
    if (!stat.empty() && stat.find(") Z ") == std::string::npos) return true;
  }
  return false;
}

// mpirun ends all ranks when one is killed. It does not notice a stopped rank: MPI_Init would wait without end. Its
// ranks must end. On a crowded machine mpirun 4.1 itself may stay when no rank is left. It may also blame an innocent
// rank before Weft can name the killed rank: only a stopped rank must be named.
TEST(Init, ARankThatIsLostWhileItConnectsEndsMpirunInTime) {
  WEFT_NEEDS_GLOO();
  if (tests::shell("mpirun --version").exit_code != 0) GTEST_SKIP() << "NOT TESTED: there is no mpirun";
  const test::TemporaryFolder folder;
  std::vector<std::pair<int, std::unique_ptr<Child>>> jobs;
  for (const char* backend : {"mpi", "gloo"})
    for (const int signal : {SIGKILL, SIGSTOP})
      for (const int connect : {1, 3, 4, 5, 7}) {
        const bool mpi = backend == std::string("mpi");
        if ((mpi && !WEFT_HAVE_MPI) || (!mpi && connect > 4)) continue;  // Gloo makes fewer connects
        jobs.emplace_back(
            signal,
            std::make_unique<Child>(
                std::vector<std::string>{
                    "mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3", "bash", "-c",
                    lost_at_connect("$OMPI_COMM_WORLD_RANK", "0", connect, signal, str("sum ", backend))},
                std::vector<std::string>{"HOME=" + folder.path().string(), "OMP_NUM_THREADS=1", "WEFT_TIMEOUT=12"}));
      }
  const dist::TimePoint last = dist::Clock::now() + std::chrono::seconds(80);
  for (const auto& [signal, job] : jobs) {
    job->prints(signal == SIGSTOP ? "rank 2" : "\n");
    // mpirun 4.1 may wait for the rest of its own handshake with a rank that is stopped there, when all others have
    // ended.
    const std::string said = job->output();
    std::smatch stopped;
    if (std::regex_search(said, stopped, std::regex("silent rank 2 \\(process ([0-9]+) ")))
      ::kill(std::stoi(stopped[1]), SIGKILL);
    int without = 0;  // the kernel's list may lack some while others end
    while (without < 3 && dist::Clock::now() < last) {
      without = has_living_children(job->process()) ? 0 : without + 1;
      ::usleep(10'000);
    }
    EXPECT_EQ(without, 3) << job->output();
    EXPECT_NE(job->exit_code(2), 0) << job->output();
    if (signal == SIGSTOP) {
      EXPECT_THAT(job->output(), HasSubstr("rank 2"));
    }
    EXPECT_EQ(count(job->output(), "sum 6\n"), 0) << job->output();
  }
}

}  // namespace
}  // namespace weft::weft_run
