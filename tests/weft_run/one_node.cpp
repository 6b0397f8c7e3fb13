// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tests/weft_run/launch.h"
#include "train/exit.h"

namespace weft::weft_run {
namespace {

TEST(OneNode, RanksGetTorchrunsVariables) {
  WEFT_NEEDS_CRYPTO();
  Child run(line({"--nproc_per_node", "2", "--rdzv-id", "job7"},
                 "echo \"$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR "
                 "$TORCHELASTIC_RUN_ID "
                 "$TORCHELASTIC_RESTART_COUNT ${#WEFT_JOB_SECRET} [$OMP_NUM_THREADS]\"; test $MASTER_PORT -gt 1023"),
            {"OMP_NUM_THREADS=3"});
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), HasSubstr("0/2 0/2 0/1 127.0.0.1 job7 0 64 [3]\n"));
  EXPECT_THAT(run.output(), HasSubstr("1/2 1/2 0/1 127.0.0.1 job7 0 64 [3]\n"));
  EXPECT_EQ(count(run.output(), "\n"), 2) << "nothing but the ranks' own words";
}

TEST(OneNode, TorchrunsAndAcceleratesOtherVariables) {
  WEFT_NEEDS_CRYPTO();
  Child run(
      line({"--nproc_per_node=2", "--role=trainer", "--gpu_ids=3,5", "--num_cpu_threads_per_process=2", "-t", "3"},
           "echo \"$ROLE_NAME $ROLE_RANK/$ROLE_WORLD_SIZE $TORCHELASTIC_USE_AGENT_STORE $CUDA_VISIBLE_DEVICES "
           "$OMP_NUM_THREADS\""),
      {"PET_MAX_RESTARTS=1"});
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), HasSubstr("trainer 0/2 False 3,5 2\n"));
  EXPECT_THAT(run.output(), HasSubstr("trainer 1/2 False 3,5 2\n"));
  EXPECT_THAT(run.output(), HasSubstr("weft-run: --max-restarts 1, from PET_MAX_RESTARTS\n"));
  EXPECT_THAT(run.output(), HasSubstr("weft-run: --tee is passed over: "));
}

TEST(OneNode, FlightRecordsAreExplained) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "rank_0.world.txt") << "weft flight record\ngroup world\nmembers 0 1\nrank 0\nfailure \n"
                                                "  running  barrier #1 'start'  queued 2.0 s ago, runs for 2000.0 ms\n";
  Child explained({WEFT_RUN, "--explain", folder.path()});
  EXPECT_EQ(explained.exit_code(), 0);
  EXPECT_EQ(explained.output(),
            "group world of ranks 0 to 1:\n  rank 1 left no file: killed, or stopped, or on another disk\n"
            "  no two ranks differ in a call that all logs have\n  where they are:\n"
            "    rank 0: barrier #1 'start', running\n");
  Child both({WEFT_RUN, "--explain", folder.path(), "./train"});
  EXPECT_EQ(both.exit_code(), 2);
  EXPECT_THAT(both.output(), HasSubstr("--explain FOLDER: expected no other flag and no program"));
}

TEST(OneNode, AScriptOfPythonIsNoProgram) {
  const test::TemporaryFolder folder;
  const std::string script = (folder / "train.py").string();
  test::write_file(script, "print(1)\n");
  Child run({WEFT_RUN, script});
  EXPECT_EQ(run.exit_code(), 1);
  EXPECT_THAT(run.output(), HasSubstr("cannot start '" + script +
                                      "': Permission denied. A script of Python is started by "
                                      "python3 " +
                                      script));
}

TEST(OneNode, ThreadsAreSharedOutAloud) {
  WEFT_NEEDS_CRYPTO();
  std::vector<std::string> command = line({"--nproc_per_node", "64"}, "test $OMP_NUM_THREADS -ge 1");
  command.insert(command.begin(), {"env", "-u", "OMP_NUM_THREADS"});
  Child run(command);
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), ::testing::MatchesRegex(
                                "weft-run: OMP_NUM_THREADS is not set: [0-9]+ for each of 64 ranks on [0-9]+ cores\n"));
}

TEST(OneNode, GivenMasterIsPassedOn) {
  WEFT_NEEDS_CRYPTO();
  Child run(
      line({"--nproc_per_node=2", "--master_addr=localhost", "--master_port=12345"}, "echo $MASTER_ADDR:$MASTER_PORT"));
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_EQ(count(run.output(), "localhost:12345\n"), 2);
}

TEST(OneNode, FirstFailureEndsTheOthersAndIsTheExitCode) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string ready = (folder / "ready").string();
  const dist::TimePoint start = dist::Clock::now();
  Child run(line({"--nproc_per_node=3", "--grace=100"},
                 "if [ $RANK = 1 ]; then until [ -e " + ready + "0 -a -e " + ready +
                     "2 ]; do sleep 0.02; done; exit 7; fi; trap 'echo rank $RANK ends; exit 1' TERM; touch " + ready +
                     "$RANK; sleep 120 & wait"));
  EXPECT_EQ(run.exit_code(), 7);
  EXPECT_LT(dist::Clock::now() - start, std::chrono::seconds(60));
  EXPECT_THAT(run.output(), HasSubstr("weft-run: rank 1 ended with exit code 7\n"));
  EXPECT_THAT(run.output(), HasSubstr("rank 0 ends\n"));
  EXPECT_THAT(run.output(), HasSubstr("rank 2 ends\n"));
}

TEST(OneNode, ARestartNeedsNobodyWhoReadsOfIt) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string starts = (folder / "starts").string();
  Child run({"bash", "-c",
             WEFT_RUN " --nproc_per_node=1 --max_restarts=1 bash -c 'echo start >>" + starts +
                 "; sleep 0.5; exit 3' 2>&1 | true"});
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_EQ(test::read_file(starts), "start\nstart\n");
}

// No collective waits for it, so no rank could tell.
TEST(OneNode, ARankThatIsStoppedWhenTheOthersHaveEndedIsLost) {
  WEFT_NEEDS_CRYPTO();
  Child run(line({"--nproc_per_node=3", "--max_restarts=1", "--grace=1"},
                 "echo round $TORCHELASTIC_RESTART_COUNT; if [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ]; then kill "
                 "-STOP $$; fi"),
            {"WEFT_TIMEOUT=2"});
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), HasSubstr("weft-run: rank 1 is stopped, and others have ended 2 s ago or more\n"));
  EXPECT_EQ(count(run.output(), "round 1\n"), 3);
}

// The rank that gives it up ends first, and is not the cause.
TEST(OneNode, AStoppedRankIsNamedBesideTheOneThatHasGivenItUp) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string process = (folder / "process").string();
  Child run(
      line({"--nproc_per_node=2", "--grace=1"}, "if [ $RANK = 0 ]; then echo $$ > " + process +
                                                    "; kill -STOP $$; fi; until grep -qs 'T (stopped)' /proc/$(cat " +
                                                    process + ")/status; do sleep 0.02; done; sleep 2; exit 3"));
  EXPECT_EQ(run.exit_code(), 3);
  EXPECT_THAT(run.output(), testing::ContainsRegex(
                                "weft-run: rank 1 ended with exit code 3; rank 0 has been stopped for [0-9]+ s\n"));
}

TEST(OneNode, SignalIsNamedAndDeafRanksAreKilled) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string deaf = (folder / "deaf").string();
  const dist::TimePoint start = dist::Clock::now();
  Child run(line({"--nproc_per_node=2", "--grace=1"},
                 "if [ $RANK = 1 ]; then until [ -e " + deaf +
                     " ]; do sleep 0.02; done; kill -SEGV $$; fi; trap '' TERM; touch " + deaf + "; sleep 120"));
  EXPECT_EQ(run.exit_code(), 128 + SIGSEGV);
  EXPECT_GT(dist::Clock::now() - start, std::chrono::seconds(1));
  EXPECT_LT(dist::Clock::now() - start, std::chrono::seconds(60));
  EXPECT_THAT(run.output(), HasSubstr("weft-run: rank 1 was ended by signal 11 (Segmentation fault)\n"));
}

TEST(OneNode, ASignalIsNamedBeforeTheErrorsThatFollow) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string lost = (folder.path() / "lost").string();
  Child run(line({"--nproc_per_node=2"},
                 "echo \"rank $RANK process $$ .\"; while [ ! -e " + lost + " ]; do sleep 0.01; done; exit 3"));
  ASSERT_TRUE(run.prints(" .\n", 2));
  const auto process_of = [&](const std::string& rank) {
    const std::string before = "rank " + rank + " process ";
    return static_cast<pid_t>(std::stol(run.output().substr(run.output().find(before) + before.size())));
  };
  const auto has_ended = [](pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/stat");
    return std::string(std::istreambuf_iterator<char>(in), {}).find(") Z ") != std::string::npos;
  };
  run.signal(SIGSTOP);  // so that both have ended when weft-run looks
  ::kill(process_of("1"), SIGKILL);
  std::ofstream(lost) << "rank 1";
  for (int i = 0; i < 1000 && !(has_ended(process_of("0")) && has_ended(process_of("1"))); ++i) ::usleep(10'000);
  run.signal(SIGCONT);
  EXPECT_EQ(run.exit_code(), 128 + SIGKILL);
  EXPECT_THAT(run.output(), HasSubstr("weft-run: rank 1 was ended by signal 9 (Killed)\n"));
}

TEST(OneNode, RestartsAllAsOftenAsAllowed) {
  WEFT_NEEDS_CRYPTO();
  const std::string script =
      "echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; if [ $TORCHELASTIC_RESTART_COUNT -lt 2 ]; then [ $RANK = 0 ] && "
      "exit 5; sleep 600; fi; exit 0";
  Child enough(line({"--nproc_per_node=2", "--max_restarts=2"}, script));
  EXPECT_EQ(enough.exit_code(), 0);
  for (const char* rank : {"begin 0.0", "begin 0.1", "begin 0.2", "begin 1.2"})
    EXPECT_EQ(count(enough.output(), rank), 1) << rank;
  EXPECT_THAT(enough.output(), HasSubstr("weft-run: restarting all ranks, restart 2 of 2\n"));
  Child few(line({"--nproc_per_node=2", "--max_restarts=1"}, script));
  EXPECT_EQ(few.exit_code(), 5);
  EXPECT_EQ(count(few.output(), "begin 0."), 2);
}

TEST(OneNode, ARankThatAsksForRequeueIsNotStartedAgain) {
  WEFT_NEEDS_CRYPTO();
  Child run(line({"--nproc_per_node=2", "--max_restarts=3"}, "echo begin $RANK; exit 75"));
  EXPECT_EQ(run.exit_code(), 75);
  // The first rank that ends may stop the other one before that prints anything.
  EXPECT_GE(count(run.output(), "begin "), 1) << run.output();
  for (const char* rank : {"begin 0", "begin 1"}) EXPECT_LE(count(run.output(), rank), 1) << run.output();
  EXPECT_THAT(run.output(), Not(HasSubstr("restarting all ranks")));
}

TEST(OneNode, SignalsAreForwarded) {
  WEFT_NEEDS_CRYPTO();
  const std::string script =
      "trap 'echo rank $RANK saves' USR1; trap 'echo rank $RANK dumps' USR2; trap 'echo rank $RANK stops; exit 64' "
      "TERM; echo ready; "
      "while true; do sleep 0.05; done";
  Child run(line({"--nproc_per_node=2", "--max_restarts=5"}, script));
  ASSERT_TRUE(run.prints("ready", 2));
  run.signal(SIGUSR1);
  EXPECT_TRUE(run.prints("rank 0 saves"));
  EXPECT_TRUE(run.prints("rank 1 saves"));
  run.signal(SIGUSR2);
  EXPECT_TRUE(run.prints("rank 0 dumps"));
  EXPECT_TRUE(run.prints("rank 1 dumps"));
  run.signal(SIGTERM);
  EXPECT_EQ(run.exit_code(), 64) << "and nothing is started again";
  EXPECT_THAT(run.output(), HasSubstr("rank 0 stops"));
  EXPECT_THAT(run.output(), HasSubstr("rank 1 stops"));
  EXPECT_EQ(count(run.output(), "ready"), 2);
}

// As long as the ranks of a failed round are being stopped, nobody forwards it.
TEST(OneNode, ASignalWhileRanksAreStoppedEndsTheJob) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string ready = (folder / "ready").string(), signalled = (folder / "signalled").string();
  Child run(line({"--nproc_per_node=2", "--max_restarts=3", "--grace=60"},
                 "echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; if [ $RANK = 0 ]; then until [ -e " + ready +
                     " ]; do sleep 0.02; done; exit 5; fi; trap 'echo told; until [ -e " + signalled +
                     " ]; do sleep 0.02; done; exit 1' TERM; touch " + ready + "; while true; do sleep 0.05; done"));
  ASSERT_TRUE(run.prints("told"));
  run.signal(SIGTERM);
  std::ofstream(signalled) << "now\n";
  EXPECT_EQ(run.exit_code(), train::kExitRequeue);
  EXPECT_THAT(run.output(), HasSubstr("weft-run: ended by signal 15 (Terminated) before the ranks were started\n"));
  EXPECT_THAT(run.output(), Not(HasSubstr("begin 0.1")));
}

// A rank that ends early after a forwarded SIGTERM does not cut short another one's checkpoint.
TEST(OneNode, ForwardedStopLeavesRanksTheirTime) {
  WEFT_NEEDS_CRYPTO();
  Child run(line({"--nproc_per_node=2", "--grace=0"},
                 "trap 'if [ $RANK = 1 ]; then sleep 1; echo saved; fi; exit 64' TERM; echo ready $RANK; while true; "
                 "do sleep 0.05; done"));
  ASSERT_TRUE(run.prints("ready 0"));
  ASSERT_TRUE(run.prints("ready 1"));
  run.signal(SIGTERM);
  EXPECT_EQ(run.exit_code(), 64);
  EXPECT_THAT(run.output(), HasSubstr("saved"));
}

// kill -9 of the launcher ends the ranks and the children of a rank's shell.
TEST(OneNode, NoOrphanSurvivesTheLauncher) {
  WEFT_NEEDS_CRYPTO();
  Child run(line({"--nproc_per_node=2"}, "sleep 600 & echo \"process $$ child $! .\"; wait"));
  std::vector<pid_t> processes;
  ASSERT_TRUE(run.prints(" .\n", 2));
  run.signal(SIGKILL);
  std::istringstream words(run.output());
  for (std::string word; words >> word;)
    if (word == "process" || word == "child") {
      pid_t process;
      words >> process;
      processes.push_back(process);
    }
  ASSERT_EQ(processes.size(), 4u);
  EXPECT_EQ(run.exit_code(), 128 + SIGKILL);
  for (const pid_t process : processes) EXPECT_TRUE(goes(process)) << process;
}

TEST(OneNode, RanksLeaveNothingBehind) {
  WEFT_NEEDS_CRYPTO();
  Child run(line({"--nproc_per_node=1"}, "sleep 600 >/dev/null 2>&1 & echo $!"));
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_TRUE(goes(std::stoi(run.output())));
}

TEST(OneNode, LogsOfEachRank) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  Child run(line({"--nproc_per_node=2", "--max_restarts=1", "--log_dir", (folder / "logs").string()},
                 "echo rank $RANK >&2; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3"));
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_THAT(run.output(), Not(HasSubstr("rank 0\n")));
  EXPECT_EQ(test::read_file(folder / "logs" / "rank_1.restart_1.log"), "rank 1\n");
  EXPECT_EQ(test::read_file(folder / "logs" / "rank_0.restart_1.log"), "rank 0\n");

  // A link that another user left in the place of a log is not followed.
  test::write_file(folder / "outside", "kept");
  std::filesystem::create_directory(folder / "shared");
  std::filesystem::create_symlink(folder / "outside", folder / "shared" / "rank_0.log");
  Child linked(line({"--nproc_per_node=1", "--log_dir", (folder / "shared").string()}, "echo written"));
  EXPECT_EQ(linked.exit_code(), 1);
  EXPECT_THAT(linked.output(), HasSubstr("rank_0.log: Too many levels of symbolic links"));
  EXPECT_EQ(test::read_file(folder / "outside"), "kept");
}

TEST(OneNode, MistakesHaveExitCodes) {
  Child usage({WEFT_RUN, "--rdzv_backend", "etcd", "x"});
  EXPECT_EQ(usage.exit_code(), 2);
  EXPECT_THAT(usage.output(), HasSubstr("weft-run: error: --rdzv-backend: expected c10d or static, got 'etcd'"));
  Child missing({WEFT_RUN, "./no-such-program"});
  EXPECT_EQ(missing.exit_code(), 1);
  EXPECT_EQ(missing.output(), "weft-run: error: cannot start './no-such-program': No such file or directory\n");
  Child help({WEFT_RUN, "--help"});
  EXPECT_EQ(help.exit_code(), 0);
  EXPECT_THAT(help.output(), HasSubstr("--rdzv_endpoint H:P"));
}

#if !WEFT_HAVE_CRYPTO
TEST(OneNode, WithoutCryptoOneRankAloneRuns) {
  Child one(line({}, "echo alone"));
  EXPECT_EQ(one.exit_code(), 0);
  Child two(line({"--nproc_per_node=2"}, "true"));
  EXPECT_EQ(two.exit_code(), 1);
  EXPECT_THAT(two.output(), HasSubstr("this build has no libcrypto"));
}
#endif

}  // namespace
}  // namespace weft::weft_run
