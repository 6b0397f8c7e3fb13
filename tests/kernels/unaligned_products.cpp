// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

// Products and convolutions of tensors that begin an element after a boundary of 16 bytes, against the same tensors at
// a boundary.

namespace weft::tests {
namespace {

using kernels::Queue;
using kernels::View;
using Operands = std::vector<View>;

/// `array`, whose memory is one element longer than `sizes`, seen from its first or second element.
View seen_from(const DeviceArray& array, const Sizes& sizes, bool second) {
  View view = array.view();
  view.data = static_cast<char*>(view.data) + (second ? size_of(view.dtype) : 0);
  view.rank = static_cast<int>(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) view.sizes[d] = sizes[d], view.strides[d] = stride;
  return view;
}

/// `call(y, operands)` in every floating type; K: terms of a sum.
void expect_same_off_a_boundary(const std::vector<Sizes>& operands, const Sizes& result, int64_t K,
                                const std::function<void(const Queue&, const View&, const Operands&)>& call) {
  on_both_generations([&](DeviceKind kind) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      std::vector<std::vector<double>> values, got;
      for (const Sizes& sizes : operands) values.push_back(uniform(count_of(sizes), dtype, 0.5, 2));
      for (const bool off : {false, true}) {
        std::vector<DeviceArray> memory;
        Operands views;
        for (size_t i = 0; i < operands.size(); ++i) {
          std::vector<double> all = values[i];
          all.insert(off ? all.begin() : all.end(), 0);
          memory.emplace_back(kind, dtype, Sizes{count_of(operands[i]) + 1}, all);
          views.push_back(seen_from(memory.back(), operands[i], off));
        }
        const DeviceArray y(kind, dtype, {count_of(result) + 1});
        call(queue_on(kind), seen_from(y, result, off), views);
        std::vector<double> all = y.host();
        EXPECT_TRUE(std::isnan(off ? all.front() : all.back())) << "written beside the result";
        all.erase(off ? all.begin() : all.end() - 1);
        got.push_back(all);
      }
      EXPECT_TRUE(near(got[1], got[0], tolerance(dtype, K))) << dtype << " on " << name(kind);
    }
  });
}

TEST(UnalignedProducts, OfMatrices) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      expect_same_off_a_boundary(
          {{1, 64, 72}, {1, 72, 40}}, {1, 64, 40}, 72, [&](const Queue& queue, const View& y, const Operands& x) {
            const auto factor = [](View view, bool transposed) {
              if (transposed) view.strides = {view.strides[0], 1, view.sizes[1]};
              return view;
            };
            kernels::matmul(queue, y, factor(x[0], transpose_a), factor(x[1], transpose_b), View::none(), {});
          });
}

TEST(UnalignedProducts, OfConvolutions) {
  for (const int64_t groups : {1, 16}) {
    const Sizes images{2, 6, 6, 16}, filters{16, 3, 3, 16 / groups};
    const kernels::Conv2dArguments same{.padding = {1, 1}, .groups = groups};
    expect_same_off_a_boundary({images, filters}, images, 9 * 16 / groups,
                               [&](const Queue& queue, const View& y, const Operands& x) {
                                 kernels::conv2d_forward(queue, y, x[0], x[1], View::none(), same);
                               });
    expect_same_off_a_boundary({images, filters}, images, 9 * 16 / groups,
                               [&](const Queue& queue, const View& dx, const Operands& x) {
                                 kernels::conv2d_backward_input(queue, dx, x[0], x[1], View::none(), same);
                               });
    expect_same_off_a_boundary({images, images}, filters, 2 * 6 * 6,
                               [&](const Queue& queue, const View& dw, const Operands& x) {
                                 kernels::conv2d_backward_weight(queue, dw, x[0], x[1], same);
                               });
  }
}

}  // namespace
}  // namespace weft::tests
