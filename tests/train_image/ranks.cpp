// SPDX-License-Identifier: Apache-2.0
#include "tests/train_image/ranks.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/checkpoint.h"
#include "tests/support/compare.h"
#include "train/exit.h"
#include "train/record/run_folder.h"

namespace weft::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A port that the kernel has just found free.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(fd);
  return ntohs(address.sin_port);
}

std::string file_of(const TemporaryFolder& folder, const std::string& what, int rank) {
  return folder / (what + "." + std::to_string(rank));
}

/// The lines that start the ranks and wait for them.
std::string launch_line(int ranks, const std::string& arguments, const TemporaryFolder& folder, int seconds) {
  std::string line;
  const std::string port = std::to_string(free_port());
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string own = std::to_string(rank);
    line += "( env RANK=" + own + " LOCAL_RANK=" + own + " WORLD_SIZE=" + std::to_string(ranks) +
            " LOCAL_WORLD_SIZE=" + std::to_string(ranks) + " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
            " OMP_NUM_THREADS=1 timeout -s KILL " + std::to_string(seconds) + " sh -c 'echo $$ >" +
            file_of(folder, "pid", rank) + "; exec " + std::string(TRAIN_IMAGE) + " " + arguments + "' >" +
            file_of(folder, "log", rank) + " 2>&1; echo $? >" + file_of(folder, "code", rank) + " ) & ";
  }
  return line + "wait";
}

// Two classes of images that do not divide by the batch: the last step of an epoch is uneven.
const std::string kRun =
    "--data random:100x8x8x3 --model resnet8 --augment cifar --epochs 2 --workers 0 --sync-batch-norm --backend gloo "
    "--lr 0.02 ";

// Ranks and one process round otherwise (1e-7), and now and then an activation of almost 0 falls on the other side of
// a ReLU: one entry of a gradient more or less, which a few steps of a net on noise make some 1e-3 of the weights. The
// proof within the roundings is tests/dist/ddp.cpp, whose nets are smaller; here ranks must see the same images, take
// part in the same steps and add up the same counts. A fault there changes the weights by 1e-1.
constexpr Tolerance kSameTraining{5e-3, 2e-2};

void expect_close(const StateDict& got, const StateDict& want, Tolerance allowed) {
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  std::vector<double> a, b;
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    EXPECT_EQ(got.tensors[i].name, want.tensors[i].name);
    const auto x = got.tensors[i].tensor.to_vector<double>(), y = want.tensors[i].tensor.to_vector<double>();
    a.insert(a.end(), x.begin(), x.end());
    b.insert(b.end(), y.begin(), y.end());
  }
  EXPECT_TRUE(near(a, b, allowed));
}

std::vector<double> losses(const std::string& out) {
  std::ifstream in(out + "/metrics.jsonl");
  std::vector<double> found;
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    found.push_back(row["loss"].get<double>());
  }
  return found;
}

void expect_codes(const std::vector<Outcome>& ranks, int code) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    EXPECT_EQ(ranks[rank].exit_code, code) << "rank " << rank << ": " << ranks[rank].output;
}

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WEFT_HAVE_RANKS) GTEST_SKIP() << "needs a build with Gloo and libcrypto; this one has a stub";
  }
};

}  // namespace

std::vector<Outcome> train_image_on_ranks(int ranks, const std::string& arguments, const TemporaryFolder& folder,
                                          int seconds) {
  shell(launch_line(ranks, arguments, folder, seconds));
  std::vector<Outcome> outcomes;
  for (int rank = 0; rank < ranks; ++rank) {
    Outcome one;
    one.output = read_text(file_of(folder, "log", rank));
    const std::string code = read_text(file_of(folder, "code", rank));
    if (!code.empty()) one.exit_code = std::atoi(code.c_str());
    outcomes.push_back(one);
  }
  return outcomes;
}

TEST_F(Ranks, TrainWhatOneProcessTrains) {
  const TemporaryFolder folder;
  const Outcome alone = train_image(kRun + "--batch-size 16 --out " + (folder / "alone"));
  ASSERT_EQ(alone.exit_code, 0) << alone.output;
  const Checkpoint one = load_checkpoint(folder / "alone/checkpoint_last.safetensors");
  const std::string norms = ", 7 batch norms over all ranks; 8 images each per step, 16 together";
  const std::pair<std::string, std::string> ways[] = {
      {"--parallel auto", "ddp, 1 bucket"},
      {"--parallel fsdp --fsdp-min-params 4000", "fsdp full_shard, 6 units"},
      {"--parallel fsdp --fsdp-strategy shard_grad_op --clip-norm 1e6", "fsdp shard_grad_op, 1 unit"},
  };
  for (const auto& [flags, says] : ways) {
    SCOPED_TRACE(flags);
    const std::string out = folder / "ranks";
    std::filesystem::remove_all(out);
    const auto ranks = train_image_on_ranks(2, kRun + flags + " --batch-size 8 --out " + out, folder);
    expect_codes(ranks, 0);
    EXPECT_THAT(ranks[0].output,
                AllOf(HasSubstr("ranks   2 over gloo (RANK and WORLD_SIZE), " + says + norms), HasSubstr("epoch 2/2")));
    EXPECT_EQ(ranks[1].output, "") << "only the first rank prints";

    const Checkpoint two = load_checkpoint(out + "/checkpoint_last.safetensors");
    EXPECT_EQ(two.integers, one.integers) << "epochs, steps, images, the global batch";
    expect_close(two.part("model"), one.part("model"), kSameTraining);
    EXPECT_TRUE(near(losses(out), losses(folder / "alone"), kSameTraining));
    EXPECT_THAT(read_text(out + "/config.toml"), HasSubstr("# 2 ranks: 16 images per step"));
    EXPECT_THAT(read_text(out + "/summary.json"), HasSubstr("\"ranks\": 2"));
  }
}

// A single step, before a ReLU can multiply roundings: within the roundings of the sums over 16 images of 8x8.
TEST_F(Ranks, TakeTheStepOfOneProcess) {
  const TemporaryFolder folder;
  const Outcome alone = train_image(kRun + "--batch-size 16 --max-steps 1 --out " + (folder / "alone"));
  ASSERT_EQ(alone.exit_code, 0) << alone.output;
  const Checkpoint one = load_checkpoint(folder / "alone/checkpoint_last.safetensors");
  for (const std::string parallel : {"ddp", "fsdp --fsdp-min-params 4000"}) {
    SCOPED_TRACE(parallel);
    const std::string out = folder / "ranks";
    std::filesystem::remove_all(out);
    const std::string flags = "--batch-size 8 --max-steps 1 --parallel " + parallel + " --out " + out;
    expect_codes(train_image_on_ranks(2, kRun + flags, folder), 0);
    const Checkpoint two = load_checkpoint(out + "/checkpoint_last.safetensors");
    expect_close(two.part("model"), one.part("model"), {2e-6, 2e-6});
  }
}

// The last step has fewer images than there are ranks: the others stand in, and no norm counts them.
TEST_F(Ranks, StandInsOfALastStepAreNotCounted) {
  const TemporaryFolder folder;
  int runs = 0;
  const auto train = [&](const std::string& data, int ranks, const std::string& more) {
    const std::string out = folder / ("run" + std::to_string(runs++));
    const auto run = train_image_on_ranks(ranks,
                                          kRun + "--epochs 1 --data random:" + data + " " + more + "--batch-size " +
                                              std::to_string(12 / ranks) + " --out " + out,
                                          folder);
    expect_codes(run, 0);
    return std::pair(load_checkpoint(out + "/checkpoint_last.safetensors"), losses(out));
  };
  // A step of twelve images, or three, and another of a single image.
  for (const auto& [data, allowed] :
       {std::pair<std::string, Tolerance>{"13x8x8x3", {2e-6, 2e-6}}, {"37x8x8x3", kSameTraining}}) {
    const auto [one, one_losses] = train(data, 1, "");
    for (const auto& [ranks, parallel] :
         {std::pair<int, std::string>{2, ""}, {3, ""}, {4, ""}, {3, "--parallel fsdp --fsdp-min-params 4000 "}}) {
      SCOPED_TRACE(data + " on " + std::to_string(ranks) + " ranks " + parallel);
      const auto [several, several_losses] = train(data, ranks, parallel);
      EXPECT_EQ(several.integers, one.integers);
      expect_close(several.part("model"), one.part("model"), allowed);
      EXPECT_TRUE(near(several_losses, one_losses, allowed));
    }
  }
}

TEST_F(Ranks, ACheckpointOfFourRanksGoesOnAtOneTwoAndThree) {
  const TemporaryFolder folder;
  const std::string first = kRun + "--batch-size 6 --out " + (folder / "four");
  expect_codes(train_image_on_ranks(4, first + " --max-steps 6", folder), 0);
  const std::pair<int, std::string> ways[] = {{1, "auto"}, {2, "ddp"}, {3, "ddp"}, {2, "fsdp"}};
  const auto out_of = [&](int ranks, const std::string& parallel) {
    return folder / (parallel + std::to_string(ranks));
  };
  for (const auto& [ranks, parallel] : ways) {
    const std::string out = out_of(ranks, parallel);
    std::filesystem::copy(folder / "four", out);
    const auto outcomes = train_image_on_ranks(ranks,
                                               kRun + "--resume auto --fsdp-min-params 4000 --parallel " + parallel +
                                                   " --batch-size " + std::to_string(24 / ranks) + " --out " + out,
                                               folder);
    expect_codes(outcomes, 0);
    EXPECT_THAT(outcomes[0].output, HasSubstr("at epoch 2, step 6"));
  }
  expect_codes(train_image_on_ranks(4, first + " --resume auto", folder), 0);  // resumed, with all four
  const Checkpoint want = load_checkpoint(folder / "four/checkpoint_last.safetensors");
  for (const auto& [ranks, parallel] : ways) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + parallel);
    const std::string out = out_of(ranks, parallel);
    const Checkpoint got = load_checkpoint(out + "/checkpoint_last.safetensors");
    EXPECT_EQ(got.integers, want.integers);
    expect_close(got.part("model"), want.part("model"), kSameTraining);
    expect_close(got.part("optimizer"), want.part("optimizer"), {5e-2, 2e-1});
    EXPECT_TRUE(near(losses(out), losses(folder / "four"), kSameTraining));
  }
}

TEST_F(Ranks, AnotherGlobalBatchIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(train_image(kRun + "--batch-size 16 --max-steps 1 --out " + (folder / "run")).exit_code, 0);
  const auto ranks = train_image_on_ranks(2, kRun + "--batch-size 16 --resume auto --out " + (folder / "run"), folder);
  expect_codes(ranks, 1);
  EXPECT_THAT(ranks[0].output, HasSubstr("was made with 16 images per step, this run has 32 (2 ranks of 16). Use "
                                         "--batch-size 8"));
}

TEST_F(Ranks, OtherFlagsOrImagesOnOneOfThemAreNamed) {
  const TemporaryFolder folder;
  const std::pair<std::string, std::string> ways[] = {
      {"--momentum 0.$RANK",
       "rank 0 has 'momentum = 0.0', rank 1 has 'momentum = 0.1'. Start all ranks with the same flags"},
      {"--data random:10${RANK}x8x8x3",
       "data: the set is not the same on all ranks: at entry 1 rank 0 has '100 images for training', rank 1 has '101 "
       "images for training'. All ranks must read the same images"}};
  for (const auto& [flags, text] : ways) {
    const auto ranks = train_image_on_ranks(2, kRun + "--batch-size 8 " + flags + " --out " + (folder / "run"), folder);
    expect_codes(ranks, 1);
    for (const Outcome& rank : ranks) EXPECT_THAT(rank.output, HasSubstr(text));
  }
}

TEST_F(Ranks, EvaluationCountsEachImageOnce) {
  const TemporaryFolder folder;
  const std::string run = "--data random:101x8x8x3 --model resnet8 --eval-only --workers 0 --backend gloo ";
  const Outcome alone = train_image(run);
  ASSERT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("warning: --eval-only without --weights FILE evaluates random weights"));
  const auto until_speed = [](const std::string& text) {
    const size_t begin = text.find("val loss"), end = text.find(" images/s");
    return begin == std::string::npos ? text : text.substr(begin, text.rfind(", ", end) - begin);
  };
  for (const auto& [ranks, parallel] : {std::pair<int, std::string>{2, "ddp"}, {3, "ddp"}, {3, "fsdp"}}) {
    const auto outcomes = train_image_on_ranks(ranks, run + "--batch-size 11 --parallel " + parallel, folder);
    expect_codes(outcomes, 0);
    EXPECT_EQ(until_speed(outcomes[0].output), until_speed(alone.output));
    EXPECT_THAT(outcomes[0].output, HasSubstr("of 101)"));
    EXPECT_EQ(outcomes[1].output, "");
  }
}

/// Starts two ranks and sends `signal` to rank `to` when the first epoch is done. Sends SIGTERM when rank 0 has printed
/// `until` (if given); returns both outcomes.
std::vector<Outcome> with_signal(int to, int signal, const std::string& more, const TemporaryFolder& folder,
                                 const std::string& until = "") {
  std::vector<Outcome> outcomes;
  std::thread runner([&] {
    outcomes =
        train_image_on_ranks(2, kRun + "--batch-size 4 --epochs 100000 --out " + (folder / "run") + " " + more, folder);
  });
  // A line of metrics: all ranks are past their first epoch, and so have their handlers.
  for (int tries = 0; tries < 1200 && read_text(folder / "run/metrics.jsonl").empty(); ++tries) usleep(50000);
  const pid_t process = std::atoi(read_text(file_of(folder, "pid", to)).c_str());
  if (process > 0) kill(process, signal);
  if (!until.empty()) {
    const std::string log = file_of(folder, "log", 0);
    for (int tries = 0; tries < 1200 && read_text(log).find(until) == std::string::npos; ++tries) usleep(50000);
    if (process > 0) kill(process, SIGTERM);
  }
  runner.join();
  return outcomes;
}

TEST_F(Ranks, ASignalToOneRankStopsAllBehindTheSameStep) {
  for (const int to : {0, 1}) {
    const TemporaryFolder folder;
    const auto ranks = with_signal(to, SIGTERM, "", folder);
    expect_codes(ranks, train::kExitRequeue);
    EXPECT_THAT(ranks[0].output, HasSubstr("stopped by SIGTERM after step "));
    const Checkpoint saved = load_checkpoint(folder / "run/checkpoint_last.safetensors");
    EXPECT_THAT(ranks[0].output, HasSubstr("stopped by SIGTERM after step " + std::to_string(saved.integer("step"))));
  }
}

// All ranks of a sharded model gather the weights that one writes.
TEST_F(Ranks, TheFirstOneAloneMayBeToldToExport) {
  const TemporaryFolder folder;
  const std::string file = folder / "weights.safetensors";
  expect_codes(train_image_on_ranks(2,
                                    kRun + "--batch-size 10 --epochs 1 --parallel fsdp --out " + (folder / "run") +
                                        " $([ $RANK = 0 ] && echo --export " + file + ")",
                                    folder),
               0);
  EXPECT_TRUE(std::filesystem::exists(file));
}

/// Two ranks that wait for a folder which another run has. `commands`: with the ranks' processes as $p0 and $p1.
std::vector<Outcome> ahead_of_the_first_step(const std::string& commands, const TemporaryFolder& folder) {
  std::filesystem::create_directories(folder / "run");
  const auto holder = train::RunLock::hold(folder / "run");
  std::vector<Outcome> outcomes;
  std::thread runner(
      [&] { outcomes = train_image_on_ranks(2, kRun + "--batch-size 4 --out " + (folder / "run"), folder); });
  shell("for i in $(seq 400); do grep -q '^run ' " + file_of(folder, "log", 0) +
        " && break; sleep 0.05; done; p0=$(cat " + file_of(folder, "pid", 0) + ") p1=$(cat " +
        file_of(folder, "pid", 1) + "); " + commands);
  runner.join();
  return outcomes;
}

TEST_F(Ranks, SigtermAheadOfTheFirstStepIsNoFailure) {
  const TemporaryFolder folder;
  const std::string took = folder / "took";
  expect_codes(
      ahead_of_the_first_step("t=$(date +%s%N); kill -TERM $p0 $p1; while kill -0 $p0 || kill -0 $p1; do sleep "
                              "0.01; done 2>&-; echo $((($(date +%s%N) - t) / 1000000)) >" +
                                  took,
                              folder),
      train::kExitRequeue);
  EXPECT_GE(std::atoi(read_text(took).c_str()), 400) << "ms: the others may get theirs later";
}

// A launcher that ends a job which has failed sends it, too.
TEST_F(Ranks, SigtermAfterAFailureIsNoReasonToSubmitAgain) {
  const TemporaryFolder folder;
  const auto ranks =
      ahead_of_the_first_step("kill -KILL $p1; for i in $(seq 600); do grep -q 'has died' " +
                                  file_of(folder, "log", 0) + " && break; sleep 0.05; done; kill -TERM $p0",
                              folder);
  EXPECT_EQ(ranks[0].exit_code, 128 + SIGTERM) << ranks[0].output;
}

TEST_F(Ranks, Usr1SavesOrStops) {
  const TemporaryFolder folder;
  const auto ranks = with_signal(1, SIGUSR1, "--usr1 stop", folder);
  expect_codes(ranks, train::kExitRequeue);
  EXPECT_THAT(ranks[0].output, HasSubstr("stopped by SIGUSR1 after step "));
  const TemporaryFolder other;
  const auto going_on = with_signal(1, SIGUSR1, "--usr1 save", other, "saved ");
  expect_codes(going_on, train::kExitRequeue);
  EXPECT_THAT(going_on[0].output, AllOf(HasSubstr("saved "), HasSubstr("stopped by SIGTERM after step ")));
}

TEST_F(Ranks, ALossThatIsNotFiniteStopsAllAndNamesTheRank) {
  const TemporaryFolder folder;
  for (const std::string parallel : {"ddp", "fsdp"}) {
    const auto ranks = train_image_on_ranks(
        2, kRun + "--batch-size 8 --lr 1e30 --parallel " + parallel + " --out " + (folder / parallel), folder);
    expect_codes(ranks, 1);
    for (const Outcome& rank : ranks)
      EXPECT_THAT(rank.output, AllOf(HasSubstr("loss is not finite ("), HasSubstr(") on rank "),
                                     HasSubstr(" at epoch 1, step "), HasSubstr("the weights")));
  }
}

TEST_F(Ranks, ComeFromWeftRun) {
  const TemporaryFolder folder;
  const Outcome run = shell(std::string(WEFT_RUN) + " --nproc_per_node 2 " + std::string(TRAIN_IMAGE) + " " + kRun +
                            "--batch-size 8 --max-steps 3 --out " + (folder / "run"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("ranks   2 over gloo (RANK and WORLD_SIZE), ddp"),
                                HasSubstr("stopped by --max-steps after step 3")));
}

/// Starts ranks below mpirun. Open MPI's plugins leak.
Outcome mpirun(int ranks, const std::string& arguments) {
  return shell(
      "env ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 "
      "timeout 200 mpirun "
      "--oversubscribe --bind-to none -np " +
      std::to_string(ranks) + " " + std::string(TRAIN_IMAGE) + " " + kRun + arguments);
}

TEST_F(Ranks, ComeFromMpirun) {
  if (shell("command -v mpirun").exit_code != 0) GTEST_SKIP() << "needs mpirun (openmpi-bin)";
  const TemporaryFolder folder;
  const Outcome gloo = mpirun(3, "--batch-size 5 --max-steps 3 --out " + (folder / "gloo"));
  EXPECT_EQ(gloo.exit_code, 0) << gloo.output;
  EXPECT_THAT(gloo.output, HasSubstr("ranks   3 over gloo (Open MPI), ddp"));
}

// The order of sums is that of the ranks, whatever carries them: the same bits.
TEST_F(Ranks, TrainTheSameOverMpiAndGloo) {
  if (!WEFT_HAVE_MPI) GTEST_SKIP() << "needs a build with MPI; this one has its stub";
  if (shell("command -v mpirun").exit_code != 0) GTEST_SKIP() << "needs mpirun (openmpi-bin)";
  const std::string sharded = "--fsdp-min-params 4000 --max-steps 20 --parallel fsdp --fsdp-strategy ";
  const std::pair<int, std::string> ways[] = {{3, "--parallel ddp"},
                                              {3, sharded + "full_shard"},
                                              {3, sharded + "shard_grad_op"},
                                              {4, sharded + "hybrid_shard --fsdp-shard-size 2"},
                                              {3, sharded + "no_shard"}};
  for (const auto& [ranks, flags] : ways) {
    SCOPED_TRACE(flags);
    const TemporaryFolder folder;
    for (const std::string backend : {"gloo", "mpi"}) {
      const Outcome run =
          mpirun(ranks, flags + " --backend " + backend + " --batch-size 5 --out " + (folder / backend));
      ASSERT_EQ(run.exit_code, 0) << run.output;
      EXPECT_THAT(run.output, HasSubstr("over " + backend + " (Open MPI), "));
    }
    const Checkpoint a = load_checkpoint(folder / "gloo/checkpoint_last.safetensors"),
                     b = load_checkpoint(folder / "mpi/checkpoint_last.safetensors");
    expect_close(a.part("model"), b.part("model"), {});
    expect_close(a.part("optimizer"), b.part("optimizer"), {});
    EXPECT_EQ(a.integers, b.integers);
    EXPECT_EQ(a.numbers, b.numbers);
  }
}

}  // namespace weft::tests
