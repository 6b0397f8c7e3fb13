// SPDX-License-Identifier: Apache-2.0
// The bytes that ranks read of sharded checkpoints.
#include <gmock/gmock.h>

#include "dist/fsdp/checkpoint_writer.h"
#include "dist/tensor/partition.h"
#include "nn/linear.h"
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

/// Rank `rank`'s columns of a matrix, filled with `value`.
ShardedState columns(const Shape& sizes, int rank, int ranks, float value) {
  const Partition by_columns{.dim = 1};
  const Shape part = by_columns.part_sizes(sizes, ranks);
  ShardedState state;
  state.pieces.push_back({.name = "weight",
                          .sizes = sizes,
                          .values = Tensor::full({part.numel()}, value),
                          .of = by_columns.strided(part, rank, ranks)});
  return state;
}

// Columns lie in a part of each row: where the files hold other columns, a rank reads each block of its files once.
TEST(ShardedReading, ARankOfColumnsReadsItsFilesOnce) {
  const tests::TemporaryFolder temporary;
  const Shape sizes{2048, 2048};
  constexpr uint64_t kBytes = uint64_t{16} << 20;
  for (const int saved : {2, 4}) {
    const fs::path folder = temporary / str("of_", saved);
    run_ranks(saved, [&](const ProcessGroupPtr& world) {
      CheckpointWriter writer(world);
      writer.save(folder, {{"model", columns(sizes, world->rank(), saved, static_cast<float>(world->rank()))}});
      writer.wait();
    });
    for (const int ranks : {1, 2, 4, 8}) {
      const auto files = static_cast<uint64_t>(std::max(saved / ranks, 1));  // that a rank reads
      run_ranks(ranks, [&](const ProcessGroupPtr& world) {
        ShardedState state = columns(sizes, world->rank(), ranks, -1);
        const ShardedCheckpoint checkpoint(folder);
        checkpoint.load({{"model", &state}});
        EXPECT_LE(checkpoint.bytes_read(), files * (kBytes / static_cast<uint64_t>(saved) + 3 * kBlock));
        const std::vector<float> values = state.pieces[0].values.to_vector<float>();
        for (const size_t i : {size_t{0}, values.size() / 2, values.size() - 1}) {
          const int64_t column = state.pieces[0].of.place(static_cast<int64_t>(i)) % sizes[1];
          EXPECT_EQ(values[i], static_cast<float>(column * saved / sizes[1])) << "element " << i;
        }
      });
    }
  }
}

}  // namespace
}  // namespace weft::dist::testing
