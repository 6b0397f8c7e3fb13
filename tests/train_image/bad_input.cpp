// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>

#include "io/checkpoint.h"
#include "tests/train_image/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::string kSmall = "--data random:64x16x16x3 --model resnet8 --batch-size 16 --epochs 1 ";

/// One clear line, the exit code, and no trace of a crash.
void expect_refusal(const std::string& arguments, int exit_code, const std::string& text) {
  const TemporaryFolder folder;
  const Outcome run = train_image(arguments + " --out " + (folder / "run"));
  EXPECT_EQ(run.exit_code, exit_code) << arguments << '\n' << run.output;
  EXPECT_THAT(run.output, HasSubstr("train_image: error: ")) << arguments;
  EXPECT_THAT(run.output, HasSubstr(text)) << arguments;
  const size_t line = run.output.find("train_image: error: ");
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(std::count(run.output.begin() + static_cast<long>(line), run.output.end(), '\n'), 1) << run.output;
}

TEST(BadInput, UnknownFlagSuggestsTheNearest) { expect_refusal("--batchsize 3", 2, "--batch-size"); }
TEST(BadInput, UnknownChoiceSuggestsTheNearest) { expect_refusal(kSmall + "--optimizer sdg", 2, "sgd"); }
TEST(BadInput, UnknownModelSuggestsTheNearest) {
  expect_refusal("--data random:64x16x16x3 --model resnet19 --batch-size 16", 1, "resnet18");
}
TEST(BadInput, UnknownDataSuggestsTheNearest) { expect_refusal("--data cifar11:/nowhere", 1, "cifar10"); }
TEST(BadInput, MissingFolder) { expect_refusal("--data cifar10:/nowhere/at/all", 1, "/nowhere/at/all"); }
TEST(BadInput, ZeroBatch) { expect_refusal("--data random:64x16x16x3 --batch-size 0", 2, "batch-size"); }
TEST(BadInput, BatchLargerThanTheSet) {
  expect_refusal("--data random:64x16x16x3 --model resnet8 --batch-size 65", 1, "65");
}
TEST(BadInput, UnknownDevice) {
  expect_refusal(kSmall + "--device tpu", 1, "expected cpu, cuda, cuda:N or emulated, got 'tpu'");
}
TEST(BadInput, DecodingOnAGpuBesideTheCpu) {
  expect_refusal(kSmall + "--device cpu --decode-on gpu", 2, "--decode-on gpu: expected --device cuda, got cpu");
}
TEST(BadInput, EightBitsOfANetWithoutBlocks) {
  expect_refusal(kSmall + "--precision fp8", 2,
                 "--precision fp8: expected a model of transformer blocks, such as vit_small16, got resnet8");
}
TEST(BadInput, GpuThatIsNotThere) { expect_refusal(kSmall + "--device cuda:63", 1, "cuda:63"); }
TEST(BadInput, MissingWeights) { expect_refusal(kSmall + "--weights /nowhere.safetensors", 1, "/nowhere.safetensors"); }
TEST(BadInput, MissingConfig) { expect_refusal("--config /nowhere.toml", 2, "/nowhere.toml"); }
TEST(BadInput, WrongNumberOfMeans) { expect_refusal(kSmall + "--mean 0.5,0.5", 2, "--mean"); }
TEST(BadInput, MeansOfBytes) {
  expect_refusal(kSmall + "--mean 123.7,116.3,103.5", 2,
                 "--mean: expected numbers from 0 to 1, where white is 1, got 123.7. Divide those of bytes by 255");
  expect_refusal(kSmall + "--std 58.4,57.1,57.4", 2, "--std: expected numbers from 0 to 1, where white is 1, got 58.4");
  expect_refusal(kSmall + "--mean -0.1", 2, "--mean: expected numbers from 0 to 1, where white is 1, got -0.1");
}

TEST(BadInput, RatesThatLearnLittleAreSaid) {
  const TemporaryFolder folder;
  const Outcome run = train_image(kSmall + "--lr 0 --warmup 1 --out " + (folder / "run"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("warning: the learning rate is 0, so nothing is learned\n"));
  EXPECT_THAT(run.output, HasSubstr("warning: --warmup 1 is not shorter than the run of 1 epochs: it is cut"));
}

TEST(BadInput, EpochsInThePlaceOfShares) {
  expect_refusal(kSmall + "--schedule step --milestones 30,60", 2,
                 "--milestones: expected shares of the run, 0 to 1, got 30");
}

TEST(BadInput, FlagsThatWouldCountForNothing) {
  expect_refusal(kSmall + "--milestones 0.75,0.5", 2, "--milestones: expected shares that rise");
  expect_refusal(kSmall + "--eval-only --resume auto", 2, "--eval-only: evaluates --weights FILE");
  expect_refusal(kSmall + "--schedule onecycle --warmup 1", 2, "--warmup: expected another --schedule");
  expect_refusal(kSmall + "--ema-warmup", 2, "--ema-warmup: needs --ema");
}

TEST(BadInput, Augmentation) {
  expect_refusal(kSmall + "--augment cifr", 2, "--augment: unknown name 'cifr'. Did you mean 'cifar'?");
  expect_refusal(kSmall + "--augment autoaugment:cifar11", 2, "Did you mean 'cifar10'?");
  expect_refusal(kSmall + "--augment randaugment:2,31", 2, "N from 1 to 16 and M from 0 to 30, got 'randaugment:2,31'");
  expect_refusal(kSmall + "--augment trivialaugment:3", 2, "it has nothing to tune");
  expect_refusal(kSmall + "--augment flip+randaugmnt", 2, "unknown policy 'randaugmnt'. Did you mean 'randaugment'?");
  expect_refusal(kSmall + "--color-jitter 0.4,0.4,0.4", 2, "--color-jitter");
  expect_refusal(kSmall + "--color-jitter 0.4,0.4,0.4,0.6", 2, "a hue of at most 0.5, got 0.6");
  expect_refusal(kSmall + "--color-jitter 0.4,-1,0.4,0", 2, "numbers of at least 0, got -1");
  expect_refusal(kSmall + "--random-erasing 1.5", 2, "--random-erasing");
  expect_refusal(kSmall + "--mixup -1", 2, "--mixup");
  expect_refusal(kSmall + "--interpolation nearest", 2, "bilinear");
  expect_refusal(kSmall + "--augment imagenet:16 --crop-scale 0.5,0.1", 2, "--crop-scale: expected two numbers");
  expect_refusal(kSmall + "--augment cifar --crop-scale 0.1,1", 2,
                 "--crop-scale: expected --augment imagenet, got cifar");
}

TEST(BadInput, TruncatedDataFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "test_batch.bin", std::ios::binary) << std::string(3073 * 4, '\1');
  std::ofstream(folder / "data_batch_1.bin", std::ios::binary) << std::string(3073 * 4 - 1, '\1');
  expect_refusal("--data cifar10:" + (folder / ""), 1, "data_batch_1.bin");
}

TEST(BadInput, LabelOutOfRangeNamesTheRecord) {
  const TemporaryFolder folder;
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    std::string records(3073 * 3, '\1');
    records[3073] = 77;
    std::ofstream(folder / name, std::ios::binary) << records;
  }
  expect_refusal("--data cifar10:" + (folder / ""), 1, "77");
}

TEST(BadInput, FolderWithoutClasses) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "train");
  std::filesystem::create_directories(folder / "val");
  expect_refusal("--data folder:" + (folder / ""), 1, "class");
}

TEST(BadInput, LossThatIsNotFiniteSaysWhereItBegan) {
  expect_refusal(kSmall + "--lr 1e30 --epochs 5", 1, "loss is not finite");
  expect_refusal(kSmall + "--lr 1e30 --epochs 5", 1, "step 2: the data and the weights are finite (up to ");
  expect_refusal(kSmall + "--lr 1e30 --epochs 5", 1, "Lower --lr");
}

TEST(BadInput, CheckpointOfAnotherModelOrDamaged) {
  const TemporaryFolder folder;
  const Outcome made = train_image(kSmall + "--max-steps 1 --out " + (folder / "first"));
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const std::string file = folder / "first/checkpoint_last.safetensors";
  expect_refusal("--data random:64x16x16x3 --model resnet20 --batch-size 16 --resume " + file, 1,
                 "is of model 'resnet8', this run trains 'resnet20'");
  expect_refusal("--data random:64x16x16x3 --model resnet8 --batch-size 32 --resume " + file, 1, "--batch-size 16");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  expect_refusal(kSmall + "--resume " + file, 1, "checkpoint_last.safetensors");
  expect_refusal(kSmall + "--resume " + (folder / "none.safetensors"), 1, "none.safetensors");
}

TEST(BadInput, FullDiskKeepsTheOldCheckpoint) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  ASSERT_EQ(train_image(kSmall + "--max-steps 1 --out " + out).exit_code, 0);
  const std::string before = read_text(out + "/checkpoint_last.safetensors");
  // A limit on file sizes stands for the full disk: writing fails half way through the new file.
  const Outcome full = shell("trap '' XFSZ; ulimit -f 100; " + std::string(TRAIN_IMAGE) + ' ' + kSmall +
                             "--resume auto --max-steps 2 --out " + out);
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output, HasSubstr("checkpoint_last.safetensors"));
  EXPECT_EQ(read_text(out + "/checkpoint_last.safetensors"), before);
  EXPECT_EQ(load_checkpoint(out + "/checkpoint_last.safetensors").integer("step"), 1);
}

}  // namespace
}  // namespace weft::tests
