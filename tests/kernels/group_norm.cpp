// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/group_norm.h"

#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

struct GroupNormCase {
  int64_t N, P, C, G;
  bool affine = true;
  double mean = 0;  ///< x lies around it, with a deviation of about 1
};

/// In f64.
struct GroupNormReference {
  std::vector<double> y, mean, invstd, dx, dweight, dbias;

  GroupNormReference(const GroupNormCase& c, const std::vector<double>& x, const std::vector<double>& weight,
                     const std::vector<double>& bias, const std::vector<double>& dy, double eps)
      : y(x.size()), dx(x.size()), dweight(static_cast<size_t>(c.C)), dbias(dweight.size()) {
    const int64_t wide = c.C / c.G;
    const double elements = static_cast<double>(c.P * wide);
    for (int64_t group = 0; group < c.N * c.G; ++group) {
      const auto each = [&](const auto& visit) {
        for (int64_t p = 0; p < c.P; ++p)
          for (int64_t k = 0; k < wide; ++k) {
            const int64_t channel = group % c.G * wide + k;
            visit((group / c.G * c.P + p) * c.C + channel, channel);
          }
      };
      long double sum = 0;  // far from zero f64 would round each term
      double squares = 0, slope = 0, product = 0;
      each([&](int64_t at, int64_t) { sum += x[at]; });
      const double center = static_cast<double>(sum / elements);
      each([&](int64_t at, int64_t) { squares += (x[at] - center) * (x[at] - center); });
      const double scale = 1 / std::sqrt(squares / elements + eps);
      each([&](int64_t at, int64_t channel) {
        const double xhat = (x[at] - center) * scale, gain = c.affine ? weight[channel] : 1;
        y[at] = xhat * gain + (c.affine ? bias[channel] : 0);
        dweight[channel] += dy[at] * xhat;
        dbias[channel] += dy[at];
        slope += dy[at] * gain / elements;
        product += dy[at] * gain * xhat / elements;
      });
      each([&](int64_t at, int64_t channel) {
        const double gain = c.affine ? weight[channel] : 1;
        dx[at] = scale * (dy[at] * gain - slope - (x[at] - center) * scale * product);
      });
      mean.push_back(center);
      invstd.push_back(scale);
    }
  }
};

void check(DeviceKind kind, DType dtype, const GroupNormCase& c) {
  SCOPED_TRACE(str(dtype, "[", c.N, ",", c.P, ",", c.C, "] in ", c.G, " groups, affine ", c.affine, ", mean ", c.mean,
                   " on ", name(kind)));
  constexpr double kEps = 1e-5;
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto x = uniform(c.N * c.P * c.C, dtype, c.mean - 2, c.mean + 2), dy = uniform(c.N * c.P * c.C, dtype),
             weight = uniform(c.C, wide, 0.5, 2), bias = uniform(c.C, wide);
  const GroupNormReference want(c, x, weight, bias, dy, kEps);
  const DeviceArray x_array(kind, dtype, {c.N, c.P, c.C}, x), dy_array(kind, dtype, {c.N, c.P, c.C}, dy),
      weight_array(kind, wide, {c.C}, weight), bias_array(kind, wide, {c.C}, bias), y(kind, dtype, {c.N, c.P, c.C}),
      mean(kind, wide, {c.N, c.G}), invstd(kind, wide, {c.N, c.G}), dx(kind, dtype, {c.N, c.P, c.C}),
      dweight(kind, wide, {c.C}), dbias(kind, wide, {c.C});
  const auto given = [&](const DeviceArray& array) { return c.affine ? array.view() : View::none(); };
  kernels::group_norm_forward(queue_on(kind), y, mean, invstd, x_array, given(weight_array), given(bias_array), kEps);
  kernels::group_norm_backward(queue_on(kind), dx, given(dweight), given(dbias), dy_array, x_array, given(weight_array),
                               mean, invstd);
  // The stored mean is rounded to `wide`, and every distance moves by that.
  const double distance = std::abs(c.mean) * epsilon_of(wide);
  const auto allowed = [&](DType of, int64_t terms) {
    Tolerance all = tolerance(of, terms);
    return Tolerance{all.norm + distance, all.largest + 4 * distance};
  };
  const int64_t terms = c.P * c.C / c.G;
  EXPECT_TRUE(near(y.host(), want.y, allowed(dtype, terms)));
  std::vector<double> sizes;  // a mean may be far below the elements
  for (size_t i = 0; i < want.mean.size(); ++i) sizes.push_back(std::abs(want.mean[i]) + 1 / want.invstd[i]);
  EXPECT_TRUE(near(mean.host(), want.mean, tolerance(wide, terms), sizes));
  EXPECT_TRUE(near(invstd.host(), want.invstd, tolerance(wide, terms)));
  EXPECT_TRUE(near(dx.host(), want.dx, allowed(dtype, terms)));
  if (!c.affine) return;
  EXPECT_TRUE(near(dweight.host(), want.dweight, allowed(wide, c.N * c.P)));
  EXPECT_TRUE(near(dbias.host(), want.dbias, tolerance(wide, c.N * c.P)));
}

TEST(GroupNorm, EqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      for (const bool affine : {false, true}) check(kind, dtype, {3, 70, 24, 4, affine});
      check(kind, dtype, {2, 130, 6, 6});    // each channel a group
      check(kind, dtype, {2, 33, 20, 1});    // one group
      check(kind, dtype, {5, 1, 64, 8});     // one position
      check(kind, dtype, {1, 17, 1032, 2});  // more channels than threads
    }
}

TEST(GroupNorm, FarFromZero) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64}) check(kind, dtype, {2, 90, 16, 4, true, 1000});
}

TEST(GroupNorm, EqualElementsGiveTheBias) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {1, 37, 6}, std::vector<double>(37 * 6, 1234.5677)),
        y(kind, DType::f32, {1, 37, 6}), mean(kind, DType::f32, {1, 2}), invstd(kind, DType::f32, {1, 2}),
        bias(kind, DType::f32, {6}, {1, 2, 3, 4, 5, 6});
    kernels::group_norm_forward(queue_on(kind), y, mean, invstd, x, View::none(), bias, 1e-5);
    const auto got = y.host();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<double>(i % 6 + 1));
  }
}

TEST(GroupNorm, NothingToDo) {
  for (const DeviceKind kind : test_devices())
    for (const auto& [N, P] : {std::pair{int64_t{0}, int64_t{3}}, {int64_t{2}, int64_t{0}}}) {
      const DeviceArray x(kind, DType::f32, {N, P, 4}), y(kind, DType::f32, {N, P, 4}), mean(kind, DType::f32, {N, 2}),
          invstd(kind, DType::f32, {N, 2}), sums(kind, DType::f32, {4}, {1, 2, 3, 4});
      kernels::group_norm_forward(queue_on(kind), y, mean, invstd, x, View::none(), View::none(), 1e-5);
      kernels::group_norm_backward(queue_on(kind), y, sums, View::none(), x, x, View::none(), mean, invstd);
      EXPECT_EQ(sums.host(), (std::vector<double>(4, 0)));
    }
}

}  // namespace
}  // namespace weft::tests
