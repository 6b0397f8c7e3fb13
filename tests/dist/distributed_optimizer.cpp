// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/distributed_optimizer.h"

#include <gmock/gmock.h>

#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kUpdates = 20;
constexpr int64_t kEach = 4;  // samples of a rank in a step
const Shape kImage{8, 8, 3};

DistributedOptimizerOptions buckets_of(int passes = 1) {
  return {.backward_passes_per_step = passes, .bucket_mb = 0.002, .first_bucket_mb = 0.0005};
}

/// Each of the steps adds its roundings to those before, see tests/dist/ddp.cpp.
tests::Tolerance allowed(int ranks) {
  return tests::tolerance(DType::f32, kUpdates * ranks * kEach * kImage[0] * kImage[1]);
}

std::vector<double> train_alone(int ranks, DeviceKind device) {
  const auto model = build(small_net, 100, device);
  optim::SGD sgd(model->parameters(), {.lr = 0.05, .momentum = 0.9, .nesterov = true});
  for (int step = 0; step < kUpdates; ++step) {
    sgd.zero_grad();
    cross_entropy((*model)(samples(step, 0, ranks * kEach, kImage, device)), labels(step, 0, ranks * kEach, device))
        .backward();
    sgd.step();
  }
  return weights_of(*model);
}

/// Every rank takes its share of each step in `passes` equal parts; their losses add up to the mean.
std::vector<double> train_ranks(const std::string& backend, int ranks, DeviceKind device, int passes,
                                DistributedOptimizerOptions options) {
  std::vector<double> weights;
  run_on(backend, ranks, [&](const ProcessGroupPtr& group) {
    const auto model = build(small_net, 100 + static_cast<uint64_t>(group->rank()), device);  // rank 0's counts
    optim::SGD sgd(model->parameters(), {.lr = 0.05, .momentum = 0.9, .nesterov = true});
    DistributedOptimizer optimizer(sgd, group, options);
    EXPECT_GT(optimizer.buckets().size(), 2u);
    broadcast_parameters(*group, *model);
    broadcast_optimizer_state(*group, sgd);
    const int64_t part = kEach / passes;
    for (int step = 0; step < kUpdates; ++step) {
      optimizer.zero_grad();
      for (int pass = 0; pass < passes; ++pass) {
        const int64_t first = group->rank() * kEach + pass * part;
        (cross_entropy((*model)(samples(step, first, part, kImage, device)), labels(step, first, part, device)) *
         (1.0 / passes))
            .backward();
      }
      optimizer.step();
    }
    const auto own = weights_of(*model);
    const Tensor first = Tensor::from(own);
    group->broadcast(first, 0, {.name = "weights", .scale = {}})->wait();
    EXPECT_EQ(own, first.to_vector<double>()) << "rank " << group->rank();
    if (group->rank() == 0 || backend == "mpi") weights = own;
  });
  return weights;
}

class DistributedOptimizerOn : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(DistributedOptimizerOn, RanksEqualOneOnTheSameGlobalBatch) {
  const auto& [backend, ranks] = GetParam();
  const auto got = train_ranks(backend, ranks, DeviceKind::cpu, 1, buckets_of());
  if (got.empty() && backend == "mpi") return;  // no rank of this run
  EXPECT_TRUE(tests::near(got, train_alone(ranks, DeviceKind::cpu), allowed(ranks)));
}

TEST_P(DistributedOptimizerOn, PassesAddUp) {
  const auto& [backend, ranks] = GetParam();
  const auto got = train_ranks(backend, ranks, DeviceKind::cpu, 2, buckets_of(2));
  if (got.empty() && backend == "mpi") return;
  EXPECT_TRUE(tests::near(got, train_alone(ranks, DeviceKind::cpu), allowed(ranks)));
}

TEST_P(DistributedOptimizerOn, AStepBehindFewerPassesReducesWhatTheyLeft) {
  const auto& [backend, ranks] = GetParam();
  const auto got = train_ranks(backend, ranks, DeviceKind::cpu, 2, buckets_of(4));
  if (got.empty() && backend == "mpi") return;
  EXPECT_TRUE(tests::near(got, train_alone(ranks, DeviceKind::cpu), allowed(ranks)));
}

INSTANTIATE_TEST_SUITE_P(All, DistributedOptimizerOn,
                         ::testing::Combine(::testing::ValuesIn(backends()), ::testing::Values(1, 2, 3)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::to_string(std::get<1>(param.param));
                         });

TEST(DistributedOptimizer, OnEveryDevice) {
  for (const DeviceKind device : tests::test_devices())
    EXPECT_TRUE(tests::near(train_ranks("threads", 2, device, 1, buckets_of()), train_alone(2, device), allowed(2)))
        << name(device);
}

/// A linear layer whose gradient is its rank's number plus one in every element.
struct Counting {
  std::shared_ptr<nn::Module> model;
  optim::SGD sgd;
  DistributedOptimizer optimizer;

  explicit Counting(const ProcessGroupPtr& group, DistributedOptimizerOptions options = {})
      : model(build([] { return std::make_shared<nn::Linear>(6, 4, nn::LinearOptions{.bias = false}); }, 1,
                    DeviceKind::cpu)),
        sgd(model->parameters(), {.lr = 1}),
        optimizer(sgd, group, options),
        number_(group->rank() + 1) {}

  void backward() { (sum((*model)(Tensor::ones({1, 6}))) * static_cast<double>(number_)).backward(); }
  double gradient() { return gradients_of(*model).front(); }

 private:
  int number_;
};

TEST(DistributedOptimizer, EveryRankCountsTheSame) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    Counting mean(group), all(group, {.op = ReduceOp::sum}), low(group, {.compress_bf16 = true});
    for (Counting* one : {&mean, &all, &low}) {
      one->optimizer.zero_grad();
      one->backward();
      one->optimizer.synchronize();
    }
    EXPECT_NEAR(mean.gradient(), 2, 1e-6);
    EXPECT_EQ(all.gradient(), 6);
    EXPECT_NEAR(low.gradient(), 2, 0.05);
  });
}

TEST(DistributedOptimizer, SynchronizeLeavesTimeToClip) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    for (const bool low : {false, true}) {
      Counting one(group, {.compress_bf16 = low});
      const double before = weights_of(*one.model).front();
      one.optimizer.zero_grad();
      one.backward();
      one.optimizer.synchronize();
      EXPECT_EQ(one.gradient(), 1.5);
      one.model->parameters()[0].tensor.grad().mul_(2);
      one.optimizer.step();  // must not reduce again
      EXPECT_NEAR(weights_of(*one.model).front(), before - 3, 1e-5);
    }
  });
}

TEST(DistributedOptimizer, OnlyTheLastPassTravels) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    Counting all(group, {.backward_passes_per_step = 3, .op = ReduceOp::sum});
    all.optimizer.zero_grad();
    for (int pass = 0; pass < 3; ++pass) all.backward();
    all.optimizer.synchronize();
    EXPECT_EQ(all.gradient(), 3 * (1 + 2 + 3));
  });
}

TEST(DistributedOptimizer, BucketsTravelWhileBackwardRuns) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto model = build(small_net, 1, DeviceKind::cpu);
    optim::SGD sgd(model->parameters(), {.lr = 0.01});
    DistributedOptimizer optimizer(sgd, group, buckets_of());
    std::string log;
    // The gradient that comes last.
    model->parameters()[0].tensor.register_accumulated_hook([&](const Tensor&) { log = group->flight_log(); });
    const auto count = [&] {
      size_t begun = 0;
      for (size_t at = log.find("'gradients "); at != log.npos; at = log.find("'gradients ", at + 1)) ++begun;
      return begun;
    };
    const auto step = [&] {
      optimizer.zero_grad();
      sum((*model)(samples(0, 0, 2, kImage, DeviceKind::cpu))).backward();
      optimizer.step();
    };
    step();
    EXPECT_EQ(count(), 0u);  // the first backward only learns what comes
    step();
    EXPECT_GE(count(), optimizer.buckets().size() + 2);
  });
}

TEST(DistributedOptimizer, ParametersAndStateComeFromTheRoot) {
  run_ranks(3, [](const ProcessGroupPtr& group) {
    const auto rank = static_cast<uint64_t>(group->rank());
    const auto model = build(normed_net, rank, DeviceKind::cpu);
    optim::AdamW adam(model->parameters(), {.lr = 0.1 * static_cast<double>(rank + 1)});
    for (uint64_t step = 0; step <= rank; ++step) {  // each has its own past
      adam.zero_grad();
      sum((*model)(samples(static_cast<int>(rank), 0, 2, kImage, DeviceKind::cpu))).backward();
      adam.step();
    }
    const auto weights = [&] {
      std::string text;
      for (const double value : weights_of(*model)) text += str(value, ' ');
      return text;
    };
    const std::string of_root = group->all_gather_text(weights())[1];
    broadcast_parameters(*group, *model, 1);
    EXPECT_EQ(weights(), of_root);
    broadcast_optimizer_state(*group, adam, 1);
    EXPECT_EQ(adam.steps(), 2);
    EXPECT_DOUBLE_EQ(adam.lr(), 0.2);
    std::string everything;
    for (const double value : weights_of(*model)) everything += str(value, ' ');
    for (const double value : buffers_of(*model)) everything += str(value, ' ');
    for (const NamedTensor& entry : adam.state_dict().tensors)
      for (const double value : entry.tensor.to_vector<double>()) everything += str(value, ' ');
    const auto all = group->all_gather_text(everything);
    EXPECT_EQ(all[0], all[1]);
    EXPECT_EQ(all[2], all[1]);
  });
}

TEST(DistributedOptimizer, SaysWhatIsWrong) {
  const auto group = make_process_group_alone();
  Counting one(group);
  one.optimizer.zero_grad();
  one.backward();
  EXPECT_THAT(error_text([&] { one.backward(); }),
              HasSubstr("distributed optimizer: backward pass 2 since the last step(), expected 1. Set "
                        "backward_passes_per_step to what is accumulated"));
  EXPECT_THAT(error_text([&] { one.optimizer.zero_grad(); }),
              HasSubstr("distributed optimizer: zero_grad() between backward() and step() would lose gradients that "
                        "are being reduced. Call it ahead of backward()"));
  one.optimizer.step();
  one.optimizer.zero_grad();
  one.backward();  // goes on
  EXPECT_THAT(error_text([&] { Counting(group, {.op = ReduceOp::max}); }),
              HasSubstr("distributed optimizer: expected the op avg or sum, got max"));
  EXPECT_THAT(error_text([&] { Counting(group, {.backward_passes_per_step = 0}); }),
              HasSubstr("distributed optimizer: expected at least one backward pass per step, got 0"));
  EXPECT_THAT(error_text([&] { Counting(group, {.bucket_mb = 0}); }),
              HasSubstr("distributed optimizer: expected bucket_mb above 0 and below 1e6, got 0"));
  EXPECT_THAT(error_text([&] { DistributedOptimizer(one.sgd, nullptr); }),
              HasSubstr("distributed optimizer: expected a group, got none"));
}

TEST(DistributedOptimizer, GoneItLeavesTheParametersAlone) {
  const auto model = build(small_net, 1, DeviceKind::cpu);
  optim::SGD sgd(model->parameters(), {.lr = 0.01});
  { DistributedOptimizer gone(sgd, make_process_group_alone()); }
  for (int i = 0; i < 2; ++i) sum((*model)(samples(0, 0, 2, kImage, DeviceKind::cpu))).backward();
}

}  // namespace
}  // namespace weft::dist::testing
