// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/pipeline_training.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist::testing::pipelines {
namespace {

using ::testing::HasSubstr;

TEST(Pipeline, ACheckpointGoesOnAtAnyGrid) {
  for (const Task& task : {tower_task(), gpt_task()}) {
    const Result one = train_whole(task);
    const Result half = train_in_stages("threads", task, {2, 2, 2, 3}, 4, 0, 2);
    for (const GridSizes& sizes : {GridSizes{4, 1}, {2, 1, 3}, {1, 1}, {2, 1, 1, 4}, {2, 2, 2, 1, true}}) {
      SCOPED_TRACE(task.name + ", " + sizes.text());
      Result rest = train_in_stages("threads", task, sizes, 3, 2, kSteps, &half);
      rest.losses.insert(rest.losses.begin(), half.losses.begin(), half.losses.end());
      rest.norms.insert(rest.norms.begin(), half.norms.begin(), half.norms.end());
      expect_same(rest, one);
    }
    Result rest = train_whole(task, 2, &half);  // and in one process
    rest.losses.insert(rest.losses.begin(), half.losses.begin(), half.losses.end());
    rest.norms.insert(rest.norms.begin(), half.norms.begin(), half.norms.end());
    expect_same(rest, one);
  }
}

void expect_same_bits(const StateDict& got, const StateDict& want) {
  EXPECT_EQ(got.tensors.size(), want.tensors.size());
  for (const NamedTensor& entry : want.tensors)
    EXPECT_EQ(got.tensor(entry.name).to_vector<double>(), entry.tensor.to_vector<double>()) << entry.name;
}

// Ranges of rows, columns, stretches of heads and padded shares find their elements on every other grid, and in one
// process; then the run goes on as from a whole state.
TEST(Pipeline, AShardedCheckpointGoesOnAtAnyGrid) {
  const std::vector<GridSizes> grids{{2, 2, 2, 2, true}, {1, 1, 2, 2, true}, {2, 1, 2, 1, true}, {1, 1, 4, 1, true},
                                     {1, 1, 1, 4},       {2, 1, 1, 3},       {1, 1, 3, 2, true}, {1, 1, 1, 1}};
  for (const Task& task : {tower_task(), gpt_task()}) {
    const tests::TemporaryFolder temporary;
    for (size_t from = 0; from < (task.name == "tower" ? 1 : grids.size()); ++from) {
      const std::filesystem::path folder = temporary / str("of_grid_", from);
      const int hosts = static_cast<int>(from % 3);
      const Result half =
          train_in_stages("threads", task, grids[from], 4, 0, 2, nullptr, {.save = folder, .hosts = hosts});
      EXPECT_EQ(static_cast<int>(read_index(folder).files.size()),
                hosts == 0 ? grids[from].ranks() : std::min(hosts, grids[from].ranks()));
      const Checkpoint whole = load_checkpoint(folder);
      expect_same_bits(whole.part("model"), half.model);
      expect_same_bits(whole.part("optimizer"), half.optimizer);
      for (const GridSizes& to : grids) {
        SCOPED_TRACE(str(task.name, ", from ", grids[from].text(), " to ", to.text()));
        const Result loaded = train_in_stages("threads", task, to, 4, 2, 2, nullptr, {.load = folder});
        expect_same_bits(loaded.model, half.model);
        expect_same_bits(loaded.optimizer, half.optimizer);
      }
      const GridSizes& next = grids[(from + 1) % grids.size()];
      const Result rest = train_in_stages("threads", task, next, 4, 2, kSteps, nullptr, {.load = folder});
      EXPECT_EQ(rest.losses, train_in_stages("threads", task, next, 4, 2, kSteps, &half).losses);
    }
  }
}

// A stage knows the names of all: what no stage has is an error on each rank.
TEST(Pipeline, AShardedCheckpointOfAnotherModelIsRefused) {
  const tests::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary / "deeper";
  const auto gpt = [](int depth) {
    return std::make_shared<nn::Gpt>(
        nn::GptOptions{.vocabulary = 11, .positions = 4, .width = 8, .depth = depth, .heads = 2});
  };
  CheckpointWriter writer(make_process_group_alone());
  writer.save(folder, {{"model", sharded_state(*gpt(3))}});
  writer.wait();
  run_ranks(4, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, 1, 2);
    Pipeline pipeline(gpt(2), grid, {.fsdp = FsdpOptions{}});
    ShardedState state = sharded_state(pipeline);
    EXPECT_THAT(tests::error_text([&] {
                  ShardedCheckpoint(folder).load({{"model", &state}});
                }),
                HasSubstr("part 'model' does not fit; unexpected: h.2.ln_1.weight, h.2.ln_1.bias, "));
  });
}

}  // namespace
}  // namespace weft::dist::testing::pipelines
