// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "io/checkpoint.h"
#include "tests/train_image/program.h"
#include "train/exit.h"
#include "train/record/run_folder.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

// A small net on noise: what counts is that every bit of state comes back.
const std::string kRun =
    "--data random:200x16x16x3 --model resnet8 --batch-size 16 --augment cifar --epochs 10 --warmup 1 --mixup 0.2 ";

/// The checkpoint after training to each of `stops` in a process of its own.
Checkpoint checkpoint_after(const std::string& out, const std::vector<int>& stops, const std::string& more) {
  for (const int stop : stops) {
    const Outcome run =
        train_image(kRun + more + " --resume auto --out " + out + " --max-steps " + std::to_string(stop));
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("stopped by --max-steps after step " + std::to_string(stop)));
  }
  return load_checkpoint(out + "/checkpoint_last.safetensors");
}

void expect_same_bits(const StateDict& a, const StateDict& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor x = a.tensors[i].tensor.contiguous(), y = b.tensors[i].tensor.contiguous();
    ASSERT_EQ(x.nbytes(), y.nbytes()) << a.tensors[i].name;
    EXPECT_EQ(std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()), 0) << a.tensors[i].name << " differs";
  }
}

TEST(Resume, SixtyAndFortyStepsAreAHundredBitForBit) {
  for (const std::string more : {"--optimizer sgd", "--optimizer adamw --lr 0.001 --workers 0 --precision bf16"}) {
    const TemporaryFolder folder;
    const Checkpoint whole = checkpoint_after(folder / "whole", {100}, more);
    const Checkpoint pieces = checkpoint_after(folder / "pieces", {60, 100}, more);
    expect_same_bits(whole.part("model"), pieces.part("model"));
    expect_same_bits(whole.part("optimizer"), pieces.part("optimizer"));
    EXPECT_EQ(whole.integers, pieces.integers);
    EXPECT_EQ(whole.numbers, pieces.numbers);
  }
}

TEST(Resume, NumberOfWorkersChangesNothing) {
  const TemporaryFolder folder;
  const Checkpoint none = checkpoint_after(folder / "none", {20}, "--workers 0");
  const Checkpoint three = checkpoint_after(folder / "three", {20}, "--workers 3");
  expect_same_bits(none.part("model"), three.part("model"));
}

TEST(Resume, EveryAugmentationIsAFunctionOfEpochAndImage) {
  for (const std::string augment : {"autoaugment:svhn", "cifar+randaugment:2,9", "flip+trivialaugment",
                                    "imagenet:16 --crop-scale 0.3,1 --interpolation bicubic"}) {
    const std::string more =
        "--augment " + augment + " --color-jitter 0.4,0.4,0.4,0.1 --random-erasing 0.5 --cutmix 1 ";
    const TemporaryFolder folder;
    const Checkpoint whole = checkpoint_after(folder / "whole", {30}, more + "--workers 0");
    const Checkpoint pieces = checkpoint_after(folder / "pieces", {8, 30}, more + "--workers 3");
    expect_same_bits(whole.part("model"), pieces.part("model"));
  }
}

TEST(Augmentation, IsTheOneAskedForWhateverTheImageSize) {
  const auto losses = [](const std::string& more) {
    const TemporaryFolder folder;
    const Outcome run =
        train_image(kRun + "--image-size 20 --max-steps 2 --log-interval 1 " + more + " --out " + (folder / "run"));
    EXPECT_EQ(run.exit_code, 0) << run.output;
    std::vector<double> found;
    std::istringstream lines(read_text(folder / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      found.push_back(nlohmann::json::parse(line).at("loss").get<double>());
    return found;
  };
  std::set<std::vector<double>> all;
  for (const std::string augment : {"none", "flip", "shapes", "cifar"}) all.insert(losses("--augment " + augment));
  EXPECT_EQ(all.size(), 4u);
}

TEST(Resume, AFinishedRunStaysAsItIs) {
  const TemporaryFolder folder;
  const std::string run = kRun + "--epochs 1 --warmup 0 --resume auto --out " + (folder / "run");
  ASSERT_EQ(train_image(run).exit_code, 0);
  const std::string summary = read_text(folder / "run/summary.json");
  const Outcome again = train_image(run);
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("all 1 epochs are done; raise --epochs to continue"));
  EXPECT_EQ(read_text(folder / "run/summary.json"), summary);
}

/// The whole number of this name in the checkpoint or summary.json.
int64_t best_epoch_in(const std::string& path) {
  if (path.ends_with(".json")) return nlohmann::json::parse(read_text(path))["best_epoch"];
  return load_checkpoint(path).integer("best_epoch");
}

// A kill between the best checkpoint and the last one: the best is an epoch ahead.
TEST(Resume, BestLastAndSummaryAgreeAfterAKillBetweenThem) {
  const TemporaryFolder folder;
  const std::string out = folder / "run", last = out + "/checkpoint_last.safetensors",
                    best = out + "/checkpoint_best.safetensors", summary = out + "/summary.json";
  checkpoint_after(out, {13}, "");
  const int64_t first = best_epoch_in(best);
  ASSERT_EQ(first, 1);
  std::filesystem::copy(last, folder / "first");
  // A best checkpoint of an epoch that the last one does not know.
  Checkpoint ahead = load_checkpoint(best);
  ahead.integers["best_epoch"] = 2;
  save_checkpoint(best, ahead);
  const Outcome run = train_image(kRun + "--resume auto --out " + out + " --max-steps 26");
  EXPECT_THAT(run.output,
              HasSubstr("no checkpoint_best of epoch 1 in " + out + ": the best of the epochs from here on"));
  EXPECT_EQ(best_epoch_in(best), 2);
  EXPECT_EQ(best_epoch_in(last), 2);
  EXPECT_EQ(best_epoch_in(summary), 2);
}

TEST(Resume, ADamagedLastCheckpointIsPassedOver) {
  const TemporaryFolder folder;
  const std::string out = folder / "run", last = out + "/checkpoint_last.safetensors";
  const Checkpoint whole = checkpoint_after(folder / "whole", {12}, "");
  checkpoint_after(out, {5, 8}, "");
  std::string bytes = read_text(last);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(last, std::ios::binary) << bytes;
  const Outcome run = train_image(kRun + "--resume auto --out " + out + " --max-steps 12");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("; going on from " + out + "/checkpoint_last.1.safetensors\n"));
  EXPECT_THAT(run.output, HasSubstr("at epoch 1, step 5"));
  expect_same_bits(whole.part("model"), load_checkpoint(last).part("model"));

  std::filesystem::remove(last);
  std::filesystem::remove(out + "/checkpoint_last.1.safetensors");
  std::filesystem::create_symlink("nowhere", last);
  const Outcome link = train_image(kRun + "--resume auto --out " + out + " --max-steps 12");
  EXPECT_EQ(link.exit_code, 1);
  EXPECT_THAT(link.output, HasSubstr("got a link to a file that is not there"));
}

TEST(Resume, LinesOfARunThatDiedBeforeItsFirstCheckpointGo) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  std::filesystem::create_directories(out);
  std::ofstream(out + "/metrics.jsonl") << "{\"step\":13,\"split\":\"train\",\"loss\":9}\n";
  ASSERT_EQ(train_image(kRun + "--resume auto --max-steps 13 --out " + out).exit_code, 0);
  EXPECT_THAT(read_text(out + "/metrics.jsonl"), Not(HasSubstr("\"loss\":9}")));
}

TEST(Resume, SaysWhatChangedAndRefusesWhatCannotChange) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  checkpoint_after(out, {20}, "");
  const auto resumed = [&](const std::string& more) {
    return train_image(kRun + more + " --resume auto --out " + out + " --max-steps 21 ");
  };
  const auto refuses = [&](const std::string& more, const std::string& text) {
    const Outcome run = resumed(more);
    EXPECT_EQ(run.exit_code, 1) << more;
    EXPECT_THAT(run.output, HasSubstr(text)) << more;
    EXPECT_EQ(load_checkpoint(out + "/checkpoint_last.safetensors").integer("step"), 20);
  };
  refuses("--seed 7", "is of the midst of an epoch, whose order of images depends on --seed (1 -> 7)");
  refuses("--optimizer adam",
          "holds the state of another optimizer (\"sgd\" -> \"adam\"). To change it, start a new run with --weights ");
  refuses("--data random:100x16x16x3", "was made with 13 steps per epoch, this run has 7: another data set.");
  const Outcome changed = resumed("--lr 0.05 --schedule constant --augment none --epochs 20 --workers 0");
  EXPECT_EQ(changed.exit_code, 0) << changed.output;
  EXPECT_THAT(changed.output,
              HasSubstr("with other settings than the checkpoint: augment \"cifar\" -> \"none\", epochs 10 "
                        "-> 20, lr 0.1 -> 0.05, schedule \"cosine\" -> \"constant\"\n"));
  const Outcome same = train_image(kRun +
                                   "--lr 0.05 --schedule constant --augment none --epochs 20 --workers 1 --resume auto "
                                   "--out " +
                                   out + " --max-steps 22");
  EXPECT_THAT(same.output, Not(HasSubstr("other settings"))) << same.output;
}

TEST(Resume, SigtermFinishesTheStepSavesAndSaysHowToGoOn) {
  const TemporaryFolder folder;
  const std::string out = folder / "run", log = folder / "log";
  // The shell prints the program's process id, then waits for it.
  Outcome run;
  std::thread waiter([&] {
    run = shell("{ " + std::string(TRAIN_IMAGE) + ' ' + kRun + "--epochs 100000 --out " + out + " & echo $! > " + log +
                "; wait $!; }");
  });
  pid_t process = 0;
  for (int tries = 0; tries < 600 && !std::filesystem::exists(out + "/config.toml"); ++tries) usleep(50000);
  process = static_cast<pid_t>(std::atoi(read_text(log).c_str()));
  ASSERT_GT(process, 0);
  kill(process, SIGTERM);
  waiter.join();
  EXPECT_EQ(run.exit_code, train::kExitRequeue) << run.output;
  EXPECT_THAT(run.output, HasSubstr("stopped by SIGTERM after step"));
  EXPECT_THAT(run.output, HasSubstr("--resume auto"));
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoint_last.safetensors"));
  EXPECT_THAT(read_text(out + "/summary.json"), HasSubstr("\"finished\": false"));
}

// Work before the first step may take long: here it waits for a folder that is locked.
TEST(Resume, SigtermAheadOfTheFirstStepIsNoFailure) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  std::filesystem::create_directories(out);
  const auto holder = train::RunLock::hold(out);
  ASSERT_TRUE(holder);
  const std::string program =
      std::string(TRAIN_IMAGE) + ' ' + kRun + "--out " + out + " > " + (folder / "log") + " 2>&1";
  const Outcome run = shell(program + " & run=$!; for i in $(seq 200); do grep -q '^run ' " + (folder / "log") +
                            " && break; sleep 0.05; done; kill -TERM $run; wait $run");
  EXPECT_EQ(run.exit_code, train::kExitRequeue) << read_text(folder / "log");
  EXPECT_THAT(read_text(folder / "log"), HasSubstr("SIGTERM outside of the training loop"));
}

}  // namespace
}  // namespace weft::tests
