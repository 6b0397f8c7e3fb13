// SPDX-License-Identifier: Apache-2.0
// train_gpt and sample_gpt as their users start them, on a text small enough for a test.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "io/safetensors.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights_apart.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::string kQuiet = "OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 ";

/// 100 windows of 16 tokens for training: 25 steps of four in an epoch.
const std::string kTiny =
    " --context 16 --epochs 2 --warmup-steps 5 --lr 3e-3 --log-interval 5 --val-share 0.2 --device "
    "cpu ";

class GptProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const who[] = {"the cat", "a dog", "her bird", "my fish"};
    const char* const does[] = {"sits", "runs", "sings", "sleeps"};
    std::string text;
    for (size_t i = 0; text.size() < 2000; ++i) text += std::string(who[i % 4]) + ' ' + does[i / 4 % 4] + ".\n";
    text.resize(2000);
    std::ofstream(folder_ / "text") << text;
  }
  Outcome train(const std::string& arguments, const std::string& out, int ranks = 1) const {
    const std::string launcher = ranks == 1 ? "" : WEFT_RUN " --nproc_per_node " + std::to_string(ranks) + " ";
    return shell(kQuiet + launcher + TRAIN_GPT " --data " + (folder_ / "text") + kTiny + arguments + " --out " +
                 (folder_ / out) + " --model " + model_);
  }
  Outcome sample(const std::string& arguments) const { return shell(kQuiet + SAMPLE_GPT " --device cpu " + arguments); }
  std::string file(const std::string& name) const { return read_text(folder_ / name); }
  nlohmann::json summary(const std::string& run) const { return nlohmann::json::parse(file(run + "/summary.json")); }
  StateDict weights(const std::string& run) const {
    return read_safetensors(folder_ / (run + "/model/model.safetensors")).state;
  }
  /// Losses and gradient norms of the lines of a run.
  std::vector<double> metrics(const std::string& run) const {
    std::istringstream lines(file(run + "/metrics.jsonl"));
    std::vector<double> found;
    for (std::string text; std::getline(lines, text);)
      for (const char* key : {"train_loss", "gradient_norm", "val_loss"})
        if (const auto line = nlohmann::json::parse(text); line.contains(key)) found.push_back(line[key]);
    return found;
  }
  double apart(const std::string& a, const std::string& b) const {
    return weights_apart(folder_ / (a + "/model/model.safetensors"), folder_ / (b + "/model/model.safetensors"));
  }

  TemporaryFolder folder_;
  std::string model_ = "gpt_tiny";
};

TEST_F(GptProgram, AGraphChangesNotABit) {
  if (!WEFT_RUNS_EMULATED) GTEST_SKIP() << "needs weft-emulate, and PTX and a shared CUDA runtime in this build";
  const std::string flags = "--batch-size 4 --dropout 0.1 --precision bf16 --max-steps 6 --device emulated --graph ";
  for (const std::string graph : {"on", "off"}) {
    const Outcome run = train(flags + graph, graph);
    ASSERT_EQ(run.exit_code, 0) << run.output;
  }
  EXPECT_EQ(file("on/model/model.safetensors"), file("off/model/model.safetensors"));
}

class DecoderProgram : public GptProgram {
 protected:
  DecoderProgram() { model_ = "llama_tiny"; }
};

TEST_F(GptProgram, LearnsAndWritesHuggingFacesFiles) {
  const Outcome run = train("--batch-size 4", "run");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1600 tokens, 400 for validation, of 22"));
  const auto first = nlohmann::json::parse(file("run/metrics.jsonl").substr(0, file("run/metrics.jsonl").find('\n')));
  for (const char* key : {"\"lr\":", "\"gradient_norm\":", "\"tokens_per_second\":", "\"peak_tensor_bytes\":"})
    EXPECT_THAT(file("run/metrics.jsonl"), HasSubstr(key));
  EXPECT_GT(first["train_loss"], 2.0) << "of 22 tokens: log 22 is 3.1";
  EXPECT_EQ(summary("run")["steps"], 50);
  EXPECT_LT(summary("run")["val_loss"], 1.5);
  const StateDict saved = weights("run");
  EXPECT_EQ(saved.tensors.size(), 2u + 4 * 12 + 2);  // the output layer is the embedding
  EXPECT_EQ(saved.tensor("transformer.h.3.attn.c_attn.weight").sizes(), (Shape{128, 384}));
  EXPECT_EQ(saved.tensor("transformer.h.0.mlp.c_fc.weight").sizes(), (Shape{128, 512}));
  EXPECT_EQ(saved.tensor("transformer.wte.weight").sizes(), (Shape{22, 128}));
  const auto config = nlohmann::json::parse(file("run/model/config.json"));
  EXPECT_EQ(config["n_layer"], 4);
  EXPECT_EQ(config["n_positions"], 16);

  // Its own weights, at a rate of 0, score the same: names, layout, tokens and sizes came back.
  const Outcome again = train("--batch-size 4 --lr 0 --epochs 1 --weights " + (folder_ / "run"), "again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(summary("again")["val_loss"], summary("run")["val_loss"]);
  EXPECT_EQ(apart("run", "again"), 0);
}

TEST_F(DecoderProgram, LearnsAndWritesHuggingFacesFiles) {
  const Outcome run = train("--batch-size 4", "run");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("4 layers, 128 wide, 4 heads, "));
  EXPECT_LT(summary("run")["val_loss"], 1.5);
  const StateDict saved = weights("run");
  EXPECT_EQ(saved.tensors.size(), 2u + 4 * 9 + 1);
  EXPECT_EQ(saved.tensor("model.layers.3.self_attn.k_proj.weight").sizes(), (Shape{64, 128}));
  EXPECT_EQ(saved.tensor("lm_head.weight").sizes(), (Shape{22, 128}));
  const auto config = nlohmann::json::parse(file("run/model/config.json"));
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["max_position_embeddings"], 16);
  EXPECT_EQ(config["torch_dtype"], "float32");
  const Outcome again = train("--batch-size 4 --lr 0 --epochs 1 --weights " + (folder_ / "run"), "again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(summary("again")["val_loss"], summary("run")["val_loss"]);
  EXPECT_EQ(apart("run", "again"), 0);
  EXPECT_EQ(nlohmann::json::parse(file("again/model/config.json")), config);
  const std::string of_run = "--weights " + (folder_ / "run") + " --prompt 'the cat' --tokens 60 ";
  EXPECT_EQ(sample(of_run + "--top-p 0.0001").output, sample(of_run + "--temperature 0").output);
  EXPECT_THAT(sample(of_run + "--temperature 0").output, HasSubstr(".\n")) << "it has learned lines";
  for (const char* precision : {"bf16", "fp8"}) {
    const Outcome low = train(std::string("--batch-size 4 --precision ") + precision, precision);
    ASSERT_EQ(low.exit_code, 0) << low.output;
    EXPECT_LT(summary(precision)["val_loss"], 1.5);
    EXPECT_EQ(weights(precision).tensors.size(), saved.tensors.size());
  }
}

// The sizes alone are the folder's; its tokenizer goes with them.
TEST_F(DecoderProgram, TakesAFolderAsItsModel) {
  ASSERT_EQ(train("--batch-size 4 --max-steps 1", "run").exit_code, 0);
  model_ = folder_ / "run";
  const Outcome run = train("--batch-size 4 --lr 0 --max-steps 1 --seed 4", "other");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(weights("other").tensors.size(), weights("run").tensors.size());
  EXPECT_GT(apart("run", "other"), 1e-3);
  EXPECT_EQ(file("other/model/vocab.json"), file("run/model/vocab.json"));
  model_ = "llama";
  const Outcome unknown = train("", "none");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("or a folder with config.json, got 'llama'"));
}

TEST_F(GptProgram, InLowPrecision) {
  const Outcome run = train("--batch-size 4 --precision bf16", "run");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(summary("run")["val_loss"], 1.5);
}

TEST_F(GptProgram, InEightBits) {
  const std::string kRun = "--batch-size 4 --precision fp8 --save-interval 10 ";
  ASSERT_EQ(train(kRun, "whole").exit_code, 0);
  EXPECT_LT(summary("whole")["val_loss"], 1.5);
  EXPECT_EQ(weights("whole").tensors.size(), 2u + 4 * 12 + 2) << "what scales follow from is in checkpoints alone";
  ASSERT_EQ(train(kRun + "--max-steps 32", "parts").exit_code, 0);
  const Outcome rest = train(kRun + "--resume auto", "parts");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_EQ(file("parts/model/model.safetensors"), file("whole/model/model.safetensors"));
  EXPECT_EQ(summary("parts")["val_loss"], summary("whole")["val_loss"]);
  const Outcome divided = train(kRun + "--tensor 2", "divided");
  EXPECT_EQ(divided.exit_code, 2);
  EXPECT_THAT(divided.output,
              HasSubstr("--precision fp8: expected whole blocks on each rank, got --tensor or --pipeline"));
}

TEST_F(GptProgram, SamplesTheSameTextForOneSeed) {
  ASSERT_EQ(train("--batch-size 4", "run").exit_code, 0);
  const std::string of_run = "--weights " + (folder_ / "run") + " --prompt 'the cat' --tokens 60 ";
  const Outcome first = sample(of_run + "--seed 1");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_EQ(first.output.size(), 7u + 60 + 1);
  EXPECT_THAT(first.output, testing::StartsWith("the cat"));
  EXPECT_EQ(sample(of_run + "--seed 1").output, first.output);
  EXPECT_NE(sample(of_run + "--seed 2 --temperature 2").output, first.output);
  EXPECT_THAT(sample(of_run + "--temperature 0").output, HasSubstr(".\n")) << "it has learned lines";
  EXPECT_EQ(sample(of_run + "--top-k 1").output, sample(of_run + "--temperature 0").output);
  EXPECT_THAT(sample(of_run + "--samples 2").output, HasSubstr("---------------\nthe cat"));
  const Outcome strange = sample("--weights " + (folder_ / "run") + " --prompt Z");
  EXPECT_EQ(strange.exit_code, 1);
  EXPECT_THAT(strange.output, HasSubstr("sample_gpt: error: byte pairs: the vocabulary has no token for the byte 90"));
}

TEST_F(GptProgram, GoesOnWithTheSameBits) {
  const std::string kRun = "--batch-size 4 --dropout 0.1 --save-interval 10 ";
  ASSERT_EQ(train(kRun, "whole").exit_code, 0);
  const Outcome stopped = train(kRun + "--max-steps 32", "parts");  // in the second epoch
  ASSERT_EQ(stopped.exit_code, 0) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("--resume auto"));
  std::filesystem::copy(folder_ / "parts", folder_ / "damaged", std::filesystem::copy_options::recursive);
  const Outcome rest = train(kRun + "--resume auto", "parts");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("at step 32"));
  EXPECT_EQ(file("parts/model/model.safetensors"), file("whole/model/model.safetensors"));
  EXPECT_EQ(summary("parts")["val_loss"], summary("whole")["val_loss"]);
  const std::string whole = file("damaged/checkpoint_last.safetensors");
  std::ofstream(folder_ / "damaged/checkpoint_last.safetensors") << whole.substr(0, whole.size() / 2);
  const Outcome before = train(kRun + "--resume auto", "damaged");
  ASSERT_EQ(before.exit_code, 0) << before.output;
  EXPECT_THAT(before.output, HasSubstr("at step 30"));
  EXPECT_EQ(file("damaged/model/model.safetensors"), file("whole/model/model.safetensors"));
  const Outcome other = train(kRun + "--resume auto --seed 5", "parts");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("was made with other sequences: seed 1337 -> 5"));
}

#if WEFT_HAVE_RANKS

TEST_F(DecoderProgram, EveryGridEqualsOneProcess) {
  const std::string kSteps = "--max-steps 10 --dropout 0 ";
  ASSERT_EQ(train("--batch-size 4 " + kSteps, "one").exit_code, 0);
  for (const auto& [name, how] : {std::pair<std::string, std::string>{"ddp", "--batch-size 2 --parallel ddp"},
                                  {"fsdp", "--batch-size 2 --parallel fsdp --min-num-params 2000"},
                                  {"fsdp_blocks", "--batch-size 2 --parallel fsdp --min-num-params 0 --recompute"},
                                  {"stages", "--batch-size 4 --pipeline 2 --chunks 2"}}) {
    const Outcome run = train(how + " " + kSteps, name, 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_LT(apart("one", name), 1e-5) << name;
    ASSERT_EQ(metrics(name).size(), metrics("one").size());
    for (size_t i = 0; i < metrics("one").size(); ++i)
      EXPECT_NEAR(metrics(name)[i], metrics("one")[i], 1e-5 * std::max(1.0, metrics("one")[i])) << name;
  }
  // Fine-tuning from the folder of one run.
  const std::string from = "--weights " + (folder_ / "ddp") + " --max-steps 5 ";
  ASSERT_EQ(train("--batch-size 4 " + from, "tuned").exit_code, 0);
  const Outcome run = train("--batch-size 2 --parallel fsdp --min-num-params 0 " + from, "tuned_fsdp", 2);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(apart("tuned", "tuned_fsdp"), 1e-5);
  // Adapters alone: the published model is the base and them.
  const std::string lora = from + "--lora 4 --lr 1e-2 ";
  ASSERT_EQ(train("--batch-size 4 " + lora, "lora").exit_code, 0);
  const Outcome shared = train("--batch-size 2 --parallel fsdp --min-num-params 0 --recompute " + lora, "lora_fsdp", 2);
  ASSERT_EQ(shared.exit_code, 0) << shared.output;
  EXPECT_LT(apart("lora", "lora_fsdp"), 1e-5);
  EXPECT_GT(apart("ddp", "lora"), 1e-4);
  EXPECT_EQ(weights("lora").tensor("model.norm.weight").to_vector<float>(),
            weights("ddp").tensor("model.norm.weight").to_vector<float>());
  const StateDict adapters = read_safetensors(folder_ / "lora/adapter/adapter_model.safetensors").state;
  EXPECT_EQ(adapters.tensors.size(), 4u * 7 * 2);
  EXPECT_EQ(adapters.tensor("base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight").sizes(), (Shape{64, 4}));
  const auto config = nlohmann::json::parse(file("lora/adapter/adapter_config.json"));
  EXPECT_EQ(config["r"], 4);
  EXPECT_EQ(config["lora_alpha"], 8);
  ASSERT_EQ(train("--batch-size 4 --lr 0 --max-steps 1 --weights " + (folder_ / "lora"), "merged").exit_code, 0);
  EXPECT_EQ(apart("merged", "lora"), 0);
  EXPECT_THAT(train("--lora-alpha 3", "none").output, HasSubstr("--lora-alpha: expected --lora above 0, got 0"));

  EXPECT_THAT(train("--tensor 2", "parts", 2).output,
              HasSubstr("--tensor: expected a GPT-2, whose layers can be divided, got a decoder"));
}

// Offloads, recomputation and sharded checkpoints change no bit.
TEST_F(GptProgram, FsdpTrainsTheSameFromTheHostAndFromShardedCheckpoints) {
  const std::string kRun = "--batch-size 2 --parallel fsdp --min-num-params 0 --dropout 0.1 --max-steps ";
  ASSERT_EQ(train(kRun + "20", "want", 2).exit_code, 0);
  for (const auto& [name, how] :
       {std::pair<std::string, std::string>{"recomputed", " --recompute"},
        {"optimizer", " --fsdp-offload optimizer"},
        {"parameters", " --fsdp-offload parameters --recompute --fsdp-checkpoints sharded"}}) {
    const Outcome run = train(kRun + "20" + how, name, 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_EQ(file(name + "/model/model.safetensors"), file("want/model/model.safetensors")) << name;
    EXPECT_EQ(metrics(name), metrics("want")) << name;
  }
  const std::string sharded = " --save-interval 5 --fsdp-checkpoints sharded";
  const Outcome stopped = train(kRun + "12" + sharded, "parts", 2);
  ASSERT_EQ(stopped.exit_code, 0) << stopped.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "parts/checkpoint_last/index.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "parts/checkpoint_last.1/rank_00001.safetensors"));
  std::filesystem::copy(folder_ / "parts", folder_ / "moved", std::filesystem::copy_options::recursive);
  const Outcome rest = train(kRun + "20 --resume auto" + sharded, "parts", 2);
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("at step 12"));
  EXPECT_EQ(file("parts/model/model.safetensors"), file("want/model/model.safetensors"));
  // On one rank, into a whole file, which takes the folder's place; and back.
  const Outcome alone = train("--batch-size 4 --dropout 0.1 --max-steps 16 --resume auto", "moved");
  ASSERT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "moved/checkpoint_last"));
  const Outcome four =
      train("--batch-size 1 --parallel fsdp --dropout 0.1 --max-steps 20 --resume auto" + sharded, "moved", 4);
  ASSERT_EQ(four.exit_code, 0) << four.output;
  EXPECT_THAT(four.output, HasSubstr("at step 16"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "moved/checkpoint_last.safetensors"));
}

// Several ranks see the sequences of one process whose batch is theirs together; sums round otherwise (1e-7), which
// Adam's division makes more of where a gradient is almost 0.
TEST_F(GptProgram, EveryGridEqualsOneProcess) {
  const std::string kSteps = "--max-steps 10 ";
  ASSERT_EQ(train("--batch-size 4 " + kSteps, "one").exit_code, 0);
  // The embedding (22 x 128) as a unit of its own, used at both ends of the forward; and everything in the root.
  for (const auto& [name, how] : {std::pair<std::string, std::string>{"ddp", "--parallel ddp"},
                                  {"fsdp", "--parallel fsdp --min-num-params 2000"},
                                  {"fsdp_blocks", "--parallel fsdp --min-num-params 0 --fsdp-strategy shard_grad_op"},
                                  {"fsdp_root", "--parallel fsdp --min-num-params 100000000"}}) {
    const Outcome run = train("--batch-size 2 " + kSteps + how, name, 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_LT(apart("one", name), 1e-5) << name;
  }
  // Stages, where the embedding lies on both ends, and layers in parts.
  for (const auto& [name, ranks, how] :
       {std::tuple<std::string, int, std::string>{"stages", 2, "--batch-size 4 --pipeline 2"},
        {"interleaved", 2, "--batch-size 4 --pipeline 2 --chunks 2 --micro-batches 3"},
        {"accumulated", 2, "--batch-size 1 --accumulate 4 --pipeline 2"},
        {"fsdp_accumulated", 2,
         "--batch-size 1 --accumulate 2 --parallel fsdp --min-num-params 0 --fsdp-accumulate sharded "
         "--fsdp-strategy hybrid_shard --fsdp-shard-size 2"},
        {"four", 4, "--batch-size 4 --pipeline 4"},
        {"stages_data", 4, "--batch-size 2 --pipeline 2 --chunks 2"},
        {"parts", 2, "--batch-size 4 --tensor 2"},
        {"parts_accumulated", 4, "--batch-size 1 --accumulate 2 --tensor 2"},
        {"parts_stages", 8, "--batch-size 2 --tensor 2 --pipeline 2 --micro-batches 2"},
        {"fsdp_parts", 4, "--batch-size 2 --tensor 2 --parallel fsdp --min-num-params 0"},
        {"tokens", 4, "--batch-size 2 --tensor 2 --sequence"},
        {"fsdp_tokens", 4, "--batch-size 2 --tensor 2 --sequence --parallel fsdp --recompute"},
        {"fsdp_parts_accumulated", 4,
         "--batch-size 1 --accumulate 2 --tensor 2 --parallel fsdp --fsdp-accumulate sharded --recompute "
         "--fsdp-offload optimizer"},
        {"fsdp_stages", 4,
         "--batch-size 2 --pipeline 2 --chunks 2 --micro-batches 2 --parallel fsdp --min-num-params 0"},
        {"fsdp_parts_stages", 8,
         "--batch-size 2 --tensor 2 --pipeline 2 --micro-batches 2 --parallel fsdp --fsdp-strategy shard_grad_op"}}) {
    const Outcome run = train(how + " " + kSteps, name, ranks);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_LT(apart("one", name), 1e-5) << name;
    EXPECT_EQ(metrics(name).size(), metrics("one").size());
    // Losses of order 1 and gradient norms of order 10, whose f32 sums come in another order.
    for (size_t i = 0; i < metrics("one").size(); ++i)
      EXPECT_NEAR(metrics(name)[i], metrics("one")[i], 1e-5 * std::max(1.0, metrics("one")[i])) << name;
  }
  for (const auto& [name, how] : {std::pair<std::string, std::string>{"ddp_bf16", "--batch-size 2 --parallel ddp"},
                                  {"fsdp_bf16", "--batch-size 2 --parallel fsdp --precision bf16"},
                                  {"parts_bf16", "--batch-size 2 --tensor 2"},
                                  {"fsdp_parts_bf16", "--batch-size 2 --tensor 2 --parallel fsdp --precision bf16"}}) {
    const Outcome run = train(how + " --grad-compression bf16 " + kSteps, name, name.find("parts") != std::string::npos ? 4 : 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_GT(apart("one", name), 1e-5) << name << ": it does something";
    for (size_t i = 0; i < metrics("one").size(); ++i)
      EXPECT_NEAR(metrics(name)[i], metrics("one")[i], 0.05 * std::max(1.0, metrics("one")[i])) << name;
  }
  // A checkpoint of two ranks goes on in one process, and the other way round.
  ASSERT_EQ(train("--batch-size 4", "whole").exit_code, 0);
  const Outcome alone = train("--batch-size 4 --resume auto", "fsdp");
  ASSERT_EQ(alone.exit_code, 0) << alone.output;
  const Outcome both = train("--batch-size 2 --parallel fsdp --min-num-params 2000 --resume auto", "one", 2);
  ASSERT_EQ(both.exit_code, 0) << both.output;
  for (const auto& [name, ranks, how] : {std::tuple<std::string, int, std::string>{"stages", 1, "--batch-size 4"},
                                         {"four", 4, "--batch-size 2 --pipeline 2"},
                                         {"ddp", 4, "--batch-size 4 --pipeline 4"},
                                         {"parts", 4, "--batch-size 2 --pipeline 2"},
                                         {"interleaved", 4, "--batch-size 4 --tensor 4"},
                                         {"fsdp_parts", 2, "--batch-size 4 --pipeline 2"},
                                         {"fsdp_stages", 1, "--batch-size 4"},
                                         {"accumulated", 4, "--batch-size 2 --tensor 2 --parallel fsdp"},
                                         {"parts_stages", 1, "--batch-size 4"}}) {
    const Outcome other = train(how + " --resume auto", name, ranks);
    ASSERT_EQ(other.exit_code, 0) << other.output;
    EXPECT_NEAR(summary(name)["val_loss"], summary("whole")["val_loss"], 0.02) << name;
  }
  // Parts of weights from a file, which no process holds whole, and back to one process.
  const Outcome again =
      train("--batch-size 2 --lr 0 --epochs 1 --tensor 2 --parallel fsdp --weights " + (folder_ / "one"), "again", 4);
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(apart("again", "one"), 0);
  EXPECT_THAT(train("--tensor 4 --sequence --context 14", "tokens_of_ranks", 4).output,
              HasSubstr("--sequence: 14 tokens of --context do not divide by 4"));
  EXPECT_THAT(train("--tensor 3", "heads", 3).output, HasSubstr("--tensor: 4 heads do not divide by 3"));
  EXPECT_NEAR(summary("fsdp")["val_loss"], summary("whole")["val_loss"], 0.02);
  EXPECT_NEAR(summary("one")["val_loss"], summary("whole")["val_loss"], 0.02);
}

#endif
#if WEFT_HAVE_UTF8PROC

TEST_F(GptProgram, RanksWithOtherTextsAreNamed) {
  std::string text = file("text");
  std::swap(text.front(), text.back());
  std::ofstream(folder_ / "text0") << file("text");
  std::ofstream(folder_ / "text1") << text;
  const Outcome run = shell(kQuiet + WEFT_RUN " --nproc_per_node 2 sh -c '" TRAIN_GPT " --max-steps 1 --data " +
                            (folder_ / "text") + "$RANK" + kTiny + " --out " + (folder_ / "run") + "'");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("data: the text is not the same on all ranks: at entry 1 rank 0 has '2000 bytes"));
}

TEST_F(GptProgram, TakesBytePairs) {
  const std::string pairs = std::string(WEFT_GOLDEN) + "/byte_pair";
  const Outcome run = train("--batch-size 2 --max-steps 2 --tokenizer " + pairs, "run");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("of 50257"));
  EXPECT_EQ(file("run/model/merges.txt"), read_text(pairs + "/merges.txt"));
  const auto config = nlohmann::json::parse(file("run/model/config.json"));
  EXPECT_EQ(config["eos_token_id"], 50256);
}

/// JSON lines train as their texts do with the token of an end between them.
TEST_F(GptProgram, TakesJsonLines) {
  const std::string pairs = " --batch-size 2 --max-steps 2 --tokenizer " + std::string(WEFT_GOLDEN) + "/byte_pair";
  std::ofstream json(folder_ / "lines.jsonl"), plain(folder_ / "text");
  for (int i = 0; i < 100; ++i) {
    json << nlohmann::json{{"id", i}, {"text", "the cat sits.\n\"" + std::to_string(i)}}.dump() << '\n';
    plain << "the cat sits.\n\"" << i << "<|endoftext|>";
  }
  json.close();
  plain.close();
  ASSERT_EQ(train(pairs, "plain").exit_code, 0);
  std::filesystem::rename(folder_ / "lines.jsonl", folder_ / "text");
  const Outcome run = train(pairs, "json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(apart("json", "plain"), 0);
  const Outcome characters = train("--batch-size 2 --max-steps 1", "characters");
  EXPECT_EQ(characters.exit_code, 0) << characters.output;
  std::ofstream(folder_ / "text", std::ios::app) << "{\"messages\": []}\n";
  EXPECT_THAT(train("--batch-size 4", "wrong").output,
              HasSubstr("JSON lines of objects with a \"text\", got another line 101"));
}

#endif

/// A folder of weights with a chat template, and 200 conversations.
class ChatProgram : public DecoderProgram {
 protected:
  void SetUp() override {
    DecoderProgram::SetUp();
    const char* const who[] = {"cat", "dog", "bird", "fish"};
    const char* const does[] = {"sits", "runs", "sings", "sleeps"};
    std::ofstream text(folder_ / "text"), chat(folder_ / "chat");
    for (size_t i = 0; i < 200; ++i) {
      nlohmann::json messages = nlohmann::json::array();
      for (size_t turn = 0; turn <= i % 3; ++turn) {
        const std::string verb = does[(i + turn) % 4], animal = who[(i + turn) % 4];
        messages.push_back({{"role", "user"}, {"content", "who " + verb + "?"}});
        messages.push_back({{"role", "assistant"}, {"content", "the " + animal + " " + verb + "."}});
        text << "<u>who " << verb << "?<e>\n<a>the " << animal << ' ' << verb << ".<e>\n";
      }
      chat << nlohmann::json{{"messages", messages}} << '\n';
    }
    text.close();
    chat.close();
    const Outcome made = train("--batch-size 2 --max-steps 1 --context 100", "base");
    ASSERT_EQ(made.exit_code, 0) << made.output;
    const std::string config = folder_ / "base/model/tokenizer_config.json";
    auto json = nlohmann::json::parse(read_text(config));
    json["chat_template"] =
        "{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}<e>\n{% else %}<a>"
        "{% generation %}{{ m.content }}<e>{% endgeneration %}{{ '\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<a>{% endif %}";
    std::ofstream(config) << json;
    std::filesystem::rename(folder_ / "chat", folder_ / "text");
  }
  Outcome tune(const std::string& arguments, const std::string& out, int ranks = 1) const {
    return train("--context 100 --weights " + (folder_ / "base ") + arguments, out, ranks);
  }
};

TEST_F(ChatProgram, PackedRowsAreAsSingleOnes) {
  for (const std::string rows : {"packed", "single"}) {
    const Outcome run = tune("--batch-size 8 --lr 0 --epochs 1 --rows " + rows, rows);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("of them trained, in ")) << run.output;
  }
  const double loss = summary("single")["val_loss"];
  EXPECT_NEAR(summary("packed")["val_loss"], loss, 1e-6 * loss);
}

TEST_F(ChatProgram, LearnsToAnswer) {
  const Outcome run = tune("--batch-size 4 --epochs 8", "run");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(summary("run")["val_loss"], 0.2);
  const std::string of_run = "--weights " + (folder_ / "run") + " --temperature 0 --tokens 30 --stop '<e>' ";
  const std::string first = sample(of_run + "--chat --prompt 'who sits?'").output;
  EXPECT_EQ(first, "the cat sits.\n");
  const std::string second = sample(of_run + "--chat --prompt 'who sleeps?'").output;
  EXPECT_EQ(sample(of_run + "--chat --prompt 'who sits?' --prompt 'who sleeps?'").output,
            first + "---------------\n" + second);
  std::ofstream(folder_ / "prompts")
      << "\xEF\xBB\xBFwho sits?\n{\"messages\": [{\"role\": \"user\", \"content\": \"who sleeps?\"}]}\n";
  EXPECT_EQ(sample(of_run + "--chat --prompt-file " + (folder_ / "prompts")).output,
            first + "---------------\n" + second);
  EXPECT_EQ(shell("echo 'who sits?' | " SAMPLE_GPT " --device cpu --chat " + of_run).output, first);
  std::ofstream(folder_ / "prompts") << "{\"x\": 1}\n";
  EXPECT_THAT(sample(of_run + "--prompt-file " + (folder_ / "prompts")).output,
              HasSubstr("line 1: expected a text, or an object with a prompt or messages, got {\"x\": 1}"));
  EXPECT_THAT(sample(of_run + "--system x").output, HasSubstr("--system: expected --chat"));
  EXPECT_THAT(sample(of_run + "--prompt a --prompt-file b").output,
              HasSubstr("--prompt-file: expected no --prompt beside it"));
  EXPECT_THAT(sample(of_run + "--stop ''").output, HasSubstr("--stop: expected a text, got an empty one"));
}

TEST_F(ChatProgram, SaysWhatIsWrong) {
  EXPECT_THAT(tune("--rows stream", "none").output,
              HasSubstr("--rows stream: expected a text or JSON lines with a text"));
  EXPECT_THAT(tune("--batch-size 900", "none").output,
              HasSubstr("--data: a step of 900 rows of 100 tokens needs more than the "));
  EXPECT_THAT(train("--tokenizer bytes", "none").output,
              HasSubstr("expected a tokenizer with a chat template for messages"));
  EXPECT_THAT(tune("--rows packed --pipeline 2", "none").output,
              HasSubstr("--rows packed: expected whole models on each rank, got --tensor or --pipeline"));
  EXPECT_THAT(tune("--graph on", "none").output,
              HasSubstr("--graph on: expected --rows stream or single, got packed rows, which the host reads"));
  std::ofstream(folder_ / "text") << R"({"instruction": "a", "output": "b"})";
  EXPECT_THAT(tune("", "none").output,
              HasSubstr("expected JSON lines: a text, a prompt and a completion (two texts), or messages in each, got an "
                        "object of instruction, output. A name that ends in .txt makes a text of any file"));
  std::ofstream(folder_ / "text") << R"([{"text": "a"}])";
  EXPECT_THAT(tune("", "none").output, HasSubstr("got a list of objects"));
  std::ofstream(folder_ / "text") << "plain";
  EXPECT_THAT(tune("--rows packed", "none").output,
              HasSubstr("--rows packed: expected JSON lines as --data, got another file"));
}

#if WEFT_HAVE_RANKS

TEST_F(ChatProgram, PackedRowsTrainTheSameOnEveryGrid) {
  const std::string steps = "--max-steps 10 ";
  ASSERT_EQ(tune("--batch-size 4 " + steps, "one").exit_code, 0);
  for (const auto& [name, how] : {std::pair<std::string, std::string>{"ddp", "--batch-size 2 --parallel ddp "},
                                  {"fsdp", "--batch-size 2 --parallel fsdp --min-num-params 0 --recompute "}}) {
    const Outcome run = tune(how + steps, name, 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_LT(apart("one", name), 1e-5) << name;
    ASSERT_EQ(metrics(name).size(), metrics("one").size());
    for (size_t i = 0; i < metrics("one").size(); ++i)
      EXPECT_NEAR(metrics(name)[i], metrics("one")[i], 1e-5 * std::max(1.0, metrics("one")[i])) << name;
  }
}

#endif

template <class Number>
std::string numbers(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<Number>(i * i % 22);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

TEST_F(GptProgram, TakesFilesOfTokens) {
  ASSERT_EQ(train("--batch-size 4 --max-steps 1", "saved").exit_code, 0);
  const std::string tokenizer = " --tokenizer " + (folder_ / "saved") + " --device cpu --model gpt_tiny --context 16 ";
  const auto plan = [&](const std::string& data, const std::string& arguments) {
    return shell(kQuiet + TRAIN_GPT " --dry-run --data " + (folder_ / data) + arguments);
  };
  std::ofstream(folder_ / "train.bin") << numbers<uint16_t>(1000);
  std::ofstream(folder_ / "val.bin") << numbers<uint16_t>(100);
  std::ofstream(folder_ / "wide.bin") << numbers<uint32_t>(1000);
  for (const char* name : {"train.bin", "wide.bin"}) {
    const Outcome one = plan(name, tokenizer);
    EXPECT_EQ(one.exit_code, 0) << one.output;
    EXPECT_THAT(one.output, HasSubstr(": 900 tokens, 100 for validation, of 22"));
  }
  const Outcome both = plan("", tokenizer);  // as nanoGPT's prepare.py leaves its folder
  EXPECT_EQ(both.exit_code, 0) << both.output;
  EXPECT_THAT(both.output, HasSubstr(": 1000 tokens, 100 for validation, of 22"));
  const Outcome alone = plan("train.bin", " --device cpu --model gpt_tiny --context 16");
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.output, HasSubstr("train.bin: expected a text, got the numbers of tokens. --tokenizer names"));
  std::ofstream(folder_ / "val.bin") << std::string("\x05\0\x16\0", 4);
  EXPECT_THAT(plan("", tokenizer).output,
              HasSubstr("val.bin: expected tokens below the 22 of the tokenizer, got 22 at position 1"));
  std::filesystem::remove(folder_ / "val.bin");
  EXPECT_THAT(plan("", tokenizer).output, HasSubstr("a folder of train.bin and val.bin, got another folder. `cat "));
  std::ofstream(folder_ / "latin1") << "caf\xE9 " << file("text");
  EXPECT_THAT(plan("latin1", "").output, HasSubstr("latin1: expected a UTF-8 text, got the byte 233 at position 3"));
}

#if WEFT_HAVE_ZIP

// nanogpt.py says where text and weights are from.
TEST_F(GptProgram, ReadsNanoGptsCheckpoint) {
  std::ofstream(folder_ / "merges.txt") << "#version: 0.2\n";
  std::ofstream(folder_ / "vocab.json")
      << R"({"Ċ": 0, "Ġ": 1, "a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 7, "g": 8, "h": 9, "i": 10})";
  const std::string tokenizer = " --tokenizer " + (folder_ / "");
  const std::string likeliest = " --prompt abc --tokens 29 --temperature 0";
  const std::string text = "abchhhhhhhha ihddddhhchdd hhchhf\n";
  EXPECT_EQ(sample("--weights " WEFT_NANOGPT + tokenizer + likeliest).output, text);
  std::ofstream(folder_ / "text") << std::string(40, 'a') << std::string(40, 'b');
  const Outcome run = shell(kQuiet +
                            TRAIN_GPT
                            " --device cpu --epochs 1 --lr 0 --val-share 0.45 --batch-size 1 "
                            "--weights " WEFT_NANOGPT +
                            tokenizer + " --data " + (folder_ / "text") + " --out " + (folder_ / "run"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto with_key = [&](const std::string& key) {
    return shell(kQuiet + TRAIN_GPT " --device cpu --val-share 0.45 --batch-size 1 --dry-run --weights " WEFT_NANOGPT +
                 tokenizer + " --data " + (folder_ / "text") + " --weights-key " + key);
  };
  EXPECT_EQ(with_key("model").exit_code, 0);
  EXPECT_THAT(with_key("ema").output, HasSubstr("expected a dict under the key 'ema', got none"));
  EXPECT_EQ(sample("--weights " + (folder_ / "run") + likeliest).output, text) << "as Hugging Face's folder";
  const auto config = nlohmann::json::parse(file("run/model/config.json"));
  EXPECT_EQ(config["activation_function"], "gelu");
  EXPECT_EQ(config["vocab_size"], 16) << "padded";
  EXPECT_EQ(weights("run").tensor("transformer.h.1.attn.c_attn.weight").sizes(), (Shape{8, 24}));
  EXPECT_THAT(sample("--weights " WEFT_NANOGPT).output,
              HasSubstr("--tokenizer: expected the folder of a tokenizer, got none: the checkpoint "));
  EXPECT_THAT(sample("--weights " + (folder_ / "text") + tokenizer).output,
              HasSubstr("model: expected a folder with config.json, or nanoGPT's checkpoint, got the file "));
}

#endif

// The values of Hugging Face's files that change what the model computes or where a text ends.
TEST_F(GptProgram, ObeysTheConfiguration) {
  ASSERT_EQ(train("--batch-size 4", "run").exit_code, 0);
  const std::string model = folder_ / "run/model";
  const auto original = nlohmann::json::parse(file("run/model/config.json"));
  EXPECT_EQ(original["activation_function"], "gelu_new");
  EXPECT_EQ(original["eos_token_id"], nullptr) << "characters have none";
  const std::string plain = sample("--weights " + model + " --prompt 'the cat' --temperature 0 --tokens 40").output;
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto config = original;
    config[key] = value;
    std::ofstream(folder_ / "run/model/config.json") << config;
    return sample("--weights " + model + " --prompt 'the cat' --temperature 0 --tokens 40").output;
  };
  const auto vocabulary = nlohmann::json::parse(file("run/model/vocab.json"));
  const std::string first_line = plain.substr(0, plain.find('\n') + 1);
  EXPECT_EQ(with("eos_token_id", vocabulary["\u010A"]), first_line);
  EXPECT_EQ(with("eos_token_id", {-1, vocabulary["\u010A"]}), first_line);
  std::ofstream(folder_ / "run/model/generation_config.json") << R"({"eos_token_id": )" << vocabulary["."] << '}';
  EXPECT_EQ(with("eos_token_id", nullptr), plain.substr(0, plain.find('.')) + '\n');
  const Outcome again = train("--batch-size 4 --lr 0 --epochs 1 --weights " + (folder_ / "run"), "again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(file("again/model/generation_config.json"), file("run/model/generation_config.json"));
  EXPECT_EQ(nlohmann::json::parse(file("again/model/config.json"))["eos_token_id"], vocabulary["."]);
  std::filesystem::remove(folder_ / "run/model/generation_config.json");
  EXPECT_EQ(with("activation_function", "gelu_pytorch_tanh"), plain);
  with("activation_function", "gelu");
  const Outcome erf = train("--batch-size 4 --lr 0 --epochs 1 --weights " + (folder_ / "run"), "erf");
  ASSERT_EQ(erf.exit_code, 0) << erf.output;
  EXPECT_EQ(nlohmann::json::parse(file("erf/model/config.json"))["activation_function"], "gelu");
  EXPECT_NE(summary("erf")["val_loss"], summary("again")["val_loss"]) << "the two formulas differ by up to 5e-4";
  for (const auto& [key, value, text] :
       {std::tuple<const char*, nlohmann::json, const char*>{"model_type", "gemma",
                                                             "expected model_type \"gpt2\", got \"gemma\""},
        {"activation_function", "relu", "expected activation_function gelu_new or gelu, got \"relu\""},
        {"tie_word_embeddings", false, "expected tie_word_embeddings true, got false"},
        {"scale_attn_weights", false, "expected scale_attn_weights true, got false"},
        {"scale_attn_by_inverse_layer_idx", true, "expected scale_attn_by_inverse_layer_idx false, got true"},
        {"add_cross_attention", true, "expected add_cross_attention false, got true"},
        {"n_inner", 100, "wrong shape: h.0.mlp.c_fc.weight (expected [100,128], got [512,128])"},
        {"vocab_size", 10, "--tokenizer: expected at most the 10 tokens of the weights, got 22"},
        {"eos_token_id", "x", "eos_token_id: expected a whole number, got string"}})
    EXPECT_THAT(with(key, value), HasSubstr(text));
  with("resid_pdrop", 0.1);
  EXPECT_THAT(train("--dry-run --weights " + (folder_ / "run"), "dry").output,
              HasSubstr(", dropout 0 (the weights' configuration: 0.1)"));
}

TEST_F(GptProgram, SaysWhatIsWrong) {
  const auto error = [&](const std::string& arguments) {
    const Outcome run = train(arguments, "run");
    EXPECT_EQ(run.exit_code, 1) << arguments << run.output;
    return run.output;
  };
  EXPECT_THAT(
      error("--batch-size 2000"),
      HasSubstr("train_gpt: error: --data: a step of 2000 sequences of 16 tokens needs more than the 1600 tokens"));
  EXPECT_EQ(train("--chunks 2", "run").exit_code, 2);
  EXPECT_THAT(train("--pipeline 2 --parallel none", "run").output,
              HasSubstr("--tensor and --pipeline: expected --parallel auto, ddp or fsdp, got none"));
  EXPECT_THAT(train("--sequence", "run").output, HasSubstr("--sequence: expected --tensor above 1 and no --pipeline"));
  EXPECT_THAT(train("--tensor 2 --parallel fsdp --fsdp-checkpoints sharded", "run").output,
              HasSubstr("--fsdp-checkpoints sharded: expected whole layers on each rank, got --tensor or --pipeline"));
  EXPECT_THAT(train("--pipeline 2 --parallel fsdp --fsdp-offload parameters", "run").output,
              HasSubstr("--fsdp-offload parameters: expected no --pipeline, got one"));
  EXPECT_THAT(train("--pipeline 2", "run").output, HasSubstr("--pipeline: 2 stages do not divide 1 rank"));
  EXPECT_THAT(train("--tensor 2", "run").output, HasSubstr("--tensor: 2 does not divide 1 rank"));
  EXPECT_THAT(error("--context 500"),
              HasSubstr("--context: expected fewer than the 400 tokens of the validation text, got 500"));
  ASSERT_EQ(train("--batch-size 4 --max-steps 1", "saved").exit_code, 0);
  const auto original = nlohmann::json::parse(file("saved/model/config.json"));
  const auto with_config = [&](const char* key, const nlohmann::json& value) {
    auto config = original;
    config[key] = value;
    std::ofstream(folder_ / "saved/model/config.json") << config;
    return error("--weights " + (folder_ / "saved"));
  };
  EXPECT_THAT(with_config("activation_function", "relu"),
              HasSubstr(R"(config.json: expected activation_function gelu_new or gelu, got "relu")"));
  EXPECT_THAT(with_config("n_layer", 5), HasSubstr("missing: h.4.ln_1.weight"));
}

TEST(TinyShakespeare, HasAsManyTokensAsElsewhere) {
  const std::string text = std::string(WEFT_SHARED_DATA) + "/text/tinyshakespeare/input.txt";
  if (!std::filesystem::exists(text)) GTEST_SKIP() << text << " is not there";
  const Outcome run = shell(kQuiet + TRAIN_GPT " --dry-run --device cpu --model gpt_tiny --data " + text);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1003854 tokens, 111540 for validation, of 65"));  // as nanoGPT's prepare.py says
}

}  // namespace
}  // namespace weft::tests
