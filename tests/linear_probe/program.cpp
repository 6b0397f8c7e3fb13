// SPDX-License-Identifier: Apache-2.0
// linear_probe as its users start it, on a transformer and images small enough for a test.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "io/safetensors.h"
#include "tests/linear_probe/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// 44 images: neither 16 nor two ranks of 8 divide them.
const std::string kSmall = "--data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -e 2 -lr 1e-3 ";

const std::string kAccuracy = R"(\{'validation accuracy': tensor\([0-9]+\.[0-9]{4}(, device='cuda:0')?\)\})";

TEST(LinearProbe, PrintsTheLinesOfTheWorkflowAndKeepsARunFolder) {
  const TemporaryFolder folder;
  const Outcome run = probe(kSmall + "--batch_size 16", folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(lines(run.output, "0 linear probe").size(), 1u) << run.output;
  EXPECT_EQ(lines(run.output, "0 finetuning").size(), 1u);
  EXPECT_EQ(lines(run.output, "0 epoch").size(), 4u);
  EXPECT_EQ(lines(run.output, kAccuracy).size(), 4u) << run.output;

  std::istringstream metrics(read_text(folder / "run/metrics.jsonl"));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(metrics, line);) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i]["epoch"], i + 1);
    EXPECT_EQ(rows[i]["lr"], i < 2 ? 1e-3 : 1e-3 / 8);
  }
  const auto summary = nlohmann::json::parse(read_text(folder / "run/summary.json"));
  EXPECT_EQ(summary["finetune_accuracy"], rows[3]["accuracy"]);
  EXPECT_EQ(summary["probe_accuracy"], rows[1]["accuracy"]);
  // Fine-tuning holds the weights, their gradients and two moments; the probe of kept features little beside the
  // weights.
  const int64_t weights = 4 * 2'600'000;  // vit_tiny4 has 2.69 million
  EXPECT_GT(summary["finetune_peak_tensor_bytes"], 4 * weights);
  EXPECT_GT(summary["probe_peak_tensor_bytes"], weights);
  EXPECT_LT(summary["probe_peak_tensor_bytes"], summary["finetune_peak_tensor_bytes"]);
  const StateDict tuned = read_safetensors(folder / "run/finetuned.safetensors").state;
  for (const char* name : {"run/finetuned.safetensors", "run/probe.safetensors"})
    EXPECT_THAT(read_safetensors(folder / name).metadata.at("class_names"), HasSubstr(R"(["0","1",)")) << name;
  EXPECT_THAT(read_text(folder / "run/classes.txt"), HasSubstr("0\t0\n1\t1\n"));
  EXPECT_TRUE(tuned.tensor("m.blocks.5.attn.qkv.weight").defined());
  EXPECT_TRUE(tuned.tensor("linear.weight").defined());
}

TEST(LinearProbe, KeptFeaturesChangeNotABit) {
  const TemporaryFolder folder;
  ASSERT_EQ(probe(kSmall + "-b 16 --cache-features on", folder, "on").exit_code, 0);
  ASSERT_EQ(probe(kSmall + "-b 16 --cache-features off", folder, "off").exit_code, 0);
  EXPECT_EQ(read_text(folder / "on/probe.safetensors"), read_text(folder / "off/probe.safetensors"));
  EXPECT_EQ(read_text(folder / "on/finetuned.safetensors"), read_text(folder / "off/finetuned.safetensors"));
}

TEST(LinearProbe, AGraphChangesNotABit) {
  if (!WEFT_RUNS_EMULATED) GTEST_SKIP() << "needs weft-emulate, and PTX and a shared CUDA runtime in this build";
  const TemporaryFolder folder;
  const std::string flags = "--data random:8x32x32x3 --model vit_tiny4 -b 2 -e 1 --phases finetune --workers 0 ";
  for (const std::string graph : {"on", "off"})
    ASSERT_EQ(probe(flags + "--device emulated --graph " + graph, folder, graph).exit_code, 0);
  EXPECT_EQ(read_text(folder / "on/finetuned.safetensors"), read_text(folder / "off/finetuned.safetensors"));
}

TEST(LinearProbe, AFinishedRunIsOverwrittenOnRequestOnly) {
  const TemporaryFolder folder;
  const std::string flags = "--data random:8x32x32x3 --model vit_tiny4 -b 8 -e 1 --precision f32 --workers 0 ";
  ASSERT_EQ(probe(flags, folder).exit_code, 0);
  const std::string tuned = read_text(folder / "run/finetuned.safetensors"),
                    config = read_text(folder / "run/config.toml");
  const Outcome again = probe(flags + "--phases probe", folder);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.output,
              HasSubstr("linear_probe: error: run folder: expected a new folder, got " + (folder / "run") +
                        " with checkpoint_last.safetensors of another run. --resume auto continues it, "
                        "--out names another folder, --overwrite replaces it"));
  EXPECT_EQ(read_text(folder / "run/finetuned.safetensors"), tuned);
  EXPECT_EQ(read_text(folder / "run/config.toml"), config);
  EXPECT_EQ(probe(flags + "--resume " + (folder / "run/checkpoint_last.safetensors"), folder).exit_code, 0);
  // Nothing of the first run is left beside the second one's.
  ASSERT_EQ(probe(flags + "--phases probe --overwrite", folder).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "run/finetuned.safetensors"));
  const std::string metrics = read_text(folder / "run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 1);
  EXPECT_THAT(read_text(folder / "run/config.toml"), Not(HasSubstr("overwrite")))
      << "who takes it does not ask for that";
}

TEST(LinearProbe, ResizesSmallImagesForALargeInput) {
  const TemporaryFolder folder;
  const Outcome run = probe(
      "--data random:4x32x32x3 --model vit_tiny4 --image-size 56 -b 4 -e 1 --phases probe --precision f32 --workers 0",
      folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("shortest edge 64, centre 56x56"));
}

TEST(LinearProbe, TakesABackboneThatTrainImageWrote) {
  const TemporaryFolder folder;
  const Outcome trained = shell(
      TRAIN_IMAGE
      " --data random:16x32x32x3 --model vit_tiny4 --epochs 1 --batch-size 8 --lr 0.001 --augment none --export " +
      (folder / "vit.safetensors") + " --out " + (folder / "train"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const std::string frozen =
      kSmall + "-b 16 --phases probe --cache-features off --weights " + (folder / "vit.safetensors");
  const Outcome run = probe(frozen, folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::string of_run = "--data random:8x32x32x3 --model vit_tiny4 --precision f32 --dry-run --weights " +
                             (folder / "train/checkpoint_last.safetensors") + " --weights-key ";
  EXPECT_EQ(probe(of_run + "model", folder, "key").exit_code, 0);
  EXPECT_THAT(probe(of_run + "ema", folder, "key").output, testing::HasSubstr("expected a part 'ema', got model"));

  // Fine-tuned at a rate of 0, the backbone is that of the file.
  ASSERT_EQ(
      probe("--data random:8x32x32x3 --model vit_tiny4 --precision f32 -e 1 -b 8 -lr 0 --phases finetune --weights " +
                (folder / "vit.safetensors"),
            folder, "still")
          .exit_code,
      0);
  const StateDict file = read_safetensors(folder / "vit.safetensors").state;
  const StateDict tuned = read_safetensors(folder / "still/finetuned.safetensors").state;
  EXPECT_EQ(tuned.tensor("m.blocks.3.mlp.fc1.weight").to_vector<float>(),
            file.tensor("blocks.3.mlp.fc1.weight").to_vector<float>());
}

#if WEFT_HAVE_RANKS
TEST(LinearProbe, TwoRanksTrainTheSameShardedOrNot) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  ASSERT_EQ(probe(kSmall + "-b 16", folder, "one").exit_code, 0);
  const Outcome sharded = probe_on_two(kSmall + "-b 8 --min-num-params 100000", folder, "fsdp");
  ASSERT_EQ(sharded.exit_code, 0) << sharded.output;
  for (const char* line : {"0 linear probe", "1 linear probe", "0 finetuning", "1 finetuning"})
    EXPECT_EQ(lines(sharded.output, line).size(), 1u) << line << '\n' << sharded.output;
  EXPECT_EQ(lines(sharded.output, kAccuracy).size(), 4u) << sharded.output;
  const Outcome replicated = probe_on_two(kSmall + "-b 8 --parallel ddp", folder, "ddp");
  ASSERT_EQ(replicated.exit_code, 0) << replicated.output;

  // Adam moves a weight by about the rate in each of 6 steps; a gradient of about 0 may go either way.
  const auto classifier = [&](const std::string& run) {
    return read_safetensors(folder / (run + "/probe.safetensors")).state.tensor("weight").to_vector<double>();
  };
  const std::vector<double> one = classifier("one");
  for (const char* run : {"fsdp", "ddp"}) {
    const std::vector<double> two = classifier(run);
    ASSERT_EQ(two.size(), one.size());
    double apart = 0;
    for (size_t i = 0; i < one.size(); ++i) apart += std::abs(one[i] - two[i]);
    EXPECT_LT(apart / static_cast<double>(one.size()), 1e-5) << run;
  }
}

// 37 images in steps of 12: in the last one, two of three ranks have none.
TEST(LinearProbe, ThreeRanksTrainEachImageOnce) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  const std::string flags = "--data random:37x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -e 1 -lr 1e-3 ";
  ASSERT_EQ(probe(flags + "-b 12", folder, "one").exit_code, 0);
  const auto loss = [&](const std::string& run) {
    return nlohmann::json::parse(read_text(folder / (run + "/summary.json")))["finetune_train_loss"].get<double>();
  };
  for (const std::string parallel : {"ddp", "fsdp --min-num-params 100000"}) {
    const std::string out = parallel.substr(0, 4);
    const Outcome three = probe_on(3, flags + "-b 4 --parallel " + parallel, folder, out);
    ASSERT_EQ(three.exit_code, 0) << three.output;
    // A mean of 37 losses of order 5 in another order. A repeated image would move it by some 1e-2.
    EXPECT_NEAR(loss(out), loss("one"), 1e-4) << parallel;
  }
}

TEST(LinearProbe, KeptFeaturesChangeNotABitOnTwoRanks) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  for (const char* kept : {"on", "off"}) {
    const Outcome run =
        probe_on_two(kSmall + "-b 8 -e 1 --checkpointing block --cache-features " + std::string(kept), folder, kept);
    ASSERT_EQ(run.exit_code, 0) << run.output;
  }
  EXPECT_EQ(read_text(folder / "on/finetuned.safetensors"), read_text(folder / "off/finetuned.safetensors"));
}

TEST(LinearProbe, ShardedInLowPrecision) {
  const WithoutGpus on_the_cpu;
  const TemporaryFolder folder;
  const Outcome run =
      probe_on_two("--data random:16x32x32x3 --model vit_tiny4 -e 1 -b 8 --workers 1 --min-num-params 100000", folder);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(lines(run.output, kAccuracy).size(), 2u);
}
#endif

TEST(LinearProbe, ExplainsSharding) {
  const Outcome fine = shell(LINEAR_PROBE " --explain-sharding --min-num-params 1000000");
  ASSERT_EQ(fine.exit_code, 0) << fine.output;
  EXPECT_THAT(fine.output, HasSubstr("97 units and the root\n      102500  root\n     2161664  m\n"
                                     "     3148800  m.blocks.0.attn.qkv\n"));
  const Outcome coarse = shell(LINEAR_PROBE " --explain-sharding --min-num-params 10000000");
  EXPECT_THAT(coarse.output, HasSubstr("24 units and the root\n     2116708  root\n    12598272  m.blocks.0\n"));
}

void expect_refusal(const std::string& arguments, int exit_code, const std::string& text) {
  const TemporaryFolder folder;
  const Outcome run = probe(arguments, folder);
  EXPECT_EQ(run.exit_code, exit_code) << arguments << '\n' << run.output;
  EXPECT_THAT(run.output, HasSubstr("linear_probe: error: " + text)) << arguments;
}

TEST(LinearProbe, SaysWhatIsWrong) {
  expect_refusal("--model dinov2_vits15", 1,
                 "--model: no backbone is called 'dinov2_vits15'. Did you mean 'dinov2_vits14'?");
  expect_refusal("--model vit_tiny4 --data random:8x32x32x1", 1,
                 "--data random:8x32x32x1: expected images of 3 channels, got 1");
  expect_refusal("--model vit_tiny4 --data random:8x32x32x3 --resize 20", 2,
                 "--resize: expected at least the input's 32 pixels, got 20");
  expect_refusal("--model vit_tiny4 --data random:8x32x32x3 --image-size 30", 1,
                 "--image-size: expected a multiple of the patch's 4 pixels, got 30");
  expect_refusal("--model vit_tiny4 --data random:8x32x32x3 --weights /nowhere.safetensors", 1,
                 "--weights /nowhere.safetensors: ");
  expect_refusal("--model vit_tiny4 --data random:8x32x32x3 --phases tune", 2, "--phases: ");
  expect_refusal("--lrr 3", 2, "unknown flag --lrr");
}

}  // namespace
}  // namespace weft::tests
