// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deque>
#include <functional>

#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/pool2d.h"
#include "kernels/contracts/reduce.h"
#include "kernels/contracts/softmax.h"
#include "kernels/contracts/unary.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

/// Dense numbers, at a boundary of 16 bytes or an element behind one.
struct Placed {
  DeviceArray memory;
  View view;

  Placed(DeviceKind kind, DType dtype, const Sizes& sizes, std::vector<double> values, bool off)
      : memory(kind, dtype, {count_of(sizes) + 1}),
        view{static_cast<char*>(memory.view().data) + (off ? size_of(dtype) : 0),
             dtype,
             static_cast<int>(sizes.size()),
             {},
             {}} {
    values.insert(off ? values.begin() : values.end(), NAN);
    memory.write(values);
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) view.sizes[d] = sizes[d], view.strides[d] = stride;
  }
};

/// `call(y, inputs)` off a boundary, against the same at one, which the kernel's own tests hold against f64.
void expect_alike(const char* what, const std::vector<Sizes>& inputs, const Sizes& result, int64_t K,
                  const std::function<void(const kernels::Queue&, const View&, const std::vector<View>&)>& call) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::vector<std::vector<double>> values, got;
      for (const Sizes& sizes : inputs) values.push_back(uniform(count_of(sizes), dtype, 0.5, 2));
      for (const bool off : {false, true}) {
        std::deque<Placed> arrays;
        std::vector<View> views;
        for (size_t i = 0; i < inputs.size(); ++i)
          views.push_back(arrays.emplace_back(kind, dtype, inputs[i], values[i], off).view);
        const Placed y(kind, dtype, result, std::vector<double>(static_cast<size_t>(count_of(result)), NAN), off);
        call(queue_on(kind), y.view, views);
        std::vector<double> all = y.memory.host();
        EXPECT_TRUE(std::isnan(off ? all.front() : all.back())) << "written beside y";
        all.erase(off ? all.begin() : all.end() - 1);
        got.push_back(all);
      }
      EXPECT_TRUE(near(got[1], got[0], tolerance(dtype, K))) << what << ' ' << dtype << " on " << name(kind);
    }
}

TEST(Unaligned, StartsOffABoundary) {
  using Views = std::vector<View>;
  using kernels::Queue;
  expect_alike("unary", {{64}}, {64}, 1, [](const Queue& queue, const View& y, const Views& x) {
    kernels::unary_forward(queue, kernels::Unary::exp, y, x[0], {});
  });
  expect_alike("binary", {{8, 16}, {8, 16}}, {8, 16}, 1, [](const Queue& queue, const View& y, const Views& x) {
    kernels::binary_forward(queue, kernels::Binary::mul, y, x[0], x[1], 1);
  });
  expect_alike("reduce", {{4096}}, {1}, 4096, [](const Queue& queue, const View& y, const Views& x) {
    kernels::reduce(queue, kernels::Reduce::sum, y, x[0]);
  });
  expect_alike("softmax", {{4, 64}}, {4, 64}, 64, [](const Queue& queue, const View& y, const Views& x) {
    kernels::softmax_forward(queue, y, x[0], false);
  });
  expect_alike("pool", {{2, 8, 8, 16}}, {2, 2, 2, 16}, 16, [](const Queue& queue, const View& y, const Views& x) {
    kernels::adaptive_avg_pool2d_forward(queue, y, x[0]);
  });
  expect_alike("batch norm", {{40, 16}}, {40, 16}, 16, [](const Queue& queue, const View& y, const Views& x) {
    const DeviceArray mean(queue.device.kind, DType::f32, {16}, std::vector<double>(16, 0.25)),
        var(queue.device.kind, DType::f32, {16}, std::vector<double>(16, 1.5));
    kernels::batch_norm_inference(queue, y, x[0], mean, var, View::none(), View::none(), View::none(), {});
  });
}

}  // namespace
}  // namespace weft::tests
