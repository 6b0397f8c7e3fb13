// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/softmax.h"

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

TEST(Softmax, ForwardAndBackwardEqualReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool log : {false, true})
        for (const int64_t C : {1L, 2L, 10L, 33L, 64L, 128L, 333L, 1000L, 4097L, 4099L, 5000L}) {
          const int64_t M = C > 4096 ? 2 : C == 128 ? 8 : pick(8, 16);
          const Sizes sizes = C == 128 ? Sizes{2, M / 2, C} : Sizes{M, C};
          SCOPED_TRACE(str(dtype, " [", M, ",", C, "] log ", log, " on ", name(kind)));
          // Among a few classes none must win so clearly that every gradient is a cancelled difference.
          const double reach = C < 10 ? 2 : 8;
          const auto x = uniform(M * C, dtype, -reach, reach), dy = uniform(M * C, dtype);
          std::vector<double> y(x.size()), dx(x.size());
          for (int64_t m = 0; m < M; ++m) {
            double sum = 0;
            for (int64_t c = 0; c < C; ++c) sum += std::exp(x[m * C + c]);
            if (C == 1) {  // exactly, where the formula below would leave a rounding error
              y[m] = log ? 0 : 1;
              continue;
            }
            for (int64_t c = 0; c < C; ++c)
              y[m * C + c] = log ? x[m * C + c] - std::log(sum) : std::exp(x[m * C + c]) / sum;
          }
          DeviceArray out(kind, dtype, sizes);
          kernels::softmax_forward(queue_on(kind), out, DeviceArray(kind, dtype, sizes, x), log);
          EXPECT_TRUE(near(out.host(), y, tolerance(dtype, C, 8))) << "forward";
          for (double& v : y) v = rounded(v, dtype);
          double terms = 0, results = 0;  // squares: a gradient of few classes is a small difference of large terms
          for (int64_t m = 0; m < M; ++m) {
            double sum = 0;
            for (int64_t c = 0; c < C; ++c) sum += log ? dy[m * C + c] : dy[m * C + c] * y[m * C + c];
            for (int64_t c = 0; c < C; ++c) {
              const double factor = log ? 1 : y[m * C + c], other = log ? std::exp(y[m * C + c]) * sum : sum;
              dx[m * C + c] = factor * (dy[m * C + c] - other);
              terms += std::pow(factor * (std::abs(dy[m * C + c]) + std::abs(other)), 2);
              results += std::pow(dx[m * C + c], 2);
            }
          }
          if (C == 1) continue;  // softmax of one class: the exact gradient is 0, and only rounding is left
          out.poison();
          kernels::softmax_backward(queue_on(kind), out, DeviceArray(kind, dtype, sizes, dy),
                                    DeviceArray(kind, dtype, sizes, y), log);
          EXPECT_TRUE(near(out.host(), dx, tolerance(dtype, C, 8).times(std::sqrt(terms / results)))) << "backward";
        }
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray y(kind, DType::f32, {2, 2});
    kernels::softmax_forward(queue_on(kind), y, DeviceArray(kind, DType::f32, {2, 2}, {1e4, 1e4, -1e4, 1e4}), false);
    EXPECT_TRUE(near(y.host(), {0.5, 0.5, 0, 1}, tolerance(DType::f32)));
  }
}

}  // namespace
}  // namespace weft::tests
