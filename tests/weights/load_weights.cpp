// SPDX-License-Identifier: Apache-2.0
#include "train/load_weights.h"

#include <cstring>
#include <fstream>
#include <map>

#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "dist/fsdp/fsdp_state.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/parallel_embedding.h"
#include "dist/tensor/tensor_parallel_state.h"
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "io/weights/safetensors_shards.h"
#include "nn/models/decoder.h"
#include "nn/models/make_model.h"
#include "nn/models/vision_transformer.h"
#include "optim/optimizers.h"
#include "tests/weights/fixture.h"
#include "train/strategy.h"

namespace weft {
namespace {

using test::error_of;
using test::TemporaryFolder;
using train::load_weights;
using train::LoadedWeights;

class LoadWeights : public testing::Test {
 protected:
  StateDict copy() const {
    StateDict state = model_->state_dict();
    for (NamedTensor& entry : state.tensors) entry.tensor = entry.tensor.clone();
    return state;
  }
  std::filesystem::path saved(const StateDict& state) const {
    write_safetensors(folder_ / "w.safetensors", state);
    return folder_ / "w.safetensors";
  }

  TemporaryFolder folder_;
  std::shared_ptr<nn::Module> model_ = nn::make_model("resnet8", 10);
};

TEST_F(LoadWeights, AllOfThem) {
  const StateDict before = copy();
  const auto path = saved(before);
  for (const NamedTensor& parameter : model_->parameters()) parameter.tensor.detach().fill_(7);
  const LoadedWeights loaded = load_weights(*model_, path);
  EXPECT_TRUE(loaded.is_whole());
  EXPECT_EQ(loaded.loaded, before.tensors.size());
  EXPECT_EQ(loaded.text(), str(before.tensors.size(), " tensors loaded"));
  test::expect_same_tensors(before, copy());
}

TEST_F(LoadWeights, FromPyTorchWithAPrefix) {
  if (!have_zip()) GTEST_SKIP() << "this build has no libzip";
  const StateDict before = copy();
  StateDict wrapped;
  for (const NamedTensor& entry : before.tensors) wrapped.tensors.push_back({"module.net." + entry.name, entry.tensor});
  write_torch(folder_ / "w.pt", wrapped);
  for (const NamedTensor& parameter : model_->parameters()) parameter.tensor.detach().fill_(7);
  EXPECT_TRUE(load_weights(*model_, folder_ / "w.pt", {.strict = true, .rename = {.prefix = "net."}}).is_whole());
  test::expect_same_tensors(before, copy());
}

TEST_F(LoadWeights, WholeNumbersAreNoWeights) {  // a quantised file has its factors elsewhere
  StateDict state = copy();
  for (NamedTensor& entry : state.tensors)
    if (entry.name == "linear.weight") entry.tensor = Tensor::full(entry.tensor.sizes(), 3).to(DType::i32);
  EXPECT_THAT(error_of([&] { load_weights(*model_, saved(state)); }),
              testing::HasSubstr("wrong shape: linear.weight (expected floating point numbers, got I32[10,64])"));
}

TEST_F(LoadWeights, WhatDoesNotFitIsNamedAndNothingChanges) {
  StateDict state = copy();
  state.tensors.back() = {"linear.bias", Tensor::zeros({7})};
  state.tensors.front().name = "conv0.weight";
  const auto path = saved(state);
  const Tensor weight = model_->state_dict().tensors[3].tensor;
  weight.fill_(5);
  EXPECT_EQ(error_of([&] { load_weights(*model_, path); }),
            "load_state_dict: the weights do not fit CifarResNet; wrong shape: linear.bias (expected [10], got [7]); "
            "missing: conv1.weight; unexpected: conv0.weight");
  EXPECT_EQ(weight.to_vector<float>()[0], 5);

  const LoadedWeights loaded = load_weights(*model_, path, {.strict = false});
  EXPECT_EQ(loaded.missing, std::vector<std::string>{"conv1.weight"});
  EXPECT_EQ(loaded.unexpected, std::vector<std::string>{"conv0.weight"});
  EXPECT_EQ(loaded.misshapen, std::vector<std::string>{"linear.bias (expected [10], got [7])"});
  EXPECT_EQ(loaded.loaded, state.tensors.size() - 2);
  EXPECT_EQ(loaded.text(),
            str(state.tensors.size() - 2,
                " tensors loaded; wrong shape: linear.bias (expected [10], got [7]); missing: conv1.weight; "
                "unexpected: conv0.weight"));
  EXPECT_EQ(weight.to_vector<float>(), state.tensors[3].tensor.to_vector<float>());
}

TEST_F(LoadWeights, AFileWithoutTensorsIsAnError) {
  const auto path = saved({});
  EXPECT_EQ(error_of([&] { load_weights(*model_, path, {.strict = false}); }),
            "load_state_dict: expected the weights of CifarResNet, got a file without tensors");
}

TEST_F(LoadWeights, CountersMayBeMissing) {
  StateDict state;
  for (const NamedTensor& entry : copy().tensors)
    if (!entry.name.ends_with("num_batches_tracked")) state.tensors.push_back(entry);
  EXPECT_TRUE(load_weights(*model_, saved(state)).is_whole());
}

TEST_F(LoadWeights, NothingInCommonIsAnErrorAlways) {
  StateDict state;
  state.tensors = {{"w", Tensor::zeros({1})}};
  EXPECT_THAT(error_of([&] { load_weights(*model_, saved(state), {.strict = false}); }),
              testing::StartsWith("load_state_dict: the weights do not fit CifarResNet; missing: conv1.weight, "));
}

TEST_F(LoadWeights, OtherDTypesAreConverted) {
  StateDict state = copy();
  for (NamedTensor& entry : state.tensors)
    if (entry.tensor.is_floating()) entry.tensor = entry.tensor.to(DType::bf16);
  load_weights(*model_, saved(state));
  const StateDict after = copy();
  EXPECT_EQ(after.tensors[0].tensor.dtype(), DType::f32);
  EXPECT_EQ(after.tensors[0].tensor.to_vector<float>(), state.tensors[0].tensor.to_vector<float>());
}

// --- Parts of a file, each read by the rank that keeps it ---

/// Bytes that this thread has read from files so far; the kernel counts them.
uint64_t bytes_read() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  uint64_t bytes = 0;
  file >> word >> bytes;
  return bytes;
}

bool counts_bytes() {
  bytes_read();  // which is counted itself
  return bytes_read() > 0;
}

uint64_t bytes_of(const StateDict& state) {
  uint64_t bytes = 0;
  for (const NamedTensor& entry : state.tensors) bytes += entry.tensor.nbytes();
  return bytes;
}

struct Published {
  const char* name;
  std::function<std::shared_ptr<nn::Module>()> make;
  const char *to = "", *from = "";  ///< name maps
  const char* unit;
};

/// Matrices as they are, transposed, and q, k and v apart in the file.
std::vector<Published> published() {
  return {{"decoder",
           [] {
             return std::make_shared<nn::Decoder>(
                 nn::DecoderOptions{.vocabulary = 301, .positions = 16, .width = 64, .depth = 3, .heads = 4});
           },
           "", "", "DecoderBlock"},
          {"gpt2",
           [] {
             return std::make_shared<nn::Gpt>(
                 nn::GptOptions{.vocabulary = 301, .positions = 16, .width = 64, .depth = 3, .heads = 4});
           },
           "to_hf_gpt2", "hf_gpt2", "GptBlock"},
          {"vit",
           [] {
             nn::VisionTransformerOptions options = nn::vit_options("vit_tiny4", 0);
             options.depth = 3;
             return std::make_shared<nn::VisionTransformer>(options);
           },
           "to_hf_dinov2", "hf_dinov2", "TransformerBlock"}};
}

/// A rank may read so much of a file: its shares, the columns that they cut, the header twice, samples for a checksum.
uint64_t most_bytes(const std::filesystem::path& path, const std::vector<std::unique_ptr<dist::FsdpUnit>>& units) {
  const SafetensorsReader file(path);
  uint64_t bytes = 2 * file.data_start() + 1000 + file.entries().size() * 16 * 4;
  for (const auto& unit : units)
    for (const auto& shard : unit->shards())
      for (const dist::ShardedParameter& p : shard->parameters()) {
        const int64_t columns = p.parameter.dim() > 2 ? p.parameter.size(0) * p.parameter.size(1) : p.numel;
        bytes += static_cast<uint64_t>(p.length > 0 ? p.length + 2 * (p.numel / columns - 1) : 0) * 4;
      }
  return bytes;
}

/// A model whose weights are left in the file, which FSDP reads.
struct Deferred {
  nn::DeferredInit notes;
  std::shared_ptr<nn::Module> module;

  Deferred(const Published& model, const std::filesystem::path& path) {
    const nn::DeferredInit::Scope scope(&notes);
    module = model.make();
    load_weights(*module, path, {.rename = {.map = model.from}});
  }
  dist::FsdpOptions options(const Published& model, dist::Offload offload = dist::Offload::none) {
    return {.policy = {.min_num_params = 0, .kinds = {model.unit}}, .offload = offload, .deferred = &notes};
  }
};

TEST_F(LoadWeights, RanksReadTheirPartsAlone) {
  if (!counts_bytes()) GTEST_SKIP() << "this kernel does not count what a thread reads";
  for (const Published& model : published()) {
    SCOPED_TRACE(model.name);
    manual_seed(3);
    const StateDict want = model.make()->state_dict();
    const auto path = saved(renamed_state(want, {.map = model.to}));
    for (const int ranks : {1, 2, 4})
      for (const dist::Offload offload : {dist::Offload::none, dist::Offload::parameters})
        dist::run_ranks(ranks, [&](const dist::ProcessGroupPtr& group) {
          const uint64_t before = bytes_read();
          Deferred own(model, path);
          dist::FSDP fsdp(own.module, group, own.options(model, offload));
          const uint64_t bytes = bytes_read() - before;
          EXPECT_EQ(own.notes.pending(), 0u);
          EXPECT_LE(bytes, most_bytes(path, fsdp.units()));
          EXPECT_LE(static_cast<double>(bytes),
                    static_cast<double>(std::filesystem::file_size(path)) * (ranks == 4 ? 0.4 : 1.2));
          test::expect_same_tensors(want, dist::full_state_dict(fsdp, dist::Receivers::all));
        });
  }
}

TEST_F(LoadWeights, RanksReadFilesOfEachKind) {
  const Published gpt = published()[1];
  manual_seed(3);
  const StateDict want = gpt.make()->state_dict(), given = renamed_state(want, {.map = gpt.to});
  StateDict half = given;
  for (NamedTensor& entry : half.tensors) entry.tensor = entry.tensor.to(DType::f16);
  std::map<std::string, std::filesystem::path> files;
  files["index"] = write_safetensors_shards(folder_ / "s.safetensors", given, 200'000).back();
  ASSERT_EQ(files["index"].extension(), ".json");
  write_safetensors(files["f16"] = folder_ / "f16.safetensors", half);
  Checkpoint checkpoint;
  checkpoint.parts = {{"model", given}, {"optimizer", given}};
  save_checkpoint(files["checkpoint"] = folder_ / "checkpoint", checkpoint);
  if (have_zip()) write_torch(files["torch"] = folder_ / "w.pt", given);
  for (const auto& file : files) {
    const std::string& kind = file.first;  // clang before 16 captures no structured binding
    const std::filesystem::path& path = file.second;
    SCOPED_TRACE(kind);
    dist::run_ranks(2, [&](const dist::ProcessGroupPtr& group) {
      const uint64_t before = bytes_read();
      Deferred own(gpt, path);
      dist::FSDP fsdp(own.module, group, own.options(gpt));
      EXPECT_EQ(own.notes.pending(), 0u);
      if (counts_bytes() && group->rank() > 0 && kind != "torch") {  // whose tensors are small beside libzip's buffers
        EXPECT_LE(static_cast<double>(bytes_read() - before), 0.75 * static_cast<double>(bytes_of(given)));
      }
      const StateDict got = dist::full_state_dict(fsdp, dist::Receivers::all);
      if (kind != "f16") return test::expect_same_tensors(want, got);
      for (size_t i = 0; i < want.tensors.size(); ++i)
        EXPECT_EQ(got.tensors[i].tensor.to_vector<float>(),
                  want.tensors[i].tensor.to(DType::f16).to(DType::f32).to_vector<float>());
    });
  }
}

// A seal and a zip archive's checksums cover more than a rank's part.
TEST_F(LoadWeights, RankZeroAloneChecksWholeFiles) {
  const Published gpt = published()[1];
  const StateDict state = gpt.make()->state_dict();
  Checkpoint checkpoint;
  checkpoint.parts = {{"optimizer", state}, {"model", state}};
  save_checkpoint(folder_ / "checkpoint", checkpoint);
  if (have_zip()) write_torch(folder_ / "w.pt", state);
  for (const std::string name : {"checkpoint", "w.pt"}) {
    const std::filesystem::path path = folder_ / name;
    if (!std::filesystem::exists(path)) continue;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 4));  // a weight, or a moment
    file.put('x').put('y').flush();
    dist::run_ranks(2, [&](const dist::ProcessGroupPtr& group) {
      Deferred own({.name = "gpt2", .make = gpt.make, .unit = gpt.unit}, path);
      EXPECT_THAT(error_of([&] { dist::FSDP(own.module, group, own.options(gpt)); }),
                  testing::ContainsRegex(str("^fsdp: rank 0: (checkpoint|pytorch): .*/", name,
                                             ": (damaged: its bytes do not fit|zip entry .*CRC)")));
    });
  }
}

// For optimizers and averages in files of other names.
TEST_F(LoadWeights, RanksReadTheirPartsOfMoments) {
  const auto make = [] {
    return std::make_shared<nn::Gpt>(
        nn::GptOptions{.vocabulary = 301, .positions = 16, .width = 256, .depth = 2, .heads = 4});
  };
  StateDict moments = make()->state_dict();
  for (NamedTensor& entry : moments.tensors) normal_(entry.tensor = entry.tensor.clone(), 0, 1);
  std::vector<std::filesystem::path> paths{saved(moments)};
  if (have_zip()) write_torch(paths.emplace_back(folder_ / "w.pt"), moments);
  for (const std::filesystem::path& path : paths)
    for (const int ranks : {1, 4})
      dist::run_ranks(ranks, [&](const dist::ProcessGroupPtr& group) {
        const auto strategy =
            train::make_strategy({.kind = ranks > 1 ? "fsdp" : "none"}, make(), dist::World::around(group));
        optim::AdamW adam(strategy->parameters(), {});
        const StateDict state = adam.state_dict();
        const auto file = open_weights(path);
        const uint64_t before = bytes_read();
        train::read_parts(*strategy, *file, ".exp_avg", state);
        const uint64_t pages =
            path.extension() == ".pt" ? moments.tensors.size() * 3 * 4096 : 1000;  // buffers of libzip
        if (counts_bytes()) {
          EXPECT_LE(bytes_read() - before, bytes_of(state) / 2 + pages);
        }
        const StateDict whole = strategy->gathered(state);
        for (const NamedTensor& entry : group->rank() == 0 ? moments.tensors : std::vector<NamedTensor>()) {
          EXPECT_EQ(whole.tensor(entry.name + ".exp_avg").to_vector<float>(), entry.tensor.to_vector<float>());
          EXPECT_EQ(max(whole.tensor(entry.name + ".exp_avg_sq")).item(), 0);
        }
      });
  const auto strategy =
      train::make_strategy({.kind = "none"}, make(), dist::World::around(dist::make_process_group_alone()));
  const StateDict state = optim::AdamW(strategy->parameters(), {}).state_dict();
  moments.tensors[0].tensor = Tensor::ones({3});
  moments.tensors[1].name = "other";
  EXPECT_THAT(
      error_of([&] { train::read_parts(*strategy, *open_weights(saved(moments)), ".exp_avg", state); }),
      testing::AllOf(testing::StartsWith("the tensors *.exp_avg do not fit; wrong shape: wte.weight (expected "),
                     testing::HasSubstr("missing: wpe.weight; unexpected: other")));
}

// A folder has a convolution's weight in the order of memory.
TEST_F(LoadWeights, BlocksArePartsOfTheWhole) {
  const auto model = nn::make_model("resnet8", 10);
  {
    dist::CheckpointWriter writer(dist::make_process_group_alone());
    writer.save(folder_ / "sharded", {{"model", dist::sharded_state(*model)}});
  }
  Checkpoint checkpoint;
  checkpoint.parts = {{"model", model->state_dict()}};
  save_checkpoint(folder_ / "checkpoint", checkpoint);
  std::vector<std::filesystem::path> paths{saved(model->state_dict()), folder_ / "sharded", folder_ / "checkpoint"};
  for (const char* name : {"every_kind", "every_kind_legacy", "program_arrays_2_15", "lists", "nested", "narrow_2_15"})
    if (have_zip()) paths.push_back(test::golden(str(name, ".pt")));
  for (const std::filesystem::path& path : paths) {
    const auto file = open_weights(path);
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      const auto& [name, dtype, sizes, stored] = file->tensors()[i];
      if (sizes.rank() == 0 || sizes.numel() == 0) continue;
      const Tensor whole = file->read(i);
      for (int64_t row = 0; row < std::min<int64_t>(sizes[0], 2); ++row)
        for (int64_t column = 0; column < (sizes.rank() > 1 ? std::min<int64_t>(sizes[1], 2) : 1); ++column) {
          WeightBlock block{.row = row, .rows = std::max<int64_t>(sizes[0] - 2 * row, 1)};
          Tensor want = whole.slice(0, row, block.rows);
          if (column > 0) {
            block.column = column, block.columns = sizes[1] - column;
            want = want.slice(1, column, block.columns);
          }
          const Tensor got = file->read_block(i, block).contiguous();
          want = want.contiguous();
          ASSERT_EQ(got.sizes(), want.sizes()) << path << ' ' << name;
          EXPECT_EQ(std::memcmp(got.raw_data(), want.raw_data(), want.nbytes()), 0) << path << ' ' << name;
        }
    }
  }
}

TEST_F(LoadWeights, AFileThatIsCutShortEndsAllRanks) {
  const Published gpt = published()[1];
  const StateDict state = renamed_state(gpt.make()->state_dict(), {.map = gpt.to});
  for (const int cut : {0, 1}) {
    std::vector<std::filesystem::path> paths;
    for (const int rank : {0, 1}) {
      paths.push_back(folder_ / str(rank, ".safetensors"));
      write_safetensors(paths.back(), state);
    }
    dist::run_ranks(2, [&](const dist::ProcessGroupPtr& group) {
      const auto& path = paths[static_cast<size_t>(group->rank())];
      Deferred own(gpt, path);
      if (group->rank() == cut) std::filesystem::resize_file(path, std::filesystem::file_size(path) / 4);
      EXPECT_THAT(error_of([&] { dist::FSDP(own.module, group, own.options(gpt)); }),
                  testing::AllOf(testing::StartsWith(str("fsdp: rank ", cut, ": safetensors: ")),
                                 testing::HasSubstr(paths[static_cast<size_t>(cut)].string())));
    });
  }
}

TEST_F(LoadWeights, RanksOfAGridReadTheirPartsAlone) {
  if (!counts_bytes()) GTEST_SKIP() << "this kernel does not count what a thread reads";
  const Published gpt = published()[1];
  manual_seed(3);
  const StateDict want = gpt.make()->state_dict();
  const auto path = saved(renamed_state(want, {.map = gpt.to}));
  dist::run_ranks(4, [&](const dist::ProcessGroupPtr& world) {
    const dist::Grid grid(world, 2);
    const uint64_t before = bytes_read();
    Deferred own(gpt, path);
    {
      const nn::DeferredInit::Scope scope(&own.notes);
      auto& module = dynamic_cast<nn::Gpt&>(*own.module);
      dist::divide_blocks(module, grid.model());
      dist::divide_vocabulary(module, grid.model());
    }
    dist::FsdpOptions options = own.options(gpt);
    options.policy.kinds = {"ParallelGptBlock"};
    dist::TensorParallel parallel(own.module, grid, options);
    EXPECT_LE(bytes_read() - before, most_bytes(path, parallel.fsdp()->units()));
    const StateDict full = full_state_dict(parallel);
    if (world->rank() == 0) test::expect_same_tensors(want, full);
  });
}

TEST_F(LoadWeights, RanksMustReadOneFile) {
  const Published gpt = published()[1];
  std::vector<std::filesystem::path> paths;
  for (const uint64_t seed : {3, 4}) {
    manual_seed(seed);
    const auto model = gpt.make();
    for (const NamedTensor& p : model->parameters())
      if (p.name == "ln_f.bias") p.tensor.detach().fill_(static_cast<double>(seed));
    paths.push_back(folder_ / str(seed, ".safetensors"));
    write_safetensors(paths.back(), renamed_state(model->state_dict(), {.map = gpt.to}));
  }
  dist::run_ranks(2, [&](const dist::ProcessGroupPtr& group) {
    const auto later = std::make_shared<nn::DeferredInit>();
    const nn::DeferredInit::Scope scope(later.get());
    const auto own = gpt.make();
    load_weights(*own, paths[static_cast<size_t>(group->rank())], {.rename = {.map = gpt.from}});
    EXPECT_THAT(
        error_of([&] { train::make_strategy({.kind = "fsdp", .deferred = later}, own, dist::World::around(group)); }),
        testing::HasSubstr("weights: the file is"));
  });
}

}  // namespace
}  // namespace weft
