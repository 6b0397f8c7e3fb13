// SPDX-License-Identifier: Apache-2.0
// Two runs that are given one folder: really two programs.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "dist/rendezvous/socket.h"
#include "io/checkpoint.h"
#include "tests/train_image/ranks.h"

namespace weft::tests {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const std::string kRun = "--data random:64x8x8x3 --model resnet8 --device cpu --workers 0 --backend gloo ";

/// train_image at work in FOLDER/run, until it is killed; there is a checkpoint.
class FirstRun {
 public:
  explicit FirstRun(const TemporaryFolder& folder) {
    const std::string line = "exec env OMP_NUM_THREADS=1 " TRAIN_IMAGE " " + kRun +
                             "--batch-size 16 --epochs 1000000 --out " + (folder / "run") + " >" +
                             (folder / "first.log") + " 2>&1";
    process_ = ::fork();
    if (process_ == 0) {
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 600 && !std::filesystem::exists(folder / "run/checkpoint_last.safetensors"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoint_last.safetensors")) << read_text(folder / "first.log");
  }
  ~FirstRun() { kill(); }
  FirstRun(const FirstRun&) = delete;
  FirstRun& operator=(const FirstRun&) = delete;

  bool lives() const { return ::waitpid(process_, nullptr, WNOHANG) == 0; }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  /// The one line that ends another run of this folder.
  std::string refusal(const TemporaryFolder& folder) const {
    return str("train_image: error: run folder: ", folder / "run", " is in use by process ", process_, " on ",
               dist::host_name(),
               ", and was for the 10 s that this run has waited. End that run, or name another folder\n");
  }

 private:
  pid_t process_ = 0;
};

class OneRun : public ::testing::Test {
 protected:
  Outcome run(const std::string& flags) const { return train_image(kRun + flags + " --out " + (folder_ / "run")); }

  const TemporaryFolder folder_;
};

TEST_F(OneRun, TheSecondOneIsRefusedInOneLineAndTheFirstGoesOn) {
  FirstRun first(folder_);
  const std::string config = read_text(folder_ / "run/config.toml");
  const Outcome second = run("--batch-size 32 --epochs 1");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.output, EndsWith('\n' + first.refusal(folder_)));
  EXPECT_EQ(second.output.find("run folder: "), second.output.rfind("run folder: ")) << "said once";
  EXPECT_EQ(run("--batch-size 32 --dry-run").exit_code, 0) << "a dry run has no folder";
  EXPECT_TRUE(first.lives());
  EXPECT_EQ(read_text(folder_ / "run/config.toml"), config);

  first.kill();
  const Outcome next = run("--batch-size 16 --resume auto --max-steps 1");
  EXPECT_EQ(next.exit_code, 0) << "a killed run keeps nobody out: " << next.output;
  EXPECT_THAT(next.output, HasSubstr("resumed from "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/.run.lock")) << "a run that has ended leaves no lock";
}

TEST_F(OneRun, ARestartWaitsForTheAttemptThatIsEnding) {
  FirstRun first(folder_);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    first.kill();
  });
  const Outcome next = run("--batch-size 16 --resume auto --max-steps 1");
  end.join();
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_THAT(next.output, HasSubstr("resumed from "));
}

TEST_F(OneRun, AllRanksOfTheSecondOneSayWhy) {
  if (!WEFT_HAVE_RANKS) GTEST_SKIP() << "needs a build with Gloo and libcrypto; this one has a stub";
  const FirstRun first(folder_);
  const auto ranks =
      train_image_on_ranks(2, kRun + "--batch-size 8 --epochs 1 --out " + (folder_ / "run"), folder_, 60);
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.exit_code, 1) << rank.output;
    EXPECT_THAT(rank.output, EndsWith(first.refusal(folder_)));
  }
  EXPECT_TRUE(first.lives());
}

}  // namespace
}  // namespace weft::tests
