// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/linear.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/devices.h"
#include "tests/support/kernel_calls.h"
#include "tests/support/random_values.h"

// Which kernels the backward of linear layers runs, and that its shortcut past an activation changes nothing.

namespace weft {
namespace {

Tensor random(const Shape& sizes, Device device = {}) {
  const auto values = tests::uniform(sizes.numel(), DType::f32);
  return Tensor::from(std::vector<float>(values.begin(), values.end()), sizes).to(device).to(DType::f64);
}

/// Two linear layers with f between them; every tensor is a leaf in f64.
struct Layers {
  Tensor x, w1, b1, w2, b2, dy;
  explicit Layers(Device device = {})
      : x(random({6, 5}, device).requires_grad_()),
        w1(random({7, 5}, device).requires_grad_()),
        b1(random({7}, device).requires_grad_()),
        w2(random({4, 7}, device).requires_grad_()),
        b2(random({4}, device).requires_grad_()),
        dy(random({6, 4}, device)) {}

  /// All gradients, one after the other, and none left.
  std::vector<double> take() const {
    std::vector<double> all;
    for (const Tensor& leaf : {x, w1, b1, w2, b2}) {
      if (!leaf.grad().defined()) continue;
      for (const double value : leaf.grad().to_vector<double>()) all.push_back(value);
      leaf.set_grad({});
    }
    return all;
  }
};

using Hidden = Tensor (*)(const Layers&);
const std::pair<const char*, Hidden> kHidden[] = {
    {"gelu", [](const Layers& l) { return gelu(linear(l.x, l.w1, l.b1)); }},
    {"gelu_tanh", [](const Layers& l) { return gelu(linear(l.x, l.w1, l.b1), Gelu::tanh); }},
    {"relu", [](const Layers& l) { return relu(linear(l.x, l.w1, l.b1)); }},
    {"linear_gelu", [](const Layers& l) { return linear_gelu(l.x, l.w1, l.b1); }},
    {"linear_gelu_tanh", [](const Layers& l) { return linear_gelu(l.x, l.w1, l.b1, Gelu::tanh); }}};

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

TEST(LinearBackward, TheDerivativeOfAnActivationIsPartOfTheProduct) {
  for (const DeviceKind kind : tests::test_devices())
    for (const auto& [name, hidden] : kHidden) {
      SCOPED_TRACE(str(name, " on ", weft::name(kind)));
      const Layers l(Device{kind, 0});
      const Tensor h = hidden(l), seen = hidden(l);
      seen.register_hook([](const Tensor&) { return Tensor(); });  // whoever looks at a gradient gets the real one
      std::map<std::string, int> plain, fused;
      {
        const Tensor y = linear(seen, l.w2, l.b2);
        const tests::KernelCalls calls;
        y.backward(l.dy);
        plain = calls.count;
      }
      const auto want = l.take();
      {
        const Tensor y = linear(h, l.w2, l.b2);
        const tests::KernelCalls calls;
        y.backward(l.dy);
        fused = calls.count;
      }
      expect_near(l.take(), want);
      EXPECT_EQ(plain["unary_backward"], 1);
      EXPECT_EQ(plain["linear_backward_input"], 0);
      EXPECT_EQ(fused["unary_backward"], 0);
      EXPECT_EQ(fused["linear_backward_input"], 1);
      for (auto* count : {&plain, &fused}) {
        EXPECT_EQ((*count)["linear_backward_weight"], 2);
        EXPECT_EQ((*count)["reduce"], 0);  // both bias gradients come with the weights'
      }
    }
}

TEST(LinearBackward, AnActivationThatOthersUseToo) {
  for (const auto& [name, hidden] : kHidden) {
    SCOPED_TRACE(name);
    const Layers l;
    {
      const Tensor h = hidden(l);
      linear(h, l.w2, l.b2).backward(l.dy, /*retain_graph=*/true);
      sum(h).backward();
    }
    const auto want = l.take();
    for (const bool first : {false, true}) {  // the younger op's gradient comes first
      const Tensor h = hidden(l), before = sum(h), product = sum(mul(linear(h, l.w2, l.b2), l.dy)), behind = sum(h);
      const Tensor y = product + (first ? before : behind);
      const tests::KernelCalls calls;
      y.backward();
      expect_near(l.take(), want);
      auto count = calls.count;
      EXPECT_EQ(count["linear_backward_input"], 0);
      EXPECT_EQ(count["unary_backward"], 1);
    }
  }
}

TEST(LinearBackward, AnActivationWhoseGradientIsAskedFor) {  // an output of the pass itself
  const Layers l;
  const Tensor h = gelu(linear(l.x, l.w1, l.b1)), dh = random({6, 7});
  backward({h}, {dh}, true);
  backward({linear(h, l.w2, l.b2)}, {l.dy}, true);
  const auto want = l.take();
  backward({h, linear(h, l.w2, l.b2)}, {dh, l.dy});
  expect_near(l.take(), want);
}

TEST(LinearBackward, TwiceThroughTheSameGraph) {
  for (const auto& [name, hidden] : kHidden) {
    SCOPED_TRACE(name);
    const Layers l;
    const Tensor y = linear(hidden(l), l.w2, l.b2);
    y.backward(l.dy, /*retain_graph=*/true);
    const auto first = l.take();
    y.backward(l.dy);
    expect_near(l.take(), first);
    EXPECT_ANY_THROW(y.backward(l.dy));
  }
}

TEST(LinearBackward, ThroughACheckpoint) {
  const Layers l;
  linear(gelu(linear(l.x, l.w1, l.b1)), l.w2, l.b2).backward(l.dy);
  const auto want = l.take();
  const auto inner = [&](const std::vector<Tensor>& in) { return gelu(linear(in[0], l.w1, l.b1)); };
  linear(checkpoint(inner, {l.x}), l.w2, l.b2).backward(l.dy);
  expect_near(l.take(), want);
  const auto both = [&](const std::vector<Tensor>& in) { return linear(gelu(linear(in[0], l.w1, l.b1)), l.w2, l.b2); };
  checkpoint(both, {l.x}).backward(l.dy);
  expect_near(l.take(), want);
}

TEST(LinearBackward, FrozenParts) {
  for (int frozen = 0; frozen < 4; ++frozen) {
    const Layers l;
    const Tensor leaves[] = {l.w1, l.b1, l.w2, l.b2};
    linear(linear_gelu(l.x, l.w1, l.b1), l.w2, l.b2).backward(l.dy);
    std::vector<double> want;
    for (const Tensor& leaf : {l.x, l.w1, l.b1, l.w2, l.b2})
      if (leaf.impl() != leaves[frozen].impl())
        for (const double value : leaf.grad().to_vector<double>()) want.push_back(value);
    l.take();
    leaves[frozen].requires_grad_(false);
    linear(linear_gelu(l.x, l.w1, l.b1), l.w2, l.b2).backward(l.dy);
    expect_near(l.take(), want);
  }
}

TEST(LinearBackward, SavedSumsThatChangedAreAnError) {
  const Layers l;
  const Tensor s = linear(l.x, l.w1, l.b1), y = linear(gelu(s), l.w2, l.b2);
  s.detach().fill_(0);
  EXPECT_THROW(y.backward(l.dy), Error);
}

TEST(LinearBackward, UnderAutocastBiasGradientsAreF32) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const auto leaf = [&](const Shape& sizes) { return random(sizes, device).to(DType::f32).requires_grad_(); };
    const Tensor x = leaf({3, 5, 16}), w1 = leaf({64, 16}), b1 = leaf({64}), w2 = leaf({16, 64}), b2 = leaf({16});
    Tensor y;
    {
      const Autocast low(DType::bf16);
      y = linear(linear_gelu(x, w1, b1), w2, b2);
    }
    const tests::KernelCalls calls;
    y.backward(Tensor::full(y.sizes(), 1 + 0x1p-7, y.dtype(), device));  // 15 of it are no bf16
    auto count = calls.count;
    EXPECT_EQ(count["linear_backward_weight"], 2);
    EXPECT_EQ(count["linear_backward_input"], 1);
    EXPECT_EQ(count["unary_backward"], 0);
    EXPECT_EQ(count["reduce"], 0);
    for (const float value : b2.grad().to_vector<float>()) EXPECT_EQ(value, 15 + 15 * 0x1p-7f);
  }
}

}  // namespace
}  // namespace weft
