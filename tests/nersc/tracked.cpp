// SPDX-License-Identifier: Apache-2.0
// Runs that are tracked: what they log, print and leave, in the folders of the tracked workflow and of a sweep.
#include <nlohmann/json.hpp>

#include "io/torch/torch_object.h"
#include "tests/nersc/programs.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::string kTracked =
    "tracked:\n  <<: *DEFAULT\n  log_to_wandb: !!bool True\n  project: 'weft'\n  entity: None\n  seed: 3\n";

std::vector<nlohmann::json> rows(const std::string& path) {
  std::vector<nlohmann::json> found;
  std::istringstream in(read_text(path));
  for (std::string line; std::getline(in, line);) found.push_back(nlohmann::json::parse(line));
  return found;
}

TEST(NerscTracked, LogsEveryNumberOfTheWorkflow) {
  const NerscFolder folder;
  folder.write("small.yaml", read_text(folder / "small.yaml") + kTracked + "  scheduler: none\n");
  const Outcome run = train_single(folder, "--config=tracked --run_num=a");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::string stamp = "20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} - root - INFO - ";
  EXPECT_EQ(lines(run.output, stamp + kTimeLine).size(), 3u) << run.output;
  EXPECT_EQ(lines(run.output, stamp + kLossLine).size(), 3u) << run.output;
  EXPECT_EQ(lines(run.output, stamp + "number of model parameters: 0.038145").size(), 1u) << run.output;
  EXPECT_EQ(lines(run.output, stamp + "DONE").size(), 1u);

  const std::string place = folder / "outputs/expts/tracked/a/";
  EXPECT_TRUE(std::filesystem::exists(place + "checkpoints/ckpt.tar"));
  const std::string hyper = read_text(place + "hyperparams.yaml");
  EXPECT_THAT(hyper, HasSubstr("lr: 0.001\n"));
  EXPECT_THAT(hyper, HasSubstr("batch_size: 4\n"));
  EXPECT_THAT(hyper, HasSubstr("project: 'weft'\n"));
  const auto logged = rows(place + "wandb/metrics.jsonl");
  ASSERT_EQ(logged.size(), 3u);
  double best = 1e9;
  for (size_t i = 0; i < logged.size(); ++i) {
    const nlohmann::json& row = logged[i];
    EXPECT_EQ(row["step"], i + 1);
    best = std::min(best, row["val_loss"].get<double>());
    EXPECT_EQ(row["best_val_loss"], best);
    EXPECT_EQ(row["learning_rate"], 1e-3) << "scheduler none";
    EXPECT_GT(row["grad"].get<double>(), 0);
    EXPECT_GT(row["wt_norm"].get<double>(), 1);
    EXPECT_GT(row["time_per_epoch"].get<double>(), 0);
    EXPECT_GE(row["best_epoch"].get<double>(), 1);
    EXPECT_TRUE(row.contains("train_loss"));
  }
  EXPECT_THAT(read_text(place + "wandb/config.yaml"), HasSubstr("batch_size"));
  EXPECT_EQ(read_torch(place + "checkpoints/ckpt.tar").at("scheduler_state_dict", "").is.index(), 0u)
      << "None: there is no schedule";
  // hyperparams.yaml is a configuration again.
  EXPECT_THAT(shell("cd " + (folder / "") + " && (echo 'default:'; sed 's/^/  /' " + place +
                    "hyperparams.yaml) > again.yaml && " TRAIN_SINGLE_GPU
                    " --device cpu --dry-run --yaml_config again.yaml --run_num=a")
                  .output,
              HasSubstr("model   cnn, 38145 parameters\n"));
}

// The weights' norm is that of the weights that are saved; the gradient's is the change by a step of SGD.
TEST(NerscTracked, NormsAreThoseOfWeightsAndGradients) {
  const NerscFolder folder;
  folder.write(
      "small.yaml",
      "default:\n  num_samples: 4\n  img_size: 8\n  depth: 2\n  batch_size: 4\n  valid_batch_size: 4\n  lr: 1.0\n"
      "  optimizer: sgd\n  momentum: 0\n  scheduler: none\n  max_epochs: 2\n  log_to_wandb: true\n");
  const auto weights = [&](const char* run) {
    std::vector<double> all;
    const auto file = read_torch(folder / (std::string("outputs/expts/default/") + run + "/checkpoints/ckpt.tar"));
    for (const NamedTensor& entry : file.at("model_state", "").state("").tensors)
      for (const double x : entry.tensor.to_vector<double>()) all.push_back(x);
    return all;
  };
  const Outcome two = train_single(folder, "--run_num=two");
  ASSERT_EQ(two.exit_code, 0) << two.output;
  std::string text = read_text(folder / "small.yaml");
  text.replace(text.find("max_epochs: 2"), 13, "max_epochs: 1");
  folder.write("small.yaml", text);
  ASSERT_EQ(train_single(folder, "--run_num=one").exit_code, 0);
  const std::vector<double> before = weights("one"), after = weights("two");
  double moved = 0, norm = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    moved += (after[i] - before[i]) * (after[i] - before[i]);
    norm += after[i] * after[i];
  }
  const nlohmann::json row = rows(folder / "outputs/expts/default/two/wandb/metrics.jsonl").at(1);
  EXPECT_NEAR(row["grad"].get<double>(), std::sqrt(moved), 1e-5 * std::sqrt(moved));
  EXPECT_NEAR(row["wt_norm"].get<double>(), std::sqrt(norm), 1e-5 * std::sqrt(norm));
}

TEST(NerscTracked, RunsOfASweepLieTogether) {
  const NerscFolder folder;
  const std::string flags = "--sweep_id s1 --run_num lr5e-5-bs8 --lr 5e-5 --batch_size 8";
  const Outcome run = train_single(folder, flags);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::string place = folder / "outputs/sweeps/s1/lr5e-5-bs8/";
  EXPECT_THAT(read_text(place + "hyperparams.yaml"), HasSubstr("lr: 5e-05\n"));
  EXPECT_THAT(read_text(place + "hyperparams.yaml"), HasSubstr("\nbatch_size: 8\n"));
  EXPECT_EQ(rows(place + "wandb/metrics.jsonl").size(), 3u);
}

// A plateau: with a learning rate that learns nothing the rate falls to a tenth when `patience` epochs brought nothing
// better, also when a resume lies between.
TEST(NerscTracked, ReducelrFallsAlsoOverAResume) {
  const NerscFolder folder;
  const auto yaml = [&](int epochs) {
    folder.write(
        "small.yaml",
        "default:\n  num_samples: 4\n  img_size: 4\n  depth: 2\n  batch_size: 4\n  valid_batch_size: 4\n  lr: 1e-6\n"
        "  optimizer: sgd\n  scheduler: reducelr\n  patience: 0\n  log_to_wandb: true\n  max_epochs: " +
            std::to_string(epochs) + "\n");
  };
  yaml(8);
  const Outcome whole = train_single(folder, "--run_num=whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  yaml(3);
  ASSERT_EQ(train_single(folder, "--run_num=half").exit_code, 0);
  yaml(8);
  ASSERT_EQ(train_single(folder, "--run_num=half").exit_code, 0);
  const auto all = rows(folder / "outputs/expts/default/whole/wandb/metrics.jsonl"),
             joined = rows(folder / "outputs/expts/default/half/wandb/metrics.jsonl");
  ASSERT_EQ(all.size(), 8u);
  ASSERT_EQ(joined.size(), 8u);
  EXPECT_LT(all.back()["learning_rate"].get<double>(), 0.2e-6) << "fresh targets every epoch are not always better";
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(joined[i]["learning_rate"], all[i]["learning_rate"]) << i;
    EXPECT_EQ(joined[i]["val_loss"], all[i]["val_loss"]) << i;
    EXPECT_EQ(joined[i]["best_epoch"], all[i]["best_epoch"]) << i;
  }
}

}  // namespace
}  // namespace weft::tests
