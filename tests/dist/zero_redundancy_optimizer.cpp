// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/zero_redundancy_optimizer.h"

#include <gmock/gmock.h>

#include <mutex>

#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "kernels/runtime/allocator.h"
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

constexpr int kTrainedSteps = 4;

using Maker = ZeroRedundancyOptimizer::Maker;

Maker adamw() {
  return [](const optim::ParameterGroups& parts) {
    return std::make_unique<optim::AdamW>(parts, optim::AdamWOptions{.lr = 1e-2, .weight_decay = 0.1});
  };
}
Maker sgd() {
  return [](const optim::ParameterGroups& parts) {
    return std::make_unique<optim::SGD>(parts, optim::SgdOptions{.lr = 0.05, .momentum = 0.9, .nesterov = true});
  };
}
Maker lars() {
  return [](const optim::ParameterGroups& parts) {
    return std::make_unique<optim::LARS>(parts, optim::LarsOptions{.lr = 0.5, .momentum = 0.9, .weight_decay = 1e-3});
  };
}

/// A rank's model after some steps, and the full state.
struct Result {
  std::vector<double> losses, weights;
  StateDict state;
};

/// A model with a branch that its forward leaves out.
struct Branches : nn::Module {
  std::shared_ptr<nn::Module> used = small_net();
  nn::Linear unused{3, 2};
  Tensor forward(const Tensor& x) const override { return (*used)(x); }
  void fields(nn::Visitor& v) override {
    v("used", used);
    v("unused", unused);
  }
};

struct Run {
  Maker make = adamw();
  bool shards = true;
  int first = 0, steps = kTrainedSteps;
  DeviceKind device = DeviceKind::cpu;
  bool branches = false;
  Result begin = {};  ///< weights and state to go on from
};

Result train(const Run& run, const ProcessGroupPtr& group) {
  const auto model =
      build([&]() -> std::shared_ptr<nn::Module> { return run.branches ? std::make_shared<Branches>() : small_net(); },
            3, run.device);
  if (!run.begin.weights.empty()) {
    size_t at = 0;
    for (const NamedTensor& p : model->parameters()) {
      const auto begin = run.begin.weights.begin() + static_cast<ptrdiff_t>(at);
      at += static_cast<size_t>(p.tensor.numel());
      const Tensor values =
          Tensor::from(std::vector<double>(begin, run.begin.weights.begin() + static_cast<ptrdiff_t>(at)));
      p.tensor.detach().copy_(values.reshape(p.tensor.sizes()));
    }
  }
  DDP ddp(model, group, {.unused = run.branches ? Unused::zero : Unused::error});
  const auto groups = optim::without_decay_on_vectors(ddp.parameters());
  std::unique_ptr<optim::Optimizer> plain;
  std::unique_ptr<ZeroRedundancyOptimizer> zero;
  if (run.shards)
    zero = std::make_unique<ZeroRedundancyOptimizer>(groups, group, run.make);
  else
    plain = run.make(groups);
  if (!run.begin.state.tensors.empty()) zero->load_state_dict(run.begin.state);
  Result result;
  for (int step = run.first; step < run.first + run.steps; ++step) {
    const int64_t each = 2, mine = group->rank() * each;
    const Tensor loss =
        cross_entropy(ddp(samples(step, mine, each, {8, 8, 3}, run.device)), labels(step, mine, each, run.device));
    zero ? zero->zero_grad() : plain->zero_grad();
    loss.backward();
    zero ? zero->step() : plain->step();
    result.losses.push_back(loss.item());
  }
  result.weights = weights_of(*model);
  result.state = zero ? zero->state_dict() : plain->state_dict();
  return result;
}

void expect_equal(const Result& got, const Result& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(names_and_sizes(got.state), names_and_sizes(want.state));
  EXPECT_EQ(values_of(got.state), values_of(want.state));
  ASSERT_EQ(got.state.scalars.size(), want.state.scalars.size());
  for (size_t i = 0; i < got.state.scalars.size(); ++i) {
    EXPECT_EQ(got.state.scalars[i].name, want.state.scalars[i].name);
    EXPECT_EQ(got.state.scalars[i].value, want.state.scalars[i].value) << want.state.scalars[i].name;
  }
}

class ZeroRedundancy : public ::testing::TestWithParam<std::tuple<std::string, DeviceKind, int>> {
 protected:
  const std::string backend_ = std::get<0>(GetParam());
  const DeviceKind device_ = std::get<1>(GetParam());
  const int size_ = std::get<2>(GetParam());
};

TEST_P(ZeroRedundancy, StepsAreThoseOfDdpBitForBit) {
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    for (const Maker& make : {adamw(), sgd()})
      expect_equal(train({.make = make, .device = device_}, group),
                   train({.make = make, .shards = false, .device = device_}, group));
  });
}

TEST_P(ZeroRedundancy, AParameterThatNoRankUsesStaysAsItIs) {
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    expect_equal(train({.device = device_, .branches = true}, group),
                 train({.shards = false, .device = device_, .branches = true}, group));
  });
}

TEST_P(ZeroRedundancy, NormsOfWholeParametersAreAddedUpOverTheRanks) {
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    const Result got = train({.make = lars(), .device = device_}, group);
    const Result want = train({.make = lars(), .shards = false, .device = device_}, group);
    EXPECT_TRUE(tests::near(got.weights, want.weights, tests::tolerance(DType::f32, 1000).times(kTrainedSteps)));
  });
}

INSTANTIATE_TEST_SUITE_P(, ZeroRedundancy,
                         ::testing::Combine(::testing::ValuesIn(backends()), ::testing::ValuesIn(tests::test_devices()),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::string(name(std::get<1>(param.param))) + "_" +
                                  std::to_string(std::get<2>(param.param));
                         });

TEST(ZeroRedundancyState, GoesOnWhereItWasSaved) {
  Result half, whole, rest;
  const ProcessGroupPtr alone = make_process_group_alone();
  whole = train({.steps = kTrainedSteps}, alone);
  half = train({.steps = 2}, alone);
  rest = train({.first = 2, .steps = 2, .begin = half}, alone);
  EXPECT_EQ(rest.weights, whole.weights);
  EXPECT_EQ(values_of(rest.state), values_of(whole.state));
  run_ranks(3, [&](const ProcessGroupPtr& group) {
    const Result before = train({.steps = 2}, group), after = train({.first = 2, .steps = 2, .begin = before}, group);
    const Result once = train({.steps = kTrainedSteps}, group);
    EXPECT_EQ(after.weights, once.weights);
    EXPECT_EQ(values_of(after.state), values_of(once.state));
  });
}

/// A layer that is most of the memory, so that small change stays small.
TEST(ZeroRedundancyMemory, OfARankIsAnNthOfTheStatesAndOfTheCopies) {
  constexpr int64_t kWidth = 512, kBytes = kWidth * kWidth * 4;
  constexpr int kRanks = 4;
  const auto live = [] { return static_cast<int64_t>(kernels::CachingAllocator::of(Device{}).stats().live); };
  std::mutex mutex;
  std::vector<int64_t> states;
  std::vector<std::unique_ptr<ZeroRedundancyOptimizer>> optimizers;
  std::vector<std::unique_ptr<DDP>> models;
  int64_t before = 0, after = 0;
  run_ranks(kRanks, [&](const ProcessGroupPtr& group) {
    auto model = std::make_shared<nn::Linear>(kWidth, kWidth, nn::LinearOptions{.bias = false});
    auto ddp = std::make_unique<DDP>(model, group);
    group->barrier();
    if (group->rank() == 0) before = live();
    group->barrier();
    auto zero = std::make_unique<ZeroRedundancyOptimizer>(ddp->parameters(), group, adamw());
    group->barrier();
    if (group->rank() == 0) after = live();
    group->barrier();
    int64_t bytes = 0;
    for (const NamedTensor& state : zero->optimizer().state_dict().tensors)
      bytes += static_cast<int64_t>(state.tensor.nbytes());
    EXPECT_EQ(bytes, 2 * kBytes / kRanks) << "two averages of a quarter of the weights";
    const std::lock_guard lock(mutex);
    optimizers.push_back(std::move(zero));
    models.push_back(std::move(ddp));
  });
  EXPECT_GE(after - before, 4 * kBytes) << "two averages, a copy of the weights and one of the gradient, all ranks'";
  EXPECT_LT(after - before, 4 * kBytes + kBytes / 8) << "and no more than scalars: one rank's averages were 2 in each";
}

TEST(ZeroRedundancyErrors, NameWhatIsWrong) {
  const ProcessGroupPtr group = make_process_group_alone();
  const auto model = std::make_shared<nn::Linear>(3, 2);
  const auto with = [&](const Maker& make) { ZeroRedundancyOptimizer(model->parameters(), group, make); };
  EXPECT_EQ(error_text([&] { ZeroRedundancyOptimizer(model->parameters(), nullptr, adamw()); }),
            "zero redundancy optimizer: expected a group, got none");
  EXPECT_EQ(error_text([&] { with([](const auto&) { return nullptr; }); }),
            "zero redundancy optimizer: expected an optimizer of the parts, got none");
  EXPECT_EQ(error_text([&] { with([&](const auto&) { return adamw()(model->parameters()); }); }),
            "zero redundancy optimizer: expected an optimizer of the parts, got one of other parameters");
  EXPECT_THAT(error_text([&] {
                with([](const optim::ParameterGroups& parts) {
                  return std::make_unique<optim::Adafactor>(parts, optim::AdafactorOptions{});
                });
              }),
              HasSubstr("is one rank's part: its rows and columns are not here"));
  ZeroRedundancyOptimizer zero(model->parameters(), group, adamw());
  StateDict state = zero.state_dict();
  state.tensors[0].tensor = Tensor::zeros({5});
  EXPECT_EQ(error_text([&] { zero.load_state_dict(state); }),
            "zero redundancy optimizer: expected the state 'weight.exp_avg' [2,3], got f32[5] on cpu");
  state.tensors[0].name = "weights.exp_avg";
  EXPECT_EQ(error_text([&] { zero.load_state_dict(state); }),
            "zero redundancy optimizer: the state 'weights.exp_avg' belongs to no trained parameter");
  const auto frozen = std::make_shared<nn::Linear>(3, 2);
  frozen->bias.requires_grad_(false);
  ZeroRedundancyOptimizer part(frozen->parameters(), group, adamw());
  frozen->bias.requires_grad_();
  EXPECT_EQ(error_text([&] { part.step(); }),
            "zero redundancy optimizer: parameter 'bias' was thawed after the optimizer had been made. Do it before");
  frozen->weight.requires_grad_(false);
  frozen->bias.requires_grad_(false);
  EXPECT_EQ(error_text([&] { ZeroRedundancyOptimizer(frozen->parameters(), group, adamw()); }),
            "zero redundancy optimizer: no parameter requires a gradient");
}

}  // namespace
}  // namespace weft::dist::testing
