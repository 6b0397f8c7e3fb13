// SPDX-License-Identifier: Apache-2.0
// Corners and NaN, where central differences fail: the reference is PyTorch's result. Rows with Values::ties have ties.
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

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

/// The gradients of each input of f for the gradient dy of its result, on every device and in every dtype; NaN equals
/// NaN, and -0 equals 0.
void expect(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Numbers>& inputs,
            const Numbers& y, const Numbers& dy, const std::vector<Numbers>& gradients) {
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(str(dtype, " on ", name(kind)));
      const Device device{kind, 0};
      std::vector<Tensor> leaves;
      for (const Numbers& x : inputs) leaves.push_back(Tensor::from(x).to(dtype).to(device).detach().requires_grad_());
      const Tensor got = f(leaves);
      got.backward(Tensor::from(dy, got.sizes()).to(dtype).to(device));
      const tests::Tolerance rounding{tests::epsilon_of(dtype), tests::epsilon_of(dtype)};
      EXPECT_TRUE(tests::near(got.to_vector<double>(), y, rounding));
      for (size_t i = 0; i < leaves.size(); ++i)
        EXPECT_TRUE(tests::near(leaves[i].grad().to_vector<double>(), gradients[i], rounding)) << "gradient " << i;
    }
}

/// Checks a function of one tensor, for dy = 1.
void expect(const std::function<Tensor(const Tensor&)>& f, const Numbers& x, const Numbers& y, const Numbers& dx) {
  expect([&](const std::vector<Tensor>& in) { return f(in[0]); }, {x}, y, Numbers(y.size(), 1), {dx});
}

// The values of PyTorch 2.15, but for pow at -0 (docs/from_pytorch.md names both).
TEST(Corners, OfFunctionsOfOneTensor) {
  expect([](const Tensor& x) { return clamp(x, -1, 1); }, {-1, 1, kNan, 0, 2}, {-1, 1, kNan, 0, 1}, {0, 0, 0, 1, 0});
  expect(sign, {kNan, 0, -0.0, -3}, {0, 0, 0, -1}, {0, 0, 0, 0});
  expect(abs, {kNan, 0, -2}, {kNan, 0, 2}, {0, 0, -1});
  expect(relu, {kNan, 0, -2}, {kNan, 0, 0}, {1, 0, 0});
  expect([](const Tensor& x) { return pow(x, 0); }, {0, -0.0, kNan, 2}, {1, 1, 1, 1}, {0, 0, 0, 0});
}

TEST(Corners, SpreadAndNormOfEqualNumbersHaveNoSlope) {
  for (const auto f : {&weft::var, &weft::std})
    expect([f](const std::vector<Tensor>& in) { return f(in[0], {}); }, {{3, 3, 3}}, {0}, {1}, {{0, 0, 0}});
  expect([](const std::vector<Tensor>& in) { return norm(in[0]); }, {{0, 0}}, {0}, {1}, {{0, 0}});
}

TEST(Corners, OfMaximumAndMinimumAtNan) {
  for (const auto f : {&maximum, &minimum})
    expect([f](const std::vector<Tensor>& in) { return f(in[0], in[1]); }, {{1, kNan, 2, kNan}, {1, 1, kNan, kNan}},
           {1, kNan, kNan, kNan}, {1, 1, 1, 1}, {{0.5, 1, 1, 1}, {0.5, 1, 1, 1}});
}

TEST(Corners, PowAtMinusZeroIsIeee754s) {
  expect([](const Tensor& x) { return pow(x, -0.5); }, {-0.0, 0}, {kInf, kInf}, {-kInf, -kInf});
  expect([](const Tensor& x) { return pow(x, 0.5); }, {-0.0, 0}, {0, 0}, {kInf, kInf});
}

TEST(Corners, TheExponentOfZeroHasNoSlope) {
  expect([](const std::vector<Tensor>& in) { return pow(in[0], in[1]); }, {{0, 0, 0, -0.0, 2}, {0, 1, -1, 0.5, 0}},
         {1, 0, kInf, 0, 1}, {1, 1, 1, 1, 1}, {{0, 1, -kInf, kInf, 0}, {0, 0, -kInf, 0, std::log(2.0)}});
}

}  // namespace
}  // namespace weft
