// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/optimizer.h"

#include <algorithm>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

TEST(Ema, Step) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64})
      for (const bool warmup : {false, true})
        for (const double count : {0.0, 5.0, 1e5})
          for (const int64_t n : {int64_t{0}, int64_t{3}, pick(50, 3000)}) {
            SCOPED_TRACE(str(dtype, " n ", n, " update ", count, " on ", name(kind)));
            const double low = n == 3 ? 0.5 : -1;  // so that three numbers do not cancel
            const auto weights = uniform(n, dtype, low, 1);
            auto want = uniform(n, dtype, low, 1);
            const DeviceArray average(kind, dtype, {n}, want), w(kind, dtype, {n}, weights);
            kernels::ema_step(queue_on(kind), average, w, DeviceArray(kind, dtype, {1}, {count}),
                              {.decay = 0.9995, .warmup = warmup});
            const double d = warmup ? std::min(0.9995, (1 + count) / (10 + count)) : 0.9995;
            for (size_t i = 0; i < want.size(); ++i) want[i] = d * want[i] + (1 - d) * weights[i];
            EXPECT_TRUE(near(average.host(), want, tolerance(dtype, 4, 2)));
            EXPECT_TRUE(near(w.host(), weights, {}));
          }
}

TEST(Ema, Exchange) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int64_t n : {int64_t{0}, int64_t{3}, pick(50, 3000)}) {
        const auto one = uniform(n, dtype), two = uniform(n, dtype);
        const DeviceArray a(kind, dtype, {n}, one), b(kind, dtype, {n}, two);
        kernels::exchange(queue_on(kind), a, b);
        EXPECT_TRUE(near(a.host(), two, {}));
        EXPECT_TRUE(near(b.host(), one, {}));
        if (n < 2) continue;
        kernels::View left = a, right = b;  // the second alone is off a boundary of 16 bytes
        right.data = static_cast<char*>(right.data) + size_of(dtype);
        left.sizes[0] = right.sizes[0] = n - 1;
        kernels::exchange(queue_on(kind), left, right);
        EXPECT_EQ(a.host()[0], one[1]);
        EXPECT_EQ(b.host().back(), two[static_cast<size_t>(n - 2)]);
      }
}

TEST(Ema, Errors) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray four(kind, DType::f32, {4}), five(kind, DType::f32, {5});
    EXPECT_EQ(error_text([&] { kernels::exchange(queue_on(kind), four, five); }).find("exchange: expected flat ranges"),
              0u);
    EXPECT_EQ(error_text([&] {
                kernels::ema_step(queue_on(kind), four, five, DeviceArray(kind, DType::f32, {1}, {0}), {});
              }).find("ema_step: expected flat ranges"),
              0u);
  }
}

}  // namespace
}  // namespace weft::tests
