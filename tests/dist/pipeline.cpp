// SPDX-License-Identifier: Apache-2.0
#include "dist/pipeline/pipeline.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/losses.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/pipeline/pipeline_state.h"
#include "nn/models/gpt.h"
#include "optim/optimizers.h"
#include "tests/dist/parallel_tower.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

/// A schedule on the clock: when each step of each stage begins and ends, where a forward of a stretch takes `forward`
/// ticks and a backward `backward`. Empty: stages wait for each other in a circle.
struct Clock {
  struct Span {
    PipelineStep step;
    int64_t begin, end;
  };
  std::vector<std::vector<Span>> stages;
  int64_t end = 0;
};

Clock run_clock(const PipelineSize& size, int64_t forward, int64_t backward) {
  const int P = size.stages, last = P * size.chunks - 1;
  Clock clock{.stages = std::vector<std::vector<Clock::Span>>(static_cast<size_t>(P))};
  std::vector<std::vector<PipelineStep>> left;
  for (int stage = 0; stage < P; ++stage) left.push_back(pipeline_schedule(size, stage));
  std::map<std::tuple<bool, int, int64_t>, int64_t> done;  // backward, stretch, micro-batch
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < P; ++stage) {
      auto& spans = clock.stages[static_cast<size_t>(stage)];
      const auto& steps = left[static_cast<size_t>(stage)];
      while (spans.size() < steps.size()) {
        const PipelineStep& step = steps[spans.size()];
        const int stretch = step.chunk * P + stage;
        int64_t begin = spans.empty() ? 0 : spans.back().end;
        const bool begins = step.backward ? false : stretch == 0;
        if (!begins) {
          const auto needs = step.backward && stretch < last ? std::tuple(true, stretch + 1, step.micro)
                             : step.backward                 ? std::tuple(false, stretch, step.micro)
                                                             : std::tuple(false, stretch - 1, step.micro);
          const auto found = done.find(needs);
          if (found == done.end()) break;
          begin = std::max(begin, found->second);
        }
        spans.push_back({step, begin, begin + (step.backward ? backward : forward)});
        done[{step.backward, stretch, step.micro}] = spans.back().end;
        clock.end = std::max(clock.end, spans.back().end);
        moved = true;
      }
    }
  }
  for (int stage = 0; stage < P; ++stage)
    if (clock.stages[static_cast<size_t>(stage)].size() < left[static_cast<size_t>(stage)].size()) return {};
  return clock;
}

/// One line for each stage; a forward is its micro-batch (0 … 9), the backward after it takes two columns. Letters: the
/// second chunk. As docs/pipeline_parallel.md draws it.
std::string drawn(const PipelineSize& size) {
  const Clock clock = run_clock(size, 1, 2);
  std::string text;
  for (int stage = 0; stage < size.stages; ++stage) {
    std::string line(static_cast<size_t>(clock.end), '.');
    for (const Clock::Span& span : clock.stages[static_cast<size_t>(stage)]) {
      const char name = static_cast<char>((span.step.chunk == 0 ? '0' : 'a') + span.step.micro);
      line[static_cast<size_t>(span.begin)] = name;
      if (span.step.backward)
        line[static_cast<size_t>(span.begin)] = '<', line[static_cast<size_t>(span.begin + 1)] = name;
    }
    text += str("stage ", stage, "  ", line, '\n');
  }
  return text;
}

/// Forwards whose backward has not been, at most.
int64_t most_held(const std::vector<PipelineStep>& steps) {
  int64_t held = 0, most = 0;
  for (const PipelineStep& step : steps) most = std::max(most, held += step.backward ? -1 : 1);
  return most;
}

TEST(PipelineSchedule, OneForwardOneBackward) {
  const auto text = [](int stage) {
    std::string all;
    for (const PipelineStep& step : pipeline_schedule({4, 1, 6}, stage))
      all += str(step.backward ? 'B' : 'F', step.micro, ' ');
    return all;
  };
  EXPECT_EQ(text(0), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 ");
  EXPECT_EQ(text(1), "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5 ");
  EXPECT_EQ(text(3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 ");
}

TEST(PipelineSchedule, EveryOneEndsHoldsAsFewAsItSaysAndIdlesAsItsFormulaSays) {
  for (int P = 1; P <= 6; ++P)
    for (int V = 1; V <= (P == 1 ? 1 : 4); ++V)
      for (int64_t M = 1; M <= 14; ++M) {
        SCOPED_TRACE(str(P, " stages, ", V, " chunks, ", M, " micro-batches"));
        const PipelineSize size{P, V, M};
        const Clock clock = run_clock(size, 1, 2);
        ASSERT_FALSE(clock.stages.empty()) << "stages wait for each other in a circle";
        const int64_t group = V == 1 ? 1 : M < P ? M : P + M % P;
        for (int stage = 0; stage < P; ++stage) {
          auto steps = pipeline_schedule(size, stage);
          const int64_t limit = V == 1 ? P - stage : 2 * (P - 1 - stage) + (V - 1) * group + 1;
          EXPECT_EQ(most_held(steps), std::min(limit, M * V)) << "stage " << stage;
          std::ranges::sort(steps);
          EXPECT_EQ(std::ranges::adjacent_find(steps), steps.end()) << "each once";
          EXPECT_EQ(steps.size(), static_cast<size_t>(2 * V * M));
        }
        const auto useful = static_cast<double>(3 * V * M), all = static_cast<double>(clock.end);
        if (V == 1 || M % P == 0) {
          EXPECT_NEAR(all / useful - 1, size.bubble(), 1e-12);
        } else {
          EXPECT_GE(all / useful - 1, size.bubble() - 1e-12);
        }
      }
}

TEST(PipelineSchedule, IsDrawnInTheDocumentation) {
  const std::string page = tests::read_text(std::string(WEFT_DOCS) + "/pipeline_parallel.md");
  for (const PipelineSize& size : {PipelineSize{4, 1, 8}, PipelineSize{4, 2, 8}})
    EXPECT_THAT(page, HasSubstr(drawn(size)));
}

constexpr int kSteps = 4;
constexpr int64_t kTokens = 7, kBatch = 11, kWords = 13;
constexpr double kClip = 0.5;  // below the norms of these gradients: clipping acts

/// A model, its samples and its loss: a tower, and a GPT, whose two ends share a weight; tensor parallelism divides
/// both.
struct Task {
  std::string name;
  int layers;
  std::function<std::shared_ptr<nn::Module>(const ProcessGroupPtr&)> make;
  std::function<Tensor(int step, int64_t first, int64_t count)> inputs;
  std::function<Tensor(const Tensor& y, int step, int64_t first, int64_t count)> loss;
};

Task tower_task(Tokens tokens = Tokens::all) {
  constexpr int kBlocks = 8;
  return {"tower", kBlocks,
          [tokens](const ProcessGroupPtr& group) { return tower(kBlocks, group, DType::f64, {}, tokens); },
          [](int step, int64_t first, int64_t count) {
            return samples(step, first, count, {kTokens, BlockTower::kIn}, DeviceKind::cpu).to(DType::f64);
          },
          [](const Tensor& y, int step, int64_t first, int64_t count) {
            return mse_loss(
                y, samples(step + 50, first, count, {kTokens, BlockTower::kOut}, DeviceKind::cpu).to(DType::f64));
          }};
}

Tensor words(int step, int64_t first, int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = first * kTokens; i < (first + count) * kTokens; ++i)
    ids.push_back((i * i + step * 5 + i / 3) % kWords);
  return Tensor::from(ids, {count, kTokens});
}

/// Ids, and where the documents of the row begin: two of different lengths in most rows.
Tensor documents(int step, int64_t first, int64_t count) {
  std::vector<int64_t> starts;
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t i = 0, begin = row % kTokens; i < kTokens; ++i) starts.push_back(i < begin ? 0 : begin);
  return stack({words(step, first, count), Tensor::from(starts, {count, kTokens})}, 1);
}

Task gpt_task(Tokens tokens = Tokens::all, bool packed = false) {
  constexpr int kBlocks = 8;
  return {"gpt", kBlocks,
          [tokens](const ProcessGroupPtr& group) {
            const auto model = build(
                [] {
                  return std::make_shared<nn::Gpt>(nn::GptOptions{
                      .vocabulary = kWords, .positions = kTokens, .width = 24, .depth = kBlocks, .heads = 12});
                },
                7, DeviceKind::cpu);
            model->to(DType::f64);
            if (group) divide_blocks(dynamic_cast<nn::Gpt&>(*model), group, tokens);
            return model;
          },
          packed ? documents : words,
          [](const Tensor& y, int step, int64_t first, int64_t count) {
            return cross_entropy(y, words(step + 50, first, count));
          }};
}

struct Result {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> predictions;
  StateDict model, optimizer;
};

std::unique_ptr<optim::Adam> make_adam(const std::vector<NamedTensor>& parameters) {
  return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-2, .beta2 = 0.95, .eps = 1e-4});
}

Result train_whole(const Task& task, int first = 0, const Result* from = nullptr) {
  const auto model = task.make(task.name == "tower" ? make_process_group_alone() : nullptr);
  const auto adam = make_adam(model->parameters());
  if (from) model->load_state_dict(from->model), adam->load_state_dict(from->optimizer);
  Result result;
  for (int step = first; step < kSteps; ++step) {
    const Tensor loss = task.loss((*model)(task.inputs(step, 0, kBatch)), step, 0, kBatch);
    adam->zero_grad();
    loss.backward();
    result.norms.push_back(clip_grad_norm(model->parameters(), kClip).item());
    adam->step();
    result.losses.push_back(loss.item());
  }
  const NoGrad no_grad;
  result.predictions.push_back((*model)(task.inputs(99, 0, 5)).to_vector<double>());
  result.model = model->state_dict();
  result.optimizer = adam->state_dict();
  return result;
}

struct GridSizes {
  int stages, chunks, data = 1, model = 1;
  bool sharded = false;  ///< over the data ranks
  Offload offload = Offload::none;
  int ranks() const { return stages * data * model; }
  std::string text() const {
    return str(stages, " stages x ", chunks, " chunks, ", data, " data x ", model, " model ranks",
               sharded ? ", sharded, offload " : "", sharded ? name(offload) : "");
  }
};

/// Sharded checkpoints of the run's begin and end.
struct Folders {
  std::filesystem::path load = {}, save = {};
  int hosts = 0;  ///< whose ranks write one file each; 0: each rank has its own
};

/// Trains the same global batches on a grid, in micro-batches that divide nothing; whole states on rank 0.
Result train_in_stages(const std::string& backend, const Task& task, const GridSizes& sizes, int64_t micro_batches,
                       int first_step = 0, int last_step = kSteps, const Result* from = nullptr,
                       const Folders& folders = {}) {
  Result result;
  run_on(backend, sizes.ranks(), [&](const ProcessGroupPtr& world) {
    const Grid grid(world, sizes.model, sizes.stages);
    EXPECT_EQ(grid.pipe()->rank(), world->rank() / (sizes.data * sizes.model));
    // The root of a stage is little more than a tied table, which lies across the shards.
    const char* const unit = task.name == "tower" ? "ParallelBlock" : sizes.model > 1 ? "ParallelGptBlock" : "GptBlock";
    Pipeline pipeline(
        task.make(grid.model()), grid,
        {.chunks = sizes.chunks,
         .ddp = {.bucket_mb = 0.01, .first_bucket_mb = 0.001},
         .fsdp = sizes.sharded ? std::optional(FsdpOptions{.policy = {.min_num_params = 0, .kinds = {unit}},
                                                           .offload = sizes.offload})
                               : std::nullopt});
    const auto adam = make_adam(pipeline.parameters());
    if (from) {
      load_full_state_dict(pipeline, from->model);
      adam->load_state_dict(part_of_optimizer_state(pipeline, from->optimizer));
    }
    if (!folders.load.empty()) {
      StateDict dict = adam->state_dict();
      ShardedState model = sharded_state(pipeline), state = sharded_state(pipeline, dict);
      ShardedCheckpoint(folders.load).load({{"model", &model}, {"optimizer", &state}});
      dict.scalars = state.scalars;
      adam->load_state_dict(dict);
    }
    Result own;
    for (int step = first_step; step < last_step; ++step) {
      const int64_t begin = kBatch * grid.data_rank() / sizes.data, end = kBatch * (grid.data_rank() + 1) / sizes.data;
      const int64_t rows = end - begin, count = std::min(micro_batches, sizes.sharded ? kBatch / sizes.data : rows);
      std::vector<std::pair<int64_t, int64_t>> cuts;
      MicroBatches batch{.samples = rows};
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = begin + rows * i / count, size = begin + rows * (i + 1) / count - at;
        cuts.emplace_back(at, size);
        batch.inputs.push_back(task.inputs(step, at, size));
      }
      const Tensor mean = Tensor::zeros({}, DType::f64);
      batch.loss = [&](size_t i) {
        const Tensor loss = task.loss(pipeline(batch.inputs[i]), step, cuts[i].first, cuts[i].second) *
                            (static_cast<double>(cuts[i].second) / static_cast<double>(rows));
        const NoGrad no_grad;
        mean.add_(loss.detach());
        return loss;
      };
      adam->zero_grad();
      pipeline.run(batch);
      own.norms.push_back(clip_grad_norm(pipeline.parameters(), kClip).item());
      adam->step();
      // Memory: as few activations as the schedule says, on every stage.
      const auto steps = pipeline_schedule({sizes.stages, sizes.chunks, count}, grid.pipe()->rank());
      EXPECT_EQ(pipeline.steps(), steps);
      EXPECT_EQ(static_cast<int64_t>(pipeline.most_in_flight()), most_held(steps));
      if (sizes.chunks == 1) {
        EXPECT_EQ(static_cast<int64_t>(pipeline.most_in_flight()),
                  std::min<int64_t>(sizes.stages - grid.pipe()->rank(), count));
      }
      pipeline.broadcast_from_last(mean, "loss");
      mean.mul_(static_cast<double>(rows) / static_cast<double>(kBatch));
      grid.data()->all_reduce(mean, ReduceOp::sum, {.name = "loss", .scale = {}})->wait();
      own.losses.push_back(mean.item());
    }
    {
      const NoGrad no_grad;
      own.predictions.push_back(pipeline(task.inputs(99, 0, 5)).to_vector<double>());
      own.predictions.push_back(pipeline(task.inputs(99, 0, 5)).to_vector<double>());  // forms are known now
    }
    EXPECT_EQ(own.predictions[0], own.predictions[1]);
    own.predictions.pop_back();
    const Tensor of_first = Tensor::from(own.predictions[0]);
    world->broadcast(of_first, 0, {.name = "prediction", .scale = {}})->wait();
    EXPECT_EQ(own.predictions[0], of_first.to_vector<double>()) << "rank " << world->rank();
    if (!folders.save.empty()) {
      CheckpointWriter writer(world, Milliseconds{600'000},
                              folders.hosts > 0 ? str(world->rank() % folders.hosts) : "");
      writer.save(folders.save,
                  {{"model", sharded_state(pipeline)}, {"optimizer", sharded_state(pipeline, adam->state_dict())}});
      writer.wait();
    }
    own.model = full_state_dict(pipeline);
    own.optimizer = full_optimizer_state(pipeline, adam->state_dict());
    if (world->rank() > 0) {
      EXPECT_TRUE(own.model.tensors.empty() && own.optimizer.tensors.empty());
    }
    if (world->rank() == 0) result = own;
  });
  return result;
}

/// In f64 nothing but the order of sums differs; Adam, whose eps is far above the roundings, hands that on.
void expect_same(const Result& got, const Result& want) {
  const tests::Tolerance allowed{1e-11, 1e-11};
  EXPECT_TRUE(tests::near(got.losses, want.losses, allowed)) << "losses";
  EXPECT_TRUE(tests::near(got.norms, want.norms, allowed)) << "norms";
  EXPECT_TRUE(tests::near(got.predictions.back(), want.predictions.back(), allowed)) << "predictions";
  EXPECT_EQ(names_and_sizes(got.model), names_and_sizes(want.model));
  EXPECT_EQ(names_and_sizes(got.optimizer), names_and_sizes(want.optimizer));
  EXPECT_TRUE(tests::near(values_of(got.model), values_of(want.model), allowed)) << "weights";
  EXPECT_TRUE(tests::near(values_of(got.optimizer), values_of(want.optimizer), allowed)) << "moments";
}

class PipelineRanks : public ::testing::TestWithParam<std::string> {};

TEST_P(PipelineRanks, TrainWhatOneProcessTrainsOnEveryGrid) {
  for (const Task& task : {tower_task(), gpt_task()}) {
    const Result one = train_whole(task);
    EXPECT_GT(one.norms[0], kClip);
    for (const GridSizes& sizes : {GridSizes{1, 1},
                                   {2, 1},
                                   {4, 1},
                                   {2, 2},
                                   {2, 4},
                                   {3, 2},
                                   {2, 1, 2},
                                   {2, 2, 2},
                                   {4, 1, 2},
                                   {1, 1, 1, 3},
                                   {2, 1, 1, 2},
                                   {1, 1, 3, 4},
                                   {3, 1, 2, 3},
                                   {2, 2, 2, 2},
                                   {4, 2, 1, 2},
                                   {2, 1, 2, 1, true},
                                   {3, 2, 2, 1, true},
                                   {1, 1, 2, 2, true},
                                   {2, 2, 2, 2, true},
                                   {3, 1, 2, 1, true, Offload::parameters},
                                   {2, 2, 2, 1, true, Offload::optimizer}}) {
      for (const int64_t micro_batches : {1, 5, 8}) {
        // The groups of other backends take longer to make: one number of micro-batches each.
        if (GetParam() != "threads" && micro_batches != 5) continue;
        SCOPED_TRACE(str(task.name, ", ", sizes.text(), ", ", micro_batches, " micro-batches over ", GetParam()));
        expect_same(train_in_stages(GetParam(), task, sizes, micro_batches), one);
      }
    }
  }
}

// Neither the ranks of a stage nor the micro-batches divide the tokens; each stage knows its rows' documents.
TEST_P(PipelineRanks, OwnTokensAndDocumentsTrainAsOneProcess) {
  struct Case {
    Task own, whole;
  };
  for (const auto& [own, whole] : {Case{gpt_task(Tokens::own), gpt_task()},
                                   {tower_task(Tokens::own), tower_task()},
                                   {gpt_task(Tokens::own, true), gpt_task(Tokens::all, true)},
                                   {gpt_task(Tokens::all, true), gpt_task(Tokens::all, true)}}) {
    const Result one = train_whole(whole);
    for (const GridSizes& sizes : {GridSizes{3, 1, 1, 3}, {2, 2, 1, 2}, {2, 1, 2, 2, true}}) {
      SCOPED_TRACE(str(own.name, ", ", sizes.text(), " over ", GetParam()));
      expect_same(train_in_stages(GetParam(), own, sizes, 5), one);
    }
  }
}

// A rank sends its own tokens alone over the cut, forward and backward.
TEST(Pipeline, OwnTokensCrossTheCut) {
  constexpr int64_t kRows = 2;
  constexpr int kMicroBatches = 3;
  for (const Tokens tokens : {Tokens::all, Tokens::own})
    for (const int ranks : {2, 4}) {
      const Task task = gpt_task(tokens);
      run_ranks(2 * ranks, [&](const ProcessGroupPtr& world) {
        const Grid grid(world, ranks, 2);
        Pipeline pipeline(task.make(grid.model()), grid);
        MicroBatches batch{.samples = kRows * kMicroBatches};
        for (int i = 0; i < kMicroBatches; ++i) batch.inputs.push_back(task.inputs(0, i * kRows, kRows));
        batch.loss = [&](size_t i) { return task.loss(pipeline(batch.inputs[i]), 0, 0, kRows); };
        pipeline.run(batch);  // forms are known then
        const uint64_t before = pipeline.bytes_sent();
        pipeline.run(batch);
        const int64_t each = tokens == Tokens::all ? kTokens : (kTokens + ranks - 1) / ranks;
        EXPECT_EQ(pipeline.bytes_sent() - before,
                  static_cast<uint64_t>(kMicroBatches * kRows * each * 24) * sizeof(double))
            << ranks << " ranks of stage " << grid.pipe()->rank();
      });
    }
}

// Stages that left their channels in different orders would wait for each other until a goodbye's time is over, 5 s.
TEST_P(PipelineRanks, ItsGroupsEndAtOnce) {
  const Task task = gpt_task();
  for (const GridSizes& sizes : {GridSizes{2, 2}, {3, 2}, {4, 1}}) {
    std::mutex mutex;
    double longest = 0;
    run_on(GetParam(), sizes.ranks(), [&](const ProcessGroupPtr& world) {
      auto pipeline = std::make_unique<Pipeline>(task.make(nullptr), Grid(world, sizes.model, sizes.stages),
                                                 PipelineOptions{.chunks = sizes.chunks});
      world->barrier("all are there");
      const auto begin = std::chrono::steady_clock::now();
      pipeline.reset();
      const std::lock_guard lock(mutex);
      longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    });
    EXPECT_LT(longest, 4) << sizes.text();
  }
}

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

std::vector<std::string> thread_backends() {
  std::vector<std::string> all = backends();
  std::erase(all, "mpi");  // as many processes as there are: not for each grid
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PipelineRanks, ::testing::ValuesIn(thread_backends()),
                         [](const auto& one) { return one.param; });

// When the last micro-batch comes to the first layer of a stage, the gradients of later layers are on their way; the
// mean of two data ranks has the bits of their sum after all backwards.
TEST(Pipeline, GradientsAreAveragedBesideTheLastBackward) {
  constexpr int kMicroBatches = 3, kRuns = 2;  // the first run counts gradients
  const Task task = tower_task();              // without tied parameters, which are summed over the stages, too
  const auto train = [&](Pipeline& pipeline, int64_t first) {
    MicroBatches batch{.samples = kMicroBatches};
    for (int i = 0; i < kMicroBatches; ++i) batch.inputs.push_back(task.inputs(0, first + i, 1));
    batch.loss = [&](size_t i) {
      return task.loss(pipeline(batch.inputs[i]), 0, first + static_cast<int64_t>(i), 1) * (1.0 / kMicroBatches);
    };
    pipeline.tensor().module().zero_grad();
    pipeline.run(batch);
  };
  std::vector<std::vector<double>> own[2];  // a row's, per stage: gradients
  for (const int row : {0, 1}) {
    own[row].resize(2);
    run_ranks(2, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 1, 2);
      Pipeline pipeline(task.make(grid.model()), grid);
      train(pipeline, row * kMicroBatches);
      own[row][static_cast<size_t>(world->rank())] = gradients_of(pipeline.tensor().module());
    });
  }
  run_ranks(4, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, 1, 2);
    Pipeline pipeline(task.make(grid.model()), grid, {.ddp = {.bucket_mb = 0.01, .first_bucket_mb = 0.001}});
    const auto all = gradient_bytes(*pipeline.tensor().ddp());
    const std::string layer = str("blocks.", 4 * grid.pipe()->rank(), ".norm1.weight");
    uint64_t before = 0, during = 0;
    int backwards = 0;
    for (const NamedTensor& parameter : pipeline.parameters())
      if (parameter.name == layer)
        parameter.tensor.register_accumulated_hook([&](const Tensor&) {
          if (++backwards < kRuns * kMicroBatches) return;
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
          do {
            std::this_thread::yield();
            during = grid.data()->bytes_sent() - before;
          } while (during < all / 2 && std::chrono::steady_clock::now() < deadline);
        });
    for (int run = 0; run < kRuns; ++run) {
      before = grid.data()->bytes_sent();
      train(pipeline, grid.data_rank() * kMicroBatches);
    }
    EXPECT_EQ(backwards, kRuns * kMicroBatches);
    EXPECT_GE(during, all / 2) << "of " << all << " bytes, stage " << grid.pipe()->rank();
    const std::vector<double> got = gradients_of(pipeline.tensor().module());
    std::vector<double> want(got.size());
    const auto stage = static_cast<size_t>(grid.pipe()->rank());
    ASSERT_EQ(own[0][stage].size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) want[i] = 0.5 * own[0][stage][i] + 0.5 * own[1][stage][i];
    EXPECT_EQ(got, want);
  });
}

TEST(Pipeline, EachRankHoldsItsPartAlone) {
  const Task task = gpt_task();
  run_ranks(2, [&](const ProcessGroupPtr& world) {
    const auto model = task.make(nullptr);
    Pipeline pipeline(model, Grid(world, 1, 2), {.chunks = 2});
    std::set<std::string> layers;
    for (const NamedTensor& parameter : pipeline.parameters())
      layers.insert(parameter.name.substr(0, parameter.name.starts_with("h.") ? 3 : parameter.name.find('.')));
    EXPECT_EQ(layers, world->rank() == 0 ? (std::set<std::string>{"wte", "wpe", "h.0", "h.1", "h.4", "h.5"})
                                         : (std::set<std::string>{"wte", "h.2", "h.3", "h.6", "h.7", "ln_f"}));
    EXPECT_EQ(pipeline.names().size(), 2u + 8 * 12 + 2);
  });
}

TEST(Pipeline, AStandInCountsNothing) {
  const Task task = tower_task();
  std::vector<double> alone, both;
  for (const int data : {1, 2})
    run_ranks(2 * data, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 1, 2);
      Pipeline pipeline(task.make(grid.model()), grid);
      const bool stands_in = grid.data_rank() == 1;
      MicroBatches batch{.inputs = {task.inputs(0, stands_in ? 5 : 0, 3)}, .samples = stands_in ? 0 : 3};
      batch.loss = [&](size_t i) {
        return task.loss(pipeline(batch.inputs[i]), 0, stands_in ? 5 : 0, 3) * (stands_in ? 0 : 1);
      };
      pipeline.run(batch);
      if (world->rank() == 0) (data == 1 ? alone : both) = gradients_of(pipeline.tensor().module());
    });
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(both, alone);
}

// The last batches of a validation: ranks that gather a stage together have other numbers of rows.
TEST(Pipeline, ShardedStagesEvaluateUnevenRows) {
  for (const Task& task : {tower_task(), gpt_task()})
    run_ranks(4, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 1, 2);
      Pipeline pipeline(task.make(grid.model()), grid, {.fsdp = FsdpOptions{.policy = {.min_num_params = 500}}});
      const auto whole = task.make(make_process_group_alone());
      const NoGrad no_grad;
      for (int64_t most = 1; most < 4; ++most) {
        const Tensor x = task.inputs(99, 0, std::max<int64_t>(most - grid.data_rank(), 1)), y = pipeline(x);
        EXPECT_TRUE(
            tests::near(y.to_vector<double>(), (*whole)(x).to_vector<double>(), tests::Tolerance{1e-11, 1e-11}));
      }
    });
}

TEST(Pipeline, HalfPrecisionTravelsAsItIs) {
  const Task task = gpt_task();
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const auto whole = task.make(nullptr);
    whole->to(DType::f32);
    whole->to(device);
    const auto loss_of = [&](const Tensor& y) { return cross_entropy(y, words(50, 0, 4).to(device)); };
    Tensor loss;
    {
      const Autocast low(DType::bf16);
      loss = (*whole)(task.inputs(0, 0, 4).to(device));
    }
    loss = loss_of(loss);
    loss.backward();
    std::map<std::string, Tensor> want;
    for (const NamedTensor& parameter : whole->parameters()) want[parameter.name] = parameter.tensor.grad();
    run_ranks(2, [&](const ProcessGroupPtr& world) {
      const auto model = task.make(nullptr);
      model->to(DType::f32);
      Pipeline pipeline(model, Grid(world, 1, 2), {.device = device});
      MicroBatches batch{.inputs = {task.inputs(0, 0, 4).to(device)}, .samples = 4, .precision = DType::bf16};
      batch.loss = [&](size_t i) {
        Tensor y;
        {
          const Autocast low(DType::bf16);
          y = pipeline(batch.inputs[i]);
        }
        const Tensor own = loss_of(y);
        EXPECT_EQ(own.item(), loss.item()) << "one micro-batch: the same bits";
        return own;
      };
      pipeline.run(batch);
      for (const NamedTensor& parameter : pipeline.parameters())
        if (parameter.name.starts_with("h.")) {
          EXPECT_EQ(parameter.tensor.grad().to_vector<float>(), want.at(parameter.name).to_vector<float>())
              << parameter.name;
        }
    });
  }
}

TEST(Pipeline, ErrorsSayWhatIsWrong) {
  const Task task = gpt_task();
  const auto alone = make_process_group_alone();
  EXPECT_THAT(tests::error_text([&] { Pipeline(normed_net(), Grid(alone, 1)); }),
              HasSubstr("pipeline: expected a model that is an nn::Staged, got "));
  EXPECT_THAT(tests::error_text([&] { Pipeline(task.make(nullptr), Grid(alone, 1), {.chunks = 2}); }),
              HasSubstr("pipeline: 2 chunks need at least two stages, got one"));
  EXPECT_THAT(
      tests::error_text([&] {
        pipeline_schedule({2, 1, 0}, 0);
      }),
      HasSubstr("expected a stage of 2 and at least one chunk and micro-batch, got stage 0, 1 chunks, 0 micro"));
  run_ranks(2, [&](const ProcessGroupPtr& world) {
    EXPECT_THAT(tests::error_text([&] { Grid(world, 1, 3); }), HasSubstr("grid: 3 stages do not divide 2 ranks"));
    EXPECT_THAT(tests::error_text([&] { Grid(world, 2, 2); }),
                HasSubstr("grid: 2 model ranks do not divide 1 ranks of each stage"));
    EXPECT_THAT(tests::error_text([&] { Pipeline(task.make(nullptr), Grid(world, 1, 2), {.chunks = 5}); }),
                HasSubstr("pipeline: 8 layers are too few for 2 stages x 5 chunks"));
    Pipeline pipeline(task.make(nullptr), Grid(world, 1, 2));
    EXPECT_THAT(tests::error_text([&] { pipeline(task.inputs(0, 0, 1)); }), HasSubstr("Pipeline::run() trains"));
    StateDict state;
    state.tensors.push_back({"h.9.ln_1.weight", Tensor::ones({3})});
    EXPECT_THAT(tests::error_text([&] { load_full_state_dict(pipeline, state); }), HasSubstr("h.9.ln_1.weight"));
  });
}

}  // namespace
}  // namespace weft::dist::testing
