// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/sharded_checkpoint.h"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>

#include "core/autograd.h"
#include "core/random.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/fsdp/fsdp_state.h"
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "io/seal.h"
#include "nn/conv.h"
#include "optim/optimizers.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/compare.h"
#include "tests/train/temporary_folder.h"

namespace weft::dist::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_text;

constexpr int kBefore = 5, kAllSteps = 10;
constexpr int64_t kWholeBatch = 12;

std::vector<std::shared_ptr<nn::Module>> towers(int count, uint64_t seed = 3) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int i = 0; i < count; ++i) {
    manual_seed(seed);
    models.push_back(std::make_shared<Tower>(6, 10, 2, 4));
    models.back()->to(DType::f64);
  }
  return models;
}

/// A run that saves behind step `kBefore`, or begins with such a checkpoint.
struct Run {
  int ranks = 1;
  Sharding strategy = Sharding::full_shard;
  fs::path load = {}, save = {};
};

void save(CheckpointWriter& writer, const fs::path& folder, FSDP& fsdp, const optim::Optimizer& optimizer) {
  writer.save(folder, {{"model", sharded_state(fsdp)}, {"optimizer", sharded_state(fsdp, optimizer.state_dict())}},
              {{"step", "5"}});
}

void load(const fs::path& folder, FSDP& fsdp, optim::Optimizer& optimizer) {
  const ShardedCheckpoint checkpoint(folder);
  EXPECT_EQ(checkpoint.facts().at("step"), "5");
  StateDict dict = optimizer.state_dict();
  ShardedState model = sharded_state(fsdp), state = sharded_state(fsdp, dict);
  checkpoint.load({{"model", &model}, {"optimizer", &state}});
  dict.scalars = state.scalars;
  optimizer.load_state_dict(dict);
}

std::vector<double> losses(const Run& run) {
  const auto models = towers(run.ranks, run.load.empty() ? 3 : 4);
  const ShardedTraining t{.make = {}, .parts = equal_parts(kAllSteps, 1, kWholeBatch)};
  std::vector<std::vector<double>> parts(static_cast<size_t>(run.ranks), std::vector<double>(kAllSteps));
  run_ranks(run.ranks, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group,
              {.strategy = run.strategy,
               .policy = {.kinds = {"Block"}},
               .shard_size = run.strategy == Sharding::hybrid_shard ? 2 : 0});
    optim::AdamW adam(fsdp.parameters(), {.lr = 0.01});
    CheckpointWriter writer(group);
    if (!run.load.empty()) load(run.load, fsdp, adam);
    for (int step = run.load.empty() ? 0 : kBefore; step < kAllSteps; ++step) {
      if (step == kBefore && !run.save.empty()) save(writer, run.save, fsdp, adam);
      const auto [x, target] = data_of(t, static_cast<size_t>(step));
      const int64_t each = kWholeBatch / run.ranks, begin = group->rank() * each;
      adam.zero_grad();
      const Tensor loss = loss_of(fsdp(x.slice(0, begin, each)), target.slice(0, begin, each));
      loss.backward();
      adam.step();
      parts[static_cast<size_t>(group->rank())][static_cast<size_t>(step)] = loss.item() / run.ranks;
    }
    writer.wait();
  });
  std::vector<double> result(kAllSteps);  // added up in the order of the ranks, so that it can be compared bit by bit
  for (const std::vector<double>& part : parts)
    for (size_t step = 0; step < kAllSteps; ++step) result[step] += part[step];
  return result;
}

/// The losses behind the checkpoint.
std::vector<double> later(const std::vector<double>& all) { return {all.begin() + kBefore, all.end()}; }

class ShardedCheckpointTest : public ::testing::Test {
 protected:
  fs::path folder() const { return temporary_.path() / "step_5"; }
  test::TemporaryFolder temporary_;
};

TEST_F(ShardedCheckpointTest, FourRanksSaveAndAnyNumberGoesOn) {
  const std::vector<double> want = losses({.ranks = 4, .save = folder()});
  EXPECT_EQ(read_index(folder()).files.size(), 4u);
  EXPECT_EQ(later(losses({.ranks = 4, .load = folder()})), later(want)) << "bit by bit with the same ranks";
  for (const int ranks : {1, 2, 3})
    EXPECT_TRUE(tests::near(later(losses({.ranks = ranks, .load = folder()})), later(want), {1e-11, 1e-10})) << ranks;
}

TEST_F(ShardedCheckpointTest, OneStrategySavesAndAnotherGoesOn) {
  for (const Sharding from : {Sharding::no_shard, Sharding::hybrid_shard, Sharding::shard_grad_op}) {
    const fs::path own = temporary_.path() / std::string(name(from));
    const std::vector<double> want = losses({.ranks = 4, .strategy = from, .save = own});
    for (const Sharding to : {Sharding::full_shard, Sharding::hybrid_shard, Sharding::no_shard})
      EXPECT_TRUE(tests::near(later(losses({.ranks = 2, .strategy = to, .load = own})), later(want), {1e-11, 1e-10}))
          << name(from) << " to " << name(to);
  }
}

TEST_F(ShardedCheckpointTest, OneProcessReadsAndWritesThem) {
  const std::vector<double> want = losses({.ranks = 3, .save = folder()});
  // A plain model goes on with the sharded checkpoint, and saves another one.
  const auto model = towers(1, 9)[0];
  const fs::path second = temporary_.path() / "second";
  const ShardedTraining t{.make = {}, .parts = equal_parts(kAllSteps, 1, kWholeBatch)};
  optim::AdamW adam(model->parameters(), {.lr = 0.01});
  {
    const ShardedCheckpoint checkpoint(folder());
    model->load_state_dict(checkpoint.full("model"));
    adam.load_state_dict(checkpoint.full("optimizer"));
  }
  CheckpointWriter writer(make_process_group_alone());
  writer.save(second, {{"model", sharded_state(*model)}, {"optimizer", sharded_state(adam.state_dict())}},
              {{"step", "5"}});
  writer.wait();
  std::vector<double> got;
  for (int step = kBefore; step < kAllSteps; ++step) {
    const auto [x, target] = data_of(t, static_cast<size_t>(step));
    adam.zero_grad();
    const Tensor loss = loss_of((*model)(x), target);
    loss.backward();
    adam.step();
    got.push_back(loss.item());
  }
  EXPECT_TRUE(tests::near(got, later(want), {1e-11, 1e-10}));
  EXPECT_TRUE(tests::near(later(losses({.ranks = 4, .load = second})), later(want), {1e-11, 1e-10}));
}

TEST_F(ShardedCheckpointTest, AWholeCheckpointGoesOnAtAnyNumberOfRanks) {
  const std::vector<double> want = losses({.ranks = 3, .save = folder()});
  // As whole, as one file, and from there sharded again.
  const Checkpoint all = load_checkpoint(folder());
  EXPECT_EQ(all.text("step"), "5");
  EXPECT_EQ(all.part("optimizer").tensors.size(), ShardedCheckpoint(folder()).full("optimizer").tensors.size());
  const fs::path whole = temporary_.path() / "whole.safetensors";
  save_checkpoint(whole, all);
  EXPECT_EQ(ShardedCheckpoint(whole).index().files.size(), 1u);
  EXPECT_EQ(later(losses({.ranks = 3, .load = whole})), later(losses({.ranks = 3, .load = folder()})));
  for (const int ranks : {1, 2, 4})
    EXPECT_TRUE(tests::near(later(losses({.ranks = ranks, .load = whole})), later(want), {1e-11, 1e-10})) << ranks;
}

TEST_F(ShardedCheckpointTest, ConvolutionsAndCountersSurvive) {
  struct ConvNet : nn::Module {
    nn::Conv2d conv{3, 5, {3, 3}};
    int64_t count = 0;
    void fields(nn::Visitor& v) override {
      v("conv", conv);
      v.counter("count", count);
    }
  };
  manual_seed(1);
  std::vector<std::shared_ptr<ConvNet>> models{std::make_shared<ConvNet>(), std::make_shared<ConvNet>()};
  models[0]->count = 42;
  const StateDict want = [&] {
    StateDict copies = models[0]->state_dict();
    for (NamedTensor& entry : copies.tensors) entry.tensor = entry.tensor.clone();
    return copies;
  }();
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
    CheckpointWriter writer(group);
    writer.save(folder(), {{"model", sharded_state(fsdp)}});
    writer.wait();
    models[static_cast<size_t>(group->rank())]->count = 0;
    ShardedState state = sharded_state(fsdp);
    ShardedCheckpoint(folder()).load({{"model", &state}});
    EXPECT_EQ(models[static_cast<size_t>(group->rank())]->count, 42);
  });
  for (const StateDict& got : {ShardedCheckpoint(folder()).full("model"), load_checkpoint(folder()).part("model")})
    for (const NamedTensor& entry : want.tensors) {
      EXPECT_EQ(got.tensor(entry.name).sizes(), entry.tensor.sizes());
      EXPECT_EQ(got.tensor(entry.name).to_vector<float>(), entry.tensor.to_vector<float>()) << entry.name;
    }
  // The checkpoint of one process, whose convolution weights are OIHW, is read by any number of ranks.
  const fs::path whole = temporary_.path() / "whole.safetensors";
  Checkpoint alone;
  alone.parts = {{"model", want}};
  save_checkpoint(whole, alone);
  for (const int ranks : {1, 2, 3}) {
    std::vector<std::shared_ptr<ConvNet>> readers;
    for (int i = 0; i < ranks; ++i) readers.push_back(std::make_shared<ConvNet>());
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto& net = readers[static_cast<size_t>(group->rank())];
      FSDP fsdp(net, group);
      ShardedState state = sharded_state(fsdp);
      ShardedCheckpoint(whole).load({{"model", &state}});
      EXPECT_EQ(net->count, 42);
      const StateDict got = full_state_dict(fsdp, Receivers::all);
      for (const NamedTensor& entry : want.tensors)
        EXPECT_EQ(got.tensor(entry.name).to_vector<float>(), entry.tensor.to_vector<float>()) << entry.name;
    });
  }
}

TEST_F(ShardedCheckpointTest, ASnapshotIsOfTheMomentOfTheCall) {
  std::vector<std::shared_ptr<nn::Module>> models = towers(2);
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
    const StateDict want = full_state_dict(fsdp, Receivers::all);
    CheckpointWriter writer(group);
    writer.save(folder(), {{"model", sharded_state(fsdp)}});
    {
      const NoGrad no_grad;
      for (const NamedTensor& shard : fsdp.parameters()) shard.tensor.fill_(7);
    }
    writer.wait();
    const StateDict got = ShardedCheckpoint(folder()).full("model");
    for (const NamedTensor& entry : want.tensors)
      EXPECT_EQ(got.tensor(entry.name).to_vector<double>(), entry.tensor.to_vector<double>()) << entry.name;
    // The folder is replaced atomically, and nothing else remains there.
    writer.save(folder(), {{"model", sharded_state(fsdp)}});
    writer.wait();
    EXPECT_EQ(ShardedCheckpoint(folder()).full("model").tensor("stem.bias").to_vector<double>()[0], 7);
    group->barrier();
    EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), fs::directory_iterator()), 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 3);
  });
}

/// Changes one byte in the middle.
void damage(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) * 3 / 4);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get());
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 0x10));
}

class DamagedCheckpoint : public ShardedCheckpointTest {
 protected:
  void SetUp() override {
    for (const fs::path& target : {folder(), other()}) {
      const auto models = towers(3);
      run_ranks(3, [&](const ProcessGroupPtr& group) {
        FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
        CheckpointWriter writer(group);
        writer.save(target, {{"model", sharded_state(fsdp)}});
        writer.wait();
      });
    }
  }
  fs::path other() const { return temporary_.path() / "other"; }
  std::string text() const {
    const std::string all = error_text([&] { ShardedCheckpoint(folder()).full("model"); });
    const std::string start = "sharded checkpoint " + folder().string() + ": ";
    EXPECT_THAT(all, ::testing::StartsWith(start));
    return all.substr(std::min(all.size(), start.size()));
  }
};

TEST_F(DamagedCheckpoint, NamesTheRankAndTheFile) {
  damage(folder() / "rank_00001.safetensors");
  EXPECT_EQ(text(), "rank 1's file rank_00001.safetensors is damaged: its checksum differs from the written one");
  const auto size = fs::file_size(folder() / "rank_00001.safetensors");
  fs::resize_file(folder() / "rank_00001.safetensors", size - 5);
  EXPECT_EQ(text(), str("rank 1's file rank_00001.safetensors is damaged: expected ", size, " bytes, got ", size - 5));
  fs::remove(folder() / "rank_00001.safetensors");
  EXPECT_EQ(text(), "rank 1's file rank_00001.safetensors is missing");
}

TEST_F(DamagedCheckpoint, FilesOfAnotherCheckpoint) {
  fs::copy_file(other() / "rank_00002.safetensors", folder() / "rank_00002.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(text(), str("rank 2's file rank_00002.safetensors belongs to another checkpoint: expected ",
                        read_index(folder()).id, ", got ", read_index(other()).id));
  // A file of the right checkpoint under another rank's name.
  fs::copy_file(folder() / "rank_00000.safetensors", folder() / "rank_00002.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(text(), HasSubstr("rank 2's file rank_00002.safetensors is damaged"));
}

TEST_F(DamagedCheckpoint, TheIndex) {
  const fs::path index = folder() / "index.json";
  damage(index);
  EXPECT_EQ(text(), "index.json is damaged");
  fs::resize_file(index, fs::file_size(index) - 1);
  EXPECT_EQ(text(), "index.json does not end with its seal. Was it truncated or changed?");
  fs::remove(index);
  EXPECT_EQ(text(), "it has no index.json. Was it written by another program, or not finished?");
  const auto write = [&](const std::string& content) {
    AtomicFile file(index, "test");
    AtomicFile::Writer out(file);
    out.write(content.data(), content.size());
    out.close();
    seal(file);
    file.commit();
  };
  write("{\"format\": \"another\"}");
  EXPECT_EQ(text(), "index.json is not one of a sharded checkpoint");
  write("{\"format\": \"weft sharded checkpoint\", \"version\": 3}");
  EXPECT_EQ(text(), "expected version 1 or 2, got 3");
  write("{\"format\": \"weft sharded checkpoint\", \"version\": 1, \"id\": 5}");
  EXPECT_THAT(text(), ::testing::StartsWith("index.json is damaged: "));
  fs::remove_all(folder());
  EXPECT_EQ(error_text([&] { ShardedCheckpoint(folder()).full("model"); }),
            "checkpoint: " + folder().string() + ": expected a checkpoint, got no such file");
}

TEST_F(DamagedCheckpoint, PartsThatDoNotFit) {
  EXPECT_EQ(error_text([&] { ShardedCheckpoint(folder()).full("optimizer"); }),
            "sharded checkpoint " + folder().string() + ": it has no part 'optimizer'");
  const auto larger = std::make_shared<Tower>(7, 10, 1, 4);
  const std::vector<float> before = larger->stem.bias.to_vector<float>();
  ShardedState state = sharded_state(*larger);
  EXPECT_EQ(error_text([&] {
              ShardedCheckpoint(folder()).load({{"model", &state}});
            }),
            "sharded checkpoint " + folder().string() +
                ": part 'model' does not fit; wrong shape: stem.weight (expected [10,7], got [10,6]); unexpected: "
                "blocks.1.norm.weight, blocks.1.norm.bias, blocks.1.fc1.weight, blocks.1.fc1.bias, "
                "blocks.1.fc2.weight and 1 more");
  EXPECT_EQ(larger->stem.bias.to_vector<float>(), before);
}

TEST_F(ShardedCheckpointTest, WhatCannotBeWrittenIsAnErrorOnEveryRank) {
  const auto models = towers(2);
  std::vector<std::string> texts(2), late(2);
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto rank = static_cast<size_t>(group->rank());
    FSDP fsdp(models[rank], group);
    CheckpointWriter writer(group);
    texts[rank] = error_text([&] {
      writer.save(temporary_.path() / "none" / "step", {{"model", sharded_state(fsdp)}});
    });
    ShardedState twice = sharded_state(fsdp);
    if (group->rank() == 1)
      twice.pieces.push_back(*std::find_if(twice.pieces.begin(), twice.pieces.end(), [](const TensorPiece& piece) {
        return piece.values.numel() > 0 && !piece.is_copy;
      }));
    late[rank] = error_text([&] {
      writer.save(temporary_.path() / "twice", {{"model", std::move(twice)}});
      writer.wait();
    });
  });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], str("sharded checkpoint: rank 0: expected an existing folder for ",
                          (temporary_.path() / "none" / "step").string(), ", got none at ",
                          (temporary_.path() / "none").string()));
  EXPECT_EQ(late[0], late[1]);
  EXPECT_THAT(late[0], HasSubstr("rank 1: safetensors: expected each name once, got 'model/"));
  EXPECT_FALSE(fs::exists(temporary_.path() / "twice"));
  EXPECT_TRUE(fs::is_empty(temporary_.path())) << "nothing half-written stays";
}

// A rank that has died leaves no file.
TEST_F(ShardedCheckpointTest, WhoEndsWithAnErrorDoesNotWaitForTheFilesOfOthers) {
  const auto models = towers(2);
  const auto begin = std::chrono::steady_clock::now();
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
    if (group->rank() == 1) {  // save() begins so
      const std::string place = fs::absolute(folder()).lexically_normal().string();
      return void(group->all_gather_text("+ rank 1" + std::string(1, '\0') + place, "checkpoint"));
    }
    EXPECT_EQ(error_text([&] {
                CheckpointWriter writer(group, Milliseconds(20'000));
                writer.save(folder(), {{"model", sharded_state(fsdp)}});
                fail("rank 1 has died");
              }),
              "rank 1 has died");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_FALSE(fs::exists(folder()));
}

// Neighbours and distant ranks on two hosts, and a rank on a host of its own.
TEST_F(ShardedCheckpointTest, TheRanksOfAHostWriteOneFile) {
  const auto models = towers(5);
  StateDict want;
  run_ranks(5, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
    const StateDict full = full_state_dict(fsdp);
    if (group->rank() == 0) want = full;
    CheckpointWriter writer(group, Milliseconds(20'000), group->rank() == 4 ? "c" : group->rank() % 2 == 0 ? "a" : "b");
    for (int time = 0; time < 2; ++time) {
      writer.save(folder(), {{"model", sharded_state(fsdp)}}, {{"step", "5"}});
      writer.wait();
    }
  });
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder())) files.push_back(entry.path().filename());
  EXPECT_THAT(files, ::testing::UnorderedElementsAre("index.json", "rank_00000.safetensors", "rank_00001.safetensors",
                                                     "rank_00004.safetensors"));
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), fs::directory_iterator()), 1);
  const SafetensorsReader second(folder() / "rank_00001.safetensors");
  EXPECT_EQ(second.metadata().at("rank"), "1");
  for (const SafetensorsEntry& entry : second.entries())
    EXPECT_EQ(entry.name.starts_with("model/"), true) << entry.name;
  for (const int ranks : {1, 3}) {
    const auto others = towers(ranks, 9);
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      FSDP fsdp(others[static_cast<size_t>(group->rank())], group);
      ShardedState state = sharded_state(fsdp);
      ShardedCheckpoint(folder()).load({{"model", &state}});
      const StateDict got = full_state_dict(fsdp, Receivers::all);
      for (const NamedTensor& entry : want.tensors)
        EXPECT_EQ(got.tensor(entry.name).to_vector<double>(), entry.tensor.to_vector<double>()) << entry.name;
    });
  }
  damage(folder() / "rank_00004.safetensors");
  EXPECT_THAT(error_text([&] { ShardedCheckpoint(folder()).full("model"); }),
              HasSubstr("rank 4's file rank_00004.safetensors is damaged"));
}

// The next save, or the end of the run, waits for all ranks: one that has died is named, and its file is not waited
// for.
TEST_F(ShardedCheckpointTest, ADeadRankLeavesTheCheckpointBefore) {
  for (const char* host : {"", "a"}) {  // a file of each rank, and one of both
    SCOPED_TRACE(host);
    const auto models = towers(2);
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = error_text([&] {
      run_ranks(2, [&](const ProcessGroupPtr& group) {
        FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
        CheckpointWriter writer(group, Milliseconds(20'000), host);
        writer.save(folder(), {{"model", sharded_state(fsdp)}}, {{"step", "5"}});
        writer.wait();
        if (group->rank() == 1) {
          group->all_gather_text(str("+ ", host), "checkpoint");  // save() begins so
          fail("this one has died");
        }
        writer.save(folder(), {{"model", sharded_state(fsdp)}}, {{"step", "6"}});
        writer.wait();
      });
    });
    EXPECT_THAT(text, HasSubstr("this one has died"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    EXPECT_EQ(ShardedCheckpoint(folder()).facts().at("step"), "5");
    EXPECT_EQ(read_index(folder()).files.size(), *host == '\0' ? 2u : 1u);
    EXPECT_EQ(ShardedCheckpoint(folder()).full("model").tensors.size(), models[0]->parameter_names().size());
  }
}

// The ranks of a host write into one file. Each tells the others its list of tensors.
TEST_F(ShardedCheckpointTest, ManySmallSavesOfAHost) {
  constexpr int kSaves = 50;
  const auto models = towers(4);
  run_ranks(4, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group);
    CheckpointWriter writer(group, Milliseconds(20'000), "a");
    for (int step = 0; step < kSaves; ++step) {
      {
        const NoGrad no_grad;
        for (const NamedTensor& parameter : fsdp.parameters()) parameter.tensor.fill_(step);
      }
      writer.save(folder(), {{"model", sharded_state(fsdp)}}, {{"step", str(step)}});
      if (step % 2 == 0) writer.wait();
      if (step % 10 != 0) continue;
      const ShardedCheckpoint saved(folder());
      EXPECT_EQ(saved.facts().at("step"), str(step));
      for (const NamedTensor& entry : saved.full("model").tensors)
        EXPECT_THAT(entry.tensor.to_vector<double>(), ::testing::Each(step)) << entry.name;
      group->all_gather_text("", "has read");  // before the next save replaces the folder
    }
    writer.wait();
  });
  EXPECT_EQ(read_index(folder()).files.size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace weft::dist::testing
