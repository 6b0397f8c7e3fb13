// SPDX-License-Identifier: Apache-2.0
// The bytes that ranks read of sharded checkpoints.
#include <gmock/gmock.h>

#include "core/random.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/parallel_embedding.h"
#include "dist/tensor/tensor_parallel_state.h"
#include "nn/linear.h"
#include "nn/models/gpt.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::Le;

constexpr uint64_t kBlock = CheckpointIndex::kBlock;

/// Loads from a folder where there is one, and saves into another. Returns the bytes that were read.
uint64_t load_and_save(Strategy& strategy, const ProcessGroupPtr& world, const fs::path& from, const fs::path& to) {
  uint64_t bytes = 0;
  if (!from.empty()) {
    const ShardedCheckpoint saved(from);
    ShardedState state = strategy.sharded_model();
    saved.load({{"model", &state}});
    bytes = saved.bytes_read();
  }
  CheckpointWriter writer(world);
  writer.save(to, {{"model", strategy.sharded_model()}});
  writer.wait();
  return bytes;
}

// A rank's range of a matrix of 32 MiB lies in one file or two: two blocks more than the range, and one for the header.
TEST(ShardedReading, ARankReadsItsShareAndAFewBlocks) {
  const tests::TemporaryFolder temporary;
  constexpr uint64_t kBytes = uint64_t{32} << 20;
  std::vector<float> first;
  fs::path last;
  for (const int ranks : {4, 2, 8, 1}) {
    const fs::path next = temporary / str("of_", ranks);
    std::vector<uint64_t> bytes(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](const ProcessGroupPtr& world) {
      FSDP fsdp(build([] { return std::make_shared<nn::Linear>(2048, 4096, nn::LinearOptions{.bias = false}); },
                      static_cast<uint64_t>(ranks), DeviceKind::cpu),
                world);
      bytes[static_cast<size_t>(world->rank())] = load_and_save(fsdp, world, last, next);
    });
    const uint64_t files = last.empty() ? 0 : std::max<uint64_t>(read_index(last).files.size() / bytes.size(), 1);
    EXPECT_THAT(bytes, Each(Le((files > 0 ? kBytes / static_cast<uint64_t>(ranks) : 0) + 3 * files * kBlock)));
    const std::vector<float> values = ShardedCheckpoint(next).full("model").tensor("weight").to_vector<float>();
    if (first.empty()) first = values;
    EXPECT_EQ(values, first) << ranks << " ranks";
    last = next;
  }
}

// On the same grid each rank reads its own file, on another the files with its rows. Columns of a matrix that others
// hold by rows come with the rest of their blocks.
TEST(ShardedReading, AGridReadsTheFilesOfItsRanges) {
  const tests::TemporaryFolder temporary;
  const nn::GptOptions sizes{.vocabulary = 4096, .positions = 16, .width = 512, .depth = 2, .heads = 4};
  fs::path last;
  uint64_t whole = 0;
  int saves = 0;
  for (const auto& [data, model, most] : {std::tuple{2, 2, 0.0}, {2, 2, 1.0}, {4, 1, 1.0}, {1, 4, 2.0}}) {
    const fs::path next = temporary / str("save_", saves++);
    std::vector<uint64_t> bytes(4);
    run_ranks(4, [&, data = data, model = model](const ProcessGroupPtr& world) {
      const Grid grid(world, model);
      const auto gpt = std::dynamic_pointer_cast<nn::Gpt>(
          build([&] { return std::make_shared<nn::Gpt>(sizes); }, static_cast<uint64_t>(saves), DeviceKind::cpu));
      divide_blocks(*gpt, grid.model());
      divide_vocabulary(*gpt, grid.model());
      TensorParallel parallel(gpt, grid, FsdpOptions{.policy = {.kinds = {"ParallelGptBlock", "GptBlock"}}});
      EXPECT_EQ(grid.data()->size(), data);
      bytes[static_cast<size_t>(world->rank())] = load_and_save(parallel, world, last, next);
    });
    last = next;
    whole = 0;
    const ShardedCheckpoint checkpoint(last);
    for (const CheckpointIndex::File& file : checkpoint.index().files) whole += file.bytes;
    EXPECT_THAT(bytes, Each(Le(static_cast<uint64_t>(most * static_cast<double>(whole) / 4) + 8 * kBlock)));
  }
}

}  // namespace
}  // namespace weft::dist::testing
