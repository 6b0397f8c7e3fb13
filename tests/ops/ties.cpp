// SPDX-License-Identifier: Apache-2.0
// Where two elements are the largest alike the slope jumps, and central differences say nothing: what PyTorch does.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft {
namespace {

using Numbers = std::vector<double>;

Tensor leaf(const Numbers& values) { return Tensor::from(values).requires_grad_(); }

TEST(Ties, MaximumAndMinimumGiveEachHalf) {
  for (const auto f : {&maximum, &minimum}) {
    const Tensor a = leaf({2, 5, -1}), b = leaf({2, 3, -1});
    f(a, b).backward(Tensor::from(Numbers{8, 1, 4}));
    const bool larger = f == &maximum;
    EXPECT_EQ(a.grad().to_vector<double>(), (Numbers{4, larger ? 1.0 : 0.0, 2}));
    EXPECT_EQ(b.grad().to_vector<double>(), (Numbers{4, larger ? 0.0 : 1.0, 2}));
  }
}

TEST(Ties, MaxAndMinShareAmongAllThatAreChosen) {
  const Tensor x = leaf({7, 1, 7, 1, 7, 3});
  max(x).backward(Tensor::full({}, 6, DType::f64));
  EXPECT_EQ(x.grad().to_vector<double>(), (Numbers{2, 0, 2, 0, 2, 0}));
  x.zero_grad();
  min(x).backward(Tensor::full({}, 6, DType::f64));
  EXPECT_EQ(x.grad().to_vector<double>(), (Numbers{0, 3, 0, 3, 0, 0}));
}

/// y = f(x) and its gradient for dy = 1, on every device and in f32 and f64; NaN equals NaN, and -0 equals 0.
void expect(const std::function<Tensor(const Tensor&)>& f, const Numbers& x, const Numbers& y, const Numbers& dx) {
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor leaf = Tensor::from(x).to(dtype).to(Device{kind, 0}).detach().requires_grad_();
      const Tensor got = f(leaf);
      got.backward(Tensor::full(got.sizes(), 1, got.dtype(), got.device()));
      EXPECT_TRUE(tests::near(got.to_vector<double>(), y, {1e-6, 1e-6})) << dtype << " on " << name(kind);
      EXPECT_TRUE(tests::near(leaf.grad().to_vector<double>(), dx, {1e-6, 1e-6})) << dtype << " on " << name(kind);
    }
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

// The values of PyTorch 2.15, but for pow at -0.
TEST(Corners, OfFunctionsOfOneTensor) {
  expect([](const Tensor& x) { return clamp(x, -1, 1); }, {-1, 1, kNan, 0, 2}, {-1, 1, kNan, 0, 1}, {0, 0, 0, 1, 0});
  expect(sign, {kNan, 0, -0.0, -3}, {0, 0, 0, -1}, {0, 0, 0, 0});
  expect(abs, {kNan, 0, -2}, {kNan, 0, 2}, {0, 0, -1});
  expect([](const Tensor& x) { return pow(x, 0); }, {0, -0.0, kNan, 2}, {1, 1, 1, 1}, {0, 0, 0, 0});
}

TEST(Corners, OfMaximumAndMinimumAtNan) {
  for (const auto f : {&maximum, &minimum}) {
    const Tensor a = leaf({1, kNan, 2, kNan}), b = leaf({1, 1, kNan, kNan});
    f(a, b).backward(Tensor::from(Numbers{1, 1, 1, 1}));
    EXPECT_EQ(a.grad().to_vector<double>(), (Numbers{0.5, 1, 1, 1}));
    EXPECT_EQ(b.grad().to_vector<double>(), (Numbers{0.5, 1, 1, 1}));
  }
}

TEST(Corners, PowAtMinusZeroIsIeee754s) {
  expect([](const Tensor& x) { return pow(x, -0.5); }, {-0.0, 0}, {kInf, kInf}, {-kInf, -kInf});
  expect([](const Tensor& x) { return pow(x, 0.5); }, {-0.0, 0}, {0, 0}, {kInf, kInf});
}

TEST(Corners, TheExponentOfZeroHasNoSlope) {
  const Tensor a = leaf({0, 0, 0, -0.0, 2}), b = leaf({0, 1, -1, 0.5, 0});
  pow(a, b).backward(Tensor::from(Numbers{1, 1, 1, 1, 1}));
  EXPECT_EQ(b.grad().to_vector<double>(), (Numbers{0, 0, -kInf, 0, std::log(2.0)}));
}

}  // namespace
}  // namespace weft
