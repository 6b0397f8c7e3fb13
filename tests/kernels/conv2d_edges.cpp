// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "tests/kernels/conv2d_case.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

/// Stems that TMA cannot read take an A100's kernels: filters in no multiple of 8, a stride above 8, and padding of 128 rows.
/// A driver that refuses overlapping pixels in tensor maps would lead there, too.
TEST(Conv2dEdges, StemsWithoutTensorMapsOnHopper) {
  const Conv2dCase cases[] = {{2, 15, 13, 3, 17, 7, 7, {{2, 2}, {3, 3}, {1, 1}, 1}},
                              {2, 25, 13, 3, 16, 7, 7, {{9, 2}, {3, 3}, {1, 1}, 1}},
                              {1, 15, 9, 3, 8, 3, 3, {{1, 1}, {128, 1}, {127, 1}, 1}}};
  on_wgmma([&](DeviceKind kind) {
    for (const Conv2dCase& c : cases)
      for (const DType dtype : {DType::bf16, DType::f16}) {
        const auto x = uniform(count_of(c.x_sizes()), dtype), w = uniform(count_of(c.w_sizes()), dtype),
                   dy = uniform(count_of(c.y_sizes()), dtype);
        const auto run = [&](DeviceKind device, DType type, DType sums) {
          const kernels::Queue queue = queue_on(device);
          const DeviceArray images(device, type, c.x_sizes(), x), filters(device, type, c.w_sizes(), w),
              gradient(device, type, c.y_sizes(), dy), y(device, type, c.y_sizes()), dw(device, sums, c.w_sizes());
          kernels::conv2d_forward(queue, y, images, filters, View::none(), c.arguments);
          kernels::conv2d_backward_weight(queue, dw, gradient, images, c.arguments);
          return std::pair{y.host(), dw.host()};
        };
        const kernels::WgmmaPlanScope scope({});
        const auto [y, dw] = run(kind, dtype, DType::f32);
        const auto [y_expected, dw_expected] = run(DeviceKind::cpu, DType::f64, DType::f64);
        EXPECT_EQ(scope.uses(), 0) << c;
        EXPECT_TRUE(near(y, y_expected, tolerance(dtype, c.R * c.S * c.C))) << c;
        EXPECT_TRUE(near(dw, dw_expected, tolerance(DType::f32, c.N * c.P() * c.Q()))) << c;
      }
  });
}

/// Sums without terms are 0; results without elements need no memory.
TEST(Conv2dEdges, NoChannelsAndNoFilters) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  on_both_generations([](DeviceKind kind) {
    if (kind != DeviceKind::cuda) return;
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const auto& [channels, filters] : {std::pair{0, 8}, {8, 0}}) {
        const Conv2dCase c{1, 4, 4, channels, filters, 3, 3, {.padding = {1, 1}}};
        const std::vector<double> images(count_of(c.x_sizes()), 1), results(count_of(c.y_sizes()), 1);
        const DeviceArray x(kind, dtype, c.x_sizes(), images), dy(kind, dtype, c.y_sizes(), results),
            w(kind, dtype, c.w_sizes()), y(kind, dtype, c.y_sizes()), dx(kind, dtype, c.x_sizes()),
            dw(kind, dtype, c.w_sizes());
        kernels::conv2d_forward(queue_on(kind), y, x, w, View::none(), c.arguments);
        kernels::conv2d_backward_input(queue_on(kind), dx, dy, w, View::none(), c.arguments);
        kernels::conv2d_backward_weight(queue_on(kind), dw, dy, x, c.arguments);
        EXPECT_EQ(y.host(), std::vector<double>(results.size(), 0)) << c << ' ' << dtype;
        EXPECT_EQ(dx.host(), std::vector<double>(images.size(), 0)) << c << ' ' << dtype;
      }
  });
}

}  // namespace
}  // namespace weft::tests
