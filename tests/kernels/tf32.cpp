// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/f32_products.h"

#include <cmath>
#include <cstdlib>

#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/linear.h"
#include "kernels/contracts/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/tf32.h"

// Products of f32 on tensor cores: equal to f64 to f32's last bits once the factors are rounded to tf32, and to f32
// where that is not allowed. Which kernel computes is left to each device, so factors have no ties but where they are
// asked for: tf32_wgmma.cpp has those of Hopper's kernels.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::F32Products;
using kernels::F32ProductsScope;
using kernels::View;

/// The factors that a device uses where tf32 is allowed.
std::vector<double> seen(DeviceKind kind, std::vector<double> values) {
  if (kind != DeviceKind::cpu)
    for (double& value : values) value = tf32::away(value);
  return values;
}

struct Tf32Case {
  int64_t B, M, N, K;
  bool transpose_a = false, transpose_b = false;
};

void check(DeviceKind kind, const Tf32Case& c) {
  SCOPED_TRACE(str("B ", c.B, " M ", c.M, " N ", c.N, " K ", c.K, " ta ", c.transpose_a, " tb ", c.transpose_b, " on ",
                   name(kind)));
  const auto a = tf32::without_ties(c.B * c.M * c.K), b = tf32::without_ties(c.B * c.K * c.N),
             bias = uniform(c.N, DType::f32);
  const DeviceArray a_array(kind, DType::f32, {c.B, c.M, c.K}, a), b_array(kind, DType::f32, {c.B, c.K, c.N}, b),
      bias_array(kind, DType::f32, {c.N}, bias), y(kind, DType::f32, {c.B, c.M, c.N});
  View a_view = a_array, b_view = b_array;
  if (c.transpose_a) a_view.strides = {c.M * c.K, 1, c.M};
  if (c.transpose_b) b_view.strides = {c.K * c.N, 1, c.K};
  std::vector<double> sizes(static_cast<size_t>(c.B * c.M * c.N));  // terms' sizes: terms may cancel in sums
  const auto want = [&](const std::vector<double>& left, const std::vector<double>& right) {
    std::vector<double> values(sizes.size());
    for (int64_t n = 0; n < c.B; ++n)
      for (int64_t i = 0; i < c.M; ++i)
        for (int64_t j = 0; j < c.N; ++j) {
          double sum = bias[j], squares = bias[j] * bias[j];
          for (int64_t k = 0; k < c.K; ++k) {
            const double term = left[n * c.M * c.K + (c.transpose_a ? k * c.M + i : i * c.K + k)] *
                                right[n * c.K * c.N + (c.transpose_b ? j * c.K + k : k * c.N + j)];
            sum += term;
            squares += term * term;
          }
          values[(n * c.M + i) * c.N + j] = sum;
          sizes[(n * c.M + i) * c.N + j] = std::max(std::abs(sum), std::sqrt(squares));
        }
    return values;
  };
  const auto run = [&] { kernels::matmul(queue_on(kind), y, a_view, b_view, bias_array, {}); };
  const auto compare = [&](const std::vector<double>& expected) {
    run();
    EXPECT_TRUE(near(y.host(), expected, tolerance(DType::f32, c.K), sizes));
  };
  compare(want(a, b));
  const F32ProductsScope scope(F32Products::tf32);
  compare(want(seen(kind, a), seen(kind, b)));
}

TEST(Tf32, IsOffUntilItIsAllowed) {
  if (std::getenv("WEFT_F32") == nullptr) {
    EXPECT_FALSE(kernels::allow_tf32());
  }
  for (const DeviceKind kind : test_devices()) {
    constexpr double kValue = 1 + 0x1p-12;  // tf32 has 1
    const DeviceArray a(kind, DType::f32, {1, 1, 1}, {kValue}), b(kind, DType::f32, {1, 1, 1}, {1}),
        y(kind, DType::f32, {1, 1, 1});
    const auto run = [&] {
      kernels::matmul(queue_on(kind), y, a, b, View::none(), {});
      return y.host()[0];
    };
    const F32ProductsScope outer(F32Products::exact);
    EXPECT_EQ(run(), kValue);
    {
      const F32ProductsScope inner(F32Products::tf32);
      EXPECT_EQ(run(), kind == DeviceKind::cpu ? kValue : 1);
    }
    EXPECT_EQ(run(), kValue);
  }
}

TEST(Tf32, TiesGoAwayFromZeroAndNanStays) {  // one column is too narrow for TMA
  for (const DeviceKind kind : test_devices()) {
    if (kind == DeviceKind::cpu) continue;
    const F32ProductsScope scope(F32Products::tf32);
    const std::vector<double> values{1 + 0x1p-11, -1 - 0x1p-11, 1 + 0x1p-11 - 0x1p-23, 3 - 0x1p-22, NAN, INFINITY,
                                     0,           0x1p-126};
    const DeviceArray a(kind, DType::f32, {1, 8, 1}, values), b(kind, DType::f32, {1, 1, 1}, {1}),
        y(kind, DType::f32, {1, 8, 1});
    kernels::matmul(queue_on(kind), y, a, b, View::none(), {});
    EXPECT_TRUE(near(y.host(), {1 + 0x1p-10, -1 - 0x1p-10, 1, 3, NAN, INFINITY, 0, 0x1p-126}, {}));
  }
}

TEST(Tf32, MatmulInEveryLayout) {
  on_both_generations([](DeviceKind kind) {
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        check(kind, {pick(1, 3), pick(1, 70), pick(1, 70), pick(1, 200), ta, tb});
        check(kind, {2, 40, 72, 88, ta, tb});    // whole runs
        check(kind, {1, 30, 24, 1100, ta, tb});  // a shared-out depth
      }
  });
}

TEST(Tf32, MatmulOnLargerTiles) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const bool turned : {false, true}) {
      check(kind, {1, 264, 256, 40, turned, !turned});
      if (kind != DeviceKind::cpu) check(kind, {1, 1288, 1160, 20, turned, turned});
    }
}

TEST(Tf32, LinearBackwardKeepsTheBiasInF32) {
  on_both_generations([](DeviceKind kind) {
    for (const auto& [M, I, O] : {std::array<int64_t, 3>{57, 33, 31}, {96, 40, 72}, {1300, 24, 40}, {24, 264, 256}}) {
      SCOPED_TRACE(str("M ", M, " I ", I, " O ", O, " on ", name(kind)));
      const F32ProductsScope scope(F32Products::tf32);
      const auto dy = tf32::without_ties(M * O), x = tf32::without_ties(M * I), w = tf32::without_ties(O * I),
                 saved = uniform(M * I, DType::f32);
      const DeviceArray dy_array(kind, DType::f32, {M, O}, dy), x_array(kind, DType::f32, {M, I}, x),
          w_array(kind, DType::f32, {O, I}, w), saved_array(kind, DType::f32, {M, I}, saved),
          dw(kind, DType::f32, {O, I}), db(kind, DType::f32, {O}), dx(kind, DType::f32, {M, I});
      kernels::linear_backward_weight(queue_on(kind), dw, db, dy_array, x_array);
      kernels::linear_backward_input(queue_on(kind), dx, dy_array, w_array, saved_array, Activation::relu);
      const auto dy_seen = seen(kind, dy), x_seen = seen(kind, x), w_seen = seen(kind, w);
      std::vector<double> want_dw(static_cast<size_t>(O * I)), want_db(static_cast<size_t>(O)),
          want_dx(static_cast<size_t>(M * I));
      for (int64_t m = 0; m < M; ++m)
        for (int64_t o = 0; o < O; ++o) {
          want_db[o] += dy[m * O + o];
          for (int64_t i = 0; i < I; ++i) {
            want_dw[o * I + i] += dy_seen[m * O + o] * x_seen[m * I + i];
            if (saved[m * I + i] > 0) want_dx[m * I + i] += dy_seen[m * O + o] * w_seen[o * I + i];
          }
        }
      EXPECT_TRUE(near(dw.host(), want_dw, tolerance(DType::f32, M)));
      EXPECT_TRUE(near(db.host(), want_db, tolerance(DType::f32, M)));
      EXPECT_TRUE(near(dx.host(), want_dx, tolerance(DType::f32, O)));
    }
  });
}

TEST(Tf32, Conv2dInEveryDirection) {
  struct Shape {
    int64_t N, H, C, O, R, stride, padding, groups;
  };
  on_both_generations([](DeviceKind kind) {
    for (const auto& [N, H, C, O, R, stride, padding, groups] : {Shape{2, 7, 8, 12, 3, 1, 1, 1},
                                                                 {2, 9, 3, 16, 5, 2, 2, 1},
                                                                 {1, 8, 16, 8, 1, 1, 0, 1},
                                                                 {2, 6, 16, 8, 3, 1, 1, 2}}) {
      SCOPED_TRACE(str("N ", N, " H ", H, " C ", C, " O ", O, " R ", R, " stride ", stride, " groups ", groups, " on ",
                       name(kind)));
      const F32ProductsScope scope(F32Products::tf32);
      const int64_t P = (H + 2 * padding - R) / stride + 1, group_C = C / groups, group_O = O / groups;
      const auto x = tf32::without_ties(N * H * H * C), w = tf32::without_ties(O * R * R * group_C),
                 dy = tf32::without_ties(N * P * P * O);
      const DeviceArray x_array(kind, DType::f32, {N, H, H, C}, x), w_array(kind, DType::f32, {O, R, R, group_C}, w),
          dy_array(kind, DType::f32, {N, P, P, O}, dy), y(kind, DType::f32, {N, P, P, O}),
          dx(kind, DType::f32, {N, H, H, C}), dw(kind, DType::f32, {O, R, R, group_C});
      const kernels::Conv2dArguments arguments{
          .stride = {stride, stride}, .padding = {padding, padding}, .groups = groups};
      kernels::conv2d_forward(queue_on(kind), y, x_array, w_array, View::none(), arguments);
      kernels::conv2d_backward_input(queue_on(kind), dx, dy_array, w_array, View::none(), arguments);
      kernels::conv2d_backward_weight(queue_on(kind), dw, dy_array, x_array, arguments);
      const auto xs = seen(kind, x), ws = seen(kind, w), ds = seen(kind, dy);
      std::vector<double> want_y(dy.size()), want_dx(x.size()), want_dw(w.size());
      for (int64_t n = 0; n < N; ++n)
        for (int64_t p = 0; p < P * P; ++p)
          for (int64_t r = 0; r < R * R; ++r) {
            const int64_t h = p / P * stride - padding + r / R, v = p % P * stride - padding + r % R;
            if (h < 0 || h >= H || v < 0 || v >= H) continue;
            for (int64_t o = 0; o < O; ++o)
              for (int64_t c = 0; c < group_C; ++c) {
                const int64_t at_x = ((n * H + h) * H + v) * C + o / group_O * group_C + c;
                const int64_t at_w = (o * R * R + r) * group_C + c, at_y = (n * P * P + p) * O + o;
                want_y[at_y] += xs[at_x] * ws[at_w];
                want_dx[at_x] += ds[at_y] * ws[at_w];
                want_dw[at_w] += ds[at_y] * xs[at_x];
              }
          }
      EXPECT_TRUE(near(y.host(), want_y, tolerance(DType::f32, R * R * group_C)));
      EXPECT_TRUE(near(dx.host(), want_dx, tolerance(DType::f32, R * R * group_O)));
      EXPECT_TRUE(near(dw.host(), want_dw, tolerance(DType::f32, N * P * P)));
    }
  });
}

/// In a process of its own, since a process reads its environment once.
TEST(F32ProductsDeathTest, TheVariable) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto said = [](const char* variable, const char* text) {
    unsetenv("WEFT_F32");
    setenv(variable, text, 1);
    std::fputs(error_text([] {
                 const auto how = static_cast<size_t>(kernels::f32_products());
                 std::fputs(std::string(kernels::kF32ProductsNames[how]).c_str(), stderr);
               }).c_str(),
               stderr);
    std::exit(0);
  };
  for (const std::string_view each : kernels::kF32ProductsNames)
    EXPECT_EXIT(said("WEFT_F32", each.data()), testing::ExitedWithCode(0), str("^", each, "$"));
  EXPECT_EXIT(said("WEFT_F32", ""), testing::ExitedWithCode(0), "^exact$");
  EXPECT_EXIT(said("WEFT_F32", "on"), testing::ExitedWithCode(0),
              "^WEFT_F32: expected exact, tf32, split3 or split6, got 'on'$");
  EXPECT_EXIT(said("WEFT_ALLOW_TF32", "1"), testing::ExitedWithCode(0), "^WEFT_ALLOW_TF32 is WEFT_F32=tf32 now$");
}

}  // namespace
}  // namespace weft::tests
