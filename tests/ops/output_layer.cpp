// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "kernels/runtime/allocator.h"
#include "tests/support/devices.h"
#include "tests/support/hopper.h"
#include "tests/support/kernel_calls.h"

// The output layer of a language model, whose vocabulary is no multiple of 8, with its loss: rows of logits have a gap
// on a GPU, and nothing copies or converts them.

namespace weft {
namespace {

struct OutputHead {
  Tensor x, w, t;
  OutputHead(Device device, int64_t rows, int64_t classes, int64_t in)
      : x(normal({rows, in}, 0, 1, DType::f32, device).to(DType::bf16).requires_grad_()),
        w(normal({classes, in}, 0, 0.2, DType::f32, device).to(DType::bf16).requires_grad_()) {
    std::vector<int64_t> classes_of(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) classes_of[static_cast<size_t>(i)] = i * 37 % classes;
    classes_of[1] = -100;
    t = Tensor::from(classes_of, {rows}).to(device);
  }
};

std::vector<float> f32_of(const Tensor& x) { return x.to(DType::f32).contiguous().to(Device{}).to_vector<float>(); }

constexpr Device kFirstGpu{DeviceKind::cuda, 0};

TEST(OutputLayer, LogitsHaveAGapOnAGpu) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  const NoGrad no_grad;
  const Tensor x = Tensor::zeros({2, 3, 8}, DType::bf16, kFirstGpu),
               w = Tensor::zeros({1003, 8}, DType::bf16, kFirstGpu);
  for (const Tensor& y : {linear(x, w), matmul(x, w.transpose(0, 1))}) {
    EXPECT_EQ(y.sizes(), (Shape{2, 3, 1003}));
    EXPECT_EQ(y.stride(1), 1008);
  }
  EXPECT_TRUE(linear(x.to(DType::f32), w.to(DType::f32)).is_contiguous());
  EXPECT_TRUE(linear(x, w.slice(0, 0, 1000)).is_contiguous());
  EXPECT_TRUE(linear(x, w.slice(0, 0, 10)).is_contiguous()) << "narrow";
}

TEST(OutputLayer, EveryProductIsOnWgmmaAndNothingIsCopied) {
  if (const std::string why = tests::why_no_wgmma(); !why.empty()) GTEST_SKIP() << why;
  const OutputHead head(kFirstGpu, 256, 1003, 64);
  head.w.set_grad(Tensor::zeros({1003, 64}, DType::bf16, kFirstGpu));
  tests::KernelCalls calls;
  cross_entropy(linear(head.x, head.w), head.t).backward();
  EXPECT_EQ(calls.count["matmul sm90"], 3);
  calls.count.erase("matmul sm90");
  for (const char* const name : {"cross_entropy_forward", "cross_entropy_backward"}) {
    EXPECT_EQ(calls.count[name], 1);
    calls.count.erase(name);
  }
  for (const auto& [name, count] : calls.count) EXPECT_EQ(name.find("copy"), name.npos) << name;
}

TEST(OutputLayer, EqualsTheCpuOnBothGenerations) {
  const OutputHead want({}, 37, 307, 20), biased({}, 1, 307, 20);
  const Tensor b = biased.w.select(1, 0).detach().clone().requires_grad_();
  tests::on_both_generations([&](DeviceKind kind) {
    const Device device{kind, 0};
    const auto gradients = [&](DType dtype, Device on) {
      const auto leaf = [&](const Tensor& x) { return x.detach().to(on).to(dtype).requires_grad_(); };
      const Tensor x = leaf(want.x), w = leaf(want.w), bias = leaf(b);
      cross_entropy(linear(x, w, bias), want.t.to(on), {.reduction = Reduction::sum}).backward();
      std::vector<std::vector<float>> all;
      for (const Tensor& one : {x, w, bias}) all.push_back(f32_of(one.grad()));
      return all;
    };
    const auto exact = gradients(DType::f64, {}), got = gradients(DType::bf16, device);
    for (size_t i = 0; i < exact.size(); ++i) {
      double error = 0, size = 0;
      for (size_t j = 0; j < exact[i].size(); ++j)
        error += (got[i][j] - exact[i][j]) * (got[i][j] - exact[i][j]), size += exact[i][j] * exact[i][j];
      EXPECT_LT(std::sqrt(error / size), 1.0 / 128) << i << " on " << name(kind);  // bf16 rounds to 2^-9, several times
    }
  });
}

/// Bytes at the peak of `body` above those before.
template <class Body>
size_t peak_of(Device device, Body&& body) {
  kernels::CachingAllocator& allocator = kernels::CachingAllocator::of(device);
  allocator.reset_peak();
  const size_t before = allocator.stats().live;
  body();
  return allocator.stats().peak_live - before;
}

TEST(OutputLayer, OneCopyOfTheLogitsThenNone) {
  for (const DeviceKind kind : tests::test_devices()) {
    const OutputHead head({kind, 0}, 384, 4099, 8);
    const size_t logits = 384 * 4104 * 2;
    const size_t whole = peak_of({kind, 0}, [&] {
      const Tensor loss = cross_entropy(linear(head.x, head.w), head.t);  // and the logits' last handle goes
      loss.backward();
    });
    EXPECT_LT(whole, logits * 5 / 4) << "the gradient overwrites the logits";
    const size_t chunks =
        peak_of({kind, 0}, [&] { linear_cross_entropy(head.x, head.w, head.t, {.rows = 32}).backward(); });
    EXPECT_LT(chunks, logits / 2);
  }
}

TEST(OutputLayer, LogitsThatOthersHoldStay) {
  for (const DeviceKind kind : tests::test_devices()) {
    const OutputHead head({kind, 0}, 40, 301, 16);
    const auto gradients = [&](bool hold, bool twice) {
      head.x.set_grad({}), head.w.set_grad({});
      Tensor logits = linear(head.x, head.w);
      const auto before = f32_of(logits);
      const Tensor loss = cross_entropy(logits, head.t, {.reduction = Reduction::sum});
      if (!hold) logits = {};
      if (twice) {
        loss.backward({}, /*retain_graph=*/true);
        head.x.set_grad({}), head.w.set_grad({});
      }
      loss.backward();
      if (hold) {
        EXPECT_EQ(f32_of(logits), before);
      }
      auto all = f32_of(head.x.grad());
      for (const float value : f32_of(head.w.grad())) all.push_back(value);
      return all;
    };
    const auto alone = gradients(false, false);
    EXPECT_EQ(gradients(true, false), alone);
    EXPECT_EQ(gradients(false, true), alone);
  }
}

// Autocast makes no f32 copy of the logits; a row's gradient is the same as from one, up to the order of the row's sum.
TEST(OutputLayer, SixteenBitsLoseNothing) {
  for (const DeviceKind kind : tests::test_devices()) {
    const OutputHead head({kind, 0}, 64, 1003, 16);
    const Tensor logits = linear(head.x, head.w).detach();
    const auto loss_of = [&](const Tensor& x) { return cross_entropy(x, head.t).item(); };
    EXPECT_NEAR(loss_of(logits), loss_of(logits.to(DType::f32)), 2e-6);
    const Autocast low(DType::bf16);
    Tensor loss;
    {
      tests::KernelCalls calls;
      loss = cross_entropy(logits, head.t);
      EXPECT_EQ(calls.count["copy"], 0);
    }
    EXPECT_EQ(loss.dtype(), DType::f32);
  }
}

TEST(OutputLayer, ChunksGiveWhatTheWholeGives) {
  for (const DeviceKind kind : tests::test_devices()) {
    const OutputHead head({kind, 0}, 200, 307, 24);
    const auto gradients = [&](const Tensor& loss) {
      head.x.set_grad({}), head.w.set_grad({});
      loss.backward(Tensor::full({}, 64, DType::f32, loss.device()));
      auto all = f32_of(head.x.grad());
      for (const float value : f32_of(head.w.grad())) all.push_back(value);
      all.push_back(static_cast<float>(loss.item()));
      return all;
    };
    const auto want = gradients(cross_entropy(linear(head.x, head.w), head.t, {.label_smoothing = 0.1}));
    for (const int64_t rows : {0, 64, 7}) {
      const auto got = gradients(linear_cross_entropy(head.x, head.w, head.t, {.label_smoothing = 0.1, .rows = rows}));
      ASSERT_EQ(got.size(), want.size());
      double error = 0, size = 0;
      for (size_t i = 0; i < got.size(); ++i)
        error += (got[i] - want[i]) * (got[i] - want[i]), size += want[i] * want[i];
      EXPECT_LT(std::sqrt(error / size), 1.0 / 128) << rows << " rows at a time";  // bf16 rounds to 2^-9, several times
    }
  }
}

}  // namespace
}  // namespace weft
