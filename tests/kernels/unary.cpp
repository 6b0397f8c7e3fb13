// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/unary.h"

#include <cmath>
#include <limits>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/strided.h"
#include "tests/support/unary_references.h"

namespace weft::tests {
namespace {

using kernels::Unary;
using kernels::UnaryArguments;

double value(Unary f, double x, UnaryArguments s) { return reference_of(f).value(x, s.a.value(), s.b.value()); }

// Central differences in f64 of the function itself: an independent witness for every derivative.
double slope(Unary f, double x, UnaryArguments s) {
  const double h = 1e-5;
  return (value(f, x + h, s) - value(f, x - h, s)) / (2 * h);
}

/// The numbers keep clear of the corners of abs, sign, relu and clamp, where the derivative jumps, and of steps.
std::vector<double> inputs(Unary f, int64_t n, DType dtype) {
  auto x = uniform(n, dtype, 0.25, 3);
  if (reference_of(f).domain != Domain::positive)
    for (size_t i = 0; i < x.size(); i += 2) x[i] = -x[i];
  if (reference_of(f).domain == Domain::between_halves)
    for (double& v : x)
      if (std::abs(2 * v - std::rint(2 * v)) < 0.01) v = 0.25;
  if (f == Unary::clamp)
    for (double& v : x)
      if (std::abs(v + 0.5) < 0.01 || std::abs(v - 1.5) < 0.01) v = 0;
  return x;
}

constexpr UnaryArguments kScalars{-0.5, 1.5};

TEST(Unary, ForwardAndBackwardEqualReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (int i = 0; i < kernels::kUnaryCount; ++i) {
        const Unary f = static_cast<Unary>(i);
        const int64_t n = i % 2 ? pick(64, 700) : 256;
        SCOPED_TRACE(str(name(f), " of ", n, " ", dtype, " on ", name(kind)));
        const auto x = inputs(f, n, dtype), dy = uniform(n, dtype);
        std::vector<double> y(x.size()), dx(x.size()), saved = x;
        for (size_t k = 0; k < x.size(); ++k) {
          y[k] = value(f, x[k], kScalars);
          dx[k] = dy[k] * slope(f, x[k], kScalars);
          if (kernels::unary_saves_output(f)) saved[k] = rounded(y[k], dtype);
        }
        DeviceArray out(kind, dtype, {n});
        kernels::unary_forward(queue_on(kind), f, out, DeviceArray(kind, dtype, {n}, x), kScalars);
        EXPECT_TRUE(near(out.host(), y, tolerance(dtype, 4))) << "forward";
        out.poison();
        kernels::unary_backward(queue_on(kind), f, out, DeviceArray(kind, dtype, {n}, dy),
                                DeviceArray(kind, dtype, {n}, saved), kScalars);
        // The rounding of a saved output weighs as much as its derivative is steep; differences lose half the digits.
        Tolerance allowed = tolerance(dtype, 16, 8).times(4);
        allowed.norm = std::max(allowed.norm, 1e-8), allowed.largest = std::max(allowed.largest, 1e-7);
        EXPECT_TRUE(near(out.host(), dx, allowed)) << "backward";
      }
}

/// Functions of the columns of [6, 11] are the columns of the function.
TEST(Unary, EveryFunctionOfColumns) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (int i = 0; i < kernels::kUnaryCount; ++i) {
        const Unary f = static_cast<Unary>(i);
        const DeviceArray x(kind, dtype, {6, 11}, inputs(f, 66, dtype)), dy(kind, dtype, {6, 11}, uniform(66, dtype));
        const auto run = [&](const kernels::View& from, const kernels::View& slope_of, Sizes sizes) {
          const DeviceArray y(kind, dtype, sizes), dx(kind, dtype, sizes);
          kernels::unary_forward(queue_on(kind), f, y, from, kScalars);
          kernels::unary_backward(queue_on(kind), f, dx, slope_of, from, kScalars);
          auto all = y.host();
          for (const double v : dx.host()) all.push_back(v);
          return all;
        };
        const Strided columns = strided(x, {11, 6}, Layout::permuted), slopes = strided(dy, {11, 6}, Layout::permuted);
        const auto rows = run(x, dy, {6, 11});
        std::vector<double> want;
        for (const size_t half : {size_t{0}, size_t{66}})
          for (const int64_t place : columns.places) want.push_back(rows[half + static_cast<size_t>(place)]);
        EXPECT_TRUE(near(run(columns.view, slopes.view, {11, 6}), want, tolerance(dtype, 4)))
            << name(f) << ' ' << dtype << " on " << name(kind);
      }
}

TEST(Unary, AnyStridesAndInPlace) {
  const Sizes sizes{pick(1, 9), pick(1, 70), pick(1, 9)};
  const int64_t n = count_of(sizes);
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const Layout from : {Layout::dense, Layout::permuted, Layout::gaps, Layout::broadcast, Layout::columns})
        for (const Layout to : {Layout::dense, Layout::permuted, Layout::gaps, Layout::columns}) {
          SCOPED_TRACE(str("layouts ", static_cast<int>(from), " to ", static_cast<int>(to), " on ", name(kind)));
          const int64_t memory = memory_for(sizes);
          const auto x = uniform(memory, dtype);
          const DeviceArray source(kind, dtype, {memory}, x);
          const DeviceArray target(kind, dtype, {memory}, std::vector<double>(static_cast<size_t>(memory), 7));
          const Strided in = strided(source, sizes, from), out = strided(target, sizes, to);
          kernels::unary_forward(queue_on(kind), Unary::affine, out.view, in.view, {2, 1});
          std::vector<double> want(static_cast<size_t>(memory), 7);  // elements in between stay
          for (size_t i = 0; i < static_cast<size_t>(n); ++i)
            want[static_cast<size_t>(out.places[i])] = 2 * in.at(x, i) + 1;
          EXPECT_TRUE(near(target.host(), want, tolerance(dtype)));
        }
  for (const DeviceKind kind : test_devices()) {
    const auto x = uniform(100000, DType::f32);
    const DeviceArray array(kind, DType::f32, {100000}, x);
    kernels::unary_forward(queue_on(kind), Unary::relu, array, array, {});
    std::vector<double> want = x;
    for (double& v : want) v = std::max(v, 0.0);
    EXPECT_TRUE(near(array.host(), want, {}));
  }
}

TEST(Unary, LongStridedRuns) {  // longer than the CPU's buffer of 512 elements
  const Sizes sizes{2, 1301};
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      const auto x = uniform(memory_for(sizes), dtype);
      const DeviceArray source(kind, dtype, {memory_for(sizes)}, x);
      const DeviceArray target(kind, dtype, {memory_for(sizes)}, std::vector<double>(x.size(), 7));
      const Strided in = strided(source, sizes, Layout::gaps), out = strided(target, sizes, Layout::gaps);
      kernels::unary_forward(queue_on(kind), Unary::affine, out.view, in.view, {2, 1});
      std::vector<double> want(x.size(), 7);
      for (size_t i = 0; i < in.places.size(); ++i) want[static_cast<size_t>(out.places[i])] = 2 * in.at(x, i) + 1;
      EXPECT_TRUE(near(target.host(), want, tolerance(dtype))) << dtype << " on " << name(kind);
    }
}

TEST(Unary, Integers) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::i64, DType::i32})
      for (int i = 0; i < kernels::kUnaryCount; ++i) {
        const Unary f = static_cast<Unary>(i);
        if (!kernels::unary_takes_integers(f)) continue;
        const auto x = integers(65, -50, 50);
        DeviceArray y(kind, dtype, {65});
        kernels::unary_forward(queue_on(kind), f, y, DeviceArray(kind, dtype, {65}, x), {-2, 4});
        std::vector<double> want;
        for (const double v : x) want.push_back(value(f, v, {-2, 4}));
        EXPECT_TRUE(near(y.host(), want, {})) << name(f);
      }
}

// GELU has short forms for 16 bits on a GPU: all of their numbers, to one rounding and 2^-15. On the CPU 1 + tanh(…)
// cancels, so small results have an absolute bound.
TEST(Unary, GeluOfEachNumberOfSixteenBits) {
  const auto share = [](Unary f, double x) {  // gelu(x) / x
    if (f == Unary::gelu) return 0.5 * std::erfc(-x / std::sqrt(2.0));
    return 1 / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  };
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const Unary f : {Unary::gelu, Unary::gelu_tanh}) {
        SCOPED_TRACE(str(name(f), " of ", dtype, " on ", name(kind)));
        std::vector<double> x;
        for (int sign : {-1, 1})
          for (int exponent = dtype == DType::f16 ? -24 : -60; exponent <= 15; ++exponent)
            for (int step = 0; step < 128; ++step)
              x.push_back(rounded(sign * std::ldexp(1 + step / 128.0, exponent), dtype));
        const auto n = static_cast<int64_t>(x.size());
        DeviceArray y(kind, dtype, {n}), dx(kind, dtype, {n}), from(kind, dtype, {n}, x),
            dy(kind, dtype, {n}, std::vector<double>(x.size(), 1));
        kernels::unary_forward(queue_on(kind), f, y, from, {});
        kernels::unary_backward(queue_on(kind), f, dx, dy, from, {});
        const auto got = y.host(), slopes = dx.host();
        const double relative = (dtype == DType::bf16 ? 0x1p-8 : 0x1p-11) + 0x1p-15;
        // Beyond -7 the short tail is small in itself only; the smallest f16 is 2^-24.
        const double tail = kind == DeviceKind::cpu ? 0x1p-20 : f == Unary::gelu ? 1e-11 : 1e-37;
        const double least = dtype == DType::f16 ? std::max(tail, 0x1p-25 * 1.001) : tail;
        for (size_t i = 0; i < x.size(); ++i) {
          const double want = x[i] * share(f, x[i]);
          ASSERT_LE(std::abs(got[i] - want), relative * std::abs(want) + least) << "of " << x[i];
          const double h = 1e-5 * std::max(1.0, std::abs(x[i]));
          const double slope = ((x[i] + h) * share(f, x[i] + h) - (x[i] - h) * share(f, x[i] - h)) / (2 * h);
          ASSERT_LE(std::abs(slopes[i] - slope), relative * std::abs(slope) + 0x1p-15) << "slope at " << x[i];
        }
      }
}

TEST(Unary, NanAndInfinityPass) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      const DeviceArray x(kind, dtype, {3}, {nan, inf, -inf});
      DeviceArray y(kind, dtype, {3});
      const auto run = [&](Unary f) {
        y.poison();
        kernels::unary_forward(queue_on(kind), f, y, x, kScalars);
        return y.host();
      };
      EXPECT_TRUE(near(run(Unary::relu), {nan, inf, 0}, {}));
      EXPECT_TRUE(near(run(Unary::clamp), {nan, 1.5, -0.5}, {}));
      EXPECT_TRUE(near(run(Unary::sigmoid), {nan, 1, 0}, {}));
      EXPECT_TRUE(near(run(Unary::tanh), {nan, 1, -1}, {}));
      EXPECT_TRUE(near(run(Unary::exp), {nan, inf, 0}, {}));
    }
}

TEST(Unary, MoreThanAGpuHoldsAtATime) {  // there a thread takes two units
  for (const DeviceKind kind : test_devices()) {
    const int64_t n = (1 << 19) + 300;
    const auto x = integers(n, -100, 100);
    const DeviceArray y(kind, DType::f64, {n});
    kernels::unary_forward(queue_on(kind), Unary::relu, y, DeviceArray(kind, DType::f64, {n}, x), {});
    std::vector<double> want;
    for (const double v : x) want.push_back(std::max(v, 0.0));
    EXPECT_EQ(y.host(), want);
  }
}

TEST(Unary, NothingToDo) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray empty(kind, DType::f32, {3, 0, 2});
    kernels::unary_forward(queue_on(kind), Unary::exp, empty, empty, {});
    kernels::unary_backward(queue_on(kind), Unary::exp, empty, empty, empty, {});
  }
}

}  // namespace
}  // namespace weft::tests
