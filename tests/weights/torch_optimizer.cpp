// SPDX-License-Identifier: Apache-2.0
// Optimizers are saved for PyTorch and loaded back: both sides make the same steps.
#include "train/torch_optimizer.h"

#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::error_of;
using test::TemporaryFolder;
using train::torch_options;
using train::TorchOptimizer;
using Dict = TorchObject::Dict;
using List = TorchObject::List;

/// A convolution whose four sizes differ, and a bias in a group of its own.
struct Net : nn::Module {
  nn::Conv2d conv{2, 5, {3, 4}};

  void fields(nn::Visitor& v) override { v("conv", conv); }
  std::vector<optim::ParameterGroup> groups() {
    const std::vector<NamedTensor> all = parameters();
    return {{.parameters = {all[0]}}, {.parameters = {all[1]}, .lr = 0.25, .weight_decay = 0.0}};
  }
};

constexpr optim::AdamOptions kAdam{.lr = 0.5, .beta1 = 0.8, .weight_decay = 0.125};
constexpr optim::SgdOptions kSgd{.lr = 0.5, .momentum = 0.75, .weight_decay = 0.125};

/// One step whose gradient is the weight itself and 1: PyTorch can do the same without a convolution.
void step(Net& net, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  (sum(net.conv.weight * net.conv.weight) * 0.5 + sum(net.conv.bias)).backward();
  optimizer.step();
}

constexpr const char* kTorchNet = R"(
import sys, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 5, (3, 4))
    def groups(self):
        return [{'params': [self.conv.weight]}, {'params': [self.conv.bias], 'lr': 0.25, 'weight_decay': 0.0}]
net = Net()
def step():
    optimizer.zero_grad()
    ((net.conv.weight ** 2).sum() * 0.5 + net.conv.bias.sum()).backward()
    optimizer.step()
def save(path):
    torch.save({'model': net.state_dict(), 'optimizer': optimizer.state_dict()}, path)
)";

/// Two steps here, two there, two here must be six steps here.
template <class Optimizer, class Options>
void expect_same_both_ways(const Options& options, const std::string& torch_optimizer) {
  const TemporaryFolder folder;
  Net net;
  Optimizer optimizer(net.groups(), options);
  const TorchOptimizer torch{net, optimizer, net.groups(), torch_options(options)};
  step(net, optimizer);
  step(net, optimizer);
  write_torch(folder / "a.pt", {Dict{{"model", TorchObject::of(net.state_dict())}, {"optimizer", torch.state()}}});
  test::write_file(folder / "steps.py", kTorchNet + ("optimizer = " + torch_optimizer) + R"(
read = torch.load(sys.argv[1], weights_only=int(torch.__version__.split('.')[0]) >= 2)  # 1.13's knows no floats
net.load_state_dict(read['model'])
optimizer.load_state_dict(read['optimizer'])
step()
step()
save(sys.argv[2])
)");
  const auto run = tests::shell("/usr/bin/python3 " + (folder / "steps.py").string() + " " +
                                (folder / "a.pt").string() + " " + (folder / "b.pt").string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const TorchObject read = read_torch(folder / "b.pt");
  Net other;
  Optimizer other_optimizer(other.groups(), options);
  other.load_state_dict(read.at("model", "b").state("b"));
  TorchOptimizer{other, other_optimizer, other.groups(), torch_options(options)}.load(read.at("optimizer", "b"), 4,
                                                                                      "b");
  EXPECT_EQ(other_optimizer.steps(), 4);
  EXPECT_EQ(other_optimizer.lr(0), 0.5);
  EXPECT_EQ(other_optimizer.lr(1), 0.25);
  for (int i = 0; i < 4; ++i) step(net, optimizer);
  for (int i = 0; i < 2; ++i) step(other, other_optimizer);
  for (const NamedTensor& mine : net.state_dict().tensors) {
    const auto expected = mine.tensor.to_vector<double>(),
               got = other.state_dict().tensor(mine.name).to_vector<double>();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << mine.name << ' ' << i;
  }
}

TEST(TorchOptimizer, AdamGoesToPyTorchAndBack) {
  NEEDS_ZIP();
  NEEDS_TORCH();
  expect_same_both_ways<optim::Adam>(kAdam,
                                     "torch.optim.Adam(net.groups(), lr=0.5, betas=(0.8, 0.999), weight_decay=0.125)");
}

TEST(TorchOptimizer, SgdGoesToPyTorchAndBack) {
  NEEDS_ZIP();
  NEEDS_TORCH();
  expect_same_both_ways<optim::SGD>(kSgd, "torch.optim.SGD(net.groups(), lr=0.5, momentum=0.75, weight_decay=0.125)");
}

TEST(TorchOptimizer, LayoutIsPyTorchs) {
  Net net;
  optim::Adam adam(net.groups(), kAdam);
  const TorchOptimizer torch{net, adam, net.groups(), torch_options(kAdam)};
  EXPECT_TRUE(std::get<Dict>(torch.state().at("state", "a").is).empty()) << "before the first step there is nothing";
  step(net, adam);
  const TorchObject object = torch.state();
  const auto& state = std::get<Dict>(object.at("state", "a").is);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(state[1].key), 1);
  const StateDict weight = state[0].value.state("a");
  EXPECT_EQ(weight.tensor("exp_avg").sizes(), (Shape{5, 2, 3, 4}));
  EXPECT_EQ(weight.tensor("step").sizes(), Shape{});
  EXPECT_EQ(weight.tensor("step").item(), 1);
  EXPECT_NE(weight.tensor("step").raw_data(), state[1].value.state("a").tensor("step").raw_data())
      << "PyTorch counts each up in place";
  const auto& groups = std::get<List>(object.at("param_groups", "a").is);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].at("weight_decay", "a").number("a"), 0.125);
  EXPECT_EQ(groups[1].at("weight_decay", "a").number("a"), 0);
  EXPECT_EQ(groups[1].at("lr", "a").number("a"), 0.25);
  EXPECT_EQ(std::get<List>(groups[1].at("params", "a").is).at(0).integer("a"), 1);
}

TEST(TorchOptimizer, AParameterThatSgdPassedOverHasNoStateAfterLoading) {
  Net net, other;
  optim::SGD sgd(net.groups(), kSgd), loaded(other.groups(), kSgd);
  sum(net.conv.weight).backward();
  sgd.step();
  const TorchObject saved{TorchOptimizer{net, sgd, net.groups(), torch_options(kSgd)}.state()};
  const TorchOptimizer torch{other, loaded, other.groups(), torch_options(kSgd)};
  torch.load(saved, 1, "ckpt.tar");
  const TorchObject again{torch.state()};
  const auto& state = std::get<Dict>(again.at("state", "b").is);
  ASSERT_EQ(state.size(), 1u) << "with dampening its first step would be another than PyTorch's";
  EXPECT_EQ(std::get<int64_t>(state[0].key), 0);
}

TEST(TorchOptimizer, TheCountIsThatOfTheParameterWithMostSteps) {
  Net net;
  optim::Adam adam(net.groups(), kAdam);
  const TorchOptimizer torch{net, adam, net.groups(), torch_options(kAdam)};
  const auto group = [](int64_t number) { return TorchObject{Dict{{"lr", {0.5}}, {"params", {List{{number}}}}}}; };
  const auto counts = [](double steps) { return TorchObject{Dict{{"step", {Tensor::full({}, steps)}}}}; };
  const TorchObject groups{List{group(0), group(1)}};
  torch.load({Dict{{"param_groups", groups}, {"state", {Dict{{int64_t{0}, counts(7)}, {int64_t{1}, counts(0)}}}}}}, 9,
             "ckpt.tar");
  EXPECT_EQ(adam.steps(), 7) << "the bias may have been frozen";
  torch.load({Dict{{"param_groups", groups}, {"state", {Dict{}}}}}, 9, "ckpt.tar");
  EXPECT_EQ(adam.steps(), 9);
}

TEST(TorchOptimizer, WhatDoesNotFitIsRefused) {
  Net net;
  optim::Adam adam(net.groups(), kAdam);
  const TorchOptimizer torch{net, adam, net.groups(), torch_options(kAdam)};
  step(net, adam);
  const auto refused = [&](const TorchObject& state) { return error_of([&] { torch.load(state, 0, "ckpt.tar"); }); };
  EXPECT_EQ(refused({Dict{}}), "ckpt.tar: expected the key 'param_groups', got none. The dict is empty");
  EXPECT_EQ(refused({Dict{{"param_groups", {1.5}}, {"state", {Dict{}}}}}),
            "ckpt.tar: expected a list 'param_groups' and a dict 'state', as torch.optim has them");
  EXPECT_EQ(refused({Dict{{"param_groups", {List{}}}, {"state", {Dict{}}}}}),
            "ckpt.tar: expected 2 parameter groups, got 0");
  const auto group = [](const List& numbers) { return TorchObject{Dict{{"lr", {0.5}}, {"params", {numbers}}}}; };
  const TorchObject first{int64_t{0}}, second{int64_t{1}};
  EXPECT_EQ(refused({Dict{{"param_groups", {List{group({first, second}), group({})}}}, {"state", {Dict{}}}}}),
            "ckpt.tar: parameter group 0: expected 1 parameters, got 2");
  const TorchObject groups{List{group({first}), group({second})}};
  const auto with = [&](const Dict& entry) {
    return refused({Dict{{"param_groups", groups}, {"state", {Dict{{int64_t{0}, {entry}}}}}}});
  };
  EXPECT_EQ(with({{"exp_avg", {Tensor::zeros({5, 3, 4, 2})}}}),
            "ckpt.tar: conv.weight.exp_avg: expected [5,2,3,4], got [5,3,4,2]");
  EXPECT_EQ(with({{"step", {Tensor::full({}, -1)}}}), "ckpt.tar: expected a step count of at least 0, got -1");
  EXPECT_EQ(adam.steps(), 1) << "nothing has changed";
}

}  // namespace
}  // namespace weft
