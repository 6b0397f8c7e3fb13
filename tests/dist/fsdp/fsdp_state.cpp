// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/fsdp_state.h"

#include <gmock/gmock.h>

#include "core/autograd.h"
#include "core/random.h"
#include "nn/models/cifar_resnet.h"
#include "optim/optimizers.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;
using tests::error_text;

void expect_same(const StateDict& got, const StateDict& want) {
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    EXPECT_EQ(got.tensors[i].name, want.tensors[i].name);
    EXPECT_EQ(got.tensors[i].tensor.sizes(), want.tensors[i].tensor.sizes()) << want.tensors[i].name;
    EXPECT_EQ(got.tensors[i].tensor.dtype(), want.tensors[i].tensor.dtype()) << want.tensors[i].name;
    EXPECT_EQ(got.tensors[i].tensor.to_vector<double>(), want.tensors[i].tensor.to_vector<double>())
        << want.tensors[i].name;
  }
  ASSERT_EQ(got.scalars.size(), want.scalars.size());
  for (size_t i = 0; i < got.scalars.size(); ++i) {
    EXPECT_EQ(got.scalars[i].name, want.scalars[i].name);
    EXPECT_EQ(got.scalars[i].value, want.scalars[i].value);
  }
}

std::shared_ptr<nn::Module> net(uint64_t seed) {
  manual_seed(seed);
  return nn::resnet8({.classes = 3});
}

std::vector<std::shared_ptr<nn::Module>> nets(int ranks, uint64_t seed) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(net(seed));
  return models;
}

class FsdpState : public ::testing::TestWithParam<std::tuple<Sharding, int>> {
 protected:
  const int ranks_ = std::get<1>(GetParam());
  FsdpOptions options() const {
    const Sharding strategy = std::get<0>(GetParam());
    return {.strategy = strategy,
            .policy = {.kinds = {"CifarBlock"}},
            .shard_size = strategy == Sharding::hybrid_shard ? (ranks_ % 2 == 0 ? 2 : 1) : 0};
  }
};

TEST_P(FsdpState, FullStateIsThatOfTheUnshardedModel) {
  const StateDict want = net(5)->state_dict();
  const auto models = nets(ranks_, 5);
  run_ranks(ranks_, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group, options());
    const StateDict first = full_state_dict(fsdp), all = full_state_dict(fsdp, Receivers::all);
    expect_same(all, want);
    if (group->rank() == 0) expect_same(first, want);
    if (group->rank() > 0) {
      EXPECT_TRUE(first.tensors.empty());
    }
  });
}

TEST_P(FsdpState, RankZeroDecidesHowAModelBegins) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < ranks_; ++rank) models.push_back(net(20 + static_cast<uint64_t>(rank)));
  dynamic_cast<nn::CifarResNet&>(*models[0]).bn1.num_batches_tracked = 7;
  const StateDict want = [] {
    const auto model = net(20);
    dynamic_cast<nn::CifarResNet&>(*model).bn1.num_batches_tracked = 7;
    return model->state_dict();
  }();
  run_ranks(ranks_, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group, options());
    expect_same(full_state_dict(fsdp, Receivers::all), want);
  });
}

TEST_P(FsdpState, LoadsWhatOneProcessHasSaved) {
  const auto source = net(6);
  dynamic_cast<nn::CifarResNet&>(*source).bn1.num_batches_tracked = 9;
  const StateDict want = source->state_dict();
  StateDict wrapped = want;
  for (NamedTensor& entry : wrapped.tensors) entry.name = "module." + entry.name;
  const auto models = nets(ranks_, 5);
  run_ranks(ranks_, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group, options());
    fsdp(Tensor::ones({2, 8, 8, 3}));  // something is gathered in places
    load_full_state_dict(fsdp, wrapped);
    expect_same(full_state_dict(fsdp, Receivers::all), want);
    // A state that does not fit changes nothing.
    StateDict bad = want;
    bad.tensors[0].name = "conv7.weight";
    bad.tensors[1].tensor = Tensor::ones({5});
    EXPECT_EQ(error_text([&] { load_full_state_dict(fsdp, bad); }),
              "load_state_dict: the weights do not fit CifarResNet; wrong shape: bn1.weight (expected [16], got [5]); "
              "missing: conv1.weight; unexpected: conv7.weight");
    expect_same(full_state_dict(fsdp, Receivers::all), want);
  });
}

/// Some steps; returns the optimizer's state in full form and the weights.
std::pair<StateDict, StateDict> trained(int ranks, const FsdpOptions& options, int steps, const StateDict* model_state,
                                        const StateDict* optimizer_state) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < ranks; ++rank) {
    manual_seed(3);
    models.push_back(std::make_shared<Tower>(6, 10, 2, 4));
    models.back()->to(DType::f64);
  }
  ShardedTraining t{.make = {}, .parts = equal_parts(steps, ranks, 12 / ranks)};
  std::pair<StateDict, StateDict> result;
  run_ranks(ranks, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group, options);
    optim::AdamW adam(fsdp.parameters(), {.lr = 0.01});
    if (model_state) load_full_state_dict(fsdp, *model_state);
    if (optimizer_state) adam.load_state_dict(shard_optimizer_state(fsdp, *optimizer_state));
    for (int step = 0; step < steps; ++step) {
      const auto [x, target] = data_of(t, static_cast<size_t>(step));
      const int64_t each = 12 / ranks, begin = group->rank() * each;
      adam.zero_grad();
      loss_of(fsdp(x.slice(0, begin, each)), target.slice(0, begin, each)).backward();
      adam.step();
    }
    const StateDict state = full_optimizer_state(fsdp, adam.state_dict()), weights = full_state_dict(fsdp);
    if (group->rank() == 0) result = {state, weights};
  });
  return result;
}

std::vector<double> values(const StateDict& dict) {
  std::vector<double> all;
  for (const NamedTensor& entry : dict.tensors)
    for (const double value : entry.tensor.to_vector<double>()) all.push_back(value);
  return all;
}

TEST_P(FsdpState, OptimizerStateInFullFormIsThatOfOneProcess) {
  FsdpOptions own = options();
  own.policy = {.kinds = {"Block"}};
  // One process, without FSDP.
  manual_seed(3);
  const auto model = std::make_shared<Tower>(6, 10, 2, 4);
  model->to(DType::f64);
  optim::AdamW adam(model->parameters(), {.lr = 0.01});
  const ShardedTraining t{.make = {}, .parts = equal_parts(4, 1, 12)};
  for (int step = 0; step < 4; ++step) {
    const auto [x, target] = data_of(t, static_cast<size_t>(step));
    adam.zero_grad();
    loss_of((*model)(x), target).backward();
    adam.step();
  }
  const StateDict want = adam.state_dict(), weights = model->state_dict();
  const auto [state, got_weights] = trained(ranks_, own, 4, nullptr, nullptr);
  ASSERT_EQ(state.tensors.size(), want.tensors.size());
  for (size_t i = 0; i < state.tensors.size(); ++i) {
    EXPECT_EQ(state.tensors[i].name, want.tensors[i].name);
    EXPECT_EQ(state.tensors[i].tensor.sizes(), want.tensors[i].tensor.sizes());
  }
  EXPECT_EQ(state.scalar("step"), 4);
  EXPECT_EQ(state.scalar("group0.lr"), 0.01);
  EXPECT_TRUE(tests::near(values(state), values(want), {1e-10, 1e-9}));
  EXPECT_TRUE(tests::near(values(got_weights), values(weights), {1e-10, 1e-9}));
  // And back: loaded into shards, nothing is lost.
  const auto [again, same_weights] = trained(ranks_, own, 0, &weights, &want);
  expect_same(again, want);
  expect_same(same_weights, weights);
}

INSTANTIATE_TEST_SUITE_P(Strategies, FsdpState,
                         ::testing::Combine(::testing::Values(Sharding::full_shard, Sharding::hybrid_shard,
                                                              Sharding::no_shard),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& tested) {
                           return std::string(name(std::get<0>(tested.param))) + '_' +
                                  std::to_string(std::get<1>(tested.param));
                         });

TEST(FsdpStateErrors, StatesOfOthers) {
  FSDP fsdp(std::make_shared<nn::Linear>(3, 2), make_process_group_alone());
  StateDict dict;
  dict.tensors.push_back({"weight", Tensor::ones({2, 3})});
  EXPECT_EQ(error_text([&] { full_optimizer_state(fsdp, dict); }),
            "fsdp: optimizer state: expected names like fc.weight.exp_avg, got 'weight'");
  dict.tensors[0].name = "heavy.exp_avg";
  EXPECT_EQ(error_text([&] { shard_optimizer_state(fsdp, dict); }),
            "fsdp: optimizer state: 'heavy.exp_avg' belongs to no trained parameter");
  dict.tensors[0] = {"weight.exp_avg", Tensor::ones({3, 2})};
  EXPECT_EQ(error_text([&] { shard_optimizer_state(fsdp, dict); }),
            "fsdp: optimizer state: expected 'weight.exp_avg' [2,3], got f32[3,2] on cpu");
  EXPECT_THAT(error_text([&] { full_optimizer_state(fsdp, dict); }),
              HasSubstr("is not of an optimizer over fsdp.parameters()"));
}

}  // namespace
}  // namespace weft::dist::testing
