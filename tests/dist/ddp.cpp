// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/ddp.h"

#include <gmock/gmock.h>

#include <cmath>
#include <mutex>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "nn/transformer.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::dist::testing {
namespace {

constexpr int kSteps = 20;

/// n ranks and one add the same numbers in another order. A weight's gradient is a sum over samples and pixels; each of
/// the steps adds its roundings to those before.
tests::Tolerance allowed(const Training& t) {
  int64_t additions = 0;
  for (const auto& step : t.parts)
    for (const int64_t part : step) additions += part * t.image[0] * t.image[1];
  return tests::tolerance(DType::f32, additions);
}

void expect_equal(const Trained& got, const Trained& want, const Training& t) {
  if (got.weights.empty() && backends().front() == "mpi") return;  // no rank of this run
  EXPECT_TRUE(tests::near(got.losses, want.losses, allowed(t))) << "losses";
  EXPECT_TRUE(tests::near(got.weights, want.weights, allowed(t))) << "weights";
}

/// Cut so that several buckets form.
DdpOptions small_buckets() { return {.bucket_mb = 0.002, .first_bucket_mb = 0.0005}; }

class Ddp : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  const std::string backend_ = std::get<0>(GetParam());
  const int ranks_ = std::get<1>(GetParam());

  /// The last step, and some before, have parts of all sizes.
  std::vector<std::vector<int64_t>> uneven_parts(int steps) const {
    auto parts = even_parts(steps, ranks_, 3);
    for (int step = 2; step < steps; step += 3)
      for (int rank = 0; rank < ranks_; ++rank)
        parts[static_cast<size_t>(step)][static_cast<size_t>(rank)] = 1 + (rank * 2 + step) % 5;
    return parts;
  }
};

TEST_P(Ddp, RanksEqualOneOnTheSameGlobalBatch) {
  const Training t{.make = small_net, .parts = even_parts(kSteps, ranks_, 4), .ddp = small_buckets()};
  expect_equal(train_ranks(t, backend_), train_alone(t), t);
}

TEST_P(Ddp, UnevenBatchesAreExact) {
  const Training t{.make = small_net, .parts = uneven_parts(kSteps), .ddp = small_buckets()};
  expect_equal(train_ranks(t, backend_), train_alone(t), t);
}

TEST_P(Ddp, GradientsAccumulateWithoutReduction) {
  Training t{.make = small_net, .parts = uneven_parts(kSteps), .ddp = small_buckets(), .micro_batches = 3};
  for (auto& step : t.parts)
    for (int64_t& part : step) part += 2;
  expect_equal(train_ranks(t, backend_), train_alone(t), t);
}

TEST_P(Ddp, GradientsAccumulateWithReduction) {
  Training t{.make = small_net,
             .parts = uneven_parts(kSteps),
             .ddp = small_buckets(),
             .micro_batches = 3,
             .reduce_each = true};
  for (auto& step : t.parts)
    for (int64_t& part : step) part += 2;
  expect_equal(train_ranks(t, backend_), train_alone(t), t);
}

TEST_P(Ddp, OneBucketForAll) {
  const Training t{.make = small_net, .parts = uneven_parts(5)};
  expect_equal(train_ranks(t, backend_), train_alone(t), t);
}

TEST_P(Ddp, FrozenParametersStay) {
  Training t{.make = small_net, .parts = uneven_parts(4), .ddp = small_buckets()};
  std::vector<double> before;
  std::mutex mutex;
  t.prepare = [&](nn::Module& model, const ProcessGroupPtr& group) {
    const Tensor frozen = model.parameters()[0].tensor;
    frozen.requires_grad_(false);
    if (group->size() > 1 && group->rank() > 0) return;
    const std::lock_guard lock(mutex);
    before = frozen.to_vector<double>();
  };
  const Trained got = train_ranks(t, backend_);
  EXPECT_EQ(std::vector<double>(got.weights.begin(), got.weights.begin() + static_cast<std::ptrdiff_t>(before.size())),
            before);
  expect_equal(got, train_alone(t), t);
}

/// One layer used by two checkpoint() segments: it gets two gradients in a backward.
struct Shared : nn::Module {
  nn::Linear first{6, 6}, twice{6, 6}, last{6, 4};
  bool use_checkpoint;
  explicit Shared(bool checkpointed) : use_checkpoint(checkpointed) {}
  Tensor forward(const Tensor& x) const override {
    const auto segment = [this](const std::vector<Tensor>& in) { return relu(twice(in[0])); };
    Tensor y = relu(first(x));
    for (int i = 0; i < 2; ++i) y = use_checkpoint ? checkpoint(segment, {y}) : segment({y});
    return last(y);
  }
  void fields(nn::Visitor& v) override {
    v("first", first);
    v("twice", twice);
    v("last", last);
  }
};

TEST_P(Ddp, AModuleSharedBySeveralSegments) {
  for (const bool use_checkpoint : {false, true}) {
    Training t{.make = [&] { return std::make_shared<Shared>(use_checkpoint); },
               .parts = uneven_parts(kSteps),
               .ddp = {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5},
               .image = {6}};
    const Trained got = train_ranks(t, backend_), want = train_alone(t);
    EXPECT_TRUE(tests::near(got.weights, want.weights, tests::tolerance(DType::f32, 20 * 5 * 4 * 6)));
    EXPECT_TRUE(tests::near(got.losses, want.losses, tests::tolerance(DType::f32, 20 * 5 * 4 * 6)));
  }
}

/// Two layers that share one weight.
struct Tied : nn::Module {
  nn::Linear a{6, 6}, b{6, 6}, last{6, 4};
  Tied() { b.weight = a.weight; }
  Tensor forward(const Tensor& x) const override { return last(relu(b(relu(a(x))))); }
  void fields(nn::Visitor& v) override {
    v("a", a);
    v("b", b);
    v("last", last);
  }
};

TEST_P(Ddp, TiedParametersAreOne) {
  std::vector<double> losses[2];
  for (int size : {1, ranks_}) {
    run_on(backend_, size, [&](const ProcessGroupPtr& group) {
      DDP ddp(build([] { return std::make_shared<Tied>(); }, 5, DeviceKind::cpu), group);
      EXPECT_EQ(ddp.parameters().size(), 5u);
      optim::SGD sgd(ddp.parameters(), {.lr = 0.1});
      for (int step = 0; step < 5; ++step) {
        const int64_t each = 12 / size;
        const Tensor loss = cross_entropy(ddp(samples(step, group->rank() * each, each, {6}, DeviceKind::cpu)),
                                          labels(step, group->rank() * each, each, DeviceKind::cpu));
        sgd.zero_grad();
        loss.backward();
        sgd.step();
        const Tensor mean = loss.detach().clone().reshape({1});
        group->all_reduce(mean, ReduceOp::avg)->wait();
        if (group->rank() == 0) losses[size == 1 ? 0 : 1].push_back(mean.item());
      }
    });
    if (ranks_ == 1) losses[1] = losses[0];
    if (ranks_ == 1) break;
  }
  EXPECT_TRUE(tests::near(losses[1], losses[0], tests::tolerance(DType::f32, 5 * 12 * 6)));
}

TEST_P(Ddp, BuffersAreThoseOfRankZero) {
  const Training t{.make = normed_net, .parts = uneven_parts(6), .ddp = small_buckets()};
  const Trained got = train_ranks(t, backend_);  // compares them among the ranks
  EXPECT_EQ(got.counters, std::vector<int64_t>(2, 6));
  Training own = t;
  own.ddp.broadcast_buffers = false;
  const Trained apart = train_ranks(own, backend_);
  EXPECT_EQ(apart.buffers, got.buffers) << "rank 0's own are what all get";
}

/// Ranks see other samples and round them by one scale: that of the largest magnitude of all.
TEST_P(Ddp, ScalesOfEightBitsAreThoseOfAllRanks) {
  run_on(backend_, ranks_, [&](const ProcessGroupPtr& group) {
    const auto model = std::dynamic_pointer_cast<nn::Mlp>(build(
        [] {
          auto mlp = std::make_shared<nn::Mlp>(16, 32);
          nn::use_fp8(*mlp, {.history = 4});
          return mlp;
        },
        3, DeviceKind::cpu));
    DDP ddp(model, group);
    const auto is_the_same = [&](const Tensor& here) {
      const Tensor most = here.clone(), least = -here;
      group->all_reduce(most, ReduceOp::max)->wait();
      group->all_reduce(least, ReduceOp::max)->wait();
      return most.to_vector<float>() == (-least).to_vector<float>();
    };
    for (int step = 0; step < 6; ++step) {
      const double size = step == 3 ? 100 : 1 + group->size() - group->rank() + step, most = 1 + group->size() + step;
      Tensor y;
      {
        const Autocast low(DType::bf16);
        y = ddp(Tensor::full({2, 16}, step == 3 && group->rank() != group->size() - 1 ? 1 : size));
      }
      for (const nn::Linear* layer : {&model->fc1, &model->fc2}) {
        if (step > 0) {
          EXPECT_TRUE(is_the_same(layer->fp8->scale)) << step;
        }
      }
      sum(y).backward();
      EXPECT_EQ(model->fc1.fp8->latest.to_vector<float>()[0], step == 3 ? 100 : most) << step;
      for (const nn::Linear* layer : {&model->fc1, &model->fc2}) {
        EXPECT_TRUE(is_the_same(layer->fp8->latest)) << step;
        EXPECT_TRUE(is_the_same(layer->fp8->amaxes)) << step;
      }
    }
  });
}

TEST_P(Ddp, BytesAreThoseOfTheory) {
  for (const bool compressed : {false, true})
    run_on(backend_, ranks_, [&](const ProcessGroupPtr& group) {
      DdpOptions options = small_buckets();
      options.compress_bf16 = compressed;
      DDP ddp(build(small_net, 3, DeviceKind::cpu), group, options);
      EXPECT_GT(ddp.buckets().size(), 2u);
      const int n = group->size();
      for (int step = 0; step < 4; ++step) {
        const uint64_t before = group->bytes_sent();
        const auto gradients = gradient_bytes(ddp, compressed ? 2 : 4);  // the first step cuts them again
        cross_entropy(ddp(samples(step, 0, 2, {8, 8, 3}, DeviceKind::cpu)), labels(step, 0, 2, DeviceKind::cpu))
            .backward();
        const uint64_t count = 2 * static_cast<uint64_t>(n - 1) * sizeof(double) / static_cast<uint64_t>(n);
        uint64_t order = 0;  // a tree broadcasts the order of gradients in the first step
        for (int far = 1; step == 0 && far < n && (group->rank() & far) == 0; far *= 2)
          order += group->rank() + far < n ? ddp.parameters().size() * sizeof(int64_t) : 0;
        EXPECT_EQ(group->bytes_sent() - before, gradients + count + order);
        const auto quiet = ddp.no_sync();
        const uint64_t now = group->bytes_sent();
        cross_entropy(ddp(samples(step, 0, 2, {8, 8, 3}, DeviceKind::cpu)), labels(step, 0, 2, DeviceKind::cpu))
            .backward();
        group->barrier();  // the counts have gone
        EXPECT_EQ(group->bytes_sent() - now, count) << "no_sync: the counts alone";
      }
    });
}

// Gradients kept under no_sync are weighed once; reduced gradients are unchanged.
TEST_P(Ddp, ReducedGradientsAreNotTakenForKeptOnes) {
  run_on(backend_, ranks_, [&](const ProcessGroupPtr& group) {
    DDP ddp(build(small_net, 3, DeviceKind::cpu), group, small_buckets());
    const auto add = [&](int step, int64_t count) {
      cross_entropy(ddp(samples(step, 0, count, {8, 8, 3}, DeviceKind::cpu)), labels(step, 0, count, DeviceKind::cpu))
          .backward();
    };
    const int64_t few = 1 + group->rank(), many = 2 * group->size() - group->rank();
    {
      const auto quiet = ddp.no_sync();
      add(0, 2);
    }
    add(1, few);
    const std::vector<double> before = gradients_of(ddp.module());
    add(2, many);
    const std::vector<double> both = gradients_of(ddp.module());
    ddp.module().zero_grad();
    add(2, many);
    const std::vector<double> last = gradients_of(ddp.module());
    for (size_t i = 0; i < both.size(); ++i)
      ASSERT_NEAR(both[i], before[i] + last[i], 1e-5 * (std::abs(before[i]) + std::abs(last[i])) + 1e-6) << i;
  });
}

TEST_P(Ddp, CompressedGradientsAreWithinTheirBound) {
  std::vector<std::vector<double>> gradients(static_cast<size_t>(ranks_));
  std::vector<double> mean;
  std::vector<int64_t> counts;
  int64_t all = 0;
  for (int rank = 0; rank < ranks_; ++rank) counts.push_back(1 + rank), all += 1 + rank;
  run_on(backend_, ranks_, [&](const ProcessGroupPtr& group) {
    DdpOptions options = small_buckets();
    options.compress_bf16 = true;
    DDP ddp(build(small_net, 3, DeviceKind::cpu), group, options);
    const auto rank = static_cast<size_t>(group->rank());
    const auto pass = [&] {
      ddp.module().zero_grad();
      cross_entropy(ddp(samples(group->rank(), 0, counts[rank], {8, 8, 3}, DeviceKind::cpu)),
                    labels(0, 0, counts[rank], DeviceKind::cpu))
          .backward();
      return gradients_of(ddp.module());
    };
    {
      const auto quiet = ddp.no_sync();
      gradients[rank] = pass();
    }
    const auto reduced = pass();
    if (rank == 0) mean = reduced;
  });
  double worst = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    double exact = 0, absolute = 0;
    for (size_t rank = 0; rank < gradients.size(); ++rank) {
      const double part = gradients[rank][i] * static_cast<double>(counts[rank]) / static_cast<double>(all);
      exact += part;
      absolute += std::abs(part);
    }
    const double bound = 0x1p-8 * (absolute + std::abs(exact)) * (1 + 0x1p-7) + 1e-30;
    worst = std::max(worst, std::abs(mean[i] - exact) / bound);
  }
  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.05) << "nothing was rounded: not compressed";
}

INSTANTIATE_TEST_SUITE_P(All, Ddp, ::testing::Combine(::testing::ValuesIn(backends()), ::testing::Values(1, 2, 3, 4)),
                         [](const auto& chosen) {
                           return std::get<0>(chosen.param) + "_" + std::to_string(std::get<1>(chosen.param));
                         });

// The ranks share one GPU.
TEST(DdpOnGpu, RanksEqualOneOnEveryBackend) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  for (const std::string& backend : backends())
    for (int ranks = 1; ranks <= 4; ++ranks) {
      SCOPED_TRACE(backend + ", " + std::to_string(ranks) + " ranks");
      Training t{
          .make = small_net, .parts = even_parts(kSteps, ranks, 2), .device = DeviceKind::cuda, .ddp = small_buckets()};
      t.parts.back().front() = 3;  // an uneven last batch
      expect_equal(train_ranks(t, backend), train_alone(t), t);
    }
}

TEST(DdpBackends, AgreeBitForBit) {
  Training t{.make = small_net, .parts = even_parts(kSteps, 2, 3), .ddp = small_buckets()};
  t.parts.back() = {4, 1};
  const Trained threads = train_ranks(t, "threads");
  for (const std::string& backend : backends()) {
    const Trained other = train_ranks(t, backend);
    EXPECT_EQ(other.weights, threads.weights) << backend;
    EXPECT_EQ(other.losses, threads.losses) << backend;
  }
}

}  // namespace
}  // namespace weft::dist::testing
