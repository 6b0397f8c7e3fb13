// SPDX-License-Identifier: Apache-2.0
#include "nn/module.h"

#include <thread>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/conv.h"
#include "nn/copy_of.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/module_of.h"
#include "nn/sequential.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Every kind of field: own tensors, a child by value, children by pointer and in a row, an absent child.
struct Net : Module {
  Tensor scale = Tensor::full({1}, 2).requires_grad_();
  Tensor offset = Tensor::zeros({3});
  Conv2d conv{3, 4, {3, 2}};
  BatchNorm2d norm{4};
  std::shared_ptr<Linear> head = std::make_shared<Linear>(4, 2);
  std::vector<std::shared_ptr<Linear>> rows{std::make_shared<Linear>(2, 2), std::make_shared<Linear>(2, 1)};
  std::shared_ptr<Linear> absent;

  void fields(Visitor& v) override {
    v("scale", scale);
    v.buffer("offset", offset);
    v("conv", conv);
    v("norm", norm);
    v("head", head);
    v("rows", rows);
    v("absent", absent);
  }
};

std::vector<std::string> names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> result;
  for (const NamedTensor& entry : tensors) result.push_back(entry.name);
  return result;
}

TEST(Module, NamesFollowTheMembers) {
  Net net;
  EXPECT_THAT(names(net.parameters()),
              ElementsAre("scale", "conv.weight", "conv.bias", "norm.weight", "norm.bias", "head.weight", "head.bias",
                          "rows.0.weight", "rows.0.bias", "rows.1.weight", "rows.1.bias"));
  EXPECT_THAT(names(net.buffers()), ElementsAre("offset", "norm.running_mean", "norm.running_var"));
  EXPECT_THAT(names(net.state_dict().tensors),
              ElementsAre("scale", "offset", "conv.weight", "conv.bias", "norm.weight", "norm.bias",
                          "norm.running_mean", "norm.running_var", "norm.num_batches_tracked", "head.weight",
                          "head.bias", "rows.0.weight", "rows.0.bias", "rows.1.weight", "rows.1.bias"));
  std::vector<std::string> paths;
  for (const auto& [path, module] : net.modules()) paths.push_back(path);
  EXPECT_THAT(paths, ElementsAre("", "conv", "norm", "head", "rows.0", "rows.1"));
  EXPECT_EQ(net.kind(), "Net");
  EXPECT_EQ(parameter_count(net), 1 + 4 * 3 * 3 * 2 + 4 + 8 + 10 + 6 + 3);
}

TEST(Module, StateDictShowsConvolutionsAsOihw) {
  Net net;
  const Tensor shown = net.state_dict().tensor("conv.weight");
  EXPECT_EQ(shown.sizes(), (Shape{4, 3, 3, 2}));
  EXPECT_EQ(net.conv.weight.sizes(), (Shape{4, 3, 2, 3}));
  const std::vector<float> stored = net.conv.weight.to_vector<float>(), file = shown.to_vector<float>();
  for (size_t o = 0; o < 4; ++o)
    for (size_t i = 0; i < 3; ++i)
      for (size_t r = 0; r < 3; ++r)
        for (size_t s = 0; s < 2; ++s)
          EXPECT_EQ(file[((o * 3 + i) * 3 + r) * 2 + s], stored[((o * 3 + r) * 2 + s) * 3 + i]);
}

TEST(Module, StateDictRoundTrip) {
  Net from, to;
  from.norm.num_batches_tracked = 41;
  from.norm.running_var.fill_(3);
  StateDict dict = from.state_dict();
  EXPECT_EQ(dict.tensor("norm.num_batches_tracked").dtype(), DType::i64);
  const LoadReport report = to.load_state_dict(dict);
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.unexpected.empty());
  EXPECT_EQ(to.norm.num_batches_tracked, 41);
  const StateDict loaded = to.state_dict();
  for (const auto& [name, tensor] : dict.tensors)
    EXPECT_EQ(loaded.tensor(name).to_vector<double>(), tensor.to_vector<double>()) << name;
}

TEST(Module, LoadStripsTheWrapper) {
  Net from, to;
  StateDict dict = from.state_dict();
  for (NamedTensor& entry : dict.tensors) entry.name = "module." + entry.name;
  to.load_state_dict(dict);
  EXPECT_EQ(to.head->weight.to_vector<float>(), from.head->weight.to_vector<float>());
}

TEST(Module, LoadConvertsAndAllowsAMissingCounter) {
  Net net;
  StateDict dict = Net().state_dict();
  std::erase_if(dict.tensors, [](const NamedTensor& entry) { return entry.name == "norm.num_batches_tracked"; });
  for (NamedTensor& entry : dict.tensors)
    if (entry.name == "head.bias") entry.tensor = Tensor::from(std::vector<double>{0.25, -4});
  net.norm.num_batches_tracked = 7;
  net.load_state_dict(dict);
  EXPECT_EQ(net.norm.num_batches_tracked, 7);
  EXPECT_EQ(net.head->bias.to_vector<float>(), (std::vector<float>{0.25f, -4}));
  EXPECT_EQ(net.head->bias.dtype(), DType::f32);
}

TEST(Module, LoadNamesWhatDoesNotFit) {
  Net net;
  const float before = net.head->weight.to_vector<float>()[0];
  StateDict dict = Net().state_dict();
  for (NamedTensor& entry : dict.tensors) {
    if (entry.name == "conv.bias") entry.tensor = Tensor::zeros({5});
    if (entry.name == "scale") entry.name = "gain";
  }
  EXPECT_EQ(error_text([&] { net.load_state_dict(dict); }),
            "load_state_dict: the weights do not fit Net; wrong shape: conv.bias (expected [4], got [5]); missing: "
            "scale; unexpected: gain");
  EXPECT_EQ(net.head->weight.to_vector<float>()[0], before) << "changed by a load that failed";
}

TEST(Module, LoadShowsFiveNamesAtMost) {
  Net net;
  EXPECT_EQ(error_text([&] { net.load_state_dict({}); }),
            "load_state_dict: the weights do not fit Net; missing: scale, offset, conv.weight, conv.bias, norm.weight "
            "and 9 more");
}

TEST(Module, LoadWithoutStrictReports) {
  Net net;
  StateDict dict;
  dict.tensors.push_back({"head.bias", Tensor::ones({2})});
  dict.tensors.push_back({"tail.bias", Tensor::ones({2})});
  const LoadReport report = net.load_state_dict(dict, {.strict = false});
  EXPECT_EQ(report.missing.size(), 13u);
  EXPECT_THAT(report.unexpected, ElementsAre("tail.bias"));
  EXPECT_EQ(net.head->bias.to_vector<float>(), (std::vector<float>{1, 1}));
  dict.tensors[0].tensor = Tensor::ones({3});
  EXPECT_THAT(error_text([&] { net.load_state_dict(dict, {.strict = false}); }), HasSubstr("wrong shape: head.bias"));
}

TEST(Module, LoadRefusesADoubledName) {
  Net net;
  StateDict dict = net.state_dict();
  dict.tensors.push_back(dict.tensors.front());
  EXPECT_EQ(error_text([&] { net.load_state_dict(dict); }), "load_state_dict: 'scale' occurs twice");
  dict.tensors.back().tensor = {};
  EXPECT_EQ(error_text([&] { net.load_state_dict(dict); }), "load_state_dict: 'scale' is an undefined tensor");
}

TEST(Module, TrainAndEvalReachEveryChild) {
  Net net;
  for (const auto& [path, module] : net.modules()) EXPECT_TRUE(module->is_training()) << path;
  net.eval();
  for (const auto& [path, module] : net.modules()) EXPECT_FALSE(module->is_training()) << path;
  net.train();
  EXPECT_TRUE(net.rows[1]->is_training());
}

TEST(Module, ToChangesTheDataOfTheSameTensors) {
  Net net;
  const Tensor weight = net.head->weight;
  const float first = weight.to_vector<float>()[0];
  net.to(DType::f64);
  EXPECT_EQ(weight.dtype(), DType::f64);
  EXPECT_TRUE(weight.is_same(net.head->weight));
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ(weight.to_vector<double>()[0], double{first});
  EXPECT_EQ(net.offset.dtype(), DType::f64);
  EXPECT_EQ(error_text([&] { net.to(DType::i64); }), "to: expected a floating dtype, got i64");
}

TEST(Module, ZeroGradCountsAsZero) {
  Linear layer(3, 2);
  const Tensor x = normal({4, 3});
  sum(layer(x)).backward();
  const std::vector<float> once = layer.weight.grad().to_vector<float>();
  sum(layer(x)).backward();
  EXPECT_NE(layer.weight.grad().to_vector<float>(), once) << "gradients add up";
  layer.zero_grad();
  EXPECT_EQ(layer.weight.grad().to_vector<float>(), std::vector<float>(6, 0));
  layer.zero_grad();
  sum(layer(x)).backward();
  EXPECT_EQ(layer.weight.grad().to_vector<float>(), once);
}

// ThreadSanitizer sees whether they write what others read.
TEST(Module, ThreadsThatShareItMayWalkItAndReadItsGradients) {
  Net net;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int walk = 0; walk < 20; ++walk)
        for (const NamedTensor& parameter : net.parameters()) {
          EXPECT_TRUE(parameter.tensor.requires_grad()) << parameter.name;
          EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
        }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Module, ApplyGoesFromTheLeavesUp) {
  Net net;
  std::vector<std::string> kinds;
  net.apply([&](Module& module) { kinds.push_back(module.kind()); });
  EXPECT_THAT(kinds, ElementsAre("Linear", "Linear", "Linear", "BatchNorm2d", "Conv2d", "Net"));
}

TEST(Module, HooksSurroundTheForward) {
  Linear layer(3, 2);
  std::vector<std::string> calls;
  const int number = layer.register_hooks(
      [&](const Module& module, const Tensor& x) {
        EXPECT_EQ(&module, &layer);
        calls.push_back(str("before ", x.sizes()));
      },
      [&](const Module&, const Tensor&, const Tensor& y) {
        calls.push_back(str("after ", y.sizes()));
        return y * 0.0;
      });
  const Tensor y = layer(normal({5, 3}));
  EXPECT_THAT(calls, ElementsAre("before [5,3]", "after [5,2]"));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(10, 0));
  layer.remove_hooks(number);
  EXPECT_NE(layer(Tensor::ones({1, 3})).to_vector<float>(), std::vector<float>(2, 0));
  EXPECT_EQ(calls.size(), 2u);
}

TEST(Module, WithoutForwardSaysSo) {
  Net net;
  EXPECT_EQ(error_text([&] { net(Tensor::ones({1})); }),
            "Net: has no forward of one tensor. Declare `Tensor forward(const Tensor& x) const override`, derive from "
            "ModuleOf "
            "for more inputs, or call the forward that it declares");
}

TEST(Module, WhatFieldsNamesWantsAGradient) {
  struct Own : Module {
    Tensor plain = Tensor::ones({2}), frozen = Tensor::ones({2}), counts = Tensor::zeros({2}, DType::i64);
    Tensor kept = Tensor::ones({2});
    Own() { frozen.requires_grad_(false); }
    void fields(Visitor& v) override {
      v("plain", plain);
      v("frozen", frozen);
      v("counts", counts);
      v.buffer("kept", kept);
    }
  } own;
  EXPECT_EQ(own.parameters().size(), 3u);
  EXPECT_TRUE(own.plain.requires_grad());
  EXPECT_FALSE(own.frozen.requires_grad());
  EXPECT_FALSE(own.kept.requires_grad());
  own.plain.requires_grad_(false);
  own.state_dict();
  EXPECT_FALSE(own.plain.requires_grad()) << "frozen stays frozen";
}

TEST(Module, TwoTensorsUnderOneNameAreAnError) {
  struct Twice : Module {
    Linear a{2, 2}, b{2, 2};
    void fields(Visitor& v) override { v("a", a), v("a", b); }
  } twice;
  EXPECT_THAT(error_text([&] { twice.parameters(); }),
              HasSubstr("module: expected a name for each tensor, got 'a.weight' for two. Look at fields()"));
}

/// a scale + b, or a where there is no b; whole numbers in between.
struct Mixed : ModuleOf<int, Tensor> {
  Tensor scale = Tensor::full({1}, 3);
  Tensor forward_many(const Tensor& a, const int& times, const Tensor& b) const override {
    const Tensor scaled = a * scale * static_cast<double>(times);
    return b.defined() ? scaled + b : scaled;
  }
  void fields(Visitor& v) override { v("scale", scale); }
};

TEST(ModuleOf, HooksSurroundAForwardOfSeveralInputs) {
  Mixed mixed;
  std::vector<std::string> calls;
  mixed.register_hooks([&](const Module&, const Tensor& x) { calls.push_back(str("before ", x.sizes())); },
                       [&](const Module&, const Tensor&, const Tensor& y) {
                         calls.push_back(str("after ", y.sizes()));
                         return y * -1.0;
                       });
  const Tensor a = Tensor::ones({2}), b = Tensor::full({3, 1}, 10);
  EXPECT_EQ(mixed(a, 2, b).to_vector<float>(), std::vector<float>(6, -16));
  EXPECT_THAT(calls, ElementsAre("before [2]", "after [3,2]"));
  EXPECT_EQ(call(mixed, a, 1, Tensor()).to_vector<float>(), std::vector<float>(2, -3));
  EXPECT_EQ(error_text([&] { call(mixed, a, b); }), "Mixed: expected a ModuleOf for these 2 inputs");
  EXPECT_EQ(error_text([&] { call(mixed, a); }),
            "Mixed: has no forward of one tensor. Declare `Tensor forward(const Tensor& x) const override`, derive "
            "from ModuleOf "
            "for more inputs, or call the forward that it declares");
}

TEST(CopyOf, HasTheSameStateInMemoryOfItsOwn) {
  Net net;
  const NoGrad no_grad;
  net.offset.fill_(7);
  net.norm(normal({2, 3, 3, 4}));  // counts a batch, moves the statistics
  net.head->to(DType::f64);
  net.conv.weight.requires_grad_(false);
  net.norm.eval();
  net.register_hooks([](const Module&, const Tensor&) {}, {});
  const auto copy = copy_of(net, [] { return std::make_shared<Net>(); });
  const StateDict all = net.state_dict(), copied = copy->state_dict();
  ASSERT_EQ(names(copied.tensors), names(all.tensors));
  for (size_t i = 0; i < all.tensors.size(); ++i) {
    EXPECT_EQ(copied.tensors[i].tensor.dtype(), all.tensors[i].tensor.dtype()) << all.tensors[i].name;
    EXPECT_EQ(copied.tensors[i].tensor.to_vector<double>(), all.tensors[i].tensor.to_vector<double>())
        << all.tensors[i].name;
  }
  EXPECT_EQ(copied.tensor("norm.num_batches_tracked").item(), 1);
  EXPECT_FALSE(copy->conv.weight.requires_grad());
  EXPECT_TRUE(copy->conv.bias.requires_grad());
  EXPECT_TRUE(copy->is_training() && copy->conv.is_training());
  EXPECT_FALSE(copy->norm.is_training());
  EXPECT_FALSE(copy->watches_tensors());
  const std::vector<double> weight = net.head->weight.to_vector<double>();
  copy->scale.fill_(5);
  copy->offset.fill_(6);
  copy->head->weight.fill_(8);
  EXPECT_EQ(net.scale.item(), 2);
  EXPECT_EQ(net.head->weight.to_vector<double>(), weight);
  EXPECT_EQ(net.offset.to_vector<float>(), std::vector<float>(3, 7));
  EXPECT_EQ(error_text([&] { copy_of(net, [] { return std::make_shared<Linear>(4, 2); }); }),
            "copy_state: expected 6 modules, got 1");
  EXPECT_EQ(error_text([&] { copy_of(*net.head, [] { return std::shared_ptr<Linear>(); }); }),
            "copy_of: expected `make` to build a Linear, got null");
  EXPECT_THAT(error_text([&] { copy_of(*net.head, [] { return std::make_shared<Linear>(4, 3); }); }),
              HasSubstr("the weights do not fit Linear"));
}

TEST(Sequential, RunsInOrderAndNamesByNumber) {
  const auto net = sequential(std::make_shared<Linear>(3, 4), std::make_shared<ReLU>(), std::make_shared<Linear>(4, 1));
  EXPECT_THAT(names(net->parameters()), ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  const Tensor x = normal({2, 3});
  const auto at = [&](size_t i) -> Module& { return *net->children[i]; };
  EXPECT_EQ((*net)(x).to_vector<float>(), at(2)(at(1)(at(0)(x))).to_vector<float>());
  EXPECT_EQ(error_text([&] { net->add(nullptr); }), "Sequential: expected a module, got null at position 3");
  const char* const itself = "Sequential: expected another module, got itself, or one that contains it, at position 3";
  EXPECT_EQ(error_text([&] { net->add(net); }), itself);
  EXPECT_EQ(error_text([&] { net->add(sequential(std::make_shared<ReLU>(), sequential(net))); }), itself);
  EXPECT_EQ(net->children.size(), 3);
  net->children.push_back(sequential(net));
  for (const auto& visit : std::vector<std::function<void()>>{[&] { net->parameters(); }, [&] { net->modules(); },
                                                              [&] { net->state_dict(); }, [&] { net->eval(); },
                                                              [&] { net->to(DType::f64); }})
    EXPECT_EQ(error_text(visit),
              "module: '3.0.3', a Sequential, contains itself. Look at fields(), or at what was added to it");
  net->children.pop_back();
}

// A layer may have two names.
TEST(Module, ANullInARowIsAnErrorAndASharedChildIsNone) {
  Net net;
  net.rows[0] = net.rows[1];
  EXPECT_EQ(net.parameters().size(), 9);
  net.rows[1] = nullptr;
  for (const auto& visit : std::vector<std::function<void()>>{[&] { net.parameters(); }, [&] { net.modules(); },
                                                              [&] { net.state_dict(); }, [&] { net.eval(); }})
    EXPECT_EQ(error_text(visit), "module: 'rows.1' is null. Leave it out of its vector");
  EXPECT_EQ(error_text([] { Linear(2, 2).apply({}); }), "apply: expected a function of a module, got none");
}

}  // namespace
}  // namespace weft::nn
