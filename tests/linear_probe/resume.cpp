// SPDX-License-Identifier: Apache-2.0
// Runs that stop and go on, and steps that are made of several batches.
#include <gmock/gmock.h>
#include <signal.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "tests/linear_probe/program.h"
#include "tests/support/weights_apart.h"
#include "train/exit.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

// 3 steps an epoch, 60 a phase.
const std::string kRun =
    "--data random:44x16x16x3 --model vit_tiny4 --image-size 16 --workers 1 --precision f32 -e 20 ";

void expect_same_bits(const StateDict& a, const StateDict& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor x = a.tensors[i].tensor.contiguous(), y = b.tensors[i].tensor.contiguous();
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    ASSERT_EQ(x.nbytes(), y.nbytes()) << a.tensors[i].name;
    EXPECT_EQ(std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()), 0) << a.tensors[i].name << " differs";
  }
}

void expect_same_run(const Checkpoint& a, const Checkpoint& b) {
  expect_same_bits(a.part("model"), b.part("model"));
  expect_same_bits(a.part("optimizer"), b.part("optimizer"));
  ASSERT_EQ(a.parts.size(), b.parts.size());
  if (a.parts.size() > 2) expect_same_bits(a.part("ema"), b.part("ema"));
  EXPECT_EQ(a.integers, b.integers);
  EXPECT_EQ(a.text("phase"), b.text("phase"));
  const auto without_measures = [](std::map<std::string, double> numbers) {  // only the run's, not the process'
    std::erase_if(numbers, [](const auto& one) {
      return one.first.ends_with("images_per_second") || one.first.ends_with("peak_tensor_bytes");
    });
    return numbers;
  };
  EXPECT_EQ(without_measures(a.numbers), without_measures(b.numbers));
}

/// The lines of metrics.jsonl without what differs from run to run.
std::vector<nlohmann::json> metrics(const std::string& out) {
  std::ifstream in(out + "/metrics.jsonl");
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) {
    rows.push_back(nlohmann::json::parse(line));
    rows.back().erase("time");
    rows.back().erase("images_per_second");
  }
  return rows;
}

class Resume : public ::testing::Test {
 protected:
  /// The checkpoint after training to each of `stops` in a process (or two) of its own.
  Checkpoint after(const std::string& out, const std::vector<int>& stops, const std::string& more, int ranks = 1) {
    for (const int stop : stops) {
      const std::string line = kRun + more + " --resume auto --max-steps " + std::to_string(stop);
      const Outcome run = ranks == 1 ? probe(line, folder_, out) : probe_on_two(line, folder_, out);
      EXPECT_EQ(run.exit_code, 0) << run.output;
      EXPECT_THAT(run.output, HasSubstr("stopped by --max-steps after step " + std::to_string(stop)));
    }
    return load_checkpoint(folder_ / (out + "/checkpoint_last.safetensors"));
  }

  TemporaryFolder folder_;
};

TEST_F(Resume, SixtyAndFortyStepsAreAHundredBitForBit) {
  const std::string on = "-b 16 --cache-features on", off = "-b 16 --cache-features off";
  const Checkpoint in_probe = after("pieces", {40}, on);
  EXPECT_EQ(in_probe.text("phase"), "probe");
  EXPECT_EQ(in_probe.integer("epoch"), 13);
  EXPECT_EQ(in_probe.integer("step_in_epoch"), 1);
  const Checkpoint whole = after("whole", {100}, on);
  EXPECT_EQ(whole.text("phase"), "finetune");
  expect_same_run(whole, after("pieces", {60, 100}, on));  // stopped in the first phase and between the two
  // In either phase; what is kept in memory changes nothing either.
  const Checkpoint probe_off = after("off", {14, 40}, off);
  expect_same_run(in_probe, probe_off);
  expect_same_run(whole, after("off", {83, 100}, off));
}

TEST_F(Resume, AStoppedRunEndsAsAWholeOne) {
  const std::string more = "-b 16 -e 2 ";
  ASSERT_EQ(probe(kRun + more, folder_, "whole").exit_code, 0);
  after("pieces", {2, 4, 7, 11}, more);
  const Outcome rest = probe(kRun + more + "--resume auto", folder_, "pieces");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, testing::Not(HasSubstr("0 linear probe"))) << "the first phase is done";
  EXPECT_EQ(read_text(folder_ / "pieces/finetuned.safetensors"), read_text(folder_ / "whole/finetuned.safetensors"));
  EXPECT_EQ(read_text(folder_ / "pieces/probe.safetensors"), read_text(folder_ / "whole/probe.safetensors"));
  EXPECT_EQ(metrics(folder_ / "pieces"), metrics(folder_ / "whole"));
  auto whole = nlohmann::json::parse(read_text(folder_ / "whole/summary.json")),
       pieces = nlohmann::json::parse(read_text(folder_ / "pieces/summary.json"));
  EXPECT_TRUE(whole["finished"].get<bool>());
  EXPECT_EQ(whole["steps"], 12);
  for (const char* key : {"probe_images_per_second", "finetune_images_per_second", "probe_peak_tensor_bytes",
                          "finetune_peak_tensor_bytes"}) {
    EXPECT_GT(pieces[key], 0);
    whole.erase(key);
    pieces.erase(key);
  }
  EXPECT_EQ(pieces, whole);
}

TEST_F(Resume, SigtermFinishesTheStepSavesAndEndsWith75) {
  const std::string out = folder_ / "run", log = folder_ / "log";
  Outcome run;
  std::thread waiter([&] {
    run = shell("{ " LINEAR_PROBE " " + kRun + "-b 16 -e 100000 --out " + out + " & echo $! > " + log + "; wait $!; }");
  });
  for (int tries = 0; tries < 600 && !std::filesystem::exists(out + "/checkpoint_last.safetensors"); ++tries)
    usleep(50000);
  const auto process = static_cast<pid_t>(std::atoi(read_text(log).c_str()));
  ASSERT_GT(process, 0);
  kill(process, SIGTERM);
  waiter.join();
  EXPECT_EQ(run.exit_code, train::kExitRequeue) << run.output;
  EXPECT_THAT(run.output, HasSubstr("stopped by SIGTERM after step"));
  EXPECT_THAT(run.output,
              HasSubstr("continue with: linear_probe --config " + out + "/config.toml --max-steps 0 --resume auto"));
  EXPECT_THAT(read_text(out + "/summary.json"), HasSubstr("\"finished\": false"));
}

TEST_F(Resume, SaysWhatDoesNotFit) {
  after("run", {2}, "-b 16");
  const auto expect_refusal = [&](const std::string& arguments, const std::string& text) {
    const Outcome run = probe(kRun + arguments + " --resume auto", folder_);
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_THAT(run.output,
                HasSubstr("linear_probe: error: checkpoint " + (folder_ / "run/checkpoint_last.safetensors") + text));
  };
  expect_refusal("-b 8", " was made with --batch-size 16, this run has 8");
  expect_refusal("-b 16 --accumulate 2",
                 " was made with 16 images per step, this run has 32 (1 rank of 16, 2 times). Use --batch-size 8");
  expect_refusal("-b 16 --phases finetune", " is of phase 'probe', this run has --phases finetune");
  expect_refusal("-b 16 --model vit_small16 --image-size 32",
                 " is of model 'vit_tiny4', this run trains 'vit_small16'");
}

double apart(const std::string& a, const std::string& b) {
  return weights_apart(a + "/finetuned.safetensors", b + "/finetuned.safetensors");
}

// 44 images: the last step is 6 and 2. Adam moves a weight by about the rate in each step (1e-4 after the first
// phase), so batches that weigh wrongly show; a gradient of about 0 may go either way.
const std::string kAccumulated = "-e 1 -lr 8e-4 --layer-decay 0.8 --weight-decay 0.1 --ema 0.5 ";

TEST_F(Resume, AccumulatedBatchesAreOneLargeBatch) {
  ASSERT_EQ(probe(kRun + kAccumulated + "-b 12", folder_, "large").exit_code, 0);
  const Outcome run = probe(kRun + kAccumulated + "-b 6 --accumulate 2", folder_, "small");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(apart(folder_ / "large", folder_ / "small"), 1e-6);
  EXPECT_EQ(nlohmann::json::parse(read_text(folder_ / "small/summary.json"))["steps"], 8);
}

#if WEFT_HAVE_RANKS
TEST_F(Resume, OnTwoRanksBitForBit) {
  const WithoutGpus on_the_cpu;
  for (const std::string parallel :
       {"ddp", "fsdp --min-num-params 100000 --ema 0.9 --layer-decay 0.7 --weight-decay 0.1"})
    for (const std::string kept : {"on", "off"}) {
      SCOPED_TRACE(parallel + kept);
      const std::string more = "-b 8 -e 4 --parallel " + parallel + " --cache-features " + kept;
      const std::string out = parallel.substr(0, 4) + kept;
      const Checkpoint whole = after(out, {20}, more, 2);
      EXPECT_EQ(whole.text("phase"), "finetune");
      expect_same_run(whole, after(out + "_pieces", {7, 16, 20}, more, 2));
    }
}

TEST_F(Resume, AccumulatedBatchesAreOneLargeBatchOnTwoRanks) {
  const WithoutGpus on_the_cpu;
  ASSERT_EQ(probe(kRun + kAccumulated + "-b 12", folder_, "large").exit_code, 0);
  for (const std::string parallel : {"ddp", "fsdp --min-num-params 100000"}) {
    const std::string out = parallel.substr(0, 4);
    const Outcome run = probe_on_two(kRun + kAccumulated + "-b 3 --accumulate 2 --parallel " + parallel, folder_, out);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_LT(apart(folder_ / "large", folder_ / out), 1e-6) << parallel;
  }
}
#endif

}  // namespace
}  // namespace weft::tests
