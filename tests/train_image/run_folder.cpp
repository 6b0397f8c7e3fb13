// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>

#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "tests/train_image/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

TEST(RunFolder, HoldsEverythingOfARun) {
  const TemporaryFolder folder;
  const std::string out = folder / "run", weights = folder / "model.safetensors";
  const std::string data = "--data random:96x16x16x3 --model resnet8 --batch-size 32 ";
  const Outcome run = train_image(data + "--epochs 2 --log-interval 3 --export " + weights + " --summary --out " + out);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("epoch 2/2"));
  EXPECT_THAT(run.output, HasSubstr("layer1.0.conv1"));

  const std::string metrics = read_text(out + "/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 6);  // steps, train and val of two epochs
  for (const char* key : {"time", "epoch", "step", "split", "loss", "accuracy", "lr", "images_per_second", "data_wait",
                          "peak_tensor_bytes", "gradient_norm"})
    EXPECT_THAT(metrics, HasSubstr(std::string("\"") + key + "\":"));
  const std::string summary = read_text(out + "/summary.json");
  for (const char* key : {"val_accuracy", "best_epoch", "images_per_second", "peak_memory_bytes"})
    EXPECT_THAT(summary, HasSubstr(std::string("\"") + key + "\":"));
  bool events = false;
  for (const auto& entry : std::filesystem::directory_iterator(out))
    events |= entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0;
  EXPECT_TRUE(events);

  // The written configuration and the exported weights give the same evaluation as the run saw last.
  const Outcome evaluation =
      train_image("--config " + out + "/config.toml --export '' --weights " + weights + " --eval-only");
  EXPECT_EQ(evaluation.exit_code, 0) << evaluation.output;
  EXPECT_THAT(evaluation.output, HasSubstr("accuracy"));
}

TEST(RunFolder, KeepsItsRunWhereTheOneThatOverwritesItCannotBegin) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const std::string line =
      "--data random:96x16x16x3 --model resnet8 --batch-size 16 --device cpu --max-steps 1 "
      "--overwrite --out " +
      out + ' ';
  ASSERT_EQ(train_image(line).exit_code, 0);
  for (const std::string wrong : {"--graph on", "--profile-steps 8:5", "--resume /nowhere.safetensors"}) {
    EXPECT_NE(train_image(line + wrong).exit_code, 0) << wrong;
    EXPECT_EQ(load_checkpoint(out + "/checkpoint_last.safetensors").integer("step"), 1) << wrong;
  }
}

TEST(RunFolder, ACheckpointEveryFewStepsIfAskedFor) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const std::string six_steps = "--data random:96x16x16x3 --model resnet8 --batch-size 16 --epochs 1 ";
  const Outcome run = train_image(six_steps + "--save-interval 4 --out " + out);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::filesystem::path last = out + "/checkpoint_last.safetensors";
  EXPECT_EQ(load_checkpoint(last).integer("step"), 6);
  EXPECT_EQ(load_checkpoint(kept_file(last, 1)).integer("step"), 4);
}

// Published ResNet-20 weights reach the accuracy that an independent forward pass in NumPy counted: 8,989 of 9,806.
TEST(RunFolder, PublishedResNet20WeightsReachTheirAccuracy) {
  const std::string source = std::string(SHARED_DATA) + "/cifar-10-pretrained";
  if (!std::filesystem::exists(source + "/test_batch.bin.xz"))
    GTEST_SKIP() << "real data is missing: " << source << "/test_batch.bin.xz";
  const TemporaryFolder folder;
  ASSERT_EQ(shell("xz -dc " + source + "/test_batch.bin.xz > " + (folder / "test_batch.bin")).exit_code, 0);
  const Outcome run =
      train_image("--data cifar10:" + (folder / "") + " --model resnet20 --weights " + source +
                  "/resnet20-12fca82f.safetensors --mean .485,.456,.406 --std .229,.224,.225 --eval-only");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("accuracy 91.67% (8989 of 9806)"));
}

}  // namespace
}  // namespace weft::tests
