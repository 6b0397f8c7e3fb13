// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm.h"

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

void check(DeviceKind kind, DType dtype, int64_t M, int64_t C, bool affine) {
  SCOPED_TRACE(str(dtype, " [", M, ",", C, "] affine ", affine, " on ", name(kind)));
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double eps = 1e-5, columns = static_cast<double>(C);
  const auto x = uniform(M * C, dtype, -1, 2), dy = uniform(M * C, dtype);
  const auto weight = uniform(C, wide, 0.5, 2), bias = uniform(C, wide);
  std::vector<double> mean(static_cast<size_t>(M)), invstd(mean.size()), y(x.size()), dx(x.size());
  std::vector<double> dweight(weight.size()), dbias(weight.size());
  for (int64_t m = 0; m < M; ++m) {
    double variance = 0, sum = 0, product = 0;
    for (int64_t c = 0; c < C; ++c) mean[m] += x[m * C + c] / columns;
    for (int64_t c = 0; c < C; ++c) variance += (x[m * C + c] - mean[m]) * (x[m * C + c] - mean[m]) / columns;
    invstd[m] = 1 / std::sqrt(variance + eps);
    const auto xhat = [&](int64_t c) { return (x[m * C + c] - mean[m]) * invstd[m]; };
    const auto gain = [&](int64_t c) { return affine ? weight[c] : 1.0; };
    for (int64_t c = 0; c < C; ++c) {
      y[m * C + c] = xhat(c) * gain(c) + (affine ? bias[c] : 0);
      dweight[c] += dy[m * C + c] * xhat(c);
      dbias[c] += dy[m * C + c];
      sum += dy[m * C + c] * gain(c) / columns;
      product += dy[m * C + c] * gain(c) * xhat(c) / columns;
    }
    for (int64_t c = 0; c < C; ++c) dx[m * C + c] = invstd[m] * (dy[m * C + c] * gain(c) - sum - xhat(c) * product);
  }
  const DeviceArray x_array(kind, dtype, {M, C}, x), dy_array(kind, dtype, {M, C}, dy);
  const DeviceArray weight_array(kind, wide, {C}, weight), bias_array(kind, wide, {C}, bias);
  const DeviceArray y_array(kind, dtype, {M, C}), mean_array(kind, wide, {M}), invstd_array(kind, wide, {M});
  kernels::layer_norm_forward(queue_on(kind), y_array, mean_array, invstd_array, x_array,
                              affine ? weight_array.view() : View::none(), affine ? bias_array.view() : View::none(),
                              eps);
  EXPECT_TRUE(near(y_array.host(), y, tolerance(dtype, C, 8)));
  EXPECT_TRUE(near(mean_array.host(), mean, tolerance(wide, C, 8)));
  EXPECT_TRUE(near(invstd_array.host(), invstd, tolerance(wide, C, 8)));
  const DeviceArray dx_array(kind, dtype, {M, C}), dweight_array(kind, wide, {C}), dbias_array(kind, wide, {C});
  kernels::layer_norm_backward(queue_on(kind), dx_array, affine ? dweight_array.view() : View::none(),
                               affine ? dbias_array.view() : View::none(), dy_array, x_array,
                               affine ? weight_array.view() : View::none(), mean_array, invstd_array);
  EXPECT_TRUE(near(dx_array.host(), dx, tolerance(dtype, C, 16).times(2)));
  if (!affine) return;
  EXPECT_TRUE(near(dweight_array.host(), dweight, tolerance(wide, M, 16)));
  EXPECT_TRUE(near(dbias_array.host(), dbias, tolerance(wide, M, 16)));
}

TEST(LayerNorm, EqualsReference) {
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool affine : {true, false})
        for (const int64_t C : {8L, 33L, 256L, 1027L}) check(kind, dtype, pick(3, 60), C, affine);
}

TEST(LayerNorm, ManyRows) {  // whose sums come from several chunks
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : {DType::f32, DType::bf16}) check(kind, dtype, 601, 37, true);
}

}  // namespace
}  // namespace weft::tests
