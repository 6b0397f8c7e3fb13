// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/fsdp.h"

#include <gtest/gtest.h>

#include "dist/ddp/sync_batch_norm.h"
#include "nn/activation.h"
#include "nn/models/cifar_resnet.h"
#include "nn/sequential.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/dist/ranks.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

constexpr int kSteps = 20;

std::shared_ptr<nn::Module> tower() { return std::make_shared<Tower>(6, 10, 3, 4); }

std::shared_ptr<nn::Module> mlp() {
  return nn::sequential(std::make_shared<nn::Linear>(6, 33), std::make_shared<nn::ReLU>(),
                        std::make_shared<nn::Linear>(33, 20), std::make_shared<nn::ReLU>(),
                        std::make_shared<nn::Linear>(20, 4));
}

/// n ranks against one, on the same global batches.
class Fsdp : public ::testing::TestWithParam<std::tuple<Sharding, int>> {
 protected:
  const Sharding strategy_ = std::get<0>(GetParam());
  const int ranks_ = std::get<1>(GetParam());

  FsdpOptions options(WrapPolicy policy = {.kinds = {"Block"}}) const {
    return {.strategy = strategy_,
            .policy = std::move(policy),
            .shard_size = strategy_ == Sharding::hybrid_shard ? (ranks_ % 2 == 0 ? 2 : 1) : 0};
  }
};

TEST_P(Fsdp, RanksEqualOneOnTheSameGlobalBatch) {
  const ShardedTraining t{.make = tower, .parts = equal_parts(kSteps, ranks_, 3), .options = options()};
  expect_equal(train_sharded(t, ranks_), train_whole(t), t);
}

TEST_P(Fsdp, InSinglePrecision) {
  const ShardedTraining t{.make = mlp,
                          .parts = equal_parts(kSteps, ranks_, 3),
                          .options = options({.min_num_params = 300}),
                          .dtype = DType::f32};
  expect_equal(train_sharded(t, ranks_), train_whole(t), t);
}

TEST_P(Fsdp, UnequalPartsAreExact) {
  const ShardedTraining t{.make = tower, .parts = unequal_parts(kSteps, ranks_), .options = options()};
  expect_equal(train_sharded(t, ranks_), train_whole(t), t);
}

TEST_P(Fsdp, GradientsAccumulateInTheShards) {
  const ShardedTraining t{.make = tower, .parts = unequal_parts(12, ranks_), .options = options(), .micro_batches = 3};
  expect_equal(train_sharded(t, ranks_), train_whole(t), t);
}

TEST_P(Fsdp, GradientsAccumulateUnsharded) {
  const ShardedTraining t{
      .make = tower, .parts = unequal_parts(12, ranks_), .options = options(), .micro_batches = 3, .unsharded = true};
  expect_equal(train_sharded(t, ranks_), train_whole(t), t);
}

TEST_P(Fsdp, GradientsAreClippedByTheirCommonNorm) {
  const ShardedTraining t{.make = tower, .parts = unequal_parts(kSteps, ranks_), .options = options(), .clip = 0.05};
  const ShardedResult want = train_whole(t);
  EXPECT_GT(want.norms[0], 0.05);
  expect_equal(train_sharded(t, ranks_), want, t);
}

TEST_P(Fsdp, WeightDecayIsByTheParametersRank) {
  const ShardedTraining t{.make = tower, .parts = equal_parts(kSteps, ranks_, 2), .options = options(), .adam = true};
  const ShardedResult got = train_sharded(t, ranks_), want = train_whole(t);
  // Adam divides by the gradient's size: where that is near eps, roundings are as large as the step.
  const tests::Tolerance allowed{1e-9, 1e-8};
  EXPECT_TRUE(tests::near(got.losses, want.losses, allowed));
  EXPECT_TRUE(tests::near(got.weights, want.weights, allowed));
}

TEST_P(Fsdp, RatesByDepthAndAveragesOverTheSteps) {
  for (const bool replicas : {false, true}) {
    ShardedTraining t{.make = tower, .parts = equal_parts(kSteps, ranks_, 2), .options = options()};
    t.replicas = replicas;
    t.layer_decay = t.averaged = true;
    const ShardedResult got = train_sharded(t, ranks_), want = train_whole(t);
    const tests::Tolerance allowed{1e-9, 1e-8};  // as above
    EXPECT_TRUE(tests::near(got.losses, want.losses, allowed)) << replicas;
    EXPECT_TRUE(tests::near(got.weights, want.weights, allowed)) << replicas;
  }
}

TEST_P(Fsdp, LarsAndLambSeeWholeParameters) {
  for (const bool replicas : {false, true})
    for (const char* rule : {"lars", "lamb"}) {
      ShardedTraining t{.make = tower, .parts = equal_parts(kSteps, ranks_, 2), .options = options()};
      t.replicas = replicas;
      t.by_norms = rule;
      const ShardedResult got = train_sharded(t, ranks_), want = train_whole(t);
      const tests::Tolerance allowed{1e-9, 1e-8};  // as above
      EXPECT_TRUE(tests::near(got.losses, want.losses, allowed)) << rule << replicas;
      EXPECT_TRUE(tests::near(got.weights, want.weights, allowed)) << rule << replicas;
    }
}

TEST_P(Fsdp, AConvolutionalNetwork) {
  const ShardedTraining t{.make = [] { return nn::resnet8({.classes = 4}); },
                          .parts = equal_parts(4, ranks_, 2),
                          .sample = {8, 8, 3},
                          .options = options({.kinds = {"CifarBlock"}}),
                          .evaluation = true};  // statistics of batch norm differ between parts and whole
  expect_equal(train_sharded(t, ranks_), train_whole(t), t);
}

TEST_P(Fsdp, BatchNormOverAllRanks) {
  ShardedTraining t{.make = [] { return nn::resnet8({.classes = 4}); },
                    .parts = unequal_parts(3, ranks_),
                    .sample = {8, 8, 3},
                    .options = options({.kinds = {"CifarBlock"}})};
  t.prepare = [](nn::Module& model, const ProcessGroupPtr& group) {
    EXPECT_EQ(convert_sync_batch_norm(model, group->split(0, group->rank(), "batch_norm")), 7);
  };
  // A norm divides by the deviation of few values: its condition is above that of sums.
  const ShardedResult got = train_sharded(t, ranks_), want = train_whole(t);
  EXPECT_TRUE(tests::near(got.losses, want.losses, {1e-11, 1e-10}));
  EXPECT_TRUE(tests::near(got.weights, want.weights, {1e-11, 1e-10}));
}

TEST_P(Fsdp, OnConnectedBackends) {
  for (const std::string& backend : connected_backends()) {
    ShardedTraining t{.make = tower, .parts = unequal_parts(6, ranks_), .options = options()};
    const ShardedResult threads = train_sharded(t, ranks_);
    t.backend = backend;
    const ShardedResult got = train_sharded(t, ranks_);
    expect_equal(got, train_whole(t), t);
    EXPECT_TRUE(tests::near(got.weights, threads.weights, {allowed_error(t), 4 * allowed_error(t)}));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Fsdp,
                         ::testing::Combine(::testing::Values(Sharding::full_shard, Sharding::shard_grad_op,
                                                              Sharding::hybrid_shard, Sharding::no_shard),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& tested) {
                           return std::string(name(std::get<0>(tested.param))) + '_' +
                                  std::to_string(std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace weft::dist::testing
