// SPDX-License-Identifier: Apache-2.0
// What needs a launcher that is stopped at a chosen moment; the rest is in transcripts.
#include <fstream>

#include "tests/weft_run/launch.h"
#include "train/exit.h"

namespace weft::weft_run {
namespace {

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

}  // namespace
}  // namespace weft::weft_run
