// SPDX-License-Identifier: Apache-2.0
// Models of which no process holds more than a part: weights that are written late, state on the host, checkpoints of
// which each rank reads its own ranges.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/autograd.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/fsdp/fsdp_state.h"
#include "io/checkpoint.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "optim/optimizers.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/compare.h"
#include "tests/train/temporary_folder.h"

namespace weft::dist::testing {
namespace {

using NamedValues = std::map<std::string, std::vector<double>>;

NamedValues named_values(const StateDict& state) {
  NamedValues all;
  for (const NamedTensor& entry : state.tensors) all[entry.name] = entry.tensor.to_vector<double>();
  return all;
}

TEST(LargerModels, WeightsThatAreWrittenLateAreThoseOfAnEagerModel) {
  manual_seed(9);
  Tower eager(6, 8, 2, 4);
  const NamedValues want = named_values(eager.state_dict());
  const uint64_t drawn = generator(Device{}).offset;
  run_ranks(3, [&](const ProcessGroupPtr& group) {
    manual_seed(9);
    nn::DeferredInit later;
    std::shared_ptr<Tower> model;
    {
      const nn::DeferredInit::Scope scope(&later);
      model = std::make_shared<Tower>(6, 8, 2, 4);
    }
    EXPECT_EQ(generator(Device{}).offset, drawn);
    const size_t weights = later.pending();
    EXPECT_EQ(weights, 6u) << "stem, two of each block, head";
    FSDP fsdp(model, group, {.policy = {.kinds = {"Block"}}, .deferred = &later});
    EXPECT_EQ(later.pending(), group->rank() == 0 ? 0 : weights) << "the others get rank 0's values";
    EXPECT_EQ(generator(Device{}).offset, drawn);
    EXPECT_EQ(named_values(full_state_dict(fsdp, Receivers::all)), want);
  });
}

// A layer that changes a weight after its draw draws it at once.
TEST(LargerModels, APaddingRowStaysZero) {
  nn::DeferredInit later;
  const nn::DeferredInit::Scope scope(&later);
  const nn::Embedding padded(3, 2, {.padding = 1}), plain(3, 2);
  EXPECT_EQ(later.pending(), 1u);
  EXPECT_TRUE(later.has(plain.weight));
  EXPECT_EQ(padded.weight.select(0, 1).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(LargerModels, AWriteAfterTheNoteIsAnError) {
  nn::DeferredInit later;
  const nn::DeferredInit::Scope scope(&later);
  const nn::Linear layer(3, 2);
  const NoGrad no_grad;
  layer.weight.select(0, 1).fill_(0);
  EXPECT_THAT(
      tests::error_text([&] { later.write(layer.weight); }),
      ::testing::HasSubstr("DeferredInit: a weight f32[2,3] on cpu was written after its first values were noted"));
}

TEST(LargerModels, StateOnTheHostTrainsTheSame) {
  for (const Sharding strategy : {Sharding::full_shard, Sharding::hybrid_shard, Sharding::no_shard})
    for (const DType param : {DType::f32, DType::bf16}) {
      ShardedTraining t{.make = [] { return std::make_shared<Tower>(6, 8, 2, 4); },
                        .parts = unequal_parts(3, 2),
                        .options = {.strategy = strategy,
                                    .policy = {.kinds = {"Block"}},
                                    .precision = {.param = param},
                                    .shard_size = strategy == Sharding::hybrid_shard ? 1 : 0},
                        .dtype = DType::f32,
                        .adam = true,
                        .clip = 0.5};
      const ShardedResult want = train_sharded(t, 2);
      for (const Offload offload : {Offload::optimizer, Offload::parameters}) {
        t.options.offload = offload;
        EXPECT_EQ(train_sharded(t, 2).weights, want.weights) << name(strategy) << ' ' << name(offload);
      }
    }
}

/// Two matrices of 8 MiB.
std::shared_ptr<nn::Module> wide() {
  manual_seed(2);
  return std::make_shared<Tower>(6, 1024, 1, 4);
}

/// Bytes that each rank reads of `from`, whose values it must find; then it writes `to`.
std::vector<uint64_t> read_and_write(int ranks, const std::filesystem::path& from, const std::filesystem::path& to,
                                     const NamedValues& want) {
  std::vector<uint64_t> bytes(static_cast<size_t>(ranks));
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(wide());
  run_ranks(ranks, [&](const ProcessGroupPtr& group) {
    const auto rank = static_cast<size_t>(group->rank());
    FSDP fsdp(models[rank], group, {.policy = {.kinds = {"Block"}}});
    optim::AdamW adam(fsdp.parameters(), {.lr = 1e-2});
    if (from.empty()) {
      sum(fsdp(Tensor::ones({2, 6}))).backward();
      adam.step();
    } else {
      const ShardedCheckpoint saved(from);
      StateDict dict = adam.state_dict();
      ShardedState model = sharded_state(fsdp), state = sharded_state(fsdp, dict);
      saved.load({{"model", &model}, {"optimizer", &state}});
      dict.scalars = state.scalars;
      adam.load_state_dict(dict);
      bytes[rank] = saved.bytes_read();
    }
    CheckpointWriter writer(group);
    writer.save(to, {{"model", sharded_state(fsdp)}, {"optimizer", sharded_state(fsdp, adam.state_dict())}});
    writer.wait();
    if (!want.empty()) {
      StateDict all = full_state_dict(fsdp), moments = full_optimizer_state(fsdp, adam.state_dict());
      if (rank == 0) {
        all.tensors.insert(all.tensors.end(), moments.tensors.begin(), moments.tensors.end());
        EXPECT_TRUE(named_values(all) == want);
      }
    }
  });
  return bytes;
}

TEST(LargerModels, EachRankReadsItsOwnRangesOfACheckpoint) {
  const test::TemporaryFolder folder;
  read_and_write(4, {}, folder / "four", {});
  NamedValues want;
  uint64_t whole = 0;
  {
    const ShardedCheckpoint saved(folder / "four");
    StateDict all = saved.full("model");
    const StateDict moments = saved.full("optimizer");
    all.tensors.insert(all.tensors.end(), moments.tensors.begin(), moments.tensors.end());
    want = named_values(all);
    for (const auto& file : saved.index().files) whole += file.bytes;
  }
  const std::filesystem::path from[] = {folder / "four", folder / "two"}, to[] = {folder / "two", folder / "eight"};
  for (int turn = 0; turn < 2; ++turn) {
    const int ranks = turn == 0 ? 2 : 8;
    const std::vector<uint64_t> bytes = read_and_write(ranks, from[turn], to[turn], want);
    // Weights and two moments have two matrices, each in at most two files of those that a rank needs; each
    // range begins and ends within a block, and so does each header.
    const uint64_t own = whole / static_cast<uint64_t>(ranks), most = own + (3 * 2 * 2 + 4) * CheckpointIndex::kBlock;
    for (const uint64_t one : bytes) {
      EXPECT_GE(one, own * 9 / 10);
      EXPECT_LE(one, most);
      EXPECT_LT(one, whole * 3 / 4) << "of the whole " << whole;
    }
    std::printf("%d ranks: whole %.1f MiB, each %.1f, read", ranks, static_cast<double>(whole) / 1048576,
                static_cast<double>(own) / 1048576);
    for (const uint64_t one : bytes) std::printf(" %.1f", static_cast<double>(one) / 1048576);
    std::printf(" MiB\n");
  }
}

TEST(LargerModels, ADamagedBlockIsNamedWhereARankReadsIt) {
  const test::TemporaryFolder folder;
  read_and_write(2, {}, folder / "two", {});
  const std::filesystem::path file = folder / "two" / CheckpointIndex::file_name(1);
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(file) / 2);
  bytes.seekg(middle);
  const int byte = bytes.get();
  bytes.seekp(middle);
  bytes.put(static_cast<char>(byte ^ 1));
  bytes.close();
  const auto text = tests::error_text([&] { ShardedCheckpoint(folder / "two").full("model"); });
  const auto moments = tests::error_text([&] { ShardedCheckpoint(folder / "two").full("optimizer"); });
  EXPECT_THAT(text + moments,
              ::testing::HasSubstr("rank 1's file rank_00001.safetensors is damaged: its checksum differs"));
}

TEST(LargerModels, AWriterKeepsTheFoldersBefore) {
  const test::TemporaryFolder folder;
  run_ranks(1, [&](const ProcessGroupPtr& group) {
    Tower model(6, 8, 1, 4);
    CheckpointWriter writer(group);
    for (const char* step : {"1", "2", "3"}) {
      Checkpoint notes;
      notes.texts = {{"step", step}};
      notes.integers = {{"epoch", 7}};
      writer.save(folder / "last", {{"model", sharded_state(model)}}, notes, /*keep=*/2);
    }
  });
  EXPECT_EQ(ShardedCheckpoint(folder / "last").facts().at("step"), "3");
  EXPECT_EQ(ShardedCheckpoint(folder / "last").index().integers.at("epoch"), 7);
  EXPECT_EQ(ShardedCheckpoint(folder / "last.1").facts().at("step"), "2");
  EXPECT_FALSE(std::filesystem::exists(folder / "last.2"));
  std::string note;
  EXPECT_EQ(find_whole_checkpoint(folder / "last.safetensors", note), folder / "last");
  std::filesystem::remove(folder / "last" / CheckpointIndex::kFileName);
  EXPECT_EQ(find_whole_checkpoint(folder / "last.safetensors", note), folder / "last.1");
  EXPECT_THAT(note, ::testing::HasSubstr("going on from"));
}

}  // namespace
}  // namespace weft::dist::testing
