// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm.h"

#include "tests/kernels/row_norms.h"

namespace weft::tests {
namespace {

using kernels::View;

void check(DeviceKind kind, const RowNormCase& n) {
  const auto [dtype, M, C, affine, residual] = n;
  SCOPED_TRACE(str(dtype, " [", M, ",", C, "] affine ", affine, " residual ", residual, " on ", name(kind)));
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double eps = 1e-3;
  const auto given = [](bool wanted, const DeviceArray& array) { return wanted ? array.view() : View::none(); };
  const auto x = uniform(M * C, dtype, -1, 2), dy = uniform(M * C, dtype), other = uniform(M * C, dtype);
  const auto dx_in = residual ? uniform(M * C, dtype) : std::vector<double>();
  const auto weight = uniform(C, wide, 0.5, 2);
  const RowNormReference want(n, false, residual ? rounded_sum(dtype, x, other) : x, weight, {}, dy, dx_in, eps);

  const DeviceArray x_array(kind, dtype, {M, C}, x), other_array(kind, dtype, {M, C}, other), sum(kind, dtype, {M, C});
  const DeviceArray weight_array(kind, wide, {C}, weight), y(kind, dtype, {M, C}), invrms(kind, wide, {M});
  kernels::rms_norm_forward(queue_on(kind), y, invrms, given(residual, sum), x_array, given(residual, other_array),
                            given(affine, weight_array), eps);
  EXPECT_TRUE(near(y.host(), want.y, tolerance(dtype, C, 8)));
  EXPECT_TRUE(near(invrms.host(), want.invstd, tolerance(wide, C, 8)));
  if (residual) {
    EXPECT_TRUE(near(sum.host(), want.sum, {})) << "the sum is rounded once";
  }

  const DeviceArray dx(kind, dtype, {M, C}), dweight(kind, wide, {C});
  const DeviceArray dx_in_array(kind, dtype, {M, C}, residual ? dx_in : x);
  kernels::rms_norm_backward(queue_on(kind), dx, given(affine, dweight), DeviceArray(kind, dtype, {M, C}, dy),
                             residual ? sum : x_array, given(affine, weight_array), invrms,
                             given(residual, dx_in_array));
  EXPECT_TRUE(near(dx.host(), want.dx, tolerance(dtype, C, 16).times(2)));
  if (affine) {
    EXPECT_TRUE(near(dweight.host(), want.dweight, tolerance(wide, M, 16)));
  }
}

TEST(RmsNorm, EqualsReference) {
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool affine : {true, false})
        for (const int64_t C : kRowSizes) check(kind, {dtype, pick(3, 40), C, affine, !affine});
}

TEST(RmsNorm, ManyRows) {  // whose sums come from several blocks or chunks
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int64_t C : {37, 64}) check(kind, {dtype, 601, C, true, true});
}

}  // namespace
}  // namespace weft::tests
