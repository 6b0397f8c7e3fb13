// SPDX-License-Identifier: Apache-2.0
#include "io/torch/torch_object.h"
#include "tests/nersc/programs.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

#define NEEDS_RANKS() \
  if (!HAVE_RANKS) GTEST_SKIP() << "needs a build with libcrypto and Gloo"

std::vector<std::string> names_of(const TorchObject& object) {
  std::vector<std::string> names;
  for (const auto& item : std::get<TorchObject::Dict>(object.is)) names.push_back(std::get<std::string>(item.key));
  return names;
}

TEST(Nersc, PrintsItsLinesAndSavesItsCheckpoints) {
  const NerscFolder folder;
  const Outcome run = train_single(folder, "--config=default --run_num=a");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(lines(run.output, "Starting training loop\\.\\.\\.").size(), 1u) << run.output;
  EXPECT_EQ(lines(run.output, kTimeLine).size(), 3u) << run.output;
  EXPECT_EQ(losses(run.output).size(), 3u) << run.output;
  EXPECT_EQ(lines(run.output, "Training complete").size(), 1u);
  EXPECT_THAT(run.output, Not(HasSubstr("running on rank"))) << "train_multi_gpu alone says so";
  EXPECT_THAT(run.output, HasSubstr("Time taken for epoch 1 is "));
  EXPECT_THAT(run.output, HasSubstr("Time taken for epoch 3 is "));

  const std::string checkpoints = folder / "outputs/default/a/checkpoints/";
  const TorchObject last = read_torch(checkpoints + "ckpt.tar");
  EXPECT_EQ(names_of(last), (std::vector<std::string>{"iters", "epoch", "model_state", "optimizer_state_dict",
                                                      "scheduler_state_dict", "best_val_loss", "best_epoch", "settings"}));
  EXPECT_EQ(last.at("iters", "").integer(""), 6) << "two steps in each epoch";
  EXPECT_EQ(last.at("epoch", "").integer(""), 2) << "from 0";
  EXPECT_EQ(names_of(last.at("model_state", "")),
            (std::vector<std::string>{"conv_in.0.weight", "conv_in.0.bias", "conv_hidden.0.0.weight",
                                      "conv_hidden.0.0.bias", "conv_out.0.weight", "conv_out.0.bias"}));
  EXPECT_EQ(last.at("scheduler_state_dict", "").at("last_epoch", "").integer(""), 3);
  EXPECT_NEAR(last.at("best_val_loss", "").number(""), values(losses(run.output).back()).second, 0.02);
  EXPECT_TRUE(std::filesystem::exists(checkpoints + "ckpt_best.tar"));
}

// The rate of CosineAnnealingLR(T_max = 3) after one, two and three epochs: 0.75, 0.25 and 0 of it.
TEST(Nersc, LearningRateFollowsTheCosine) {
  const NerscFolder folder;
  folder.write("small.yaml",
               "default:\n  num_samples: 4\n  img_size: 4\n  depth: 2\n  batch_size: 4\n"
               "  valid_batch_size: 4\n  max_epochs: 2\n  max_cosine_lr_epochs: 3\n");
  ASSERT_EQ(train_single(folder, "").exit_code, 0);
  const TorchObject file = read_torch(folder / "outputs/default/0/checkpoints/ckpt.tar");
  const TorchObject& group =
      std::get<TorchObject::List>(file.at("optimizer_state_dict", "").at("param_groups", "").is).at(0);
  EXPECT_NEAR(group.at("lr", "").number(""), 0.25e-3, 1e-12);
  EXPECT_EQ(group.at("initial_lr", "").number(""), 1e-3);
}

TEST(Nersc, ResumesToTheSameLosses) {
  const NerscFolder folder;
  const Outcome whole = train_single(folder, "--config=longer --run_num=whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  // `short` is the same run, ended after three of the five epochs.
  std::string text = read_text(folder / "small.yaml");
  folder.write("small.yaml", text + "short:\n  <<: *DEFAULT\n  max_cosine_lr_epochs: 5\n");
  ASSERT_EQ(train_single(folder, "--config=short --run_num=0").exit_code, 0);
  std::filesystem::rename(folder / "outputs/short", folder / "outputs/longer/moved");
  std::filesystem::rename(folder / "outputs/longer/moved/0", folder / "outputs/longer/half");
  const Outcome rest = train_single(folder, "--config=longer --run_num=half");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("Loading checkpoint ./outputs/longer/half/checkpoints/ckpt.tar\n"));
  EXPECT_THAT(rest.output, HasSubstr("Time taken for epoch 4 is "));
  EXPECT_THAT(rest.output, Not(HasSubstr("Time taken for epoch 3 is ")));
  const auto all = losses(whole.output), later = losses(rest.output);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(later, std::vector<std::string>(all.begin() + 3, all.end())) << "bit for bit";
  const Outcome done = train_single(folder, "--config=longer --run_num=half");
  EXPECT_EQ(losses(done.output).size(), 0u) << done.output;
  EXPECT_THAT(done.output, HasSubstr("Training complete"));
}

// An epoch as good as the best is the new best; what was best before a resume stays best.
TEST(Nersc, BestIsRememberedOverAResume) {
  const NerscFolder folder;
  ASSERT_EQ(train_single(folder, "").exit_code, 0);
  const std::string checkpoints = folder / "outputs/default/0/checkpoints/";
  TorchObject file = read_torch(checkpoints + "ckpt.tar");
  for (auto& [key, value] : std::get<TorchObject::Dict>(file.is))
    if (std::get<std::string>(key) == "best_val_loss") value.is = 1e-9;  // nothing will be better
  write_torch(checkpoints + "ckpt.tar", file);
  const auto before = std::filesystem::last_write_time(checkpoints + "ckpt_best.tar");
  folder.write("small.yaml", read_text(folder / "small.yaml") + "on:\n  <<: *DEFAULT\n  max_epochs: 4\n");
  std::filesystem::rename(folder / "outputs/default", folder / "outputs/on");
  const Outcome run = train_single(folder, "--config=on");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(losses(run.output).size(), 1u);
  const std::string moved = folder / "outputs/on/0/checkpoints/";
  EXPECT_EQ(read_torch(moved + "ckpt.tar").at("epoch", "").integer(""), 3);
  EXPECT_EQ(read_torch(moved + "ckpt.tar").at("best_val_loss", "").number(""), 1e-9);
  EXPECT_EQ(std::filesystem::last_write_time(moved + "ckpt_best.tar"), before) << "it was not written again";
}

TEST(Nersc, TwoRanksAreOneAndNameTheirModelModule) {
  NEEDS_RANKS();
  const NerscFolder folder;
  const Outcome one = train_single(folder, "--run_num=one"), two = train_on_two(folder, "--run_num=two");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  ASSERT_EQ(two.exit_code, 0) << two.output;
  for (const char* rank : {"0", "1"})
    EXPECT_EQ(lines(two.output, std::string("running on rank ") + rank + " with world size 2").size(), 1u)
        << two.output;
  EXPECT_EQ(lines(two.output, "Training complete").size(), 2u) << "every rank says so";
  EXPECT_EQ(lines(two.output, kTimeLine).size(), 3u) << "the first rank alone prints";
  const auto of_one = losses(one.output), of_two = losses(two.output);
  ASSERT_EQ(of_two.size(), of_one.size());
  for (size_t i = 0; i < of_one.size(); ++i) {
    EXPECT_NEAR(values(of_two[i]).first, values(of_one[i]).first, 1e-6) << of_two[i];
    EXPECT_NEAR(values(of_two[i]).second, values(of_one[i]).second, 1e-6) << of_two[i];
  }
  const TorchObject file = read_torch(folder / "outputs/default/two/checkpoints/ckpt.tar");
  for (const std::string& name : names_of(file.at("model_state", "")))
    EXPECT_THAT(name, testing::StartsWith("module."));
}

// Batches of 5 of 13 samples in training, of 4 in validation.
TEST(Nersc, RanksNeedNotDivideABatch) {
  NEEDS_RANKS();
  const NerscFolder folder;
  folder.write("small.yaml", read_text(folder / "small.yaml") +
                                 "odd:\n  <<: *DEFAULT\n  num_samples: 13\n  batch_size: 5\n  valid_batch_size: 4\n");
  const auto of_one = losses(train_single(folder, "--config=odd --run_num=1").output);
  ASSERT_EQ(of_one.size(), 3u);
  for (const int ranks : {2, 3, 4}) {
    const Outcome run = train_on(ranks, folder, str("--config=odd --run_num=", ranks));
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const auto of_all = losses(run.output);
    ASSERT_EQ(of_all.size(), of_one.size());
    for (size_t i = 0; i < of_one.size(); ++i) {
      EXPECT_NEAR(values(of_all[i]).first, values(of_one[i]).first, 1e-6) << ranks << " ranks";
      EXPECT_NEAR(values(of_all[i]).second, values(of_one[i]).second, 1e-6) << ranks << " ranks";
    }
  }
}

// A checkpoint of two ranks goes on with one, and the other way round.
TEST(Nersc, ModulePrefixIsReadBothWays) {
  NEEDS_RANKS();
  const NerscFolder folder;
  const Outcome whole = train_single(folder, "--config=longer --run_num=whole");
  const auto all = losses(whole.output);
  ASSERT_EQ(all.size(), 5u) << whole.output;
  const auto expect_rest = [&](const Outcome& run, size_t from, size_t to) {
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const auto rest = losses(run.output);
    ASSERT_EQ(rest.size(), to - from) << run.output;
    for (size_t i = from; i < to; ++i) {
      EXPECT_NEAR(values(rest[i - from]).first, values(all[i]).first, 1e-5);
      EXPECT_NEAR(values(rest[i - from]).second, values(all[i]).second, 1e-5);
    }
  };
  // Sections that differ in their number of epochs alone have one folder here: they are renamed copies.
  const std::string yaml = read_text(folder / "small.yaml");
  const auto run_to = [&](int epochs, bool several) {
    folder.write("small.yaml", yaml + "mixed:\n  <<: *DEFAULT\n  max_cosine_lr_epochs: 5\n  max_epochs: " +
                                   std::to_string(epochs) + "\n");
    return several ? train_on_two(folder, "--config=mixed") : train_single(folder, "--config=mixed");
  };
  expect_rest(run_to(1, false), 0, 1);
  const Outcome two = run_to(3, true);
  expect_rest(two, 1, 3);
  EXPECT_EQ(lines(two.output, "Loading checkpoint .*").size(), 2u) << "every rank says so";
  expect_rest(run_to(5, false), 3, 5);
}

// The workflow's reference: 0.08535 and 0.08533 at epoch 25 on one GPU, 0.08525 on eight, with fields of 128 x 128; of
// 16 x 16 the same number of steps ends at the same place. The least there is is 1/12, the variance of the targets.
TEST(Nersc, LossIsTheReferencesAtEpoch25) {
  const NerscFolder folder;
  folder.write("small.yaml", "default:\n  img_size: 16\n");
  const auto expect_reference = [](const Outcome& run) {
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const auto all = losses(run.output);
    ASSERT_EQ(all.size(), 25u);
    EXPECT_GT(values(all.front()).first, 0.1) << "the first epoch must be far from it";
    EXPECT_NEAR(values(all.back()).first, 0.085, 0.001);
    EXPECT_NEAR(values(all.back()).second, 0.085, 0.001);
  };
  expect_reference(train_single(folder, "--run_num=one"));
  if (HAVE_RANKS) expect_reference(train_on_two(folder, "--run_num=two"));
}

TEST(Nersc, DryRunTrainsNothing) {
  const NerscFolder folder;
  const Outcome run = train_single(folder, "--dry-run");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("model   cnn, 38145 parameters\n"));
  EXPECT_THAT(run.output, HasSubstr("2 steps of 4 samples on each of 1 rank an epoch\n"));
  EXPECT_THAT(run.output, HasSubstr("run     ./outputs/default/0: epochs 1 to 3\n"));
  EXPECT_FALSE(std::filesystem::exists(folder / "outputs"));
  ASSERT_EQ(train_single(folder, "").exit_code, 0);
  EXPECT_THAT(train_single(folder, "--dry-run").output,
              HasSubstr("run     ./outputs/default/0: nothing: all 3 epochs are done\n"));
}

TEST(Nersc, ShippedConfigurationsAreTheWorkflows) {
  const auto dry = [](const std::string& arguments) {
    return shell("cd " NERSC_FOLDER " && " TRAIN_SINGLE_GPU " --device cpu --dry-run --root_dir /nowhere " + arguments)
        .output;
  };
  const std::string base = dry("");
  EXPECT_THAT(base, HasSubstr("config  ./configs/default.yaml, default\nmodel   cnn, 112001 parameters\n"));
  EXPECT_THAT(base, HasSubstr("data    128 random samples [1,128,128] -> [1,128,128]; 4 steps of 32 samples"));
  EXPECT_THAT(base, HasSubstr("with    adam, lr 0.001, schedule cosine\nrun     /nowhere/default/0: epochs 1 to 25\n"));
  EXPECT_THAT(dry("--config=test --run_num=x"), HasSubstr("8 steps of 16 samples"));
  const std::string tracked = dry("--yaml_config=configs/wandb.yaml --config test2");
  EXPECT_THAT(tracked, HasSubstr("schedule none\nrun     /nowhere/expts/test2/0: epochs 1 to 50\n"));
  EXPECT_THAT(tracked, HasSubstr("8 steps of 16 samples"));
  EXPECT_THAT(dry("--yaml_config=configs/wandb.yaml --config test"), HasSubstr("4 steps of 32 samples"));
  EXPECT_THAT(dry("--sweep_id s1 --run_num b --lr 5e-5 --batch_size 16"),
              HasSubstr("with    adam, lr 5e-05, schedule cosine\nrun     /nowhere/sweeps/s1/b: epochs 1 to 25\n"));
}

TEST(Nersc, HelpNamesEveryFlag) {
  const Outcome run = shell(TRAIN_MULTI_GPU " --help");
  EXPECT_EQ(run.exit_code, 0);
  for (const char* flag : {"--yaml_config", "--config", "--root_dir", "--run_num", "--sweep_id", "--device",
                           "--dry-run", "./configs/default.yaml", "./outputs"})
    EXPECT_THAT(run.output, HasSubstr(flag));
}

void expect_refusal(const NerscFolder& folder, const std::string& arguments, int exit_code, const std::string& text) {
  const Outcome run = train_single(folder, arguments);
  EXPECT_EQ(run.exit_code, exit_code) << arguments << '\n' << run.output;
  EXPECT_THAT(run.output, HasSubstr("train_single_gpu: error: " + text)) << arguments;
  EXPECT_EQ(lines(run.output, ".+").size(), 1u) << "one line: " << run.output;
}

TEST(Nersc, WhatIsWrongIsSaidInOneLine) {
  const NerscFolder folder;
  expect_refusal(folder, "--yaml-config=x", 2, "unknown flag --yaml-config. Did you mean --yaml_config?");
  expect_refusal(folder, "--yaml_config=none.yaml", 2, "none.yaml: expected a YAML file, got none there");
  expect_refusal(folder, "--config=defautl", 2,
                 "small.yaml: expected a section 'defautl', got none. Did you mean 'default'?");
  expect_refusal(folder, "--run_num=a/b", 2, "--run_num: expected a name without '/', got 'a/b'");
  expect_refusal(folder, "--run_num=..", 2, "--run_num: expected a name without '/', got '..'");
  expect_refusal(folder, "--run_num=''", 2, "--run_num: 1 required TEXT missing");
  expect_refusal(folder, "--lr=0", 2, "--lr: expected a value above 0, got 0");
  expect_refusal(folder, "--device=tpu", 1, "device: expected cpu, cuda, cuda:N or emulated, got 'tpu'");
  expect_refusal(folder, "--batch_size=9", 1, "data: expected at least the 9 samples of a batch, got 8");
  folder.write("file", "");
  expect_refusal(folder, "--root_dir=file", 1, "root_dir: cannot create file/default/0/checkpoints: Not a directory");
  folder.write("bad.yaml", "default:\n  lr: 1E-3\n  bacth_size: 16\n");
  expect_refusal(folder, "--yaml_config=bad.yaml", 2,
                 "bad.yaml:3: unknown key 'bacth_size'. Did you mean 'batch_size'?");
  folder.write("bad.yaml", "default:\n  lr: fast\n");
  expect_refusal(folder, "--yaml_config=bad.yaml", 2, "bad.yaml:2: lr: expected a number, got 'fast'");
  folder.write("bad.yaml", "default:\n  optimizer: adm\n");
  expect_refusal(folder, "--yaml_config=bad.yaml", 2,
                 "bad.yaml:2: optimizer: unknown value 'adm'. Did you mean 'adam'?");
  folder.write("bad.yaml",
               "default:\n  lr: 1e30\n  num_samples: 4\n  img_size: 4\n  batch_size: 4\n  valid_batch_size: 4\n");
  const Outcome far = train_single(folder, "--yaml_config=bad.yaml --run_num=far");
  EXPECT_EQ(far.exit_code, 1);
  EXPECT_THAT(far.output, HasSubstr("error: the loss is not a number in epoch 1. Choose a smaller lr"));
}

TEST(Nersc, AResumedRunSaysWhatItChangesAndKeepsItsOptimizer) {
  const NerscFolder folder;
  ASSERT_EQ(train_single(folder, "").exit_code, 0);
  const auto goes_on_with = [&](const std::string& line) {
    const std::string small = read_text(folder / "small.yaml");
    folder.write("changed.yaml", small + "changed:\n  <<: *DEFAULT\n  max_epochs: 4\n" + line);
    std::filesystem::remove_all(folder / "outputs/changed");
    std::filesystem::copy(folder / "outputs/default", folder / "outputs/changed",
                          std::filesystem::copy_options::recursive);
    return train_single(folder, "--yaml_config=changed.yaml --config=changed");
  };
  const Outcome longer = goes_on_with("");
  EXPECT_EQ(longer.exit_code, 0) << longer.output;
  EXPECT_THAT(longer.output, Not(HasSubstr("other settings"))) << "more epochs change none that was done";
  const Outcome other = goes_on_with("  seed: 7\n");
  EXPECT_EQ(other.exit_code, 0) << other.output;
  EXPECT_THAT(other.output, HasSubstr("with other settings than the checkpoint: seed 0 -> 7\n"));
  const Outcome sgd = goes_on_with("  optimizer: sgd\n");
  EXPECT_EQ(sgd.exit_code, 1);
  EXPECT_THAT(sgd.output, HasSubstr(" holds the state of another optimizer ('adam' -> 'sgd'): name another --run_num"));
}

TEST(Nersc, DamagedAndForeignCheckpointsAreRefused) {
  const NerscFolder folder;
  ASSERT_EQ(train_single(folder, "").exit_code, 0);
  const std::string path = "./outputs/default/0/checkpoints/ckpt.tar", file = folder / path;
  const std::string whole = read_text(file);
  folder.write(path, whole.substr(0, whole.size() / 2));
  const Outcome run = train_single(folder, "");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("; going on from ./outputs/default/0/checkpoints/ckpt.1.tar\n"));
  EXPECT_EQ(read_torch(file).at("epoch", "").integer(""), 2) << "the damaged epoch was made again";
  folder.write(path, whole.substr(0, whole.size() / 2));
  std::filesystem::remove(folder / "outputs/default/0/checkpoints/ckpt.1.tar");
  expect_refusal(folder, "", 1, "pytorch: " + path + ": ");
  folder.write(path, whole);
  folder.write("small.yaml", read_text(folder / "small.yaml") + "deep:\n  <<: *DEFAULT\n  depth: 4\n");
  std::filesystem::rename(folder / "outputs/default", folder / "outputs/deep");
  expect_refusal(folder, "--config=deep", 1, "checkpoint ./outputs/deep/0/checkpoints/ckpt.tar: model_state: ");
  write_torch(folder / "outputs/deep/0/checkpoints/ckpt.tar", TorchObject{TorchObject::Dict{{"epoch", {int64_t{1}}}}});
  expect_refusal(
      folder, "--config=deep", 1,
      "checkpoint ./outputs/deep/0/checkpoints/ckpt.tar: expected the key 'iters', got none. There are: epoch");
  using Dict = TorchObject::Dict;
  write_torch(folder / "outputs/deep/0/checkpoints/ckpt.tar", TorchObject{Dict{{"iters", {int64_t{1}}},
                                                                               {"epoch", {int64_t{-1}}},
                                                                               {"model_state", {Dict{}}},
                                                                               {"optimizer_state_dict", {Dict{}}},
                                                                               {"scheduler_state_dict", {Dict{}}}}});
  expect_refusal(folder, "--config=deep", 1,
                 "checkpoint ./outputs/deep/0/checkpoints/ckpt.tar: expected an epoch of at least 0, got -1");
}

TEST(Nersc, MoreRanksThanSamplesOfABatch) {
  NEEDS_RANKS();
  const NerscFolder folder;
  folder.write("small.yaml", "default:\n  num_samples: 4\n  img_size: 4\n  batch_size: 1\n");
  const Outcome run = train_on_two(folder, "");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("batch_size: expected at least one sample for each of 2 ranks, got 1"));
}

}  // namespace
}  // namespace weft::tests
