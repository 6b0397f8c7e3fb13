// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <mutex>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/fsdp/fsdp_state.h"
#include "dist/fsdp/sharded_checkpoint.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/support/error_text.h"

// Training loops that do more than forward, backward, step: n ranks still make the steps of one process, or say why
// not.

namespace weft::dist::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// a, then b or c; the head's weight may be a's.
struct Net : nn::Module {
  nn::Linear a{4, 4}, b{4, 4}, c{4, 4}, head{4, 4};
  mutable bool uses_b = true, uses_c = true;
  Tensor forward(const Tensor& x) const override {
    Tensor h = tanh(a(x));
    if (uses_b) h = h + tanh(b(h));
    if (uses_c) h = h + tanh(c(h));
    return head(h);
  }
  void fields(nn::Visitor& v) override { v("a", a), v("b", b), v("c", c), v("head", head); }
};

enum class Kind { alone, ddp, fsdp, distributed_optimizer };

/// Numbers that another program makes, too: 0.5 sin(10 seed + 0.7 (i + 1)).
Tensor wave(const Shape& sizes, double seed) {
  std::vector<double> values(static_cast<size_t>(sizes.numel()));
  double i = 0;
  for (double& value : values) value = 0.5 * std::sin(10 * seed + 0.7 * ++i);
  return Tensor::from(values).reshape(sizes);
}

std::shared_ptr<Net> make_net(bool tied = false, bool waves = false) {
  static std::mutex mutex;  // one thread at a time draws
  const std::lock_guard lock(mutex);
  manual_seed(2);
  const auto net = std::make_shared<Net>();
  if (tied) net->head.weight = net->a.weight;
  net->to(DType::f64);
  const NoGrad no_grad;
  double seed = 0;
  for (const NamedTensor& p : net->parameters())
    if (waves) p.tensor.copy_(wave(p.tensor.sizes(), ++seed));
  return net;
}

/// Input and target of a step: all 12 samples, or a rank's part, uneven and another in each step.
std::pair<Tensor, Tensor> data(int step, const ProcessGroupPtr& group, bool even, bool waves = false) {
  Tensor x, y;
  if (waves) {
    x = wave({12, 4}, step), y = wave({12, 4}, 1000 + step);
  } else {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    manual_seed(static_cast<uint64_t>(100 + step));
    x = normal({12, 4}, 0, 1, DType::f64), y = normal({12, 4}, 0, 1, DType::f64);
  }
  if (!group || group->size() == 1) return {x, y};
  const int64_t cut = even ? 6 : 3 + 2 * (step % 4), first = group->rank() == 0 ? 0 : cut;
  const int64_t count = group->rank() == 0 ? cut : 12 - cut;
  return {x.slice(0, first, count).contiguous(), y.slice(0, first, count).contiguous()};
}

/// A loop does more than its steps.
struct Loop {
  bool evaluates_between = false;  ///< a forward between forward and backward
  bool skips = false;              ///< forwards without a backward
  bool tied = false;
  bool accumulates = false;      ///< two backwards per step, under no_sync with DDP and FSDP
  bool waves = false;            ///< first weights and data are waves
  bool one_unit = false;         ///< FSDP gathers all at once, trained and frozen parameters in one buffer
  Unused unused = Unused::zero;  ///< DDP's option
  /// Called in each step on each rank, and as step -1 before the model is replicated or sharded.
  std::function<void(Net&, int step, int rank)> before_step = {};
};

std::vector<double> train(Kind kind, const ProcessGroupPtr& group, const Loop& loop) {
  const auto net = make_net(loop.tied, loop.waves);
  if (loop.before_step) loop.before_step(*net, -1, group ? group->rank() : 0);
  std::unique_ptr<DDP> ddp;
  std::unique_ptr<FSDP> fsdp;
  FsdpOptions sharding;
  if (!loop.one_unit) sharding.policy.kinds = {"Linear"};
  if (kind == Kind::ddp) ddp = std::make_unique<DDP>(net, group, DdpOptions{.unused = loop.unused});
  if (kind == Kind::fsdp) fsdp = std::make_unique<FSDP>(net, group, sharding);
  optim::SGD sgd(fsdp ? fsdp->parameters() : net->parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  std::unique_ptr<DistributedOptimizer> distributed;
  if (kind == Kind::distributed_optimizer)
    distributed = std::make_unique<DistributedOptimizer>(
        sgd, group, DistributedOptimizerOptions{.backward_passes_per_step = loop.accumulates ? 2 : 1});
  const auto forward = [&](const Tensor& x) { return ddp ? (*ddp)(x) : fsdp ? (*fsdp)(x) : (*net)(x); };
  for (int step = 0; step < 6; ++step) {
    if (loop.before_step) loop.before_step(*net, step, group ? group->rank() : 0);
    const auto micro = [&](int number) {
      const auto [x, y] = data(number, group, kind == Kind::distributed_optimizer, loop.waves);
      const Tensor loss = mse_loss(forward(x), y);
      if (loop.evaluates_between) {
        const auto [vx, vy] = data(50 + step, group, false, loop.waves);
        (void)mse_loss(forward(vx), vy).item();
      }
      return loss;
    };
    if (loop.skips && step % 2 == 1) {
      (void)micro(step);
      continue;
    }
    distributed ? distributed->zero_grad() : sgd.zero_grad();
    const auto kept = [&] { micro(20 + step).backward(); };
    if (loop.accumulates && ddp) {
      const auto unreduced = ddp->no_sync();
      kept();
    } else if (loop.accumulates && fsdp) {
      const auto unsharded = fsdp->no_sync();
      kept();
    } else if (loop.accumulates) {
      kept();
    }
    micro(step).backward();
    distributed ? distributed->step() : sgd.step();
  }
  std::vector<double> result;
  const StateDict state = fsdp ? full_state_dict(*fsdp, Receivers::all) : net->state_dict();
  for (const NamedTensor& entry : state.tensors)
    for (const double value : entry.tensor.to_vector<double>()) result.push_back(value);
  return result;
}

class CarelessLoops : public ::testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  /// All ranks end with the weights of one process.
  static void expect_as_alone(const Loop& loop, const Loop& of_one) {
    const auto [kind, ranks] = GetParam();
    const std::vector<double> want = train(Kind::alone, nullptr, of_one);
    run_ranks(ranks, [&, kind = kind](const ProcessGroupPtr& group) {
      const std::vector<double> got = train(kind, group, loop);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-12) << i << " on rank " << group->rank();
    });
  }
};

TEST_P(CarelessLoops, AForwardBetweenForwardAndBackwardChangesNothing) {
  expect_as_alone({.evaluates_between = true}, {});
}

TEST_P(CarelessLoops, TheSameWhileGradientsAccumulate) {
  expect_as_alone({.evaluates_between = true, .accumulates = true}, {.accumulates = true});
}

TEST_P(CarelessLoops, ForwardsWithoutBackward) { expect_as_alone({.skips = true}, {.skips = true}); }

TEST_P(CarelessLoops, TiedWeights) { expect_as_alone({.tied = true}, {.tied = true}); }

TEST_P(CarelessLoops, AParameterThatNoRankUsesIsPassedOver) {
  const auto often = [](Net& net, int step, int) {
    if (step >= 0) net.uses_b = step > 0 && step % 2 == 0, net.uses_c = step < 3;
  };
  expect_as_alone({.before_step = often}, {.before_step = often});
}

TEST_P(CarelessLoops, FrozenAndThawedAfterwards) {
  const auto freeze = [](Net& net, int step, int) {
    for (const NamedTensor& p : net.b.parameters()) p.tensor.requires_grad_(step < 2 || step > 3);
  };
  for (const bool one_unit : {false, true})
    for (const Unused unused : {Unused::zero, Unused::error})
      expect_as_alone({.one_unit = one_unit, .unused = unused, .before_step = freeze}, {.before_step = freeze});
}

TEST_P(CarelessLoops, FrozenAndThawedWhileGradientsAccumulate) {
  const auto freeze = [](Net& net, int step, int) { net.b.weight.requires_grad_(step < 2 || step > 3); };
  for (const bool one_unit : {false, true})
    expect_as_alone({.accumulates = true, .one_unit = one_unit, .unused = Unused::error, .before_step = freeze},
                    {.accumulates = true, .before_step = freeze});
}

TEST_P(CarelessLoops, FrozenAtFirst) {
  // One parameter of the layer before the other.
  const auto thaw = [](Net& net, int step, int) {
    net.a.bias.requires_grad_(step != 4);
    net.b.weight.requires_grad_(step > 1);
    net.b.bias.requires_grad_(step > 2);
  };
  if (std::get<0>(GetParam()) == Kind::distributed_optimizer) return;  // an error there: distributed_optimizer.cpp
  for (const bool one_unit : {false, true})
    for (const bool evaluates : {false, true})
      expect_as_alone(
          {.evaluates_between = evaluates, .one_unit = one_unit, .unused = Unused::error, .before_step = thaw},
          {.before_step = thaw});
}

// PyTorch 2.15, one process: the same net, waves, SGD and steps; the sum of v_i cos(i) over all of its state_dict().
TEST_P(CarelessLoops, NumbersOfPyTorch) {
  const auto freeze = [](Net& net, int step, int) {
    for (const NamedTensor& p : net.b.parameters()) p.tensor.requires_grad_(step < 2 || step > 3);
  };
  const std::pair<Loop, double> loops[] = {{{.evaluates_between = true, .waves = true}, 0.861360085420407},
                                           {{.tied = true, .waves = true}, 0.321630490327556},
                                           {{.waves = true, .before_step = freeze}, 0.911316527227705}};
  const auto [kind, ranks] = GetParam();
  run_ranks(ranks, [&, kind = kind](const ProcessGroupPtr& group) {
    for (const auto& [loop, want] : loops) {
      double got = 0, i = 0;
      for (const double value : train(kind, group, loop)) got += value * std::cos(i++);
      EXPECT_NEAR(got, want, 1e-12);
    }
  });
}

TEST_P(CarelessLoops, HandlesOfBefore) {
  const auto [kind, ranks] = GetParam();
  run_ranks(ranks, [&, kind = kind](const ProcessGroupPtr& group) {
    const auto net = make_net();
    const StateDict before = net->state_dict();
    if (kind == Kind::fsdp) {
      const FSDP fsdp(net, group);
      EXPECT_THAT(error_text([&] { before.tensor("a.weight").to_vector<double>(); }),
                  HasSubstr("has no memory now. A sharded parameter has it only while its unit runs"));
      return;
    }
    std::unique_ptr<DDP> ddp;
    if (kind == Kind::ddp) ddp = std::make_unique<DDP>(net, group);
    optim::SGD sgd(net->parameters(), {.lr = 0.1});
    const auto [x, y] = data(0, group, false);
    mse_loss(ddp ? (*ddp)(x) : (*net)(x), y).backward();
    sgd.step();
    EXPECT_EQ(before.tensor("a.weight").to_vector<double>(), net->a.weight.to_vector<double>());
  });
}

INSTANTIATE_TEST_SUITE_P(All, CarelessLoops,
                         ::testing::Combine(::testing::Values(Kind::ddp, Kind::fsdp, Kind::distributed_optimizer),
                                            ::testing::Values(1, 2)));

TEST(CarelessUse, WhatOneRankUsesMovesOnAll) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = make_net();
    DDP ddp(net, group, {.unused = Unused::zero});
    optim::SGD sgd(net->parameters(), {.lr = 0.1, .weight_decay = 0.1});
    net->uses_b = group->rank() == 1;
    const auto [x, y] = data(0, group, true);
    mse_loss(ddp(x), y).backward();
    EXPECT_TRUE(net->b.weight.has_gradient());
    sgd.step();
    const Tensor mine = net->b.weight.detach().clone();
    group->all_reduce(mine, ReduceOp::sum, {.name = "weights", .scale = {}})->wait();
    EXPECT_LT(max(abs(mine * 0.5 - net->b.weight.detach())).item(), 1e-15);
  });
}

TEST(CarelessUse, FrozenOnSomeRanksOnly) {
  for (const bool sharded : {false, true})
    run_ranks(2, [&](const ProcessGroupPtr& group) {
      const auto net = make_net();
      const auto ddp = sharded ? nullptr : std::make_unique<DDP>(net, group);
      const auto fsdp = sharded ? std::make_unique<FSDP>(net, group) : nullptr;
      (group->rank() == 0 ? net->b : net->c).weight.requires_grad_(false);
      const auto [x, y] = data(0, group, false);
      EXPECT_EQ(error_text([&, x = x] { ddp ? (*ddp)(x) : (*fsdp)(x); }),
                str(sharded ? "fsdp" : "ddp", ": the model is not the same on all ranks: at entry ", sharded ? 2 : 3,
                    " rank 0 has 'parameter b.weight, frozen', rank 1 has 'parameter b.weight'. Freeze and thaw the "
                    "same parameters on all ranks"));
    });
}

TEST(CarelessUse, FrozenByTheShard) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = make_net();
    FSDP fsdp(net, group);
    optim::SGD sgd(fsdp.parameters(), {.lr = 0.1, .weight_decay = 0.1});
    const StateDict before = full_state_dict(fsdp, Receivers::all);
    for (const NamedTensor& p : fsdp.parameters()) p.tensor.requires_grad_(p.name != "b.weight");
    const auto [x, y] = data(0, group, false);
    mse_loss(fsdp(x), y).backward();
    sgd.step();
    const StateDict after = full_state_dict(fsdp, Receivers::all);
    for (const char* name : {"b.weight", "c.weight"})
      EXPECT_EQ(before.tensor(name).to_vector<double>() == after.tensor(name).to_vector<double>(),
                name == std::string("b.weight"));
    EXPECT_FALSE(net->b.weight.requires_grad());
  });
}

TEST(CarelessUse, TheStateOfAThawedParameterIsSaved) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = make_net();
    net->b.weight.requires_grad_(false);
    FSDP fsdp(net, group);
    optim::SGD sgd(fsdp.parameters(), {.lr = 0.1, .momentum = 0.9});
    net->b.weight.requires_grad_();
    const auto [x, y] = data(0, group, false);
    mse_loss(fsdp(x), y).backward();
    sgd.step();
    const StateDict full = full_optimizer_state(fsdp, sgd.state_dict(), Receivers::all);
    EXPECT_GT(max(abs(full.tensor("b.weight.momentum_buffer"))).item(), 0);
    EXPECT_EQ(sharded_state(fsdp, sgd.state_dict()).pieces.size(), net->parameters().size());
  });
}

TEST(CarelessUse, TheModelsParametersInPlaceOfTheShards) {
  for (const int ranks : {1, 2})
    run_ranks(ranks, [](const ProcessGroupPtr& group) {
      const auto net = make_net();
      FSDP fsdp(net, group);
      EXPECT_THAT(error_text([&] { optim::SGD(net->parameters(), {.lr = 0.1}); }),
                  AllOf(HasSubstr("flat_parameters: 'a.weight' f64[4,4] on cpu is sharded by FSDP. Give the optimizer "
                                  "fsdp.parameters() instead of model->parameters()")));
    });
}

TEST(CarelessUse, OneBackwardThroughForwardsOfDifferentWeight) {
  for (const bool sharded : {false, true}) {
    const auto texts = errors_on("threads", 2, [&](const ProcessGroupPtr& group) {
      const auto net = make_net();
      const auto ddp = sharded ? nullptr : std::make_unique<DDP>(net, group);
      const auto fsdp = sharded ? std::make_unique<FSDP>(net, group) : nullptr;
      const auto forward = [&](const Tensor& x) { return ddp ? (*ddp)(x) : (*fsdp)(x); };
      const auto [x, y] = data(0, group, false);
      const auto [x2, y2] = data(1, group, false);
      const Tensor sum = mse_loss(forward(x), y) + mse_loss(forward(x2), y2);
      sum.backward();
    });
    EXPECT_THAT(texts[0],
                HasSubstr(": one backward reaches a forward of 5 samples and one of 3 on rank 0, whose gradients "
                          "weigh differently. Run a backward for each"));
  }
}

}  // namespace
}  // namespace weft::dist::testing
