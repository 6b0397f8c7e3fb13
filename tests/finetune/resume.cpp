// SPDX-License-Identifier: Apache-2.0
// Runs that stop and go on from test-trainer/checkpoint-N, and what such a folder holds.
#include <gmock/gmock.h>
#include <signal.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/safetensors.h"
#include "io/torch/torch_object.h"
#include "tests/finetune/program.h"
#include "tests/support/weights_apart.h"
#include "train/exit.h"

#if WEFT_HAVE_UTF8PROC && WEFT_HAVE_ZIP

namespace weft::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// 96 texts: 12 steps an epoch, 36 in all. Dropout draws numbers.
const std::string kTinyRun =
    " --model bert_tiny --vocab-size 100 --lr 1e-3 --epochs 3 --logging-steps 5 --save-steps 20 --weight-decay 0.01 ";

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  return names;
}

/// Lines that a run printed of its training, but for the last one, which has times.
std::vector<std::string> printed(const std::string& output) { return lines(output, R"(\{'(loss|eval_loss).*)"); }

std::string after(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  return at == std::string::npos ? "" : text.substr(at);
}

class FinetuneResume : public ::testing::Test {
 protected:
  void SetUp() override { write_sentences(folder_ / "data"); }
  std::string base() const { return "--data " + (folder_ / "data") + kTinyRun; }

  /// Files that a resumed run must leave as an undisturbed one does.
  void expect_same_checkpoint(const std::string& a, const std::string& b) {
    EXPECT_EQ(names_in(folder_ / a).size(), names_in(folder_ / b).size());
    for (const std::string& name : names_in(folder_ / a)) {
      if (name == "trainer_state.json") continue;  // other steps at which lines are saved with it
      EXPECT_EQ(read_text(folder_ / (a + "/" + name)), read_text(folder_ / (b + "/" + name))) << name;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(FinetuneResume, SaysWhatChangedAndRefusesAnotherSeed) {
  ASSERT_EQ(finetune(base() + "--max-steps 3", folder_).exit_code, 0);
  const Outcome seed = finetune(base() + "--seed 7 --resume-from-checkpoint last --max-steps 4", folder_);
  EXPECT_EQ(seed.exit_code, 1);
  EXPECT_THAT(seed.output, HasSubstr("on which the order of texts depends"));
  const Outcome lr = finetune(base() + "--lr 2e-3 --resume-from-checkpoint last --max-steps 4", folder_);
  EXPECT_EQ(lr.exit_code, 0) << lr.output;
  EXPECT_THAT(lr.output, HasSubstr("with other settings than the checkpoint: lr 0.001 -> 0.002\n"));
}

// One bit in a file of the last checkpoint, or a file that is gone.
TEST_F(FinetuneResume, PassesOverADamagedCheckpoint) {
  ASSERT_EQ(finetune(base() + "--save-steps 3 --max-steps 7", folder_).exit_code, 0);
  const std::string last = folder_ / "run/checkpoint-7", before = folder_ / "run/checkpoint-6";
  const std::string resumed = base() + "--resume-from-checkpoint auto --max-steps 7 ";
  for (const char* name : {"model.safetensors", "optimizer.pt", "scheduler.pt", "vocab.txt", "trainer_state.json"}) {
    SCOPED_TRACE(name);
    const std::string path = last + "/" + name, whole = read_text(path);
    std::string damaged = whole;
    if (name == std::string("scheduler.pt"))
      fs::remove(path);
    else if (name == std::string("trainer_state.json"))
      write(path, whole.substr(0, whole.size() / 2));
    else
      damaged[damaged.size() / 2] ^= 4, write(path, damaged);
    const Outcome run = finetune(resumed, folder_);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("; going on from " + before + "\n"));
    EXPECT_THAT(run.output, HasSubstr("resumed from " + before + " at step 6"));
    EXPECT_EQ(read_text(path), whole) << "the damaged step was made again";
  }
  write(last + "/optimizer.pt", "");
  EXPECT_THAT(finetune(base() + "--max-steps 8 --resume-from-checkpoint " + last, folder_).output,
              HasSubstr("optimizer.pt: damaged: its bytes do not fit their checksum in trainer_state.json"));
  for (const char* other : {"run/checkpoint-6", "run/checkpoint-3"}) write(folder_ / other + "/optimizer.pt", "");
  const Outcome none = finetune(resumed, folder_);
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr("checkpoint-7/optimizer.pt: damaged"));
}

TEST_F(FinetuneResume, ACheckpointHoldsWhatTheTrainerKeeps) {
  const Outcome run = finetune(base() + "--epochs 2", folder_);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::string folder = folder_ / "run/checkpoint-20";
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("model.safetensors", "config.json", "optimizer.pt", "scheduler.pt",
                                                     "trainer_state.json", "vocab.txt", "weft_rng_state.pth",
                                                     "tokenizer_config.json", "special_tokens_map.json"));
  const auto state = nlohmann::json::parse(read_text(folder + "/trainer_state.json"));
  EXPECT_EQ(state["global_step"], 20);
  EXPECT_EQ(state["max_steps"], 24);
  EXPECT_EQ(state["train_batch_size"], 8);
  EXPECT_NEAR(state["epoch"].get<double>(), 20 / 12.0, 1e-9);
  // Hugging Face's Trainer writes into this entry when it saves, and fails where there is none.
  const auto control = state["stateful_callbacks"]["TrainerControl"];
  EXPECT_EQ(control["args"]["should_training_stop"], false);
  EXPECT_TRUE(control["attributes"].is_object());
  ASSERT_EQ(state["log_history"].size(), 5u);  // steps 5, 10, 12 (evaluation), 15, 20
  EXPECT_EQ(state["log_history"][2]["step"], 12);
  EXPECT_TRUE(state["log_history"][2].contains("eval_loss"));

  // Parameters are numbered as torch.optim does: matrices, then vectors, each in the order of Hugging Face's modules.
  const TorchObject optimizer = read_torch(folder + "/optimizer.pt");
  const auto& groups = std::get<TorchObject::List>(optimizer.at("param_groups", "optimizer.pt").is);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].at("weight_decay", "").number(""), 0.01);
  EXPECT_EQ(groups[1].at("weight_decay", "").number(""), 0);
  EXPECT_EQ(groups[0].at("initial_lr", "").number(""), 1e-3);
  const auto& matrices = std::get<TorchObject::List>(groups[0].at("params", "").is);
  const auto& vectors = std::get<TorchObject::List>(groups[1].at("params", "").is);
  EXPECT_EQ(matrices.size(), 3u + 2 * 6 + 2);
  EXPECT_EQ(vectors.size(), 2u + 2 * 10 + 2);
  EXPECT_EQ(vectors.front().integer(""), static_cast<int64_t>(matrices.size()));
  const auto& states = std::get<TorchObject::Dict>(optimizer.at("state", "").is);
  ASSERT_EQ(states.size(), matrices.size() + vectors.size());
  const auto moment = [&](size_t number) { return std::get<Tensor>(states[number].value.at("exp_avg", "").is); };
  EXPECT_EQ(std::get<Tensor>(states[0].value.at("step", "").is).item(), 20);
  EXPECT_EQ(moment(1).sizes(), (Shape{512, 128}));  // positions
  EXPECT_EQ(moment(2).sizes(), (Shape{2, 128}));    // token types
  EXPECT_EQ(moment(4).sizes(), (Shape{128, 128}));  // the first layer's key
  EXPECT_EQ(moment(7).sizes(), (Shape{512, 128}));  // its intermediate.dense
  EXPECT_EQ(moment(8).sizes(), (Shape{128, 512}));  // its output.dense
  EXPECT_EQ(moment(16).sizes(), (Shape{2, 128}));   // classifier

  const TorchObject scheduler = read_torch(folder + "/scheduler.pt");
  EXPECT_EQ(scheduler.at("last_epoch", "").integer(""), 20);
  const auto& last = std::get<TorchObject::List>(scheduler.at("_last_lr", "").is);
  EXPECT_NEAR(last.at(0).number(""), 1e-3 * (1 - 20.0 / 24), 1e-12);
}

/// torch.optim counts each parameter's steps in place: were they one tensor in the file, a step would count for each.
TEST_F(FinetuneResume, PyTorchGoesOnFromTheOptimizer) {
  if (shell("/usr/bin/python3 -c 'import torch'").exit_code != 0)
    GTEST_SKIP() << "NOT TESTED against PyTorch: install python3-torch to do so";
  ASSERT_EQ(finetune(base() + "--max-steps 20", folder_).exit_code, 0);
  write(folder_ / "check.py", R"(import sys, torch
saved = torch.load(sys.argv[1] + "/optimizer.pt")
groups = [{"params": [torch.nn.Parameter(torch.zeros_like(saved["state"][i]["exp_avg"])) for i in group["params"]]}
          for group in saved["param_groups"]]
adam = torch.optim.AdamW(groups, lr=1)
adam.load_state_dict(saved)
schedule = torch.optim.lr_scheduler.LambdaLR(adam, [lambda step: 1 - step / 36] * 2)
schedule.load_state_dict({**torch.load(sys.argv[1] + "/scheduler.pt"), "lr_lambdas": [None] * 2})
for group in groups:
    for parameter in group["params"]:
        parameter.grad = torch.ones_like(parameter)
adam.step()
schedule.step()
print("steps", {float(state["step"]) for state in adam.state.values()}, schedule.last_epoch, schedule.get_last_lr()[1])
)");
  const Outcome run = shell("/usr/bin/python3 " + (folder_ / "check.py") + " " + (folder_ / "run/checkpoint-20"));
  EXPECT_THAT(run.output, HasSubstr("steps {21.0} 21 0.00041666")) << run.output;
}

TEST_F(FinetuneResume, GoesOnBitForBit) {
  const Outcome whole = finetune(base() + "--ema 0.9", folder_, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  // Behind an epoch, inside one, and from a folder by name.
  std::string lines_of_pieces;
  for (const std::string stop : {"12", "17", "29"}) {
    const Outcome part =
        finetune(base() + "--ema 0.9 --resume_from_checkpoint auto --max-steps " + stop, folder_, "pieces");
    ASSERT_EQ(part.exit_code, 0) << part.output;
    EXPECT_THAT(part.output, HasSubstr("stopped by --max-steps after step " + stop));
    lines_of_pieces += part.output;
  }
  const Outcome rest = finetune(base() + "--ema 0.9 --resume_from_checkpoint", folder_, "pieces");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("resumed from " + (folder_ / "pieces/checkpoint-29") + " at step 29"));
  lines_of_pieces += rest.output;
  EXPECT_EQ(printed(lines_of_pieces), printed(whole.output));
  expect_same_checkpoint("whole/checkpoint-36", "pieces/checkpoint-36");
  EXPECT_EQ(read_text(folder_ / "whole/checkpoint-36/trainer_state.json"),
            read_text(folder_ / "pieces/checkpoint-36/trainer_state.json"));
  const auto loss = [](const std::string& output) {  // loss of the whole run
    const std::string line = after(output, "'train_loss': ");
    return line.substr(0, line.find(','));
  };
  EXPECT_EQ(loss(rest.output), loss(whole.output));

  const Outcome again =
      finetune(base() + "--ema 0.9 --resume_from_checkpoint " + (folder_ / "whole/checkpoint-20"), folder_, "again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  expect_same_checkpoint("whole/checkpoint-36", "again/checkpoint-36");
  EXPECT_TRUE(fs::exists(folder_ / "whole/checkpoint-36/ema.safetensors"));
}

TEST_F(FinetuneResume, LayerDecayGoesOnToo) {
  const std::string more = base() + "--layer-decay 0.5 --epochs 1 ";
  const Outcome whole = finetune(more, folder_, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  ASSERT_EQ(finetune(more + "--max-steps 7", folder_, "pieces").exit_code, 0);
  const Outcome rest = finetune(more + "--resume_from_checkpoint last", folder_, "pieces");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  expect_same_checkpoint("whole/checkpoint-12", "pieces/checkpoint-12");
  const TorchObject optimizer = read_torch(folder_ / "whole/checkpoint-12/optimizer.pt");
  const auto& groups = std::get<TorchObject::List>(optimizer.at("param_groups", "").is);
  ASSERT_EQ(groups.size(), 8u);  // embeddings, two layers, what is behind; matrices and vectors
  EXPECT_EQ(groups.front().at("initial_lr", "").number(""), 1e-3 / 8);
  EXPECT_EQ(groups.back().at("initial_lr", "").number(""), 1e-3);
}

double apart(const std::string& a, const std::string& b) {
  return weights_apart(a + "/model.safetensors", b + "/model.safetensors");
}

// 96 texts: the ninth step has 6 and 0 texts of 6 and 5; clipping sees the size of the gradient.
const std::string kAccumulated = " --epochs 1 --dropout 0 --lr 1e-4 ";

TEST_F(FinetuneResume, AccumulatedBatchesAreOneLargeBatch) {
  const Outcome large = finetune(base() + kAccumulated + "--batch-size 14", folder_, "large");
  ASSERT_EQ(large.exit_code, 0) << large.output;
  const Outcome small = finetune(base() + kAccumulated + "--batch-size 7 --accumulate 2", folder_, "small");
  ASSERT_EQ(small.exit_code, 0) << small.output;
  EXPECT_LT(apart(folder_ / "large/checkpoint-7", folder_ / "small/checkpoint-7"), 1e-6);
  const auto norms = [](const std::string& output) {
    std::vector<double> found;
    for (const std::string& line : lines(output, R"(\{'loss.*)"))
      found.push_back(std::atof(after(line, "'grad_norm': ").substr(13).c_str()));
    return found;
  };
  ASSERT_EQ(norms(large.output).size(), 1u);
  EXPECT_NEAR(norms(small.output).at(0), norms(large.output).at(0), 1e-3 * norms(large.output).at(0));
}

TEST_F(FinetuneResume, SigtermSavesAndEndsWith75) {
  const std::string out = folder_ / "run", log = folder_ / "log";
  Outcome run;
  std::thread waiter([&] {
    run = shell("{ " FINETUNE " " + base() + "--epochs 10000 --out " + out + " & echo $! > " + log + "; wait $!; }");
  });
  for (int tries = 0; tries < 600 && !fs::exists(out + "/checkpoint-20"); ++tries) usleep(50000);
  const auto process = static_cast<pid_t>(std::atoi(read_text(log).c_str()));
  ASSERT_GT(process, 0);
  kill(process, SIGTERM);
  waiter.join();
  EXPECT_EQ(run.exit_code, train::kExitRequeue) << run.output;
  const std::string line = after(run.output, "stopped by SIGTERM after step ");
  ASSERT_FALSE(line.empty()) << run.output;
  EXPECT_TRUE(fs::exists(out + "/checkpoint-" + std::to_string(std::atoi(line.c_str() + 30)) + "/optimizer.pt"))
      << line;
}

TEST_F(FinetuneResume, AFinishedRunIsOverwrittenOnRequestOnly) {
  ASSERT_EQ(finetune(base() + "--epochs 1", folder_).exit_code, 0);
  const Outcome again = finetune(base() + "--epochs 1", folder_);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.output, HasSubstr("run folder: expected a new folder, got " + (folder_ / "run") +
                                      " with checkpoint-12 of another run. --resume-from-checkpoint last continues it, "
                                      "--out names another folder, --overwrite replaces it"));
  const Outcome own = finetune(base() + "--overwrite --weights " + (folder_ / "run/checkpoint-12"), folder_);
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_THAT(own.output, HasSubstr("--overwrite: would remove the --weights " + (folder_ / "run/checkpoint-12")));
  EXPECT_EQ(finetune(base() + "--overwrite --weights /nowhere", folder_).exit_code, 1);
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoint-12")) << "a run that cannot begin replaces none";
  ASSERT_EQ(finetune(base() + "--epochs 1 --batch-size 16 --overwrite_output_dir", folder_).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoint-6"));
  EXPECT_FALSE(fs::exists(folder_ / "run/checkpoint-12")) << "it was of the other run";
}

TEST_F(FinetuneResume, GoesOnFromTheStateOfHuggingFacesTrainer) {
  const std::string flags = base() + "--dropout 0 --epochs 2 ";
  const Outcome whole = finetune(flags, folder_, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  ASSERT_EQ(finetune(flags + "--max-steps 15", folder_, "theirs").exit_code, 0);
  // As theirs are: without what finetune adds, and with a random state that is none of Weft's.
  const std::string folder = folder_ / "theirs/checkpoint-15";
  auto state = nlohmann::json::parse(read_text(folder + "/trainer_state.json"));
  state["stateful_callbacks"].erase("weft");
  const std::string theirs = state.dump();
  write(folder + "/trainer_state.json", theirs);
  fs::remove(folder + "/weft_rng_state.pth");
  write(folder + "/rng_state.pth", "numpy's and Python's generators");
  const Outcome rest = finetune(flags + "--resume_from_checkpoint", folder_, "theirs");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("resumed from " + folder + " at step 15"));
  EXPECT_THAT(rest.output, HasSubstr("has no random state for it: dropout starts from its seed"));
  EXPECT_EQ(read_text(folder_ / "whole/checkpoint-24/model.safetensors"),
            read_text(folder_ / "theirs/checkpoint-24/model.safetensors"));
  // The mean loss of the run is that of its lines, printed with four digits.
  const auto train_loss = [](const std::string& output) {
    return std::atof(after(output, "'train_loss': ").substr(14).c_str());
  };
  EXPECT_NEAR(train_loss(rest.output), train_loss(whole.output), 1e-4);
  // A loss of theirs may be NaN, which Python writes although JSON lacks it.
  state["log_history"][0]["loss"] = "a loss";
  std::string text = state.dump();
  write(folder + "/trainer_state.json", text.replace(text.find("\"a loss\""), 8, "NaN"));
  const Outcome diverged = finetune(flags + "--resume_from_checkpoint " + folder, folder_, "diverged");
  EXPECT_EQ(diverged.exit_code, 0) << diverged.output;
  EXPECT_THAT(diverged.output, HasSubstr("resumed from " + folder + " at step 15"));
  write(folder + "/trainer_state.json", theirs);
  const Outcome other = finetune(flags + "--epochs 3 --resume_from_checkpoint " + folder, folder_, "other");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("was made in a run of 24 steps, this run has 36"));
  // Each parameter has a count of steps of its own.
  const TorchObject optimizer = read_torch(folder + "/optimizer.pt");
  const auto count_of = [](const TorchObject& from, size_t parameter) {
    const auto& states = std::get<TorchObject::Dict>(from.at("state", "").is);
    return std::get<Tensor>(states[parameter].value.at("step", "").is);
  };
  count_of(optimizer, 0).fill_(10);
  write_torch(folder + "/optimizer.pt", optimizer);
  const Outcome counted = finetune(flags + "--max-steps 16 --resume_from_checkpoint " + folder, folder_, "counted");
  EXPECT_THAT(counted.output, HasSubstr("resumed from " + folder + " at step 15"));
  const TorchObject written = read_torch(folder_ / "counted/checkpoint-16/optimizer.pt");
  EXPECT_EQ(count_of(written, 0).item(), 11);
  EXPECT_EQ(count_of(written, 1).item(), 16);
}

TEST_F(FinetuneResume, SaysWhatDoesNotFit) {
  ASSERT_EQ(finetune(base() + "--epochs 1", folder_).exit_code, 0);
  const std::string folder = folder_ / "run/checkpoint-12";
  const auto expect_refusal = [&](const std::string& arguments, const std::string& text) {
    const Outcome run = finetune(base() + "--epochs 1 " + arguments, folder_, "other");
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_THAT(run.output, HasSubstr("finetune: error: " + text));
  };
  expect_refusal("--resume_from_checkpoint",
                 "--resume-from-checkpoint last: there is no checkpoint-N in " + (folder_ / "other"));
  expect_refusal("--resume_from_checkpoint " + (folder_ / "data"),
                 "--resume-from-checkpoint " + (folder_ / "data") + ": expected a folder with trainer_state.json");
  const std::string resumed = "--resume_from_checkpoint " + folder;
  expect_refusal("--batch-size 16 " + resumed,
                 "checkpoint " + folder + " was made in a run of 12 steps of 8 texts, this run has 6 of 16");
  expect_refusal("--ema 0.9 " + resumed, "checkpoint " + folder + " was made without --ema");
  expect_refusal("--layer-decay 0.5 " + resumed, folder + "/optimizer.pt: expected 8 parameter groups");
  write(folder + "/trainer_state.json", "{}");
  expect_refusal(resumed, "trainer state: " + folder +
                              "/trainer_state.json: expected what finetune or Hugging Face's Trainer writes");
}

#if WEFT_HAVE_RANKS
TEST_F(FinetuneResume, OnTwoRanksBitForBit) {
  const WithoutGpus on_the_cpu;
  for (const std::string parallel : {"ddp", "fsdp --min-num-params 100000"}) {
    SCOPED_TRACE(parallel);
    const std::string more = base() + "--epochs 2 --batch-size 4 --ema 0.9 --layer-decay 0.7 --parallel " + parallel;
    const std::string out = parallel.substr(0, 4);
    const Outcome whole = finetune_on_two(more, folder_, out);
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
    const Outcome first = finetune_on_two(more + " --max-steps 17", folder_, out + "2");
    ASSERT_EQ(first.exit_code, 0) << first.output;
    EXPECT_TRUE(fs::exists(folder_ / (out + "2/checkpoint-17/weft_rng_state_1.pth")));
    const Outcome rest = finetune_on_two(more + " --resume_from_checkpoint last", folder_, out + "2");
    ASSERT_EQ(rest.exit_code, 0) << rest.output;
    EXPECT_EQ(printed(first.output + rest.output), printed(whole.output));
    expect_same_checkpoint(out + "/checkpoint-24", out + "2/checkpoint-24");
  }
}

TEST_F(FinetuneResume, AccumulatedBatchesAreOneLargeBatchOnTwoRanks) {
  const WithoutGpus on_the_cpu;
  ASSERT_EQ(finetune(base() + kAccumulated + "--batch-size 20", folder_, "large").exit_code, 0);
  for (const std::string parallel : {"ddp", "fsdp --min-num-params 100000"}) {
    const std::string out = parallel.substr(0, 4);
    const Outcome run =
        finetune_on_two(base() + kAccumulated + "--batch-size 5 --accumulate 2 --parallel " + parallel, folder_, out);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_LT(apart(folder_ / "large/checkpoint-5", folder_ / (out + "/checkpoint-5")), 1e-6) << parallel;
  }
}

// 91 texts in steps of 9: in the last one, two of three ranks have none. In steps of 18 it is their second batch.
TEST_F(FinetuneResume, ThreeRanksTrainEachTextOnce) {
  const WithoutGpus on_the_cpu;
  const std::string train = folder_ / "data/train.tsv";
  shell("head -n 92 " + train + " > " + train + ".new && mv " + train + ".new " + train);
  for (const auto& [accumulate, last] : {std::pair(1, "11"), std::pair(2, "6")}) {
    const std::string flags = base() + kAccumulated + "--logging-steps 1 --accumulate " + std::to_string(accumulate),
                      run = std::to_string(accumulate), end = std::string("/checkpoint-") + last;
    const Outcome one = finetune(flags + " --batch-size 9", folder_, "one" + run);
    ASSERT_EQ(one.exit_code, 0) << one.output;
    const auto losses = [](const std::string& output) {
      std::vector<double> found;
      for (const std::string& line : lines(output, R"(\{'loss.*)")) found.push_back(std::atof(line.substr(9).c_str()));
      return found;
    };
    for (const std::string parallel : {"ddp", "fsdp --min-num-params 100000"}) {
      const std::string out = parallel.substr(0, 4) + run;
      const Outcome three = finetune_on(3, flags + " --batch-size 3 --parallel " + parallel, folder_, out);
      ASSERT_EQ(three.exit_code, 0) << three.output;
      EXPECT_LT(apart(folder_ / ("one" + run + end), folder_ / (out + end)), 1e-6) << parallel;
      EXPECT_THAT(losses(three.output), testing::Pointwise(testing::DoubleNear(1.1e-4), losses(one.output)))
          << "printed with four digits";
    }
  }
}
#endif

}  // namespace
}  // namespace weft::tests

#endif
