// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "kernels/conv2d.h"
#include "kernels/cross_entropy.h"
#include "kernels/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"

// What the GPU's kernels say of operands that do not fit; the CPU's have tests beside their others.

namespace weft::tests {
namespace {

using kernels::View;
using testing::HasSubstr;

class RefusalsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  }
  const kernels::Queue gpu_ = queue_on(DeviceKind::cuda);
  const View none_ = View::none();
};

View of_sizes(const DeviceArray& memory, std::initializer_list<int64_t> sizes) {
  return View::dense(memory.view().data, DType::f32, sizes);
}

TEST_F(RefusalsOnGpu, Matmul) {
  const DeviceArray memory(DeviceKind::cuda, DType::f32, {64});
  const View y = of_sizes(memory, {1, 2, 3}), a = of_sizes(memory, {1, 2, 4}), b = of_sizes(memory, {1, 4, 3});
  const auto text = [&](const View& left, const View& right, const View& bias) {
    return error_text([&] { kernels::matmul(gpu_, y, left, right, bias, {}); });
  };
  EXPECT_THAT(text(a, of_sizes(memory, {1, 5, 3}), none_),
              HasSubstr("matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got f32[1,2,3] = f32[1,2,4] @ f32[1,5,3]"));
  EXPECT_THAT(text(a, b, of_sizes(memory, {2})),
              HasSubstr("expected a dense bias [3] of the operands' dtype, got f32[2]"));
  View strided = a;
  strided.strides = {16, 8, 2};
  EXPECT_THAT(text(strided, b, none_), HasSubstr("matmul: a f32[1,2,4] has strides 8, 2"));
  View overlapping = y;
  overlapping.strides = {4, 2, 1};
  EXPECT_THAT(error_text([&] { kernels::matmul(gpu_, overlapping, a, b, none_, {}); }),
              HasSubstr("matmul: expected a result with dense rows, got f32[1,2,3] of strides 2, 1"));
}

TEST_F(RefusalsOnGpu, CrossEntropy) {
  const DeviceArray memory(DeviceKind::cuda, DType::f32, {64}), classes(DeviceKind::cuda, DType::i64, {2}, {0, 1});
  const View x = of_sizes(memory, {2, 3}), rows = of_sizes(memory, {2}), lse = of_sizes(memory, {2, 2});
  View columns = x, apart = x;
  columns.strides = {1, 2};
  apart.strides = {8, 1};
  EXPECT_THAT(error_text([&] { kernels::cross_entropy_forward(gpu_, rows, lse, none_, columns, classes, {}); }),
              HasSubstr("cross_entropy_forward: expected logits [N, C] with dense rows, got f32[2,3] of strides 1, 2"));
  EXPECT_THAT(
      error_text([&] { kernels::cross_entropy_backward(gpu_, apart, rows, x, lse, classes, {}); }),
      HasSubstr("cross_entropy_backward: expected a gradient laid out as f32[2,3], got f32[2,3] of row strides 3 "
                "and 8"));
}

TEST_F(RefusalsOnGpu, Conv2d) {
  const DeviceArray memory(DeviceKind::cuda, DType::f32, {4096});
  const View x = of_sizes(memory, {1, 6, 6, 4});
  EXPECT_THAT(
      error_text([&] {
        kernels::conv2d_forward(gpu_, of_sizes(memory, {1, 4, 4, 8}), x, of_sizes(memory, {8, 3, 3, 3}), none_, {});
      }),
      HasSubstr("conv2d_forward: weight f32[8,3,3,3] does not fit input f32[1,6,6,4] with groups=1"));
  EXPECT_THAT(error_text([&] {
                kernels::conv2d_backward_input(gpu_, x, of_sizes(memory, {1, 5, 4, 8}), of_sizes(memory, {8, 3, 3, 4}),
                                               none_, {});
              }),
              HasSubstr("conv2d_backward_input: input f32[1,6,6,4] and weight f32[8,3,3,4] do not give f32[1,5,4,8]"));
}

}  // namespace
}  // namespace weft::tests
