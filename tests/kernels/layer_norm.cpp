// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/layer_norm.h"

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

/// A layer norm (centred) or an RMS norm.
struct RowNormCase {
  bool centred;
  DType dtype;
  int64_t M, C;
  bool affine, residual;
  int64_t weights_at = 0;  ///< elements from a boundary of 16 bytes to the weight and the bias
};

/// Rows in registers of a warp and of a block, rows that are read again, rows that are not aligned.
constexpr int64_t kRowSizes[] = {5, 8, 33, 256, 768, 1027, 2048, 5000};

/// In f64.
struct RowNormReference {
  std::vector<double> sum, mean, invstd, y, dx, dweight, dbias;

  /// `sum`: x + residual as the kernel rounded it; dx_in: added to dx, or empty.
  RowNormReference(const RowNormCase& n, std::vector<double> rows, const std::vector<double>& weight,
                   const std::vector<double>& bias, const std::vector<double>& dy, const std::vector<double>& dx_in,
                   double eps)
      : sum(std::move(rows)),
        mean(static_cast<size_t>(n.M)),
        invstd(mean.size()),
        y(sum.size()),
        dx(sum.size()),
        dweight(static_cast<size_t>(n.C)),
        dbias(dweight.size()) {
    const double columns = static_cast<double>(n.C);
    for (int64_t m = 0; m < n.M; ++m) {
      const int64_t row = m * n.C;
      double square = 0, mean_g = 0, mean_gx = 0;
      for (int64_t c = 0; c < n.C && n.centred; ++c) mean[m] += sum[row + c] / columns;
      for (int64_t c = 0; c < n.C; ++c) square += (sum[row + c] - mean[m]) * (sum[row + c] - mean[m]) / columns;
      invstd[m] = 1 / std::sqrt(square + eps);
      const auto xhat = [&](int64_t c) { return (sum[row + c] - mean[m]) * invstd[m]; };
      const auto gain = [&](int64_t c) { return n.affine ? weight[c] : 1.0; };
      for (int64_t c = 0; c < n.C; ++c) {
        y[row + c] = xhat(c) * gain(c) + (n.affine && n.centred ? bias[c] : 0);
        dweight[c] += dy[row + c] * xhat(c);
        dbias[c] += dy[row + c];
        mean_g += n.centred ? dy[row + c] * gain(c) / columns : 0;
        mean_gx += dy[row + c] * gain(c) * xhat(c) / columns;
      }
      for (int64_t c = 0; c < n.C; ++c)
        dx[row + c] =
            invstd[m] * (dy[row + c] * gain(c) - mean_g - xhat(c) * mean_gx) + (dx_in.empty() ? 0 : dx_in[row + c]);
    }
  }
};

/// a + b, rounded to the dtype once (by a device array).
std::vector<double> rounded_sum(DType dtype, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return DeviceArray(DeviceKind::cpu, dtype, {static_cast<int64_t>(a.size())}, sum).host();
}

void check(DeviceKind kind, const RowNormCase& n) {
  const auto [centred, dtype, M, C, affine, residual, weights_at] = n;
  SCOPED_TRACE(str(dtype, " [", M, ",", C, "] affine ", affine, " residual ", residual, ", weights at ", weights_at,
                   " on ", name(kind)));
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double eps = centred ? 1e-5 : 1e-3;
  const auto given = [](bool wanted, const DeviceArray& array) { return wanted ? array.view() : View::none(); };
  auto x = uniform(M * C, dtype, -1, 2), other = uniform(M * C, dtype);
  if (residual) {  // a first element that cancels: its row is centred by the sum
    x[0] = dtype == DType::f16 ? 3e4 : 1e30;
    other[0] = -x[0];
  }
  const auto dy = uniform(M * C, dtype);
  const auto dx_in = residual ? uniform(M * C, dtype) : std::vector<double>();
  const auto weight = uniform(C, wide, 0.5, 2), bias = uniform(C, wide);
  const RowNormReference want(n, residual ? rounded_sum(dtype, x, other) : x, weight, bias, dy, dx_in, eps);

  const DeviceArray x_array(kind, dtype, {M, C}, x), other_array(kind, dtype, {M, C}, other), sum(kind, dtype, {M, C});
  const auto shifted = [&](std::vector<double> values) {
    values.insert(values.begin(), static_cast<size_t>(weights_at), NAN);
    return DeviceArray(kind, wide, {weights_at + C}, values);
  };
  const DeviceArray weight_memory = shifted(weight), bias_memory = shifted(bias);
  const auto at_columns = [&](const DeviceArray& memory) {
    View view = memory.view();
    view.data = static_cast<char*>(view.data) + weights_at * static_cast<int64_t>(size_of(wide));
    view.sizes[0] = C;
    return affine ? view : View::none();
  };
  const View weight_view = at_columns(weight_memory), bias_view = at_columns(bias_memory);
  const DeviceArray y(kind, dtype, {M, C}), mean(kind, wide, {M}), invstd(kind, wide, {M});
  if (centred)
    kernels::layer_norm_forward(queue_on(kind), y, mean, invstd, given(residual, sum), x_array,
                                given(residual, other_array), weight_view, bias_view, eps);
  else
    kernels::rms_norm_forward(queue_on(kind), y, invstd, given(residual, sum), x_array, given(residual, other_array),
                              weight_view, eps);
  EXPECT_TRUE(near(y.host(), want.y, tolerance(dtype, C, 8)));
  if (centred) {
    EXPECT_TRUE(near(mean.host(), want.mean, tolerance(wide, C, 8)));
  }
  EXPECT_TRUE(near(invstd.host(), want.invstd, tolerance(wide, C, 8)));
  if (residual) {
    EXPECT_TRUE(near(sum.host(), want.sum, {})) << "the sum is rounded once";
  }

  const DeviceArray dx(kind, dtype, {M, C}), dweight(kind, wide, {C}), dbias(kind, wide, {C});
  const DeviceArray dy_array(kind, dtype, {M, C}, dy), dx_in_array(kind, dtype, {M, C}, residual ? dx_in : x);
  const View normed = residual ? sum : x_array;
  if (centred)
    kernels::layer_norm_backward(queue_on(kind), dx, given(affine, dweight), given(affine, dbias), dy_array, normed,
                                 weight_view, mean, invstd, given(residual, dx_in_array));
  else
    kernels::rms_norm_backward(queue_on(kind), dx, given(affine, dweight), dy_array, normed, weight_view, invstd,
                               given(residual, dx_in_array));
  EXPECT_TRUE(near(dx.host(), want.dx, tolerance(dtype, C, 16).times(2)));
  if (!affine) return;
  EXPECT_TRUE(near(dweight.host(), want.dweight, tolerance(wide, M, 16)));
  if (centred) {
    EXPECT_TRUE(near(dbias.host(), want.dbias, tolerance(wide, M, 16)));
  }
}

/// All dtypes and sizes of rows.
void check_all(bool centred) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool affine : {true, false})
        for (const int64_t C : kRowSizes)
          check(kind, {centred, dtype, C > 2048 ? 3 : pick(3, 40), C, affine, centred ? pick(0, 1) == 1 : !affine});
}

/// 16 bits beside an x of f32: the bits of the kernel of f32, for a residual of the same values and for a y that is
/// rounded afterwards.
void check_mixed(DeviceKind kind, bool centred, DType low, int64_t M, int64_t C) {
  SCOPED_TRACE(str(low, " beside f32 [", M, ",", C, "], centred ", centred));
  constexpr DType f32 = DType::f32;
  const DeviceArray x(kind, f32, {M, C}, uniform(M * C, f32)), weight(kind, f32, {C}, uniform(C, f32, 0.5, 2)),
      bias(kind, f32, {C}, uniform(C, f32));
  const auto of_residual = uniform(M * C, low);
  const auto forward = [&](DType residual_dtype, DType y_dtype) {
    const DeviceArray residual(kind, residual_dtype, {M, C}, of_residual), y(kind, y_dtype, {M, C}),
        sum(kind, f32, {M, C}), mean(kind, f32, {M}), invstd(kind, f32, {M});
    if (centred)
      kernels::layer_norm_forward(queue_on(kind), y, mean, invstd, sum, x, residual, weight, bias, 1e-5);
    else
      kernels::rms_norm_forward(queue_on(kind), y, invstd, sum, x, residual, weight, 1e-5);
    return std::vector{y.host(), sum.host(), invstd.host(), centred ? mean.host() : std::vector<double>{}};
  };
  auto want = forward(f32, f32);
  EXPECT_EQ(forward(low, f32), want);
  want[0] = DeviceArray(DeviceKind::cpu, low, {M * C}, want[0]).host();
  EXPECT_EQ(forward(low, low), want);
}

void check_mixed(bool centred) {
  for (const DeviceKind kind : test_devices()) {
    if (kind == DeviceKind::cpu) continue;  // the op casts there
    for (const DType low : {DType::bf16, DType::f16})
      for (const int64_t C : kRowSizes) check_mixed(kind, centred, low, C > 2048 ? 3 : 37, C);
  }
}

/// Rows whose sums come from several blocks or chunks.
void check_many_rows(bool centred) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int64_t C : {37, 48, 64}) check(kind, {centred, dtype, 601, C, true, !centred});
}

TEST(LayerNorm, EqualsReference) { check_all(true); }

TEST(LayerNorm, WithAResidual) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const int64_t C : kRowSizes) check(kind, {true, dtype, 7, C, true, true});
}

// Weights and biases are read 16 bytes at a time where their address allows it.
TEST(LayerNorm, WeightsOffABoundary) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int64_t weights_at : {1, 2})
        for (const bool centred : {true, false}) check(kind, {centred, dtype, 5, 64, true, false, weights_at});
}

TEST(LayerNorm, SixteenBitsBesideF32) { check_mixed(true); }

TEST(RmsNorm, SixteenBitsBesideF32) { check_mixed(false); }

TEST(LayerNorm, ManyRows) { check_many_rows(true); }

TEST(RmsNorm, EqualsReference) { check_all(false); }

TEST(RmsNorm, ManyRows) { check_many_rows(false); }

}  // namespace
}  // namespace weft::tests
