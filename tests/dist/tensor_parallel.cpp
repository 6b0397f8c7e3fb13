// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/tensor_parallel.h"

#include <gmock/gmock.h>

#include <cmath>
#include <optional>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/derivatives.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "dist/tensor/parallel_region.h"
#include "dist/tensor/tensor_parallel_state.h"
#include "optim/optimizers.h"
#include "tests/dist/parallel_tower.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;
using tests::error_text;

constexpr int64_t kTokens = 7;

Tensor inputs(int step, int64_t first, int64_t count, DType dtype = DType::f64, Device device = {}) {
  return samples(step, first, count, {kTokens, BlockTower::kIn}, DeviceKind::cpu).to(dtype).to(device);
}
Tensor targets(int step, int64_t first, int64_t count, DType dtype = DType::f64, Device device = {}) {
  return samples(step + 50, first, count, {kTokens, BlockTower::kOut}, DeviceKind::cpu).to(dtype).to(device);
}

/// ‖a - b‖ / ‖b‖; NaN where anything is.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, scale = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    scale += b[i] * b[i];
  }
  return std::sqrt(difference / scale);
}

/// The ranks of a group add parts in another order than one product does: each sum of K terms errs by about eps sqrt(K)
/// of its size. The `sums` consecutive sums of a forward and its backward pass the error on.
double tolerance(DType dtype, int64_t longest, int sums) {
  const double eps = dtype == DType::f64 ? 0x1p-52 : dtype == DType::f32 ? 0x1p-23 : 0x1p-8;
  return eps * std::sqrt(static_cast<double>(longest)) * sums;
}

StateDict gradients_of_parts(nn::Module& model) {
  StateDict dict;
  for (const NamedTensor& parameter : model.parameters())
    dict.tensors.push_back({parameter.name, parameter.tensor.grad()});
  return dict;
}

struct Grids {
  int data, model;
};
class TensorParallelRanks : public ::testing::TestWithParam<std::tuple<std::string, int, int>> {
 protected:
  const std::string backend_ = std::get<0>(GetParam());
  const int data_ = std::get<1>(GetParam()), model_ = std::get<2>(GetParam()), ranks_ = data_ * model_;
};

std::string grid_name(const ::testing::TestParamInfo<std::tuple<std::string, int, int>>& info) {
  return str(std::get<0>(info.param), '_', std::get<1>(info.param), 'x', std::get<2>(info.param));
}

TEST_P(TensorParallelRanks, GridHasRowsOfNeighboursAndColumns) {
  run_on(backend_, ranks_, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, model_);
    EXPECT_EQ(grid.model()->size(), model_);
    EXPECT_EQ(grid.data()->size(), data_);
    EXPECT_EQ(grid.model_rank(), world->rank() % model_);
    EXPECT_EQ(grid.data_rank(), world->rank() / model_);
  });
}

struct Steps {
  std::vector<double> losses, norms, weights;
  StateDict model, optimizer;
};

constexpr int kTensorSteps = 6, kBlocks = 2;
constexpr int64_t kBatch = 12;  // samples; the ranks do not divide their kTokens tokens
constexpr double kClip = 0.5;   // below the norms of these gradients: clipping acts

/// Adam, or LAMB, which looks at whole parameters.
std::unique_ptr<optim::Optimizer> make_optimizer(const std::vector<NamedTensor>& parameters, bool lamb) {
  if (lamb)
    return std::make_unique<optim::LAMB>(parameters, optim::LambOptions{.lr = 1e-2, .eps = 1e-3, .weight_decay = 0.1});
  return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-2, .beta2 = 0.95});
}

Steps train_in_one_process(DType dtype, bool lamb = false) {
  const auto model = tower(kBlocks, nullptr, dtype);
  const auto optimizer = make_optimizer(model->parameters(), lamb);
  Steps result;
  for (int step = 0; step < kTensorSteps; ++step) {
    const Tensor loss = mse_loss((*model)(inputs(step, 0, kBatch, dtype)), targets(step, 0, kBatch, dtype));
    optimizer->zero_grad();
    loss.backward();
    result.norms.push_back(clip_grad_norm(model->parameters(), kClip).item());
    optimizer->step();
    result.losses.push_back(loss.item());
  }
  result.model = model->state_dict();
  result.optimizer = optimizer->state_dict();
  return result;
}

/// Trains the same global batches on a grid; whole states on rank 0.
Steps train_on_grid(const std::string& backend, int data, int model_ranks, DType dtype, bool lamb = false,
                    const std::optional<FsdpOptions>& sharding = {}, Tokens tokens = Tokens::all) {
  Steps result;
  run_on(backend, data * model_ranks, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, model_ranks);
    const auto model = tower(kBlocks, grid.model(), dtype, {}, tokens);
    const DdpOptions buckets{.bucket_mb = 0.01, .first_bucket_mb = 0.001};
    TensorParallel parallel = sharding ? TensorParallel(model, grid, *sharding) : TensorParallel(model, grid, buckets);
    const auto optimizer = make_optimizer(parallel.parameters(), lamb);
    const int64_t each = kBatch / data, first = each * grid.data_rank();
    std::vector<double> losses, norms;
    for (int step = 0; step < kTensorSteps; ++step) {
      const Tensor loss = mse_loss(parallel(inputs(step, first, each, dtype)), targets(step, first, each, dtype));
      optimizer->zero_grad();
      loss.backward();
      norms.push_back(
          (step % 2 ? parallel.clip_grad_norm(kClip) : clip_grad_norm(parallel.parameters(), kClip)).item());
      optimizer->step();
      const Tensor mean = loss.detach().to(DType::f64).clone();
      grid.data()->all_reduce(mean, ReduceOp::avg, {.name = "loss", .scale = {}})->wait();
      losses.push_back(mean.item());
    }
    // Whole parameters are equal on all ranks to the last bit.
    std::vector<double> whole;
    for (const NamedTensor& parameter : parallel.parameters())
      if (parallel.partition(parameter.name).is_whole())
        for (const double value : parameter.tensor.to_vector<double>()) whole.push_back(value);
    const Tensor of_first = Tensor::from(whole);
    (sharding ? grid.model() : world)->broadcast(of_first, 0, {.name = "whole", .scale = {}})->wait();
    EXPECT_EQ(whole, of_first.to_vector<double>()) << "rank " << world->rank();

    const StateDict full = full_state_dict(parallel),
                    full_optimizer = full_optimizer_state(parallel, optimizer->state_dict());
    if (world->rank() > 0) {
      EXPECT_TRUE(full.tensors.empty() && full_optimizer.tensors.empty());
      return;
    }
    result = {losses, norms, {}, full, full_optimizer};
  });
  return result;
}

// In f64 nothing but the order of sums differs. Adam divides by the root of the second moment, which hands a relative
// error on unchanged, but for elements near 0.
TEST_P(TensorParallelRanks, LambSeesWholeParameters) {
  const Steps one = train_in_one_process(DType::f64, true),
              many = train_on_grid(backend_, data_, model_, DType::f64, true);
  if (many.losses.empty()) return;  // a process that is not rank 0
  const double allowed = tolerance(DType::f64, kBatch * kTokens * BlockTower::kHidden, 20 * kBlocks * kTensorSteps);
  EXPECT_LE(distance(many.losses, one.losses), allowed);
  EXPECT_LE(distance(values_of(many.model), values_of(one.model)), 100 * allowed) << "elements near 0 move by the rate";
}

TEST_P(TensorParallelRanks, TrainAsOneProcessDoes) {
  const Steps one = train_in_one_process(DType::f64), many = train_on_grid(backend_, data_, model_, DType::f64);
  if (many.losses.empty()) return;  // a process that is not rank 0
  EXPECT_GT(one.norms[0], kClip);
  const double allowed = tolerance(DType::f64, kBatch * kTokens * BlockTower::kHidden, 20 * kBlocks * kTensorSteps);
  EXPECT_LE(distance(many.losses, one.losses), allowed);
  EXPECT_LE(distance(many.norms, one.norms), allowed);
  EXPECT_EQ(names_and_sizes(many.model), names_and_sizes(one.model));
  EXPECT_EQ(names_and_sizes(many.optimizer), names_and_sizes(one.optimizer));
  EXPECT_LE(distance(values_of(many.model), values_of(one.model)), 100 * allowed) << "elements near 0 move by the rate";
  EXPECT_LE(distance(values_of(many.optimizer), values_of(one.optimizer)), 100 * allowed);
  EXPECT_LT(one.losses.back(), one.losses.front());
}

const FsdpOptions kShards{.policy = {.kinds = {"ParallelBlock"}}};

// Shards of parts: Adam's state lies beside them, LAMB and the norm look at whole parameters.
TEST_P(TensorParallelRanks, ShardsOfPartsTrainAsOneProcessDoes) {
  for (const bool lamb : {false, true}) {
    const Steps one = train_in_one_process(DType::f64, lamb),
                many = train_on_grid(backend_, data_, model_, DType::f64, lamb, kShards);
    if (many.losses.empty()) return;  // a process that is not rank 0
    const double allowed = tolerance(DType::f64, kBatch * kTokens * BlockTower::kHidden, 20 * kBlocks * kTensorSteps);
    EXPECT_LE(distance(many.losses, one.losses), allowed);
    EXPECT_LE(distance(many.norms, one.norms), allowed);
    EXPECT_EQ(names_and_sizes(many.model), names_and_sizes(one.model));
    EXPECT_EQ(names_and_sizes(many.optimizer), names_and_sizes(one.optimizer));
    EXPECT_LE(distance(values_of(many.model), values_of(one.model)), 100 * allowed);
    EXPECT_LE(distance(values_of(many.optimizer), values_of(one.optimizer)), 100 * allowed);
  }
}

TEST_P(TensorParallelRanks, OwnTokensTrainAsOneProcessDoes) {
  const Steps one = train_in_one_process(DType::f64);
  for (const bool sharded : {false, true}) {
    const Steps many = train_on_grid(backend_, data_, model_, DType::f64, false,
                                     sharded ? std::optional(kShards) : std::nullopt, Tokens::own);
    if (many.losses.empty()) return;  // a process that is not rank 0
    const double allowed = tolerance(DType::f64, kBatch * kTokens * BlockTower::kHidden, 20 * kBlocks * kTensorSteps);
    EXPECT_LE(distance(many.losses, one.losses), allowed);
    EXPECT_LE(distance(many.norms, one.norms), allowed);
    EXPECT_LE(distance(values_of(many.model), values_of(one.model)), 100 * allowed);
  }
}

TEST_P(TensorParallelRanks, SinglePrecisionLossesAreThoseOfOneProcess) {
  const Steps one = train_in_one_process(DType::f32), many = train_on_grid(backend_, data_, model_, DType::f32);
  if (many.losses.empty()) return;
  const double allowed = tolerance(DType::f32, kBatch * kTokens * BlockTower::kHidden, 20 * kBlocks * kTensorSteps);
  EXPECT_LE(distance(many.losses, one.losses), allowed);
  EXPECT_LE(distance(many.norms, one.norms), allowed);
}

std::vector<std::tuple<std::string, int, int>> grids() {
  std::vector<std::tuple<std::string, int, int>> all;
  for (const std::string& backend : backends())
    for (const auto& [data, model] :
         {Grids{1, 1}, Grids{1, 2}, Grids{1, 3}, Grids{1, 4}, Grids{2, 1}, Grids{2, 2}, Grids{3, 2}})
      all.emplace_back(backend, data, model);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, TensorParallelRanks, ::testing::ValuesIn(grids()), grid_name);

TEST(TensorParallel, ABlockOfOneRankIsTheBlock) {
  const auto alone = make_process_group_alone();
  const auto whole = tower(2, nullptr, DType::f32), parallel = tower(2, alone, DType::f32);
  const Tensor x = inputs(0, 0, 3, DType::f32), y = (*whole)(x), z = (*parallel)(x);
  EXPECT_EQ(z.to_vector<float>(), y.to_vector<float>());
  sum(y * y).backward();
  sum(z * z).backward();
  EXPECT_EQ(gradients_of(*parallel), gradients_of(*whole));
}

// One forward and backward, every gradient, also on a GPU that the ranks share and under autocast.
class TensorParallelGradients : public ::testing::TestWithParam<std::tuple<DeviceKind, int, DType>> {};

TEST_P(TensorParallelGradients, AreThoseOfOneProcess) {
  const auto [kind, ranks, low] = GetParam();
  const Device device{kind, 0};
  const auto whole = tower(1, nullptr, DType::f32, device);
  const Tensor x = inputs(3, 0, 2, DType::f32, device).requires_grad_();
  Tensor y;
  {
    const Autocast guard(low);
    y = (*whole)(x);
  }
  const Tensor weights = targets(1, 0, 2, DType::f32, device);
  sum(y.to(DType::f32) * weights).backward();
  const double allowed = tolerance(low, 2 * kTokens * BlockTower::kHidden, 12);
  const Tensor dx = x.grad();
  const StateDict wanted = gradients_of_parts(*whole);
  run_ranks(ranks, [&, low = low](const ProcessGroupPtr& world) {
    const Grid grid(world, world->size());
    const auto model = tower(1, grid.model(), DType::f32, device);
    TensorParallel parallel(model, grid);
    const Tensor own = inputs(3, 0, 2, DType::f32, device).requires_grad_();
    Tensor out;
    {
      const Autocast guard(low);
      out = parallel(own);
    }
    sum(out.to(DType::f32) * weights).backward();
    EXPECT_LE(distance(out.to_vector<double>(), y.to_vector<double>()), allowed);
    EXPECT_LE(distance(own.grad().to_vector<double>(), dx.to_vector<double>()), allowed);
    const StateDict got = gradients_of_parts(*model);
    ASSERT_EQ(wanted.tensors.size(), got.tensors.size());
    for (size_t i = 0; i < wanted.tensors.size(); ++i) {
      const auto& [name, tensor] = wanted.tensors[i];
      const Tensor part = parallel.partition(name).part(tensor, world->rank(), world->size());
      EXPECT_LE(distance(got.tensors[i].tensor.to_vector<double>(), part.to_vector<double>()), allowed) << name;
    }
  });
}

std::vector<std::tuple<DeviceKind, int, DType>> gradient_cases() {
  std::vector<std::tuple<DeviceKind, int, DType>> cases;
  for (const DeviceKind kind : tests::test_devices())
    for (const int ranks : {2, 4})
      for (const DType low : {DType::f32, DType::bf16}) cases.emplace_back(kind, ranks, low);
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, TensorParallelGradients, ::testing::ValuesIn(gradient_cases()), [](const auto& one) {
  return str(name(std::get<0>(one.param)), '_', std::get<1>(one.param), '_', std::get<2>(one.param));
});

TEST(ParallelRegion, TheTwoOpsAreConjugate) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    const double own = group->rank() + 1;
    const Tensor x = Tensor::full({4}, 2, DType::f64).requires_grad_();
    const Tensor inside = copy_to_region(x, group);
    EXPECT_EQ(inside.to_vector<double>(), std::vector<double>(4, 2));
    const Tensor y = reduce_from_region(inside * Tensor::full({4}, own, DType::f64), group);
    EXPECT_EQ(y.to_vector<double>(), std::vector<double>(4, 2 * (1 + 2 + 3)));
    y.backward(Tensor::full({4}, 10, DType::f64));
    EXPECT_EQ(x.grad().to_vector<double>(), std::vector<double>(4, 10 * (1 + 2 + 3)));
  });
}

TEST(ParallelRegion, HasSecondDerivatives) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    const Tensor x = Tensor::full({4}, 2, DType::f64).requires_grad_(), inside = copy_to_region(x, group);
    const Tensor own = Tensor::full({4}, group->rank() + 1, DType::f64);
    const Tensor y = reduce_from_region(own * inside * inside * inside, group);  // (1 + 2 + 3) x^3
    const Tensor slope = autograd::grad({sum(y)}, {x}, {.create_graph = true})[0];
    EXPECT_EQ(slope.to_vector<double>(), std::vector<double>(4, 6 * 3 * 4));
    sum(slope).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), std::vector<double>(4, 6 * 6 * 2));
  });
}

TEST(ParallelRegion, LeavesWhatItWasGivenAlone) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor x = Tensor::full({3}, group->rank() + 1.0).requires_grad_();
    const Tensor dy = Tensor::full({3}, 5);
    reduce_from_region(x, group).backward(dy);
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(3, static_cast<float>(group->rank() + 1)));
    copy_to_region(x, group).backward(dy);
    EXPECT_EQ(dy.to_vector<float>(), std::vector<float>(3, 5));
    EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(3, 15)) << "5 + the sum of 5 and 5";
  });
}

TEST(Partition, PartsMakeTheWholeAgain) {
  const Tensor x = Tensor::arange(2 * 12 * 3, DType::f32).reshape({2, 12, 3});
  for (const Partition partition : {Partition{1, 1}, Partition{1, 3}, Partition{0, 1}, Partition{}})
    for (const int ranks : {1, 2}) {
      std::vector<Tensor> parts;
      for (int r = 0; r < ranks; ++r) parts.push_back(partition.part(x, r, ranks));
      EXPECT_EQ(partition.whole(parts).to_vector<float>(), x.to_vector<float>());
    }
  // Three stretches of four: the second rank of two has the third and fourth element of each.
  const Tensor line = Tensor::arange(12, DType::f32);
  EXPECT_THAT((Partition{0, 3}.part(line, 1, 2).to_vector<float>()), ::testing::ElementsAre(2, 3, 6, 7, 10, 11));
}

/// The bytes from rank 0 to the ranks of its row and of its column in a forward, a backward.
struct Bytes {
  uint64_t forward_model, backward_model;
  uint64_t data;  ///< both; the count of samples travels during forward, or a little later
  uint64_t gradients;
};

Bytes measure(int data, int model_ranks, int blocks, DType low) {
  Bytes bytes{};
  run_ranks(data * model_ranks, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, model_ranks);
    const auto model = tower(blocks, grid.model(), DType::f32);
    TensorParallel parallel(model, grid);
    const Tensor x = inputs(0, 0, 2, DType::f32);
    const auto sent = [&] { return std::pair(grid.model()->bytes_sent(), grid.data()->bytes_sent()); };
    for (int step = 0; step < 2; ++step) {  // the second: nothing happens once
      const auto before = sent();
      Tensor y;
      {
        const Autocast guard(low);
        y = parallel(x);
      }
      const auto between = sent();
      sum(y.to(DType::f32)).backward();
      const auto after = sent();
      if (world->rank() == 0)
        bytes = {between.first - before.first, after.first - between.first, after.second - before.second,
                 gradient_bytes(*parallel.ddp())};
    }
  });
  return bytes;
}

// Shoeybi et al. 2019, section 3: two all_reduce of the activations in forward, two in backward, for each block; each
// sends 2 (n - 1) / n of [N, tokens, width].
TEST(TensorParallelCosts, BytesPerStepEqualTheory) {
  constexpr uint64_t kActivations = 2 * kTokens * BlockTower::kWidth;
  for (const int blocks : {1, 3})
    for (const DType low : {DType::f32, DType::bf16})
      for (const int n : {1, 2, 4}) {
        const uint64_t all_reduce =
            2 * static_cast<uint64_t>(n - 1) * kActivations * size_of(low) / static_cast<uint64_t>(n);
        const Bytes bytes = measure(1, n, blocks, low);
        EXPECT_EQ(bytes.forward_model, 2 * static_cast<uint64_t>(blocks) * all_reduce) << n << ' ' << low;
        EXPECT_EQ(bytes.backward_model, 2 * static_cast<uint64_t>(blocks) * all_reduce) << n << ' ' << low;
        EXPECT_EQ(bytes.data, 0u);
      }
}

TEST(TensorParallelCosts, GradientsOfAnF32InputTravelInTheLowPrecision) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const ColumnParallelLinear layer(8, 4, group);
    const Tensor x = Tensor::ones({4, 8}).requires_grad_();
    const Autocast guard(DType::bf16);
    const uint64_t before = group->bytes_sent();
    sum(layer(x).to(DType::f32)).backward();
    EXPECT_EQ(group->bytes_sent() - before, 4u * 8 * sizeof(bf16));
    EXPECT_EQ(x.grad().dtype(), DType::f32);
  });
}

TEST(TensorParallelCosts, DataRanksSendTheGradientsOfTheirPart) {
  const Bytes grid = measure(2, 2, 2, DType::f32), replicas = measure(2, 1, 2, DType::f32);
  constexpr uint64_t kCount = 8;  // the count of samples: one f64
  EXPECT_EQ(grid.data, grid.gradients + kCount);
  EXPECT_EQ(replicas.data, replicas.gradients + kCount);
  EXPECT_LT(grid.gradients, replicas.gradients * 6 / 10) << "half, but for norms, stem and head";
  EXPECT_EQ(replicas.forward_model + replicas.backward_model, 0u);
}

TEST(TensorParallelState, LoadsAtAnyGrid) {
  const Steps trained = train_on_grid("threads", 1, 2, DType::f64);
  for (const auto& [data, model_ranks, sharded] :
       {std::tuple{1, 1, false}, {1, 3, false}, {1, 4, false}, {2, 2, false}, {2, 2, true}, {3, 1, true}, {1, 3, true}})
    run_ranks(data * model_ranks, [&, model_ranks = model_ranks, sharded = sharded](const ProcessGroupPtr& world) {
      const Grid grid(world, model_ranks);
      const auto model = tower(kBlocks, grid.model(), DType::f64);
      TensorParallel parallel = sharded ? TensorParallel(model, grid, kShards) : TensorParallel(model, grid);
      optim::Adam adam(parallel.parameters(), {.lr = 1e-2, .beta2 = 0.95});
      load_full_state_dict(parallel, trained.model);
      adam.load_state_dict(part_of_optimizer_state(parallel, trained.optimizer));
      const StateDict model_again = full_state_dict(parallel),
                      optimizer_again = full_optimizer_state(parallel, adam.state_dict());
      if (world->rank() > 0) return;
      EXPECT_EQ(names_and_sizes(model_again), names_and_sizes(trained.model));
      EXPECT_EQ(values_of(model_again), values_of(trained.model));
      EXPECT_EQ(names_and_sizes(optimizer_again), names_and_sizes(trained.optimizer));
      EXPECT_EQ(values_of(optimizer_again), values_of(trained.optimizer));
      EXPECT_EQ(optimizer_again.scalar("step"), kTensorSteps);
    });
}

TEST(TensorParallelState, RefusesWhatDoesNotFit) {
  const auto whole = tower(1, nullptr, DType::f32);
  run_ranks(2, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, 2);
    TensorParallel parallel(tower(1, grid.model(), DType::f32), grid);
    StateDict state = whole->state_dict();
    for (NamedTensor& entry : state.tensors)
      if (entry.name == "blocks.0.mlp.fc1.weight") entry.tensor = Tensor::zeros({24, 24});
    EXPECT_THAT(error_text([&] { load_full_state_dict(parallel, state); }),
                HasSubstr("wrong shape: blocks.0.mlp.fc1.weight (expected [48,24], got [24,24])"));
    EXPECT_THAT(error_text([&] {
                  part_of_optimizer_state(parallel, {{{"fc9.weight.exp_avg", Tensor::zeros({1})}}, {}});
                }),
                HasSubstr("'fc9.weight.exp_avg' belongs to no parameter"));
    EXPECT_THAT(
        error_text([&] {
          part_of_optimizer_state(parallel, {{{"blocks.0.attn.proj.weight.exp_avg", Tensor::zeros({24, 12})}}, {}});
        }),
        HasSubstr("expected 'blocks.0.attn.proj.weight.exp_avg' [24,24], got f32[24,12]"));
    EXPECT_THAT(error_text([&] {
                  full_optimizer_state(parallel, {{{"stem.weight.exp_avg", Tensor::zeros({1})}}, {}});
                }),
                HasSubstr("is not of an optimizer over parameters()"));
    EXPECT_THAT(error_text([&] {
                  full_optimizer_state(parallel, {{{"step", Tensor::zeros({1})}}, {}});
                }),
                HasSubstr("expected names like fc.weight.exp_avg, got 'step'"));
  });
}

TEST(TensorParallel, RankZeroOfARowDecidesWhatIsWhole) {
  run_ranks(4, [](const ProcessGroupPtr& world) {
    const Grid grid(world, 2);
    const auto model = tower(1, grid.model(), DType::f32);
    {
      const NoGrad no_grad;
      model->norm.bias.detach().fill_(world->rank());
      dynamic_cast<ParallelBlock&>(*model->blocks[0]).mlp.fc1.bias.detach().fill_(world->rank());
    }
    TensorParallel parallel(model, grid);
    EXPECT_EQ(model->norm.bias.to_vector<float>(), std::vector<float>(BlockTower::kWidth, 0));
    // A part comes from the first data rank of its own column.
    EXPECT_EQ(dynamic_cast<ParallelBlock&>(*model->blocks[0]).mlp.fc1.bias.to_vector<float>(),
              std::vector<float>(BlockTower::kHidden / 2, static_cast<float>(world->rank() % 2)));
    {
      const NoGrad no_grad;
      model->norm.bias.detach().fill_(world->rank());
    }
    parallel.synchronise();
    EXPECT_EQ(model->norm.bias.to_vector<float>(),
              std::vector<float>(BlockTower::kWidth, static_cast<float>(world->rank() / 2 * 2)));
  });
}

TEST(TensorParallel, SaysWhatDoesNotDivide) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    EXPECT_THAT(error_text([&] { Grid(group, 2); }), HasSubstr("grid: 2 model ranks do not divide 3 ranks"));
    EXPECT_THAT(error_text([&] { Grid(group, 0); }), HasSubstr("grid: 0 model ranks do not divide 3 ranks"));
    EXPECT_THAT(error_text([&] { ParallelAttention(8, 4, group); }),
                HasSubstr("ParallelAttention: 4 heads do not divide by 3 model ranks"));
    EXPECT_THAT(error_text([&] { ParallelAttention(8, 3, group); }),
                HasSubstr("expected a width that is a multiple of the heads, got 8 and 3"));
    EXPECT_THAT(error_text([&] { ColumnParallelLinear(8, 4, group); }),
                HasSubstr("ColumnParallelLinear: an output of 4 does not divide by 3 model ranks"));
    EXPECT_THAT(error_text([&] { RowParallelLinear(4, 8, group); }),
                HasSubstr("RowParallelLinear: an input of 4 does not divide by 3 model ranks"));
    EXPECT_THAT(error_text([&] { ColumnParallelLinear(8, 4, nullptr); }), HasSubstr("expected a group, got none"));
    nn::Gpt gpt({.vocabulary = 5, .positions = 4, .width = 6, .depth = 1, .heads = 3});
    divide_blocks(gpt, group);
    EXPECT_THAT(error_text([&] { divide_blocks(gpt, group); }),
                HasSubstr("divide_blocks: expected whole blocks, got ParallelGptBlock"));
    std::vector<nn::KeysAndValues> past;
    EXPECT_THAT(error_text([&] {
                  gpt.extend(Tensor::zeros({1, 2}, DType::i64), past);
                }),
                HasSubstr("Gpt: expected whole blocks for text that goes on, got ParallelGptBlock"));
    EXPECT_THAT(error_text([&] { (Partition{.dim = 0}.part(Tensor::zeros({4}), 0, 3)); }),
                HasSubstr("partition: dimension 0 of f32[4] on cpu does not divide into 1 x 3 parts"));
  });
}

}  // namespace
}  // namespace weft::dist::testing
