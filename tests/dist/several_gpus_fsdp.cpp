// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <thread>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "core/stream.h"
#include "dist/fsdp/fsdp.h"
#include "kernels/runtime/allocator.h"
#include "nn/models/gpt.h"
#include "nn/sequential.h"
#include "optim/optimizers.h"
#include "tests/dist/several_gpus.h"
#include "train/strategy.h"

// FSDP over nccl: memory, messages and their overlap.

namespace weft::dist::testing {
namespace {

/// 12 MiB, of which a forward reads some bytes.
struct Heavy : nn::Module {
  static constexpr int64_t kNumel = 3 << 20;
  static constexpr size_t kBytes = kNumel * sizeof(float);
  Tensor weight = Tensor::ones({kNumel});
  Heavy() { weight.requires_grad_(); }
  Tensor forward(const Tensor& x) const override { return x * weight.slice(0, 0, 8); }
  void fields(nn::Visitor& v) override { v("weight", weight); }
};

struct HeavyRow : nn::Module {
  std::vector<std::shared_ptr<Heavy>> rows;
  explicit HeavyRow(int count) {
    for (int i = 0; i < count; ++i) rows.push_back(std::make_shared<Heavy>());
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (const auto& row : rows) y = (*row)(y);
    return y;
  }
  void fields(nn::Visitor& v) override { v("rows", rows); }
};

/// The most memory that a device's allocator has, in use and kept.
std::array<std::atomic<size_t>, 8> most_reserved;
void watch_reserved(Device device, const kernels::MemoryStats& stats) {
  if (device.kind != DeviceKind::cuda) return;
  std::atomic<size_t>& most = most_reserved[static_cast<size_t>(device.index)];
  most = std::max(most.load(), stats.live + stats.cached);
}

// The host has enqueued a whole step before the device does anything. A collective's memory serves the next collective
// in stream order, not only when the host sees the end.
TEST_F(SeveralGpus, FsdpHoldsNoMoreOnAGpuThanItsUnits) {
  require(2);
  if (IsSkipped()) return;
  constexpr int kUnits = 8;
  run_on_gpus(2, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const Tensor x = Tensor::ones({2, 8}, DType::f32, device);
    const double shard = kUnits * Heavy::kBytes / 2.0;
    const auto peak_of = [&](const std::function<void(FSDP&)>& step) {
      FSDP fsdp(std::make_shared<HeavyRow>(kUnits), world, {.policy = {.kinds = {"Heavy"}}, .device = device});
      EXPECT_NEAR(static_cast<double>(fsdp.shard_bytes()), shard, 1e5);
      for (int i = 0; i < 2; ++i) {  // the first one learns the order of units
        weft::synchronize(device);
        kernels::CachingAllocator::of(device).empty_cache();
        world->barrier("watched");
        most_reserved[static_cast<size_t>(device.index)] = 0;
        step(fsdp);
      }
      weft::synchronize(device);
      return static_cast<double>(most_reserved[static_cast<size_t>(device.index)].load());
    };
    kernels::set_memory_hook(watch_reserved);
    const double unit = Heavy::kBytes, evaluation = peak_of([&](FSDP&fsdp) {
                                         const NoGrad no_grad;
                                         for (int i = 0; i < 3; ++i) fsdp(x);
                                       });
    EXPECT_LE(evaluation, 1.1 * (2 * shard + 2 * unit)) << "shards of weights and gradients, two units";
    const double training = peak_of([&](FSDP& fsdp) {
      for (int i = 0; i < 2; ++i) sum(fsdp(x)).backward();
    });
    // Whole gradients: two units' are reduced, and a third one's is computed.
    EXPECT_LE(training, 1.1 * (2 * shard + (2 + 3) * unit)) << "weights and gradients, two units, and their gradients";
    world->barrier("measured");
    kernels::set_memory_hook(nullptr);
  });
}

/// The most that a GPU's allocator holds in a second step of a row of units.
double peak_of_training(const ProcessGroupPtr& world, FsdpOptions options, int units, std::vector<double>& sums) {
  const Device device = gpu(world->rank());
  options.policy = {.kinds = {"Heavy"}};
  options.device = device;
  const Tensor x = Tensor::full({2, 8}, 0.5 + world->rank(), DType::f32, device);
  weft::synchronize(device);
  kernels::CachingAllocator::of(device).empty_cache();
  FSDP fsdp(std::make_shared<HeavyRow>(units), world, options);
  optim::AdamW adam(fsdp.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 2; ++step) {
    weft::synchronize(device);
    kernels::CachingAllocator::of(device).empty_cache();
    world->barrier("watched");
    most_reserved[static_cast<size_t>(device.index)] = 0;
    const Tensor loss = sum(fsdp(x));
    sums.push_back(loss.item());
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
  weft::synchronize(device);
  return static_cast<double>(most_reserved[static_cast<size_t>(device.index)].load());
}

// State on the host takes no memory of a GPU, and changes losses by the rounding of the host's Adam alone.
TEST_F(SeveralGpus, OffloadedStateTakesNoMemoryOfAGpu) {
  require(4);
  if (IsSkipped()) return;
  constexpr int kUnits = 8;
  constexpr double kUnit = Heavy::kBytes, kModel = kUnits * kUnit;
  // Copies of the shard that stay: weights, gradients, two moments. Two units are gathered, and three have gradients,
  // of which backward computes one into memory of its own.
  struct Way {
    const char* name;
    FsdpOptions options;
    double copies, shard;
  };
  const Way ways[] = {{"fsdp", {}, 4, kModel / 4},
                      {"hybrid, shards of 2", {.strategy = Sharding::hybrid_shard, .shard_size = 2}, 4, kModel / 2},
                      {"fsdp, optimizer on the host", {.offload = Offload::optimizer}, 1, kModel / 4},
                      {"fsdp, parameters on the host", {.offload = Offload::parameters}, 0, kModel / 4}};
  std::vector<double> want;
  std::mutex lock;
  for (const Way& way : ways) {
    const double theory = way.copies * way.shard + (2 + 3 + 1) * kUnit;
    run_on_gpus(4, [&](const ProcessGroupPtr& world) {
      kernels::set_memory_hook(watch_reserved);
      std::vector<double> sums;
      const double peak = peak_of_training(world, way.options, kUnits, sums);
      world->barrier("measured");
      kernels::set_memory_hook(nullptr);
      EXPECT_LE(peak, 1.1 * theory + kUnit) << way.name << ": and shards on their way to a gather";
      const std::lock_guard guard(lock);
      if (world->rank() != 0) return;
      std::printf("%-30s peak %6.1f MiB, theory %6.1f\n", way.name, peak / 1048576, theory / 1048576);
      if (want.empty()) want = sums;
      for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], want[i], 1e-5 * std::abs(want[i])) << way.name;
    });
  }
}

// `weft-emulate --memory`: weights, gradients and moments are eight times a GPU's memory, and twice as much as all
// shards of four GPUs; with all on the host a few units are on a GPU.
TEST_F(SeveralGpus, TrainsAGptOfEightTimesAGpusMemory) {
  require(4);
  if (IsSkipped()) return;
  const nn::GptOptions sizes{
      .vocabulary = 64, .positions = 8, .width = 128, .depth = 48, .heads = 4, .recompute = true};
  constexpr size_t kState = size_t{8 * 18} << 20;
  try {
    Tensor::empty({static_cast<int64_t>(kState)}, DType::u8, gpu(0));
    GTEST_SKIP() << "needs GPUs of less memory than the model's state: weft-emulate --memory 18";
  } catch (const Error&) {
  }
  run_on_gpus(4, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    manual_seed(3);
    nn::DeferredInit later;
    std::shared_ptr<nn::Gpt> model;
    {
      const nn::DeferredInit::Scope scope(&later);
      model = std::make_shared<nn::Gpt>(sizes);
    }
    EXPECT_GT(static_cast<size_t>(16 * nn::parameter_count(*model)), kState);
    FSDP fsdp(
        model, world,
        {.policy = {.kinds = {"GptBlock"}}, .offload = Offload::parameters, .device = device, .deferred = &later});
    optim::AdamW adam(fsdp.parameters(), {.lr = 1e-3});
    const Tensor ids = Tensor::from(std::vector<int64_t>{1, 2, 3, 4}, Shape{1, 4}).to(device);
    const Tensor next = Tensor::from(std::vector<int64_t>{2, 3, 4, 5}, Shape{1, 4}).to(device);
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) {
      const Tensor loss = cross_entropy(fsdp(ids), next);
      losses.push_back(loss.item());
      adam.zero_grad();
      loss.backward();
      adam.step();
    }
    EXPECT_LT(losses[2], losses[0] - 0.5) << "the same four tokens each step";
    EXPECT_NEAR(losses[0], std::log(64.0), 1.0);
  });
}

// The whole model never lies on a GPU: it moves unit by unit.
TEST_F(SeveralGpus, AModelMovesToItsGpusInShards) {
  require(4);
  if (IsSkipped()) return;
  run_on_gpus(4, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    constexpr int kUnits = 12;
    kernels::CachingAllocator::of(device).empty_cache();
    world->barrier("watched");
    most_reserved[static_cast<size_t>(device.index)] = 0;
    kernels::set_memory_hook(watch_reserved);
    const auto strategy = train::make_strategy({.kind = "fsdp", .min_num_params = 1, .device = device},
                                               std::make_shared<HeavyRow>(kUnits), World::around(world, device));
    EXPECT_EQ(strategy->parameters().size(), static_cast<size_t>(kUnits));
    weft::synchronize(device);
    world->barrier("measured");
    kernels::set_memory_hook(nullptr);
    // Shards as the units leave them (twice: whole, and by parameter), in one piece, and their gradients; two units.
    EXPECT_LE(static_cast<double>(most_reserved[static_cast<size_t>(device.index)]),
              1.05 * static_cast<double>(Heavy::kBytes) * (4 * kUnits / 4 + 2));
  });
}

/// Its matrix travels as bf16, its row in f32.
struct TwoDtypes : nn::Module {
  nn::Linear linear{32, 32};
  Tensor row = Tensor::ones({32}).requires_grad_();
  Tensor forward(const Tensor& x) const override { return linear(x) * row; }
  void fields(nn::Visitor& v) override { v("linear", linear), v("row", row); }
};

// A call costs NCCL's host some time and all ranks a latency, which grows with their number.
TEST_F(SeveralGpus, AUnitOfTwoDtypesIsOneLaunch) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [&](const ProcessGroupPtr& world) {
    std::vector<std::shared_ptr<nn::Module>> units;
    for (int i = 0; i < 4; ++i) units.push_back(std::make_shared<TwoDtypes>());
    FSDP fsdp(std::make_shared<nn::Sequential>(std::move(units)), world,
              {.policy = {.kinds = {"TwoDtypes"}}, .precision = {.param = DType::bf16}, .device = gpu(world->rank())});
    for (int step = 0; step < 3; ++step) {
      const uint64_t before = world->launches();
      sum(fsdp(Tensor::ones({2, 32}, DType::f32, gpu(world->rank())))).backward();
      EXPECT_EQ(world->launches() - before, 1u + 4 + (step == 0 ? 4 : 3) + 4)
          << "the samples; gathers, the last unit's once as soon as a step is known; reductions";
    }
  });
}

// hybrid_shard: the slow sum over the copies begins after the fast one, while the stream computes other gradients.
TEST_F(SeveralGpus, CopiesOfAShardAreReducedBesideTheBackward) {
  require(4);
  if (IsSkipped()) return;
  std::atomic<int> passed{0};
  run_on_gpus(4, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const bool first_copy = world->rank() < 2;
    FSDP* model = nullptr;
    size_t reductions = 0;
    const auto on_event = [&](const FsdpEvent& event) {
      if (event.kind != FsdpEvent::Kind::reduce) return;
      ++reductions;
      EXPECT_EQ(lines_with(model->replica_group()->flight_log(), "'gradients "), reductions) << "begun at once";
      if (reductions != 2 || !first_copy) return;
      weft::synchronize(device);  // though the other copy has none of these gradients
      ++passed;
    };
    FSDP fsdp(std::make_shared<HeavyRow>(4), world,
              {.strategy = Sharding::hybrid_shard,
               .policy = {.kinds = {"Heavy"}},
               .shard_size = 2,
               .device = device,
               .on_event = on_event});
    model = &fsdp;
    const Tensor y = sum(fsdp(Tensor::ones({2, 8}, DType::f32, device)));
    while (!first_copy && passed < 2) std::this_thread::yield();
    y.backward();
    EXPECT_EQ(reductions, 4u);
    if (fsdp.shard_group()->rank() > 0) return;
    for (const NamedTensor& p : fsdp.parameters()) {
      const auto got = p.tensor.grad().to_vector<float>();
      EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 8), std::vector<float>(8, 2))
          << p.name << ", two samples";
    }
  });
}

}  // namespace
}  // namespace weft::dist::testing
