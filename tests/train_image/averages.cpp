// SPDX-License-Identifier: Apache-2.0
// --ema: averages of the weights over the steps.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "tests/support/compare.h"
#include "tests/train_image/ranks.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::string kRun =
    "--data random:96x16x16x3 --model resnet8 --batch-size 16 --augment none --workers 0 --lr 0.05 --mean 0.5 --std "
    "0.25 --backend gloo ";

class Averages : public ::testing::Test {
 protected:
  Checkpoint after(const std::string& out, const std::string& more) {
    const Outcome run = train_image(kRun + more + " --out " + (folder_ / out));
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return load_checkpoint(folder_ / (out + "/checkpoint_last.safetensors"));
  }
  static std::vector<double> numbers(const StateDict& state) {
    std::vector<double> all;
    for (const NamedTensor& entry : state.tensors)
      for (const double value : entry.tensor.to_vector<double>()) all.push_back(value);
    for (const NamedScalar& entry : state.scalars) all.push_back(entry.value);
    return all;
  }
  TemporaryFolder folder_;
};

TEST_F(Averages, LeaveTheTrainingAloneAndGoOnBitForBit) {
  const Checkpoint without = after("without", "--epochs 3 --max-steps 14");
  const Checkpoint whole = after("whole", "--epochs 3 --ema 0.9 --ema-warmup --max-steps 14");
  after("pieces", "--epochs 3 --ema 0.9 --ema-warmup --max-steps 5");
  const Checkpoint pieces = after("pieces", "--epochs 3 --ema 0.9 --ema-warmup --resume auto --max-steps 14");
  EXPECT_EQ(numbers(whole.part("model")), numbers(without.part("model")));
  EXPECT_EQ(numbers(whole.part("optimizer")), numbers(without.part("optimizer")));
  for (const char* part : {"model", "optimizer", "ema", "ema_buffers"})
    EXPECT_EQ(numbers(pieces.part(part)), numbers(whole.part(part))) << part;
  EXPECT_EQ(whole.part("ema").scalar("updates"), 14);
  EXPECT_TRUE(whole.part("ema_buffers").tensor("bn1.running_mean.ema").defined());
}

TEST_F(Averages, AreWhatIsValidatedAndExported) {
  const std::string file = folder_ / "weights.safetensors";
  const Checkpoint end = after("run", "--epochs 2 --ema 0.9 --export " + file);
  const StateDict exported = read_safetensors(file).state;
  EXPECT_EQ(exported.tensor("linear.weight").to_vector<float>(),
            end.part("ema").tensor("linear.weight.ema").to_vector<float>());
  EXPECT_EQ(exported.tensor("bn1.running_var").to_vector<float>(),
            end.part("ema_buffers").tensor("bn1.running_var.ema").to_vector<float>());
  EXPECT_NE(exported.tensor("linear.weight").to_vector<float>(),
            end.part("model").tensor("linear.weight").to_vector<float>());
  const Outcome again = train_image(kRun + "--eval-only --weights " + file);
  const auto summary = nlohmann::json::parse(read_text(folder_ / "run/summary.json"));
  char accuracy[32];
  std::snprintf(accuracy, sizeof accuracy, "val loss %.4f accuracy %.2f%%", summary["val_loss"].get<double>(),
                100 * summary["val_accuracy"].get<double>());
  EXPECT_THAT(again.output, HasSubstr(accuracy));
}

TEST_F(Averages, OfACheckpointWithoutThem) {
  after("run", "--epochs 2 --max-steps 2");
  const Outcome run = train_image(kRun + "--epochs 2 --ema 0.9 --resume auto --out " + (folder_ / "run"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output,
              HasSubstr("checkpoint_last.safetensors was made without --ema: its averages cannot be resumed"));
}

TEST_F(Averages, OfTwoRanksAreThoseOfOne) {
  if (!WEFT_HAVE_RANKS) GTEST_SKIP() << "needs a build with Gloo and libcrypto; this one has a stub";
  const std::string more = "--epochs 1 --ema 0.5 --sync-batch-norm --max-steps 1 ";
  const Checkpoint one = after("one", more);
  for (const std::string parallel : {"ddp", "fsdp --fsdp-min-params 4000"}) {
    SCOPED_TRACE(parallel);
    const std::string out = folder_ / parallel.substr(0, 4);
    const auto ranks =
        train_image_on_ranks(2, kRun + more + "--batch-size 8 --parallel " + parallel + " --out " + out, folder_);
    for (const Outcome& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.output;
    const Checkpoint two = load_checkpoint(out + "/checkpoint_last.safetensors");
    EXPECT_TRUE(near(numbers(two.part("ema")), numbers(one.part("ema")), {2e-6, 2e-6}));
    EXPECT_TRUE(near(numbers(two.part("ema_buffers")), numbers(one.part("ema_buffers")), {2e-6, 2e-6}));
  }
}

}  // namespace
}  // namespace weft::tests
