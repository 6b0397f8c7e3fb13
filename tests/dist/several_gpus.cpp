// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/several_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <sstream>
#include <thread>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "core/stream.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/zero_redundancy_optimizer.h"
#include "dist/fsdp/fsdp.h"
#include "dist/group/functional.h"
#include "dist/pipeline/pipeline.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/runtime.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "nn/models/gpt.h"
#include "nn/sequential.h"
#include "optim/optimizers.h"
#include "tests/dist/fake_membership.h"
#include "tests/dist/memory_store.h"
#include "tests/support/compare.h"
#include "tests/support/error_text.h"
#include "train/strategy.h"

namespace weft::dist::testing {

void SeveralGpus::require(int gpus) {
  if (!WEFT_HAVE_NCCL) GTEST_SKIP() << "built without NCCL";
  if (kernels::runtime(DeviceKind::cuda).device_count() < gpus) GTEST_SKIP() << "needs " << gpus << " GPUs";
}

namespace {
/// Far above what a step takes on a busy machine; ranks that wait in a circle end here.
constexpr Milliseconds kDeadline{60'000};
constexpr Milliseconds kLongDeadline{600'000};  // where gigabytes are copied on the host
}  // namespace

std::vector<std::string> errors_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                                        GroupOptions options, const std::shared_ptr<FakeJob>& job) {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank, options]() mutable {
      options.gpu = rank;
      const ThreadGenerators generators;  // as each process has
      ProcessGroupPtr group;
      try {
        const auto membership = job ? std::make_shared<FakeMembership>(job, rank) : nullptr;
        group = make_process_group("nccl", rank, size, store, membership, options);
        function(group);
        weft::synchronize(gpu(rank));
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        if (group) group->abort(str("rank ", rank, " ended with: ", error.what()));
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void run_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                 const std::shared_ptr<FakeJob>& job) {
  EXPECT_THAT(errors_on_gpus(size, function, {.timeout = kDeadline}, job), ::testing::Each(""));
}

size_t lines_with(const std::string& text, const std::string& part) {
  size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) count += line.find(part) != std::string::npos;
  return count;
}

namespace {

/// Rows of two columns: 100 rank + place.
std::vector<double> rows_of(int rank, int64_t rows) {
  std::vector<double> values;
  for (int64_t i = 0; i < 2 * rows; ++i) values.push_back(100 * rank + static_cast<double>(i));
  return values;
}

/// The values of the parts, one after the other.
std::vector<double> joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// This rank's part of rows [all, 2], of which rank r has rows[r].
std::vector<double> part_of(const std::vector<double>& all, const std::vector<int64_t>& rows, int rank) {
  const auto begin = all.begin() + 2 * std::accumulate(rows.begin(), rows.begin() + rank, int64_t{0});
  return {begin, begin + 2 * rows[static_cast<size_t>(rank)]};
}

TEST_F(SeveralGpus, RanksMeetAtSeveralRoots) {
  constexpr int kRanks = 4;
  require(kRanks);
  if (IsSkipped()) return;
  for (const int ranks_per_root : {1, 3, 4}) {
    const auto store = std::make_shared<MemoryStore>();
    std::vector<double> sums(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const GroupOptions options{.timeout = kDeadline, .gpu = rank, .nccl_ranks_per_root = ranks_per_root};
        const ProcessGroupPtr world = make_process_group("nccl", rank, kRanks, store, nullptr, options);
        const Tensor x = Tensor::full({1}, rank + 1, DType::f32, gpu(rank));
        world->all_reduce(x)->wait();
        sums[static_cast<size_t>(rank)] = x.item();
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(sums, ::testing::Each(10.0));
    EXPECT_EQ(store->find_all("nccl/1/id", kRanks + 1, Milliseconds(0)).size(),
              static_cast<size_t>((kRanks + ranks_per_root - 1) / ranks_per_root));
  }
}

// With equal parts nccl's own calls run, and with others groups of messages; small integers are added exactly.
TEST_F(SeveralGpus, CollectivesOfPartsAreTheirDefinition) {
  constexpr int kRanks = 4;
  require(kRanks);
  if (IsSkipped()) return;
  run_on_gpus(kRanks, [](const ProcessGroupPtr& world) {
    const int rank = world->rank();
    const Device device = gpu(rank);
    const auto tensor = [&](const std::vector<double>& values) {
      return Tensor::from(values).to(DType::f32).reshape({-1, 2}).to(device);
    };
    const auto empty = [&](int64_t rows) { return Tensor::full({rows, 2}, -1, DType::f32, device); };
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{2, 2, 2, 2}, {3, 0, 1, 2}}) {
      const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0}), own = rows[static_cast<size_t>(rank)];
      std::vector<std::vector<double>> each;
      std::vector<double> sums(static_cast<size_t>(2 * all));
      for (int r = 0; r < kRanks; ++r) {
        each.push_back(rows_of(r, rows[static_cast<size_t>(r)]));
        const std::vector<double> whole = rows_of(r, all);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += whole[i];
      }
      const CollectiveOptions options{.name = "x", .rows = rows};
      const Tensor mine = tensor(rows_of(rank, own)), whole = empty(all), part = empty(own);
      world->all_gather(whole, mine, options)->wait();
      EXPECT_EQ(whole.to_vector<double>(), joined(each));
      world->reduce_scatter(part, tensor(rows_of(rank, all)), ReduceOp::sum, options)->wait();
      EXPECT_EQ(part.to_vector<double>(), part_of(sums, rows, rank));
      for (int root = 0; root < kRanks; ++root) {
        const bool is_root = rank == root;
        const Tensor gathered = is_root ? empty(all) : Tensor();
        world->gather(gathered, mine, root, options)->wait();
        if (is_root) {
          EXPECT_EQ(gathered.to_vector<double>(), joined(each));
        }
        world->scatter(part, is_root ? tensor(rows_of(root, all)) : Tensor(), root, options)->wait();
        EXPECT_EQ(part.to_vector<double>(), part_of(rows_of(root, all), rows, rank));
        const Tensor x = tensor(rows_of(rank, all));
        world->reduce(x, root)->wait();
        EXPECT_EQ(x.to_vector<double>(), is_root ? sums : rows_of(rank, all));
      }
      // Rank r sends rank q rows[(q + r) % 4] rows, which is the same the other way round.
      std::vector<int64_t> exchanged;
      std::vector<std::vector<double>> arrived;
      for (int r = 0; r < kRanks; ++r) {
        std::vector<int64_t> theirs;
        for (int q = 0; q < kRanks; ++q) theirs.push_back(rows[static_cast<size_t>((q + r) % kRanks)]);
        exchanged.push_back(theirs[static_cast<size_t>(rank)]);
        arrived.push_back(part_of(rows_of(r, all), theirs, rank));
      }
      const Tensor output = empty(all), input = tensor(rows_of(rank, all)).requires_grad_();
      (rows[0] == rows[1] ? world->all_to_all(output, input) : world->all_to_all(output, input, exchanged, exchanged))
          ->wait();
      EXPECT_EQ(output.to_vector<double>(), joined(arrived));
      sum(all_to_all(input, world, exchanged, exchanged) * output).backward();
      EXPECT_EQ(input.grad().to_vector<double>(), rows_of(rank, all));
    }
    const Tensor least = tensor(rows_of(rank, 3));
    world->all_reduce(least, ReduceOp::min)->wait();
    EXPECT_EQ(least.to_vector<double>(), rows_of(0, 3));
    world->monitored_barrier(kDeadline, "all here");
  });
}

Tensor row_of_weights(int64_t width, int layer) {
  std::vector<float> values(static_cast<size_t>(width));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + 0.125f * static_cast<float>((i + size_t(layer)) % 3);
  return Tensor::from(values).requires_grad_();
}

/// x times a row of weights, layer by layer.
struct Factor : nn::Module {
  Tensor weight;
  Factor(int64_t width, int layer) : weight(row_of_weights(width, layer)) {}
  Tensor forward(const Tensor& x) const override { return x * weight; }
  void fields(nn::Visitor& v) override { v("weight", weight); }
};

TEST_F(SeveralGpus, AMonitoredBarrierNamesAllThatAreMissing) {
  constexpr int kRanks = 4;
  require(kRanks);
  if (IsSkipped()) return;
  const auto job = std::make_shared<FakeJob>(kRanks);
  std::atomic<int> failed{0};
  run_on_gpus(
      kRanks,
      [&](const ProcessGroupPtr& world) {
        world->monitored_barrier(kDeadline, "all here");
        while (world->rank() >= 2 && failed < 2) std::this_thread::yield();
        if (world->rank() >= 2) return;
        EXPECT_THAT(error_text([&] { world->monitored_barrier(Milliseconds(2000), "step 7"); }),
                    ::testing::AllOf(::testing::HasSubstr("monitored_barrier #2 'step 7' of group world passed its "
                                                          "deadline of 2 s on rank "),
                                     ::testing::HasSubstr("missing rank 2 (process 102 on host2"),
                                     ::testing::HasSubstr("missing rank 3 (process 103 on host3")));
        ++failed;
      },
      job);
}

// Equal sums of gradients make equal steps, also of a parameter that is larger than a bucket.
TEST_F(SeveralGpus, ShardedOptimizerStateChangesNoBit) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const auto train = [&](bool shards) {
      const auto model = std::make_shared<Factor>(300'000, 0);
      model->to(device);
      DDP ddp(model, world, {.bucket_mb = 0.5});
      EXPECT_EQ(ddp.buckets().size(), 1u);
      const auto adamw = [](const optim::ParameterGroups& parts) {
        return std::make_unique<optim::AdamW>(parts, optim::AdamWOptions{.lr = 0.01});
      };
      const auto plain = shards ? nullptr : adamw(ddp.parameters());
      const auto zero = shards ? std::make_unique<ZeroRedundancyOptimizer>(ddp.parameters(), world, adamw) : nullptr;
      for (int step = 0; step < 3; ++step) {
        shards ? zero->zero_grad() : plain->zero_grad();
        const Tensor y = ddp(Tensor::full({1, 300'000}, 1 + 0.5 * world->rank(), DType::f32, device));
        mean(y * y).backward();
        shards ? zero->step() : plain->step();
      }
      return model->weight.to_vector<float>();
    };
    EXPECT_EQ(train(true), train(false));
  });
}

/// Layers in a row.
template <class Layer>
struct Row : nn::Module, nn::Staged {
  std::vector<std::shared_ptr<nn::Module>> factors;
  template <class... Sizes>
  explicit Row(int count, Sizes... sizes) {
    for (int i = 0; i < count; ++i) factors.push_back(std::make_shared<Layer>(sizes..., i));
  }
  Tensor forward(const Tensor& x) const override { return run({0, layers()}, x, x); }
  int64_t layers() const override { return static_cast<int64_t>(factors.size()); }
  Tensor run(nn::LayerRange range, const Tensor& x, const Tensor&) const override {
    Tensor y = x;
    for (int64_t i = range.first; i < range.last; ++i) y = (*factors[static_cast<size_t>(i)])(y);
    return y;
  }
  bool uses(nn::LayerRange range, const std::string& parameter) const override {
    return range.has(*nn::layer_of(parameter, "factors"));
  }
  void fields(nn::Visitor& v) override { v("factors", factors); }
};
using Factors = Row<Factor>;

/// Losses of the micro-batches, and the gradients by name.
struct PipelineResult {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> gradients;
};

std::vector<Tensor> micro_batches(int64_t count, int64_t width, Device device) {
  std::vector<Tensor> inputs;
  for (int64_t m = 0; m < count; ++m)
    inputs.push_back(Tensor::full({1, width}, 1 + 0.25 * static_cast<double>(m), DType::f32, device));
  return inputs;
}

void add_gradients(PipelineResult& trained, const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& p : parameters) trained.gradients[p.name] = p.tensor.grad().to_vector<double>();
}

PipelineResult train_alone(const PipelineSize& size, int64_t width) {
  const auto model = std::make_shared<Factors>(size.stages * size.chunks, width);
  model->to(gpu(0));
  PipelineResult trained;
  for (const Tensor& x : micro_batches(size.micro_batches, width, gpu(0))) {
    const Tensor loss = mean((*model)(x));
    loss.backward();
    trained.losses.push_back(loss.item());
  }
  add_gradients(trained, model->parameters());
  return trained;
}

PipelineResult train_in_pipeline(const PipelineSize& size, int64_t width) {
  PipelineResult trained;
  std::mutex mutex;
  run_on_gpus(size.stages, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    Pipeline pipeline(std::make_shared<Factors>(size.stages * size.chunks, width), Grid(world, 1, size.stages),
                      {.chunks = size.chunks, .device = device});
    const std::vector<Tensor> inputs = micro_batches(size.micro_batches, width, device);
    std::vector<Tensor> losses;
    pipeline.run({inputs, size.micro_batches, DType::f32, [&](size_t i) {
                    losses.push_back(mean(pipeline(inputs[i])));
                    return losses.back();
                  }});
    weft::synchronize(device);
    const std::lock_guard lock(mutex);
    for (const Tensor& loss : losses) trained.losses.push_back(loss.item());
    add_gradients(trained, pipeline.parameters());
  });
  return trained;
}

void expect_equal_alone(const PipelineSize& size, int64_t width) {
  SCOPED_TRACE(str(size.stages, " stages, ", size.chunks, " chunks, ", size.micro_batches, " micro-batches of ",
                   4 * width, " bytes"));
  const PipelineResult one = train_alone(size, width), got = train_in_pipeline(size, width);
  EXPECT_EQ(got.losses, one.losses) << "the same products in the same order";
  ASSERT_EQ(got.gradients.size(), one.gradients.size());
  // Sums of the micro-batches, each of which is a product of `layers` factors.
  const double allowed = 1.2e-7 * static_cast<double>(size.micro_batches + size.stages * size.chunks);
  for (const auto& [name, want] : one.gradients)
    EXPECT_TRUE(tests::near(got.gradients.at(name), want, tests::Tolerance{allowed, allowed})) << name;
}

// A send of NCCL ends when it is received. A stage whose computation waited for its sends would wait for the next one,
// which waits for this stage.
TEST_F(SeveralGpus, APipelineOnNcclEqualsOneProcess) {
  require(4);
  if (IsSkipped()) return;
  for (const PipelineSize& size : {PipelineSize{2, 2, 4}, {2, 1, 5}, {4, 2, 6}, {3, 4, 3}}) {
    expect_equal_alone(size, 256);
    if (HasFailure()) return;  // each dead-lock takes the deadline
  }
  expect_equal_alone({2, 2, 4}, 1 << 18);  // above any buffer between two ranks
}

class EveryPipeline : public SeveralGpus, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, EveryPipeline, ::testing::Range(2, 9));

TEST_P(EveryPipeline, OnNcclEqualsOneProcess) {
  const int P = GetParam();
  require(P);
  if (IsSkipped()) return;
  for (int V = 1; V <= 4; ++V)
    for (const int64_t M : {int64_t{4}, int64_t{P} + 1}) {
      expect_equal_alone({P, V, M}, 256);
      if (HasFailure()) return;  // each dead-lock takes the deadline
    }
}

/// Multiplies the first columns, in place, and passes the rest on without a kernel.
struct FirstColumns : nn::Module {
  static constexpr int64_t kColumns = 8;
  Tensor weight;
  explicit FirstColumns(int layer) : weight(row_of_weights(kColumns, layer)) {}
  static void multiply(const Tensor& x, const Tensor& factors) {
    const Tensor first = x.slice(1, 0, kColumns);
    first.copy_(first * factors);
  }
  Tensor forward(const Tensor& x) const override {
    const Tensor w = weight.detach(), y = x.detach();
    Tensor before;
    {
      const NoGrad no_grad;
      before = y.slice(1, 0, kColumns).clone();
      multiply(y, w);
    }
    return differentiable(y, "first_columns", {x, weight}, [before, w](const Tensor& dy) {
      const Tensor dw = (dy.slice(1, 0, kColumns) * before).reshape({kColumns});
      multiply(dy, w);
      return Grads{dy, dw};
    });
  }
  void fields(nn::Visitor& v) override { v("weight", weight); }
};

/// Losses of micro-batches of 64 MiB, in a pipeline or, with one stage, in a row. A channel of NCCL buffers 4 MiB. The
/// last stage sees each value that it should.
std::vector<double> losses_of_64_mib(const PipelineSize& size, int layers) {
  constexpr int64_t kWidth = 1 << 24;
  std::vector<double> losses;
  const auto make = [&] { return std::make_shared<Row<FirstColumns>>(layers); };
  const auto values_of = [](size_t micro) {
    std::vector<float> values(kWidth);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i + 7 * micro) % 8191);
    return values;
  };
  const auto loss_of = [&](const Tensor& y, size_t micro) {
    const std::vector<float> got = y.to_vector<float>(), want = values_of(micro);
    EXPECT_TRUE(std::equal(got.begin() + FirstColumns::kColumns, got.end(), want.begin() + FirstColumns::kColumns));
    return mean(y.slice(1, 0, FirstColumns::kColumns));
  };
  const auto train = [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    Pipeline pipeline(make(), Grid(world, 1, size.stages), {.chunks = size.chunks, .device = device});
    std::vector<Tensor> inputs;  // which the first stage reads
    for (int64_t m = 0; m < size.micro_batches; ++m)
      inputs.push_back(world->rank() > 0 ? Tensor::zeros({1, 1}, DType::f32, device).expand({1, kWidth})
                                         : Tensor::from(values_of(static_cast<size_t>(m)), {1, kWidth}).to(device));
    pipeline.run({inputs, size.micro_batches, DType::f32, [&](size_t i) {
                    const Tensor loss = loss_of(pipeline(inputs[i]), i);
                    losses.push_back(loss.item());
                    return loss;
                  }});
  };
  EXPECT_THAT(errors_on_gpus(size.stages, train, {.timeout = kLongDeadline}), ::testing::Each(""));
  return losses;
}

/// Stages and chunks.
class LargeMessages : public SeveralGpus, public ::testing::WithParamInterface<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LargeMessages, ::testing::Combine(::testing::Range(2, 9), ::testing::Range(1, 5)),
                         [](const auto& of) { return str(std::get<0>(of.param), "x", std::get<1>(of.param)); });

TEST_P(LargeMessages, EqualOneStage) {
  const auto [P, V] = GetParam();
  require(P);
  if (IsSkipped()) return;
  constexpr int64_t kMicroBatches = 3;  // from three on each interleaved schedule had a circle
  const std::vector<double> losses = losses_of_64_mib({P, V, kMicroBatches}, P * V);
  EXPECT_EQ(losses.size(), static_cast<size_t>(kMicroBatches));
  EXPECT_EQ(losses, losses_of_64_mib({1, 1, kMicroBatches}, P * V)) << "the same products in the same order";
}

// A stage whose neighbour sends nothing: the error is the message's, whatever the memory of its form holds.
TEST_F(SeveralGpus, AMissingFormIsAnErrorOfItsMessage) {
  require(2);
  if (IsSkipped()) return;
  std::atomic<bool> ended{false};
  errors_on_gpus(2,
                 [&](const ProcessGroupPtr& world) {
                   const Device device = gpu(world->rank());
                   Pipeline pipeline(std::make_shared<Factors>(2, 8), Grid(world, 1, 2), {.device = device});
                   if (world->rank() == 0) return ended.wait(false);
                   const std::vector<Tensor> inputs = micro_batches(1, 8, device);
                   const std::string error = error_text([&] {
                     pipeline.run({inputs, 1, DType::f32, [&](size_t i) { return mean(pipeline(inputs[i])); }});
                   });
                   ended = true;
                   ended.notify_all();
                   EXPECT_THAT(error, ::testing::HasSubstr("'form of micro-batch 0"));
                   EXPECT_THAT(error, ::testing::HasSubstr("passed its deadline of 2 s on rank 1"));
                 },
                 {.timeout = Milliseconds(2000)});
}

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

// hybrid_shard: the slow sum over the copies begins behind the fast one, while the stream computes other gradients.
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

// The norms' small messages would queue behind the gradients' buckets in a communicator that they shared.
TEST_F(SeveralGpus, NormsHaveAGroupOfTheirOwn) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const auto norm = std::make_shared<nn::BatchNorm2d>(8);
    norm->to(device);
    const auto strategy =
        train::make_strategy({.kind = "ddp", .sync_batch_norm = true}, norm, World::around(world, device));
    const Tensor y = strategy->forward(Tensor::full({2, 3, 3, 8}, world->rank(), DType::f32, device));
    sum(y).backward();
    const float one = 2 * static_cast<float>(world->rank()) - 1;  // less the mean 1/2, by the deviation 1/2
    for (const float value : y.to_vector<float>()) ASSERT_NEAR(value, one, 1e-4);  // eps is 4e-5 of the variance
    EXPECT_EQ(lines_with(world->flight_log(), "batch statistics"), 0u);
  });
}

}  // namespace
}  // namespace weft::dist::testing
