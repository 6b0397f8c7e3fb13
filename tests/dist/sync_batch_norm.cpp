// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/sync_batch_norm.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>

#include "core/autograd.h"
#include "core/derivatives.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/linear.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kChannels = 5;

struct Case {
  DType dtype = DType::f64;
  DeviceKind device = DeviceKind::cpu;
  bool relu = false, residual = false, affine = true, images = true;
  double offset = 0.5;
  int64_t channels = kChannels;
};

Tensor random_tensor(uint64_t seed, const Shape& sizes, const Case& c, DType dtype, double offset = 0) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i) values.push_back(offset + uniform(random));
  return Tensor::from(values, sizes).to(dtype).to(Device{c.device, 0});
}

/// One layer: its inputs and what came out, each in f64 on the host.
struct Layer {
  Tensor x, residual, weight, bias, mean, var;
  std::vector<double> y, dx, dresidual, dweight, dbias;

  /// Samples `first` … `first + count - 1`; if none, a dummy batch far from the batch.
  Layer(const Case& c, int64_t first, int64_t samples) : stands_in(samples == 0) {
    const int64_t count = std::max<int64_t>(samples, 1);
    const DType wide = c.dtype == DType::f64 ? DType::f64 : DType::f32;
    const auto rows = [&](uint64_t seed, double offset) {
      std::vector<Tensor> all;
      for (int64_t i = first; i < first + count; ++i) {
        const Shape one = c.images ? Shape{1, 3, 2, c.channels} : Shape{1, c.channels};
        all.push_back(random_tensor(seed + static_cast<uint64_t>(i), one, c, c.dtype, offset));
      }
      return concat(all, 0);
    };
    x = rows(1000, stands_in ? 50 : c.offset).requires_grad_();
    if (c.residual) residual = rows(2000, 0).requires_grad_();
    dy = rows(3000, 0);
    if (c.affine) {
      weight = random_tensor(1, {c.channels}, c, wide, 1.5).requires_grad_();
      bias = random_tensor(2, {c.channels}, c, wide).requires_grad_();
    }
    mean = random_tensor(3, {c.channels}, c, wide);
    var = random_tensor(4, {c.channels}, c, wide, 2);
  }

  /// The loss is a mean over the samples: sum(y dy) / count; 0 times a dummy batch's.
  void run(const Case& c, const std::function<Tensor(const BatchNormOptions&)>& norm) {
    const Tensor out = norm({.training = true, .eps = 1e-4, .momentum = 0.3, .relu = c.relu, .residual = residual});
    sum(out.to(DType::f64) * dy.to(DType::f64) * (stands_in ? 0 : 1.0 / static_cast<double>(x.size(0)))).backward();
    y = out.to_vector<double>();
    dx = x.grad().to_vector<double>();
    if (c.residual) dresidual = residual.grad().to_vector<double>();
    if (c.affine) dweight = weight.grad().to_vector<double>(), dbias = bias.grad().to_vector<double>();
  }

  bool stands_in;
  Tensor dy;
};

void append(std::vector<double>& all, const std::vector<double>& more, double factor = 1) {
  for (const double value : more) all.push_back(value * factor);
}
void add(std::vector<double>& sum, const std::vector<double>& more, double factor) {
  sum.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) sum[i] += more[i] * factor;
}

void check(const std::string& backend, const Case& c, const std::vector<int64_t>& parts) {
  SCOPED_TRACE(str(c.dtype, " on ", name(c.device), " relu ", c.relu, " residual ", c.residual, " affine ", c.affine,
                   " offset ", c.offset, ", ", parts.size(), " ranks over ", backend));
  const int64_t all = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  Layer whole(c, 0, all);
  whole.run(c, [&](const BatchNormOptions& options) {
    return batch_norm(whole.x, whole.weight, whole.bias, whole.mean, whole.var, options);
  });
  std::vector<std::unique_ptr<Layer>> layers;
  int64_t first = 0;
  for (const int64_t part : parts) {
    layers.push_back(std::make_unique<Layer>(c, first, part));
    first += part;
  }
  run_on(backend, static_cast<int>(parts.size()), [&](const ProcessGroupPtr& group) {
    Layer& mine = *layers[static_cast<size_t>(group->rank())];
    mine.run(c, [&](const BatchNormOptions& options) {
      return sync_batch_norm(mine.x, mine.weight, mine.bias, mine.mean, mine.var, options, group, mine.stands_in);
    });
  });

  std::vector<double> y, dx, dresidual, dweight, dbias;
  for (const auto& layer : layers) {
    if (layer->stands_in) {
      EXPECT_EQ(layer->dx, std::vector<double>(layer->dx.size())) << "no gradient passes a stand-in";
      continue;
    }
    const double weight = static_cast<double>(layer->x.size(0)) / static_cast<double>(all);
    append(y, layer->y);
    append(dx, layer->dx, weight);
    append(dresidual, layer->dresidual, weight);
    if (c.affine) add(dweight, layer->dweight, weight), add(dbias, layer->dbias, weight);
  }
  const int64_t rows = whole.x.numel() / c.channels;
  const tests::Tolerance elements = tests::tolerance(c.dtype, rows, 8).times(1 + std::abs(c.offset)),
                         vectors = tests::tolerance(c.dtype == DType::f64 ? DType::f64 : DType::f32, rows, 8)
                                       .times(1 + std::abs(c.offset));
  EXPECT_TRUE(tests::near(y, whole.y, elements)) << "y";
  EXPECT_TRUE(tests::near(dx, whole.dx, elements.times(4))) << "dx";
  EXPECT_TRUE(tests::near(dresidual, whole.dresidual, elements)) << "dresidual";
  // Below f32 each rank's y, which relu looks at, may round to another side of 0 than the whole batch's.
  const tests::Tolerance sums = c.dtype == DType::bf16 ? elements : vectors;
  EXPECT_TRUE(tests::near(dweight, whole.dweight, sums.times(4))) << "dweight";
  EXPECT_TRUE(tests::near(dbias, whole.dbias, sums.times(4))) << "dbias";
  for (const auto& layer : layers) {
    EXPECT_TRUE(tests::near(layer->mean.to_vector<double>(), whole.mean.to_vector<double>(), vectors)) << "mean";
    EXPECT_TRUE(tests::near(layer->var.to_vector<double>(), whole.var.to_vector<double>(), vectors)) << "var";
    EXPECT_EQ(layer->mean.to_vector<double>(), layers[0]->mean.to_vector<double>()) << "all ranks alike";
  }
}

TEST(SyncBatchNorm, UnequalBatchesAreOneWhole) {
  for (const std::string& backend : backends())
    for (const bool relu : {false, true})
      for (const bool residual : {false, true})
        for (const std::vector<int64_t>& parts :
             {std::vector<int64_t>{7}, {4, 4}, {1, 6, 2}, {5, 1, 3, 8}, {5, 0}, {0, 3, 0, 4}}) {
          check(backend, {.relu = relu, .residual = residual}, parts);
          check(backend, {.dtype = DType::f32, .relu = relu, .residual = residual, .affine = relu, .images = residual},
                parts);
        }
}

TEST(SyncBatchNorm, LowPrecisionAndAFarMean) {
  check("threads", {.dtype = DType::bf16, .relu = true, .residual = true}, {3, 5});
  check("threads", {.dtype = DType::f32, .offset = 100}, {3, 50});
}

TEST(SyncBatchNorm, OnGpu) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  for (const std::string& backend : backends())
    for (const DType dtype : {DType::f32, DType::bf16})  // bf16: backward reads the forward's mask
      check(backend, {.dtype = dtype, .device = DeviceKind::cuda, .relu = true, .residual = true, .channels = 8},
            {2, 5});
}

TEST(SyncBatchNorm, HasNoSecondDerivative) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor x = random_tensor(1, {4, kChannels}, {}, DType::f64).requires_grad_();
    const Tensor y = sync_batch_norm(x, {}, {}, {}, {}, {.training = true}, group);
    EXPECT_EQ(
        error_text([&] { autograd::grad({sum(y)}, {x}, {.create_graph = true}); }),
        "sync_batch_norm: its gradient cannot be differentiated: no second derivative is known. Use other ops, or "
        "leave out create_graph");
  });
}

// Why a dummy batch must not count: a norm removes the scale of the weights before, so no gradient may point along
// those weights. With the dummy rows in the statistics and their loss weighed by 0 a gradient does.
TEST(SyncBatchNorm, OnlyWithoutTheStandInIsTheGradientOrthogonalToTheWeights) {
  for (const bool counted : {false, true}) {
    run_ranks(2, [&](const ProcessGroupPtr& group) {
      const bool stands_in = group->rank() == 1;
      const Case c{.images = false};
      const Tensor x = random_tensor(stands_in ? 20 : 10, {stands_in ? 1 : 4, 7}, c, DType::f64);
      const Tensor w = random_tensor(1, {kChannels, 7}, c, DType::f64).requires_grad_();
      const Tensor dy = random_tensor(3, {x.size(0), kChannels}, c, DType::f64);
      const Tensor y =
          sync_batch_norm(linear(x, w), {}, {}, {}, {}, {.training = true, .eps = 1e-14}, group, stands_in && !counted);
      sum(y * dy * (stands_in ? 0 : 1)).backward();
      const Tensor dw = stands_in ? mul(w.grad(), 0) : w.grad().clone();  // DDP's weight n_r / N
      group->all_reduce(dw, ReduceOp::sum, {.name = "gradient", .scale = {}})->wait();
      const double along = std::abs(sum(mul(w.detach(), dw)).item()) / sum(square(dw)).item();
      if (counted)
        EXPECT_GT(along, 1e-3);
      else
        EXPECT_LT(along, 1e-9);
    });
  }
}

TEST(SyncBatchNorm, SingleRowsNormaliseTogether) {
  // One value per channel and rank: batch_norm() alone would refuse.
  check("threads", {.images = false}, {1, 1, 1});
}

class SyncBatchNormTraining : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(SyncBatchNormTraining, RanksEqualOneOnTheSameGlobalBatch) {
  const auto& [backend, ranks] = GetParam();
  Training t{.make = normed_net, .parts = even_parts(20, ranks, 4), .ddp = {.bucket_mb = 0.002}};
  for (size_t step = 1; step < t.parts.size(); step += 2)
    for (size_t rank = 0; rank < t.parts[step].size(); ++rank)
      t.parts[step][rank] = static_cast<int64_t>(1 + (rank * 3 + step) % 5);
  // An epoch's last step may leave ranks without a sample.
  for (size_t rank = 0; rank < t.parts[3].size(); ++rank) t.parts[3][rank] = rank == 0 ? 3 : 0;
  for (size_t rank = 0; rank < t.parts[8].size(); ++rank) t.parts[8][rank] = rank + 1 == t.parts[8].size() ? 1 : 0;
  t.prepare = [](nn::Module& model, const ProcessGroupPtr& group) {
    const auto own = group->size() > 1 ? group->split(0, group->rank(), "batch_norm") : group;
    EXPECT_EQ(convert_sync_batch_norm(model, own), 2);
  };
  const Trained got = train_ranks(t, backend), want = train_alone(t);
  if (got.weights.empty() && backend == "mpi") return;  // this process is no rank of this run
  int64_t additions = 0;
  for (const auto& step : t.parts)
    for (const int64_t part : step) additions += part * 64;
  // The norm divides by a standard deviation below 1 twice: differences grow a little in each step.
  const tests::Tolerance allowed = tests::tolerance(DType::f32, additions).times(4);
  EXPECT_TRUE(tests::near(got.losses, want.losses, allowed)) << "losses";
  EXPECT_TRUE(tests::near(got.weights, want.weights, allowed)) << "weights";
  EXPECT_TRUE(tests::near(got.buffers, want.buffers, allowed)) << "running statistics";
  EXPECT_EQ(got.counters, want.counters);
}

INSTANTIATE_TEST_SUITE_P(All, SyncBatchNormTraining,
                         ::testing::Combine(::testing::ValuesIn(backends()), ::testing::Values(1, 2, 3, 4)),
                         [](const auto& chosen) {
                           return std::get<0>(chosen.param) + "_" + std::to_string(std::get<1>(chosen.param));
                         });

TEST(SyncBatchNorm, EvaluationAndUndoingAskNobody) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto model = build(normed_net, 1, DeviceKind::cpu);
    EXPECT_EQ(convert_sync_batch_norm(*model, group), 2);
    model->eval();
    const uint64_t before = group->bytes_sent();
    (*model)(samples(0, 0, 2, {8, 8, 3}, DeviceKind::cpu));
    EXPECT_EQ(group->bytes_sent(), before);
    model->train();
    (*model)(samples(0, 0, 2, {8, 8, 3}, DeviceKind::cpu));
    EXPECT_GT(group->bytes_sent(), before);
    EXPECT_EQ(convert_sync_batch_norm(*model, nullptr), 2);
    const uint64_t now = group->bytes_sent();
    (*model)(samples(0, 0, 2, {8, 8, 3}, DeviceKind::cpu));
    EXPECT_EQ(group->bytes_sent(), now);
  });
}

TEST(SyncBatchNorm, ArgumentsAreChecked) {
  const auto group = make_process_group_alone();
  const Tensor x = Tensor::ones({2, 3}), three = Tensor::ones({3}), two = Tensor::ones({2});
  EXPECT_THAT(error_text([&] { sync_batch_norm(x, two, {}, {}, {}, {.training = true}, group); }),
              HasSubstr("batch_norm: expected weight f32[3] for input f32[2,3] on cpu, got f32[2] on cpu"));
  EXPECT_EQ(error_text([&] { sync_batch_norm(x, {}, {}, three, three, {}, group); }),
            "sync_batch_norm: expected training; evaluation needs no statistics of other ranks");
  EXPECT_EQ(error_text([&] {
              sync_batch_norm(Tensor::ones({0, 3}), {}, {}, {}, {}, {.training = true}, group);
            }),
            "sync_batch_norm: expected at least one row on rank 0, got f32[0,3] on cpu");
}

}  // namespace
}  // namespace weft::dist::testing
