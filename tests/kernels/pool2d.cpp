// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/pool2d.h"

#include <limits>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::Pool2dArguments;

struct PoolCase {
  int64_t N, H, W, C;
  Pool2dArguments arguments;
  int64_t P() const { return (H + 2 * arguments.padding.h - arguments.kernel.h) / arguments.stride.h + 1; }
  int64_t Q() const { return (W + 2 * arguments.padding.w - arguments.kernel.w) / arguments.stride.w + 1; }
};

/// body(index of y, index of x, h * W + w) for each pixel in each window.
template <class Body>
void for_each_pixel(const PoolCase& k, Body&& body) {
  const auto& a = k.arguments;
  for (int64_t i = 0; i < k.N * k.P() * k.Q() * k.C; ++i) {
    const int64_t c = i % k.C, q = i / k.C % k.Q(), p = i / k.C / k.Q() % k.P(), n = i / k.C / k.Q() / k.P();
    for (int64_t r = 0; r < a.kernel.h; ++r)
      for (int64_t s = 0; s < a.kernel.w; ++s) {
        const int64_t h = p * a.stride.h - a.padding.h + r, w = q * a.stride.w - a.padding.w + s;
        if (h >= 0 && h < k.H && w >= 0 && w < k.W) body(i, ((n * k.H + h) * k.W + w) * k.C + c, h * k.W + w);
      }
  }
}

PoolCase random_case() {
  const kernels::Size2d kernel{pick(1, 3), pick(1, 4)};
  return {pick(1, 3),
          pick(4, 12),
          pick(4, 12),
          pick(1, 20),
          {kernel, {pick(1, 3), pick(1, 3)}, {pick(0, kernel.h / 2), pick(0, kernel.w / 2)}, pick(0, 1) == 1}};
}

/// Whole units of 16 bytes of channels and others, windows that overlap, leave gaps and take all; and random ones.
std::vector<PoolCase> cases() {
  return {{2, 8, 8, 16, {}},
          {3, 9, 7, 5, {{3, 3}, {2, 2}, {1, 1}, true}},
          {1, 12, 11, 8, {{3, 2}, {1, 3}, {1, 0}, false}},
          {2, 7, 7, 24, {{7, 7}, {7, 7}, {0, 0}, true}},
          random_case(),
          random_case()};
}

const DType kPooled[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

TEST(MaxPool2d, EqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kPooled)
      for (const PoolCase& k : cases()) {
        const auto x = integers(k.N * k.H * k.W * k.C, -20, 20);  // ties on purpose
        const int64_t outputs = k.N * k.P() * k.Q() * k.C;
        const auto dy = integers(outputs, -8, 8);  // sums of a few are exact in every dtype
        std::vector<double> y(dy.size(), -INFINITY), index(dy.size()), from(dy.size()), dx(x.size());
        for_each_pixel(k, [&](int64_t i, int64_t j, int64_t position) {
          if (x[j] > y[i]) y[i] = x[j], index[i] = static_cast<double>(position), from[i] = static_cast<double>(j);
        });
        for (size_t i = 0; i < dy.size(); ++i) dx[static_cast<size_t>(from[i])] += dy[i];
        const Sizes xs{k.N, k.H, k.W, k.C}, ys{k.N, k.P(), k.Q(), k.C};
        const DeviceArray y_array(kind, dtype, ys), index_array(kind, DType::i32, ys), dx_array(kind, dtype, xs);
        kernels::max_pool2d_forward(queue_on(kind), y_array, index_array, DeviceArray(kind, dtype, xs, x), k.arguments);
        EXPECT_TRUE(near(y_array.host(), y, {}));
        EXPECT_TRUE(near(index_array.host(), index, {}));
        kernels::max_pool2d_backward(queue_on(kind), dx_array, DeviceArray(kind, dtype, ys, dy), index_array,
                                     k.arguments);
        EXPECT_TRUE(near(dx_array.host(), dx, {}));
      }
}

TEST(MaxPool2d, NanWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {1, 2, 2, 1}, {1, nan, 3, nan});
    const DeviceArray y(kind, DType::f32, {1, 1, 1, 1}), index(kind, DType::i32, {1, 1, 1, 1});
    kernels::max_pool2d_forward(queue_on(kind), y, index, x, {});
    EXPECT_TRUE(near(y.host(), {nan}, {}));
    EXPECT_TRUE(near(index.host(), {1}, {}));
  }
}

TEST(AvgPool2d, EqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kPooled)
      for (const PoolCase& k : cases()) {
        const auto& a = k.arguments;
        const auto x = uniform(k.N * k.H * k.W * k.C, dtype), dy = uniform(k.N * k.P() * k.Q() * k.C, dtype);
        std::vector<double> y(dy.size()), inside(dy.size()), divisor(dy.size()), dx(x.size());
        for_each_pixel(k, [&](int64_t i, int64_t, int64_t) { inside[i] += 1; });
        for (int64_t i = 0; i < static_cast<int64_t>(dy.size()); ++i) {
          // As PyTorch counts: a window may not reach beyond the padding of the far side.
          const int64_t q = i / k.C % k.Q(), p = i / k.C / k.Q() % k.P();
          const int64_t top = p * a.stride.h - a.padding.h, left = q * a.stride.w - a.padding.w;
          const int64_t padded = (std::min(top + a.kernel.h, k.H + a.padding.h) - top) *
                                 (std::min(left + a.kernel.w, k.W + a.padding.w) - left);
          divisor[i] = a.count_include_pad ? static_cast<double>(padded) : inside[i];
        }
        for_each_pixel(k, [&](int64_t i, int64_t j, int64_t) {
          y[i] += x[j] / divisor[i];
          dx[j] += dy[i] / divisor[i];
        });
        const Sizes xs{k.N, k.H, k.W, k.C}, ys{k.N, k.P(), k.Q(), k.C};
        const DeviceArray y_array(kind, dtype, ys), dx_array(kind, dtype, xs);
        kernels::avg_pool2d_forward(queue_on(kind), y_array, DeviceArray(kind, dtype, xs, x), a);
        EXPECT_TRUE(near(y_array.host(), y, tolerance(dtype, a.kernel.h * a.kernel.w)));
        kernels::avg_pool2d_backward(queue_on(kind), dx_array, DeviceArray(kind, dtype, ys, dy), a);
        EXPECT_TRUE(near(dx_array.host(), dx, tolerance(dtype, 12)));
      }
}

TEST(AdaptiveAvgPool2d, EqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kPooled)
      for (int repeat = 0; repeat < 6; ++repeat) {
        const bool grows = repeat == 1;  // windows that overlap by half, of whole units of channels
        const int64_t N = pick(1, 3), H = grows ? 10 : pick(1, 9), W = pick(1, 9), C = grows ? 16 : pick(1, 20);
        const int64_t P = grows ? 11 : repeat ? pick(1, 9) : 1, Q = grows ? 13 : repeat ? pick(1, 9) : 1;
        // dy / area must stay a normal number of f16, and dx cancels nothing: dx may be one element.
        const auto x = uniform(N * H * W * C, dtype, 0, 1), dy = uniform(N * P * Q * C, dtype, 0.25, 1);
        std::vector<double> y(dy.size()), dx(x.size());
        for (int64_t i = 0; i < N * P * Q * C; ++i) {
          const int64_t c = i % C, q = i / C % Q, p = i / C / Q % P, n = i / C / Q / P;
          const int64_t top = p * H / P, bottom = ((p + 1) * H + P - 1) / P;
          const int64_t left = q * W / Q, right = ((q + 1) * W + Q - 1) / Q;
          const double area = static_cast<double>((bottom - top) * (right - left));
          for (int64_t h = top; h < bottom; ++h)
            for (int64_t w = left; w < right; ++w) {
              y[i] += x[((n * H + h) * W + w) * C + c] / area;
              dx[((n * H + h) * W + w) * C + c] += dy[i] / area;
            }
        }
        SCOPED_TRACE(str(dtype, " ", H, "x", W, " to ", P, "x", Q, " on ", name(kind)));
        const DeviceArray y_array(kind, dtype, {N, P, Q, C}), dx_array(kind, dtype, {N, H, W, C});
        kernels::adaptive_avg_pool2d_forward(queue_on(kind), y_array, DeviceArray(kind, dtype, {N, H, W, C}, x));
        EXPECT_TRUE(near(y_array.host(), y, tolerance(dtype, 81)));
        kernels::adaptive_avg_pool2d_backward(queue_on(kind), dx_array, DeviceArray(kind, dtype, {N, P, Q, C}, dy));
        EXPECT_TRUE(near(dx_array.host(), dx, tolerance(dtype, 81)));
      }
}

}  // namespace
}  // namespace weft::tests
