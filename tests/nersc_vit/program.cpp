// SPDX-License-Identifier: Apache-2.0
// train_vit as its users start it, on made-up fields.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "data/hdf5_fields.h"
#include "tests/support/devices.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::string kQuiet = "OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 ";

#if WEFT_HAVE_FILES

/// Made-up fields for all tests of this program.
class TrainVit : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const Outcome made =
        shell(MAKE_FIELDS " --out " + *folder_ / "fields" + " --channels 4 --rows 16 --columns 32 --times 41");
    ASSERT_EQ(made.exit_code, 0) << made.output;
    ASSERT_THAT(made.output, HasSubstr("train_vit --yaml_config "));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string yaml() { return *folder_ / "fields/ViT.yaml"; }
  static std::string logs(const std::string& run) { return *folder_ / ("fields/logs/base/" + run); }
  static std::string line(const std::string& arguments) {
    return TRAIN_VIT " --device cpu --yaml_config " + yaml() + " " + arguments;
  }
  static Outcome train(const std::string& arguments, const std::string& environment = "") {
    return shell(kQuiet + environment + line(arguments));
  }
  static Outcome train_ranks(int ranks, const std::string& arguments) {
    return shell(kQuiet + WEFT_RUN " --nproc_per_node " + std::to_string(ranks) + " " + line(arguments));
  }
  static void expect_refusal(const std::string& arguments, int exit_code, const std::string& text) {
    const Outcome run = train(arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.output;
    EXPECT_THAT(run.output, HasSubstr("train_vit: error: ")) << arguments;
    EXPECT_THAT(run.output, HasSubstr(text)) << arguments;
  }
  /// ViT.yaml with a replaced line, in the same folder.
  static std::string changed_yaml(const std::string& from, const std::string& to) {
    std::string text = read_text(yaml());
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const std::string path = *folder_ / "changed.yaml";
    std::ofstream(path) << text;
    return path;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* TrainVit::folder_ = nullptr;

/// The numbers behind a text, line by line.
std::vector<double> numbers(const std::string& output, const std::string& text) {
  std::vector<double> found;
  for (size_t at = output.find(text); at != std::string::npos; at = output.find(text, at + 1))
    found.push_back(std::stod(output.substr(at + text.size())));
  return found;
}

std::vector<double> losses(const std::string& output) {
  std::vector<double> all = numbers(output, "  Avg train loss=");
  const std::vector<double> val = numbers(output, "  Avg val loss=");
  all.insert(all.end(), val.begin(), val.end());
  return all;
}

TEST_F(TrainVit, LossFallsAndTheLinesAreThoseOfTheWorkflow) {
  const Outcome run = train(
      "--num_iters 60 --num_data_workers 2 --enable_fused --enable_jit --data_loader_config dali "
      "--disable_broadcast_buffers --run_num one");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::vector<double> train_loss = numbers(run.output, "  Avg train loss="),
                            val_loss = numbers(run.output, "  Avg val loss=");
  ASSERT_EQ(train_loss.size(), 12u) << "80 pairs in batches of 16 are 5 steps an epoch";
  ASSERT_EQ(val_loss.size(), 12u);
  EXPECT_LT(train_loss.back(), 0.75 * train_loss.front());
  EXPECT_LT(val_loss.back(), 0.8 * val_loss.front());
  const std::string stamp = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - root - INFO - )";
  const std::string log = read_text(logs("1GPU/one/out.log"));
  for (const std::string& pattern :
       {std::string("Starting Training Loop\\.\\.\\."),
        std::string("Time taken for epoch 12 is [0-9.e-]+ sec, avg [0-9.e+]+ samples/sec"),
        std::string("  Avg train loss=0\\.\\d{6}"), std::string("  Avg val loss=0\\.\\d{6}"),
        std::string("  Total validation time: [0-9.e-]+ sec"), std::string("DONE ---- rank 0")}) {
    const std::regex line("(^|\n)" + stamp + pattern + "\n");
    EXPECT_TRUE(std::regex_search(run.output, line)) << pattern << '\n' << run.output;
    EXPECT_TRUE(std::regex_search(log, line)) << pattern;
  }
  // Each key without meaning here is reported once.
  for (const char* word :
       {"enable_fused: ", "enable_jit: ", "data_loader_config dali: ", "disable_broadcast_buffers: "}) {
    const std::string note = std::string("without effect: ") + word;
    EXPECT_THAT(log, HasSubstr(note));
    EXPECT_EQ(log.find(note), log.rfind(note)) << word;
  }
  // Numbers by step under the workflow's names.
  std::istringstream lines(read_text(logs("1GPU/one/logs/metrics.jsonl")));
  nlohmann::json last;
  for (std::string text; std::getline(lines, text);) {
    last = nlohmann::json::parse(text);
    if (last["step"] == 0) {
      EXPECT_NEAR(last["Loss/train"].get<double>(), 1, 0.2);
    }
  }
  EXPECT_EQ(last["step"], 60);
  EXPECT_NEAR(last["Loss/valid"].get<double>(), val_loss.back(), 1e-6);
  EXPECT_LT(last["RMSE(u10m)/valid"].get<double>(), 1);
  for (const char* name : {"Learning Rate", "Avg iters per sec", "Avg samples per sec"})
    EXPECT_TRUE(last.contains(name)) << name;
}

TEST_F(TrainVit, ADryRunWritesNothing) {
  const Outcome run = train("--num_iters 20 --run_num dry --dry-run");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("grid    1 data x 1 model ranks"));
  EXPECT_THAT(run.output, HasSubstr("steps   20 of 16 samples, 5 an epoch"));
  EXPECT_FALSE(std::filesystem::exists(logs("1GPU/dry")));
}

TEST_F(TrainVit, AFinishedRunHasNothingLeftToDo) {
  ASSERT_EQ(train("--num_iters 5 --run_num done").exit_code, 0);
  const Outcome again = train("--num_iters 5 --run_num done --resume");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resumed from "));
  EXPECT_THAT(again.output, testing::Not(HasSubstr("Time taken")));
  const Outcome anew = train("--num_iters 5 --run_num done");
  EXPECT_EQ(anew.exit_code, 1);
  EXPECT_THAT(anew.output,
              HasSubstr("with checkpoint.safetensors of another run. --resume continues it, --run_num names "
                        "another folder, --overwrite replaces it"));
  ASSERT_EQ(train("--num_iters 5 --run_num done --overwrite").exit_code, 0);
  EXPECT_EQ(losses(read_text(logs("1GPU/done/out.log"))).size(), 2u) << "those of one epoch, and none before";
  const Outcome seed = train("--num_iters 10 --run_num done --resume --seed 7");
  EXPECT_EQ(seed.exit_code, 0) << seed.output;  // between two epochs
  EXPECT_THAT(seed.output, HasSubstr("with other settings than the checkpoint: num_iters 5 -> 10, seed 0 -> 7"));
  const Outcome other = train("--num_iters 10 --run_num done --resume --local_batch_size 8");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("was made with 16 samples per step, this run has 8"));
}

/// Ends the run by SIGTERM after `seconds`.
std::string timed(double seconds) { return "timeout -s TERM " + std::to_string(seconds) + " "; }

TEST_F(TrainVit, StoppedStepsGoOnBitForBit) {
  // Long epochs, so that the stops fall into them.
  const std::string flags = "--local_batch_size 1 --num_iters 2000 --run_num ";
  const Outcome whole = train(flags + "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  Outcome run;
  double seconds = 0.3;  // more each time: on a busy machine the start alone may take that long
  int stops = 0;
  do {
    run = shell(kQuiet + timed(seconds) + line(flags + "parts --resume"));
    stops += run.output.find("continue with --resume") != std::string::npos;
    seconds *= 1.25;
  } while (run.exit_code == 124 && seconds < 30);  // exit code of timeout; the program's own is 75
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(losses(read_text(logs("1GPU/parts/out.log"))), losses(whole.output));
  EXPECT_GT(stops, 0) << "no stop fell into the run";
}

// The batch system is told to submit it again, who pressed Ctrl-C is not. In epochs of 80 steps a signal falls between
// two of them; with a single step it is seen at the end of an epoch.
TEST_F(TrainVit, SignalsEndItWithACheckpoint) {
  for (const auto& [signal, exit_code] : {std::pair("INT", 0), std::pair("TERM", 75)})
    for (const int batch : {1, 80}) {
      const std::string name = str("stopped_by_", signal, "_", batch), log = *folder_ / (name + ".txt");
      const Outcome run =
          shell(kQuiet + line(str("--local_batch_size ", batch, " --num_iters 1000000 --run_num ", name)) + " > " +
                log + " 2>&1 & run=$!; for i in $(seq 1200); do grep -q 'Time taken for epoch' " + log +
                " && break; sleep 0.05; done; kill -" + signal + " $run; wait $run");
      EXPECT_EQ(run.exit_code, exit_code) << read_text(log);
      EXPECT_THAT(read_text(log), HasSubstr("continue with --resume"));
      EXPECT_TRUE(std::filesystem::exists(logs("1GPU/" + name + "/checkpoint.safetensors")));
    }
}

TEST_F(TrainVit, HalfPrecisionTrainsToo) {
  const Outcome full = train("--num_iters 20 --run_num f32"),
                low = train("--num_iters 20 --amp_mode bf16 --run_num bf16");
  ASSERT_EQ(low.exit_code, 0) << low.output;
  const std::vector<double> a = losses(full.output), b = losses(low.output);
  ASSERT_EQ(a.size(), b.size());
  // Products of bf16 err by 2^-8; a relative loss of order 1 hands that on.
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0x1p-8 * 2) << i;
}

TEST_F(TrainVit, Fp16TrainsWithALossScale) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const Outcome run =
      train("--yaml_config " + changed_yaml("limit_nsamples_val: None", "limit_nsamples_val: 1") +
            " --amp_mode fp16 --local_batch_size 1 --num_iters 3 --run_num fp16 --device " + gpu_device());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("DONE ---- rank 0"));
  for (const double loss : losses(run.output)) EXPECT_NEAR(loss, 1, 0.2);
}

TEST_F(TrainVit, ACapturedStepIsTheSameStep) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const std::string flags = "--yaml_config " + changed_yaml("limit_nsamples_val: None", "limit_nsamples_val: 1") +
                            " --local_batch_size 1 --num_iters 5 --device " + gpu_device();
  const Outcome eager = train(flags + " --graph off --run_num eager"),
                graph = train(flags + " --graph on --run_num graph");
  ASSERT_EQ(graph.exit_code, 0) << graph.output;
  EXPECT_EQ(losses(graph.output), losses(eager.output));
}

#if WEFT_HAVE_RANKS

/// Printed with six digits; sums of the ranks come in another order, which moves f32 losses of order 1 by some 1e-6.
void expect_same_losses(const Outcome& got, const Outcome& want) {
  ASSERT_EQ(got.exit_code, 0) << got.output;
  const std::vector<double> a = losses(got.output), b = losses(want.output);
  ASSERT_EQ(a.size(), b.size()) << got.output;
  ASSERT_GT(a.size(), 0u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 5e-6) << i;
}

/// A row of the table in benchmarks/results: the last epoch's losses in training and validation.
void print_row(const std::string& grid, const Outcome& run) {
  const std::vector<double> all = losses(run.output);
  if (!all.empty()) std::printf("| %s | %.6f | %.6f |\n", grid.c_str(), all[all.size() / 2 - 1], all.back());
}

TEST_F(TrainVit, EveryGridGivesTheSameLosses) {
  const Outcome one = train("--num_iters 20 --run_num grid");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  print_row("1 x 1", one);
  for (const auto& [ranks, model] : {std::pair(2, 1), std::pair(2, 2), std::pair(4, 2), std::pair(4, 4)}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(model) + " model");
    const Outcome many = train_ranks(ranks, "--num_iters 20 --run_num grid" + std::to_string(ranks) +
                                                " --row_parallel_size " + std::to_string(model));
    expect_same_losses(many, one);
    print_row(str(ranks / model, " x ", model), many);
    EXPECT_TRUE(std::filesystem::exists(logs(std::to_string(model > 1 ? model : ranks) + (model > 1 ? "MP" : "GPU") +
                                             "/grid" + std::to_string(ranks) + "/out.log")));
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_THAT(many.output, HasSubstr("DONE ---- rank " + std::to_string(rank)));
  }
}

// 47 and 17 samples and steps of 16: three rows have 6, 5 and 5 of a step, and the last of a validation has one sample.
TEST_F(TrainVit, EveryGridGivesTheSameLossesWhateverDividesWhat) {
  const std::string flags = "--yaml_config " +
                            changed_yaml("  limit_nsamples: None\n  limit_nsamples_val: None",
                                         "  limit_nsamples: 47\n  limit_nsamples_val: 17") +
                            " --num_iters 6 --run_num rest";
  const Outcome one = train(flags);
  ASSERT_EQ(one.exit_code, 0) << one.output;
  ASSERT_EQ(losses(one.output).size(), 6u) << "2 whole steps an epoch";
  print_row("1 x 1", one);
  for (const int data : {1, 2, 3, 4})
    for (const int model : {1, 2}) {
      if (data * model == 1) continue;
      SCOPED_TRACE(str(data, " data x ", model, " model ranks"));
      const Outcome many =
          train_ranks(data * model, flags + str(data, "x", model) + " --row_parallel_size " + str(model));
      expect_same_losses(many, one);
      print_row(str(data, " x ", model), many);
    }
}

// 47 samples in steps of 16 (a data rank of three has 5 of them), in micro-batches that divide neither; clipping acts.
TEST_F(TrainVit, EveryPipelineGivesTheSameLosses) {
  std::string deep = read_text(changed_yaml("  limit_nsamples: None\n  limit_nsamples_val: None",
                                            "  limit_nsamples: 47\n  limit_nsamples_val: 17"));
  deep.replace(deep.find("  depth: 2"), 10, "  depth: 4");
  std::ofstream(*folder_ / "deep.yaml") << deep;
  const std::string flags =
      "--yaml_config " + *folder_ / "deep.yaml" + " --num_iters 6 --max_grad_norm 0.05 --run_num stages";
  const Outcome one = train(flags);
  ASSERT_EQ(one.exit_code, 0) << one.output;
  print_row("1 x 1 x 1 stages of 1 chunks", one);
  struct Grid {
    int stages, chunks, data, model, micro_batches;
  };
  for (const auto& [stages, chunks, data, model, micro] : {Grid{2, 1, 1, 1, 3},
                                                           {4, 1, 1, 1, 0},
                                                           {2, 2, 1, 1, 5},
                                                           {2, 1, 2, 1, 0},
                                                           {2, 2, 3, 1, 3},
                                                           {2, 1, 1, 2, 4},
                                                           {2, 2, 2, 2, 3}}) {
    SCOPED_TRACE(str(stages, " stages x ", chunks, " chunks, ", data, " data x ", model, " model ranks"));
    const std::string name = str(stages, "x", chunks, "x", data, "x", model);
    const Outcome many =
        train_ranks(stages * data * model, flags + name + " --pipeline_parallel_size " + str(stages) +
                                               " --pipeline_chunks " + str(chunks) + " --row_parallel_size " +
                                               str(model) + " --micro_batches " + str(micro));
    expect_same_losses(many, one);
    print_row(str(data, " x ", model, " x ", stages, " stages of ", chunks, " chunks"), many);
    EXPECT_THAT(many.output, HasSubstr(str(data, " data x ", model, " model x ", stages, " stages")));
    EXPECT_TRUE(
        std::filesystem::exists(logs(str(model > 1 ? str(model, "MP") : "", stages, "PP/stages", name, "/out.log"))));
  }
}

TEST_F(TrainVit, ACheckpointOfAPipelineGoesOnAtAnyGrid) {
  const std::string flags = "--yaml_config " + changed_yaml("'cosine'", "'none'") + " --run_num staged --num_iters ";
  const Outcome whole = train(flags + "20");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const Outcome first = train_ranks(2, flags + "10 --pipeline_parallel_size 2 --micro_batches 3");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  const auto goes_on = [&](const std::string& folder, int ranks, const std::string& grid) {
    std::filesystem::create_directories(logs(folder));
    std::filesystem::remove_all(logs(folder + "/staged"));
    std::filesystem::copy(logs("2PP/staged"), logs(folder + "/staged"), std::filesystem::copy_options::recursive);
    const Outcome rest = train_ranks(ranks, flags + "20 --resume " + grid);
    ASSERT_EQ(rest.exit_code, 0) << rest.output;
    const std::vector<double> a = losses(read_text(logs(folder + "/staged/out.log"))), b = losses(whole.output);
    ASSERT_EQ(a.size(), b.size()) << rest.output;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 5e-6) << i;
  };
  goes_on("1GPU", 1, "");
  goes_on("2GPU", 2, "");
  goes_on("2MP2PP", 4, "--row_parallel_size 2 --pipeline_parallel_size 2");
}

TEST_F(TrainVit, ACheckpointGoesOnAtAnotherGrid) {
  const std::string flags = "--yaml_config " + changed_yaml("'cosine'", "'none'") + " --run_num moved --num_iters ";
  const Outcome whole = train(flags + "20");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const Outcome first = train_ranks(2, flags + "10 --row_parallel_size 2");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  std::filesystem::create_directories(logs("4MP"));
  std::filesystem::copy(logs("2MP/moved"), logs("4MP/moved"), std::filesystem::copy_options::recursive);
  const Outcome rest = train_ranks(4, flags + "20 --row_parallel_size 4 --resume");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  const std::vector<double> a = losses(read_text(logs("4MP/moved/out.log"))), b = losses(whole.output);
  ASSERT_EQ(a.size(), b.size()) << rest.output;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 5e-6) << i;
}

// As `srun -n 2 bash -c "source export_DDP_vars.sh; train_vit …"` starts two tasks.
TEST_F(TrainVit, SlurmsTasksFindEachOther) {
  const Outcome one = train("--num_iters 5 --run_num task");
  const std::string port = std::to_string(20000 + getpid() % 10000);
  const auto task = [&](const std::string& rank) {
    return "SLURM_PROCID=" + rank + " SLURM_LOCALID=" + rank +
           " SLURM_NTASKS=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
           " bash -c 'source " SCRIPTS "/export_DDP_vars.sh; exec " + line("--num_iters 5 --run_num tasks") + "'";
  };
  const Outcome both =
      shell("export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive; { " + task("1") + " & " + task("0") + "; wait; }");
  EXPECT_THAT(both.output, HasSubstr("DONE ---- rank 1"));
  expect_same_losses(both, one);
}

// The batch scripts, with an srun that starts two tasks on this machine.
TEST_F(TrainVit, BatchScriptsStartTheTasks) {
  const TemporaryFolder bin;
  std::ofstream(bin / "srun") << "#!/bin/bash\n"
                                 "[[ $1 == -u ]] || exit 9\n"
                                 "shift\n"
                                 "for r in 1 0; do SLURM_PROCID=$r SLURM_LOCALID=$r SLURM_NTASKS=2 \"$@\" & done\n"
                                 "wait\n";
  std::ofstream(bin / "hostname") << "#!/bin/bash\necho localhost\n";
  shell("chmod +x " + bin / "srun" + " " + bin / "hostname");
  const std::string environment =
      "export PATH=" + (bin / "") +
      ":$PATH OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive MASTER_PORT=" + std::to_string(30000 + getpid() % 10000) +
      " TRAIN_VIT=" TRAIN_VIT " WEFT_NERSC_VIT=" SCRIPTS " YAML_CONFIG=" + yaml() + "; ";
  const Outcome one = train("--num_iters 5 --run_num script");
  for (const std::string script : {"submit.sh", "submit_mp.sh --row_parallel_size=2"})
    expect_same_losses(
        shell(environment + SCRIPTS "/" + script + " --config=base --device=cpu --num_iters 5 --run_num script"), one);
}

TEST_F(TrainVit, NoddpTrainsEachRowByItself) {
  const Outcome with = train_ranks(2, "--num_iters 10 --run_num ddp"),
                without = train_ranks(2, "--num_iters 10 --noddp --run_num noddp");
  ASSERT_EQ(without.exit_code, 0) << without.output;
  EXPECT_NE(losses(with.output), losses(without.output));
}

TEST_F(TrainVit, RefusesGridsThatDoNotFit) {
  const auto refused = [&](int ranks, const std::string& arguments, const std::string& text) {
    const Outcome run = train_ranks(ranks, arguments);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.output, HasSubstr(text));
  };
  refused(3, "--row_parallel_size 2", "--row_parallel_size: 2 does not divide 3 ranks");
  refused(3, "--pipeline_parallel_size 2", "--pipeline_parallel_size: 2 does not divide 3 ranks");
  refused(2, "--pipeline_parallel_size 2 --row_parallel_size 2",
          "--row_parallel_size: 2 does not divide 1 ranks of each stage");
  refused(2, "--pipeline_parallel_size 2 --pipeline_chunks 2",
          "--pipeline_parallel_size: 2 blocks (depth) are too few for 2 stages of 2 chunks");
  refused(3, "--yaml_config " + changed_yaml("global_batch_size: 16", "global_batch_size: 2"),
          "global_batch_size: expected at least one sample for each of 3 data ranks, got 2");
}

#endif  // WEFT_HAVE_RANKS

TEST_F(TrainVit, RefusesWithOneLine) {
  expect_refusal("--row_parallel_size 3", 2, "--row_parallel_size: 4 heads (num_heads) do not divide by 3");
  expect_refusal("--row_parallel_size 2", 2, "--row_parallel_size: 2 does not divide 1 rank");
  expect_refusal("--pipeline_chunks 2", 2, "--pipeline_parallel_size above 1, got 1: there is no pipeline");
  expect_refusal("--col_parallel_size 2", 2, "--col_parallel_size: expected 1, got 2");
  expect_refusal("--amp_mode fp8", 2, "--amp_mode");
  expect_refusal("--num_iter 3", 2, "Did you mean --num_iters?");
  expect_refusal("--graph on", 2, "--graph on: expected --device cuda, got cpu");
  expect_refusal("--graph on --amp_mode fp16", 2, "--graph on: expected --amp_mode none or bf16, got fp16");
  expect_refusal("--config nowhere", 2, "nowhere");
  expect_refusal("--local_batch_size 81 --dry-run", 1, "expected a batch size of at most 80");
  expect_refusal("--yaml_config /nowhere/ViT.yaml", 2, "/nowhere/ViT.yaml");
  expect_refusal("--yaml_config " + changed_yaml("  depth: 2", "  dephts: 2"), 2, "changed.yaml:3: ");
  expect_refusal("--yaml_config " + changed_yaml("  depth: 2", "  depth: two"), 2, "changed.yaml:3: depth: ");
  expect_refusal("--yaml_config " + changed_yaml("  depth: 2", "  depth: 2\n  dropout: 0.1"), 2,
                 "dropout: expected 0, got 0.1");
  expect_refusal("--yaml_config " + changed_yaml("img_size: [16, 32]", "img_size: [16]"), 2,
                 "img_size: expected two sizes such as [360, 720]");
  expect_refusal("--yaml_config " + changed_yaml("img_size: [16, 32]", "img_size: [12, 32]"), 1,
                 "whose sides are multiples of the patch, got 12 x 32 and 8");
  expect_refusal("--yaml_config " + changed_yaml("img_size: [16, 32]", "img_size: [24, 32]"), 1,
                 "expected at least 4 x 24 x 32 values (channels, rows, columns), got 4 x 16 x 32");
  expect_refusal("--yaml_config " + changed_yaml("fields/train'", "fields/rain'"), 1,
                 "expected a folder of HDF5 files at ");
  expect_refusal("--yaml_config " + changed_yaml("global_stds.npy", "global_std.npy"), 1, "global_std.npy");
  expect_refusal("--yaml_config " + changed_yaml("expdir: '", "expdir: '/dev/null"), 1,
                 "expdir: cannot create /dev/null");
  expect_refusal("--yaml_config " + changed_yaml("  train_data_path", "  inf_data_path"), 2,
                 "train_data_path is missing");
}

// Weather data have NaN where nothing is measured.
TEST_F(TrainVit, ANanOfTheDataIsNamedWithItsFile) {
  const TemporaryFolder folder;
  const std::string made =
      MAKE_FIELDS " --channels 4 --rows 16 --columns 32 --times 9 --years 2 --out " + (folder / "f");
  const std::string run =
      kQuiet + TRAIN_VIT " --device cpu --local_batch_size 2 --yaml_config " + (folder / "f/ViT.yaml");
  for (const std::string file : {"train/1979.h5", "valid/1980.h5"}) {
    ASSERT_EQ(shell(made).exit_code, 0);
    data::write_fields(folder / ("f/" + file), {9, 4, 16, 32}, [](int64_t time, float* values) {
      std::fill_n(values, 4 * 16 * 32, 1.0f);
      if (time == 8) values[(2 * 16 + 5) * 32 + 7] = NAN;  // the last time is a target only
    });
    const Outcome out = shell(run + " --num_iters 4 --run_num " + file.substr(0, 5));
    EXPECT_EQ(out.exit_code, 1) << out.output;
    EXPECT_THAT(out.output, HasSubstr("the data are not finite: nan in 'target' of sample 7 (")) << file;
    EXPECT_THAT(out.output, HasSubstr(file + ", time 8, channel 2, row 5, column 7)")) << file;
    EXPECT_THAT(out.output, testing::Not(HasSubstr("weights"))) << file;
  }
  ASSERT_EQ(shell(made).exit_code, 0);
  const Outcome warned = shell(run + " --num_iters 2");
  EXPECT_EQ(warned.exit_code, 0) << warned.output;
  EXPECT_THAT(warned.output, HasSubstr("warning: warmup (10 steps) is not shorter than the run (num_iters 2)"));
}

TEST(TrainVitFiles, EverySectionOfTheConfigurationReads) {
  // Its paths are those of a container: each section ends at the first file that is missing, and not before.
  for (const char* section :
       {"base", "short", "short_opt", "opt", "bs16_opt", "bs32_opt", "bs64_opt", "bs128_opt", "bs256_opt", "bs512_opt",
        "bs1024_opt", "bs2048_opt", "mp", "mp_bs16", "mp_bs32", "mp_patch4", "short_mp"}) {
    const Outcome run = shell(
        kQuiet + TRAIN_VIT " --device cpu --dry-run --yaml_config " SCRIPTS "/config/ViT.yaml --config " + section);
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_THAT(run.output, HasSubstr("/data/stats/global_means.npy")) << section;
  }
}

TEST(TrainVitFiles, MakeFieldsRefusesWithOneLine) {
  const Outcome few = shell(MAKE_FIELDS " --years 1"), where = shell(MAKE_FIELDS " --out /dev/null/fields");
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_THAT(few.output, HasSubstr("make_fields: error: --years: expected a value at least 2"));
  EXPECT_EQ(where.exit_code, 1);
  EXPECT_THAT(where.output, HasSubstr("make_fields: error: "));
}

#endif  // WEFT_HAVE_FILES

TEST(TrainVitHelp, SaysWhatANewcomerNeeds) {
  const Outcome help = shell(TRAIN_VIT " --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* flag : {"--run_num", "--yaml_config", "--config", "--amp_mode", "--local_batch_size", "--num_iters",
                           "--num_data_workers", "--bucket_cap_mb", "--noddp", "--row_parallel_size", "--resume"})
    EXPECT_THAT(help.output, HasSubstr(flag));
}

}  // namespace
}  // namespace weft::tests
