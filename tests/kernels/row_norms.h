// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {

/// Shared by the tests of layer norm and RMS norm: the sizes, and a reference in f64.
struct RowNormCase {
  DType dtype;
  int64_t M, C;
  bool affine, residual;
};

/// Rows in registers of a warp and of a block, rows that are read again, rows that are not aligned.
inline const int64_t kRowSizes[] = {8, 33, 256, 1027, 2048};

struct RowNormReference {
  std::vector<double> sum, mean, invstd, y, dx, dweight, dbias;

  /// `sum`: x + residual as the kernel rounded it; dx_in: added to dx, or empty.
  RowNormReference(const RowNormCase& n, bool centred, std::vector<double> rows, const std::vector<double>& weight,
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
      for (int64_t c = 0; c < n.C && centred; ++c) mean[m] += sum[row + c] / columns;
      for (int64_t c = 0; c < n.C; ++c) square += (sum[row + c] - mean[m]) * (sum[row + c] - mean[m]) / columns;
      invstd[m] = 1 / std::sqrt(square + eps);
      const auto xhat = [&](int64_t c) { return (sum[row + c] - mean[m]) * invstd[m]; };
      const auto gain = [&](int64_t c) { return n.affine ? weight[c] : 1.0; };
      for (int64_t c = 0; c < n.C; ++c) {
        y[row + c] = xhat(c) * gain(c) + (n.affine && centred ? bias[c] : 0);
        dweight[c] += dy[row + c] * xhat(c);
        dbias[c] += dy[row + c];
        mean_g += centred ? dy[row + c] * gain(c) / columns : 0;
        mean_gx += dy[row + c] * gain(c) * xhat(c) / columns;
      }
      for (int64_t c = 0; c < n.C; ++c)
        dx[row + c] =
            invstd[m] * (dy[row + c] * gain(c) - mean_g - xhat(c) * mean_gx) + (dx_in.empty() ? 0 : dx_in[row + c]);
    }
  }
};

/// a + b, rounded to the dtype once (by a device array).
inline std::vector<double> rounded_sum(DType dtype, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return DeviceArray(DeviceKind::cpu, dtype, {static_cast<int64_t>(a.size())}, sum).host();
}

}  // namespace weft::tests
