// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>

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

namespace weft::dist::testing::pipelines {

/// Forwards whose backward has not been, at most.
inline int64_t most_held(const std::vector<PipelineStep>& steps) {
  int64_t held = 0, most = 0;
  for (const PipelineStep& step : steps) most = std::max(most, held += step.backward ? -1 : 1);
  return most;
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

inline Task tower_task(Tokens tokens = Tokens::all) {
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

inline Tensor words(int step, int64_t first, int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = first * kTokens; i < (first + count) * kTokens; ++i)
    ids.push_back((i * i + step * 5 + i / 3) % kWords);
  return Tensor::from(ids, {count, kTokens});
}

/// Ids, and where the documents of the row begin: two of different lengths in most rows.
inline Tensor documents(int step, int64_t first, int64_t count) {
  std::vector<int64_t> starts;
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t i = 0, begin = row % kTokens; i < kTokens; ++i) starts.push_back(i < begin ? 0 : begin);
  return stack({words(step, first, count), Tensor::from(starts, {count, kTokens})}, 1);
}

inline Task gpt_task(Tokens tokens = Tokens::all, bool packed = false) {
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

inline std::unique_ptr<optim::Adam> make_adam(const std::vector<NamedTensor>& parameters) {
  return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-2, .beta2 = 0.95, .eps = 1e-4});
}

inline Result train_whole(const Task& task, int first = 0, const Result* from = nullptr) {
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
inline Result train_in_stages(const std::string& backend, const Task& task, const GridSizes& sizes,
                              int64_t micro_batches, int first_step = 0, int last_step = kSteps,
                              const Result* from = nullptr, const Folders& folders = {}) {
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
inline void expect_same(const Result& got, const Result& want) {
  const tests::Tolerance allowed{1e-11, 1e-11};
  EXPECT_TRUE(tests::near(got.losses, want.losses, allowed)) << "losses";
  EXPECT_TRUE(tests::near(got.norms, want.norms, allowed)) << "norms";
  EXPECT_TRUE(tests::near(got.predictions.back(), want.predictions.back(), allowed)) << "predictions";
  EXPECT_EQ(names_and_sizes(got.model), names_and_sizes(want.model));
  EXPECT_EQ(names_and_sizes(got.optimizer), names_and_sizes(want.optimizer));
  EXPECT_TRUE(tests::near(values_of(got.model), values_of(want.model), allowed)) << "weights";
  EXPECT_TRUE(tests::near(values_of(got.optimizer), values_of(want.optimizer), allowed)) << "moments";
}

}  // namespace weft::dist::testing::pipelines
