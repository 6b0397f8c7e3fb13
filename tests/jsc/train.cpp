// SPDX-License-Identifier: Apache-2.0
// one_gpu and ddp as their users start them: by the job scripts, whose srun is tests/jsc/srun.
#include <cmath>
#include <regex>
#include <sstream>

#include "core/state_dict.h"
#include "io/torch/torch_object.h"
#include "io/torch/zip_archive.h"
#include "tests/jsc/insects.h"

namespace weft::tests {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Runs a command in the folder, with the programs and the replacement of srun in PATH and a home of its own.
Outcome in(const TemporaryFolder& folder, const std::string& command) {
  fs::create_directories(folder / "home");
  return shell("cd " + (folder / ".") + " && export HOME=" + (folder / "home") +
               " OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 WEFT_PROGRAMS=" PROGRAMS " PATH=" STAND_INS ":" PROGRAMS
               ":$PATH && " +
               command);
}

std::string script(const std::string& name) { return SCRIPTS "/" + name + " "; }

/// The epoch lines of the output.
std::vector<std::string> epochs(const std::string& output) {
  static const std::regex line(
      "Epoch [0-9]+: train_cross_entropy=[0-9.]+ train_accuracy=[0-9.]+ val_cross_entropy=[0-9.]+ "
      "val_accuracy=[0-9.]+");
  std::vector<std::string> found;
  std::istringstream in(output);
  for (std::string one; std::getline(in, one);)
    if (std::regex_match(one, line)) found.push_back(one);
  return found;
}

TEST(OneGpu, TrainsAndLeavesTheFilesOfTheCourse) {
  WEFT_NEED(JPEG);
  WEFT_NEED(ZIP);
  const TemporaryFolder folder;
  make_insects(folder / "data/hymenoptera_data", true);
  const Outcome run = in(folder, script("run_one_gpu.sh") + "--epochs 2 --device cpu");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(epochs(run.output).size(), 2u) << run.output;
  EXPECT_THAT(run.output, ContainsRegex("Test: test_cross_entropy=[0-9.]+ test_accuracy=[0-9.]+"));
  EXPECT_THAT(run.output, ContainsRegex(kElapsed));
  EXPECT_THAT(run.output, HasSubstr("resnet18, 11177538 parameters, 2 classes"));

  const std::string logs = folder / "tb_logs/my_model/version_0/";
  const std::string metrics = read_text(logs + "metrics.jsonl");
  for (const char* name :
       {"train_cross_entropy", "train_accuracy", "val_cross_entropy", "val_accuracy", "test_accuracy"})
    EXPECT_THAT(metrics, HasSubstr("\"" + std::string(name) + "\":")) << name;
  EXPECT_THAT(read_text(logs + "hparams.yaml"), HasSubstr("learning_rate: 0.001"));
  EXPECT_THAT(read_text(logs + "hparams.yaml"), HasSubstr(R"(class_names: "[\"ants\",\"bees\"]")"));
  bool events = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(logs))
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      events = read_text(entry.path().string()).find("val_accuracy") != std::string::npos;
  EXPECT_TRUE(events);

  const std::string file = folder / "image_classification_model.pt";
  const TorchObject saved = read_torch(file);
  EXPECT_EQ(saved.at("epoch", file).integer(file), 2);
  EXPECT_EQ(saved.at("global_step", file).integer(file), 10);  // five images, one at a time, twice
  const StateDict model = saved.at("state_dict", file).state(file);
  EXPECT_EQ(model.tensors.front().name, "conv1.weight");
  EXPECT_EQ(model.tensor("conv1.weight").sizes(), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(model.tensor("fc.weight").sizes(), (Shape{2, 512}));
  EXPECT_EQ(model.tensor("bn1.num_batches_tracked").item(), 10);
  for (const char* key :
       {"pytorch-lightning_version", "loops", "callbacks", "optimizer_states", "lr_schedulers", "hyper_parameters"})
    EXPECT_NE(saved.find(key), nullptr) << key;

  // The second run has a folder of its own, and replaces the file.
  const Outcome again = in(folder, script("run_one_gpu.sh") + "--epochs 1 --device cpu --batch_size 2");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_TRUE(fs::exists(folder / "tb_logs/my_model/version_1/hparams.yaml"));
  EXPECT_EQ(read_torch(file).at("global_step", file).integer(file), 3);
}

TEST(OneGpu, SeesTheSameImagesInAFile) {
  WEFT_NEED(JPEG);
  WEFT_NEED(ZIP);
  const TemporaryFolder folder;
  const std::string root = make_insects(folder / "insects");
  ASSERT_EQ(in(folder, "pack --data_root insects --dset_type packed").exit_code, 0);
  const std::string run = "one_gpu --epochs 1 --device cpu --batch-size 2 --data ";
  const Outcome from_folder = in(folder, run + "insects"), from_file = in(folder, run + "packed:insects.packed");
  ASSERT_EQ(epochs(from_folder.output).size(), 1u) << from_folder.output;
  EXPECT_EQ(epochs(from_folder.output), epochs(from_file.output)) << from_file.output;
  if (!WEFT_HAVE_HDF5) return;
  ASSERT_EQ(in(folder, "pack --data_root insects --dset_type h5").exit_code, 0);
  EXPECT_EQ(epochs(in(folder, run + "hdf5:insects.h5").output), epochs(from_folder.output));
}

TEST(OneGpu, ADryRunSaysWhatWouldHappenAndWritesNothing) {
  WEFT_NEED(JPEG);
  const TemporaryFolder folder;
  make_insects(folder / "data/hymenoptera_data");
  EXPECT_THAT(in(folder, "one_gpu --dry-run --device cpu --backbone resnet50").output,
              HasSubstr("resnet50, 23512130 parameters, 2 classes"));
  const Outcome run = in(folder, "one_gpu --dry-run --device cpu");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const char* text : {"folder train: 5 images", "ranks   alone", "would train 50 epochs with batches of 1"})
    EXPECT_THAT(run.output, HasSubstr(text));
  EXPECT_FALSE(fs::exists(folder / "tb_logs"));
  EXPECT_FALSE(fs::exists(folder / "image_classification_model.pt"));
}

TEST(Ddp, FindsItsPlaceBySlurmsVariablesAlone) {
  WEFT_NEED(JPEG);
  const TemporaryFolder folder;
  make_insects(folder / "data/hymenoptera_data");
  const std::string jwb = "SRUN_NODES='jwb[0021-0022]' SRUN_STEP_NODES=2 SRUN_TASKS=2 ";
  const auto dry_run = [&](const std::string& environment) {
    return in(folder, environment + "srun ddp --dry-run --device cpu").output;
  };
  EXPECT_THAT(dry_run(jwb + "SYSTEMNAME=juwelsbooster "),
              HasSubstr("rank 1 of 2 (Slurm), which meet at jwb0021i:12354"));
  EXPECT_THAT(dry_run(jwb), HasSubstr("rank 0 of 2 (Slurm), which meet at jwb0021:12354"));
  EXPECT_THAT(dry_run(jwb + "MASTER_PORT=12399 "), HasSubstr("which meet at jwb0021:12399"));
  EXPECT_THAT(in(folder, "SLURM_NTASKS=4 ddp --dry-run --device cpu").output, HasSubstr("ranks   alone"));
}

TEST(Ddp, TwoTasksTrainOneModel) {
  WEFT_NEED(RANKS);
  WEFT_NEED(JPEG);
  WEFT_NEED(ZIP);
  const TemporaryFolder folder;
  make_insects(folder / "data/hymenoptera_data");
  const Outcome run = in(folder, "SRUN_TASKS=2 " + script("run_ddp.sh") + "--epochs 1 --device cpu");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(epochs(run.output).size(), 1u) << run.output;  // only rank 0's
  EXPECT_THAT(run.output, HasSubstr("2 over gloo (Slurm)"));
  EXPECT_THAT(run.output, ContainsRegex(kElapsed));
  EXPECT_TRUE(fs::exists(folder / "tb_logs/my_model/version_0/metrics.jsonl"));
  EXPECT_FALSE(fs::exists(folder / "tb_logs/my_model/version_1"));
  const std::string file = folder / "image_classification_model.pt";
  const TorchObject saved = read_torch(file);
  EXPECT_EQ(saved.at("global_step", file).integer(file), 3);  // five images over two ranks
  for (const NamedTensor& entry : saved.at("state_dict", file).state(file).tensors)
    EXPECT_THAT(entry.name, Not(HasSubstr("module.")));
}

TEST(Ddp, TasksWithOtherFlagsOrImagesAreNamed) {
  WEFT_NEED(RANKS);
  WEFT_NEED(JPEG);
  WEFT_NEED(ZIP);
  const TemporaryFolder folder;
  make_insects(folder / "a");
  make_insects(folder / "b");
  fs::remove(folder / "b/train/bees/e.jpg");
  const auto refusal = [&](const std::string& flags) {
    const Outcome run = in(folder, "SRUN_TASKS=2 srun sh -c 'ddp --epochs 1 --device cpu " + flags + "'");
    EXPECT_EQ(run.exit_code, 1);
    return run.output;
  };
  EXPECT_THAT(refusal("--data a --seed $SLURM_PROCID"),
              HasSubstr("settings: the flags are not the same on all ranks: at entry "));
  EXPECT_THAT(
      refusal("--data $([ $SLURM_PROCID = 0 ] && echo a || echo b)"),
      HasSubstr("data: the set is not the same on all ranks: at entry 1 rank 0 has '5 images for training', rank "
                "1 has '4 images for training'"));
}

/// One clear line, and this exit code.
TEST(OneGpu, SaysWhatItCannotUse) {
  const TemporaryFolder folder;
  expect_refusal(in(folder, "one_gpu --device cpu"), 1,
                 "one_gpu: error: data: expected images in data/hymenoptera_data, got nothing there. "
                 "`tools/fetch_data hymenoptera data` brings the ants and bees to data/hymenoptera, --data names that");
  expect_refusal(in(folder, "ddp --device cpu --data packed:none"), 1, "ddp: error: packed: none: expected to open it");
  expect_refusal(in(folder, "one_gpu --epoch 3"), 2, "unknown flag --epoch. Did you mean --epochs?");
  expect_refusal(in(folder, "one_gpu --epochs many"), 2, "--epochs: expected a whole number, got 'many'");
  fs::create_directories(folder / "empty");
  expect_refusal(in(folder, "one_gpu --device cpu --data empty"), 1, "folder: expected train and val in empty");
  EXPECT_THAT(in(folder, "one_gpu --help").output, HasSubstr("ants from bees"));
  EXPECT_THAT(in(folder, "ddp --help").output, HasSubstr("srun ddp"));
  WEFT_NEED(JPEG);
  make_insects(folder / "insects");
  expect_refusal(in(folder, "one_gpu --device cpu --data insects --batch-size 6"), 1, "batch size of at most 5");
  write_text(folder / "tb_logs", "a file");
  const Outcome blocked = in(folder, "one_gpu --device cpu --data insects --epochs 1");
  EXPECT_EQ(blocked.exit_code, 1);
  EXPECT_THAT(blocked.output, HasSubstr("one_gpu: error: log: expected to create the folder tb_logs/my_model"));
}

}  // namespace
}  // namespace weft::tests
