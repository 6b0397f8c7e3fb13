// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/linear.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "dist/fsdp/fsdp_state.h"
#include "nn/sequential.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Modules that are used in other ways than once each, one behind the other.

constexpr int kFewSteps = 6;

class FsdpUses : public ::testing::TestWithParam<Sharding> {
 protected:
  FsdpOptions options(WrapPolicy policy = {.kinds = {"Block"}}) const {
    return {.strategy = GetParam(),
            .policy = std::move(policy),
            .shard_size = GetParam() == Sharding::hybrid_shard ? 2 : 0};
  }
  void check(const ShardedTraining& t) const {
    for (const int ranks : {2, 4}) {
      ShardedTraining cut = t;
      cut.parts = unequal_parts(kFewSteps, ranks);
      expect_equal(train_sharded(cut, ranks), train_whole(cut), cut);
    }
  }
  static ShardedTraining training(std::function<std::shared_ptr<nn::Module>()> make, FsdpOptions chosen) {
    return {.make = std::move(make), .parts = {}, .options = std::move(chosen)};
  }
};

TEST_P(FsdpUses, UnitsInsideACheckpoint) {
  check(training(
      [] {
        const auto model = std::make_shared<Tower>(6, 10, 3, 4);
        model->checkpoint_blocks = true;
        return model;
      },
      options()));
}

TEST_P(FsdpUses, ACheckpointInsideUnits) {
  check(training(
      [] {
        const auto model = std::make_shared<Tower>(6, 10, 3, 4);
        for (const auto& block : model->blocks) block->checkpointed = true;
        return model;
      },
      options()));
}

TEST_P(FsdpUses, CheckpointsInsideUnitsInsideACheckpoint) {
  check(training(
      [] {
        const auto model = std::make_shared<Tower>(6, 10, 2, 4);
        for (const auto& block : model->blocks) block->checkpointed = true;
        model->checkpoint_blocks = true;
        return model;
      },
      options()));
}

TEST_P(FsdpUses, AUnitGoneThroughTwice) {
  for (const bool checkpointed : {false, true})
    check(training(
        [checkpointed] {
          const auto model = std::make_shared<Tower>(6, 10, 2, 4);
          model->twice = true;
          model->checkpoint_blocks = checkpointed;
          return model;
        },
        options()));
}

/// One weight used directly, and again inside a checkpoint: the inner pass brings its gradient first, while the outer
/// one still needs the weight.
struct Entangled : nn::Module {
  nn::Linear w{6, 6, {.bias = false}}, out{6, 4};
  Tensor forward(const Tensor& x) const override {
    const auto again = [this](const std::vector<Tensor>& in) { return tanh(w(in[0])); };
    return out(checkpoint(again, {w(tanh(w(x)))}));
  }
  void fields(nn::Visitor& v) override {
    v("w", w);
    v("out", out);
  }
};

TEST_P(FsdpUses, AWeightUsedInsideAndOutsideOfACheckpoint) {
  check(training([] { return std::make_shared<Entangled>(); }, options({})));
  check(training([] { return std::make_shared<Entangled>(); }, options({.kinds = {"Linear"}})));
}

/// Between two layers, so that its input wants a gradient.
template <class Inner>
struct Between : nn::Module {
  nn::Linear in{6, 6};
  Inner inner;
  nn::Linear out{6, 4};
  Tensor forward(const Tensor& x) const override { return out(inner(tanh(in(x)))); }
  void fields(nn::Visitor& v) override {
    v("in", in);
    v("inner", inner);
    v("out", out);
  }
};

/// Its only weight three times, with ops of its own: no hook of a module lies between the uses.
struct Knot : nn::Module {
  Tensor w = nn::Linear(6, 6).weight;
  Tensor forward(const Tensor& x) const override {
    const auto again = [this](const std::vector<Tensor>& in) { return tanh(linear(in[0], w)); };
    return checkpoint(again, {linear(tanh(linear(x, w)), w)});
  }
  void fields(nn::Visitor& v) override { v("w", w); }
};

TEST_P(FsdpUses, AWeightThatTheOuterPassStillNeeds) {
  check(training([] { return std::make_shared<Between<Knot>>(); }, options({.kinds = {"Knot"}})));
}

/// All its weights in two checkpoints: the first inner pass brings all gradients, the second one needs the weights
/// again.
struct Repeat : nn::Module {
  nn::Linear w{6, 6};
  Tensor forward(const Tensor& x) const override {
    const auto part = [this](const std::vector<Tensor>& in) { return tanh(w(in[0])); };
    return checkpoint(part, {checkpoint(part, {x})});
  }
  void fields(nn::Visitor& v) override { v("w", w); }
};

TEST_P(FsdpUses, AWeightThatALaterInnerPassNeeds) {
  check(training([] { return std::make_shared<Between<Repeat>>(); }, options({.kinds = {"Repeat"}})));
}

/// The trained weight has its gradient before the frozen one has passed the gradient on.
struct FrozenFirst : nn::Module {
  Tensor frozen = nn::Linear(6, 6).weight, trained = nn::Linear(6, 6).weight;
  FrozenFirst() { frozen.requires_grad_(false); }
  Tensor forward(const Tensor& x) const override { return linear(tanh(linear(x, frozen)), trained); }
  void fields(nn::Visitor& v) override {
    v("frozen", frozen);
    v("trained", trained);
  }
};

TEST_P(FsdpUses, AFrozenWeightThatPassesTheGradientOn) {
  check(training([] { return std::make_shared<Between<FrozenFirst>>(); }, options({.kinds = {"FrozenFirst"}})));
}

TEST_P(FsdpUses, NestedUnits) {
  check(training([] { return std::make_shared<Tower>(6, 10, 2, 4); }, options({.kinds = {"Block", "Linear"}})));
}

/// The head is the stem's weight transposed back by a second layer that shares it.
struct Tied : nn::Module {
  nn::Linear first{6, 6}, second{6, 6}, out{6, 4};
  Tied() { second.weight = first.weight; }
  Tensor forward(const Tensor& x) const override { return out(second(tanh(first(x)))); }
  void fields(nn::Visitor& v) override {
    v("first", first);
    v("second", second);
    v("out", out);
  }
};

TEST_P(FsdpUses, AParameterSharedByModulesOfSeveralUnits) {
  const auto tied = [] { return std::make_shared<Tied>(); };
  // One process would list the shared weight twice, which its optimizer refuses: compare forward and gradients' effect
  // through the state after each rank count instead.
  const ShardedTraining t{.make = tied,
                          .parts = equal_parts(kFewSteps, 1, 4),
                          .options = options({.kinds = {"Linear"}}),
                          .dtype = DType::f64};
  ShardedTraining two = t;
  two.parts = equal_parts(kFewSteps, 2, 2);
  ShardedTraining alone = t;
  alone.options.strategy = Sharding::no_shard;
  alone.options.shard_size = 0;
  if (GetParam() == Sharding::hybrid_shard) two.options.shard_size = 2;
  const ShardedResult got = train_sharded(two, 2), want = train_sharded(alone, 1);
  expect_equal(got, want, two);
}

/// Every second parameter is frozen: weights of fc1, everything of norms.
std::shared_ptr<nn::Module> half_frozen() {
  const auto model = std::make_shared<Tower>(6, 10, 3, 4);
  for (const auto& block : model->blocks) {
    block->fc1.weight.requires_grad_(false);
    block->norm.weight.requires_grad_(false);
    block->norm.bias.requires_grad_(false);
  }
  model->stem.weight.requires_grad_(false);
  return model;
}

TEST_P(FsdpUses, FrozenAndTrainedParametersInOneUnit) {
  check(training(half_frozen, options()));
  check(training(half_frozen, options({})));
}

/// Frozen from the bottom up: the first block has no gradient at all, the second is frozen between trained ones.
std::shared_ptr<nn::Module> frozen_blocks() {
  const auto model = std::make_shared<Tower>(6, 10, 3, 4);
  for (const auto& parameter : model->stem.Module::parameters()) parameter.tensor.requires_grad_(false);
  for (const size_t i : {0u, 2u})
    for (const auto& parameter : model->blocks[i]->Module::parameters()) parameter.tensor.requires_grad_(false);
  return model;
}

TEST_P(FsdpUses, WholeUnitsFrozen) { check(training(frozen_blocks, options())); }

TEST_P(FsdpUses, FrozenParametersHaveNoGradientAndNoOptimizerState) {
  std::vector<std::shared_ptr<nn::Module>> models{half_frozen(), half_frozen()};
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const FSDP fsdp(models[static_cast<size_t>(group->rank())], group, options());
    size_t wanted = 0;
    for (const auto& [name, shard] : fsdp.parameters()) {
      if (!shard.requires_grad()) continue;
      ++wanted;
      EXPECT_THAT(name, Not(AnyOf(HasSubstr("fc1.weight"), HasSubstr(".norm.weight"), HasSubstr("stem.weight"))));
    }
    EXPECT_EQ(wanted, 14u);
    int64_t trained = 0;
    for (const auto& unit : fsdp.units())
      for (const auto& gradient : unit->gradients()) trained += gradient->shard().shard_numel();
    EXPECT_EQ(fsdp.flat()->numel(), trained);
  });
}

/// A layer that this forward does not use.
struct Idle : nn::Module {
  nn::Linear used{6, 4}, idle{6, 4};
  Tensor forward(const Tensor& x) const override { return used(x); }
  void fields(nn::Visitor& v) override {
    v("used", used);
    v("idle", idle);
  }
};

TEST_P(FsdpUses, UnusedParametersHaveGradientZero) {
  check(training([] { return std::make_shared<Idle>(); }, options({})));
  check(training([] { return std::make_shared<Idle>(); }, options({.kinds = {"Linear"}})));
}

TEST_P(FsdpUses, OtherPassesThanForwardAndBackward) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < 2; ++rank) models.push_back(std::make_shared<Tower>(6, 10, 2, 4));
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& model = models[static_cast<size_t>(group->rank())];
    {
      FSDP fsdp(model, group, options());
      const Tensor x = Tensor::ones({3, 6}), target = Tensor::zeros({3, 4});
      const auto gradients = [&] {
        std::vector<float> all;
        for (const NamedTensor& p : fsdp.parameters())
          for (const float value : p.tensor.grad().to_vector<float>()) all.push_back(value);
        return all;
      };
      const auto zero = [&] {
        for (const NamedTensor& p : fsdp.parameters()) p.tensor.zero_grad();
      };
      loss_of(fsdp(x), target).backward();
      const std::vector<float> once = gradients();
      zero();
      {  // evaluation between training forward and backward
        const Tensor loss = loss_of(fsdp(x), target);
        {
          const NoGrad no_grad;
          model->eval();
          fsdp(x);
          model->train();
        }
        loss.backward();
      }
      EXPECT_EQ(gradients(), once);
      EXPECT_EQ(fsdp.gathered_bytes(), 0u);
      zero();
      {  // two forwards, one backward
        const Tensor first = loss_of(fsdp(x), target), second = loss_of(fsdp(x), target);
        (first + second).backward();
      }
      const std::vector<float> both = gradients();
      for (size_t i = 0; i < both.size(); ++i) EXPECT_NEAR(both[i], 2 * once[i], 1e-5);
      zero();
      {  // two backward passes through one graph
        const Tensor loss = loss_of(fsdp(x), target);
        loss.backward({}, /*retain_graph=*/true);
        loss.backward();
      }
      const std::vector<float> again = gradients();
      for (size_t i = 0; i < again.size(); ++i) EXPECT_NEAR(again[i], 2 * once[i], 1e-5);
      zero();
      {  // a backward that throws half-way on every rank
        const Tensor y = fsdp(x), loss = loss_of(y, target);
        bool thrown = false;
        y.register_hook([&](const Tensor&) -> Tensor {
          thrown = true;
          fail("stop");
        });
        EXPECT_THROW(loss.backward(), Error);
        EXPECT_TRUE(thrown);
      }
      zero();
      loss_of(fsdp(x), target).backward();
      EXPECT_EQ(gradients(), once);
    }
  });
}

TEST_P(FsdpUses, BuffersAreThoseOfRankZeroAfterEachStep) {
  std::vector<double> zero;  // rank 0's where each keeps its own
  for (const bool shared : {false, true})
    run_ranks(2, [&](const ProcessGroupPtr& group) {
      FsdpOptions chosen = options({.kinds = {"Conv2d"}});
      chosen.broadcast_buffers = shared;
      const auto model = build(normed_net, 1, DeviceKind::cpu);
      FSDP fsdp(model, group, chosen);
      const auto step = [&](int number) {
        const Tensor y = fsdp(samples(number, 4 * group->rank(), 4, {8, 8, 3}, DeviceKind::cpu));
        mean(square(y)).backward();
      };
      for (int number = 0; number < 3; ++number) step(number);
      {
        const auto quiet = fsdp.no_sync();  // these stay with the rank
        step(3);
      }
      const std::vector<double> apart = buffers_of(*model);
      step(4);
      std::vector<double> first = buffers_of(*model), quiet = apart;
      for (std::vector<double>* values : {&first, &quiet}) {
        const Tensor sent = Tensor::from(*values);
        group->broadcast(sent, 0)->wait();
        *values = sent.to_vector<double>();
      }
      if (!shared && group->rank() == 0) zero = first;
      EXPECT_EQ(buffers_of(*model) == first, shared || group->rank() == 0);
      EXPECT_EQ(apart == quiet, group->rank() == 0);
      if (shared) {
        EXPECT_EQ(first, zero);
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Strategies, FsdpUses,
                         ::testing::Values(Sharding::full_shard, Sharding::shard_grad_op, Sharding::hybrid_shard,
                                           Sharding::no_shard),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace weft::dist::testing
