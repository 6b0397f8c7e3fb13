// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/conv2d.h"

#include <gtest/gtest.h>

#include <map>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/conv3d.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/recurrent.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/kernel_calls.h"
#include "tests/support/random_values.h"

namespace weft::test {
namespace {

template <Conv2dOptions options = {}>
Tensor conv(const Inputs& x) {
  return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options);
}

// x, w, weight, shift, running mean, running variance, and perhaps a residual. An eps that a gradient feels.
template <bool with_relu>
Tensor norm(const Inputs& x) {
  return conv2d_norm(x[0], x[1], {}, {.padding = {1, 1}}, x[2], x[3], x[4], x[5],
                     {.eps = 0.1, .relu = with_relu, .residual = x.size() > 6 ? x[6] : Tensor()});
}

/// In training the statistics come from the convolution.
Tensor train(const Inputs& x) {
  const auto [y, statistics] = conv2d_statistics(x[0], x[1], {}, {.padding = {1, 1}});
  return batch_norm(y, x[2], x[3], {}, {}, {.training = true, .statistics = statistics});
}

OpInput vector(Values values = Values::normal, bool gradient = true) {
  return {{4}, values, Layout::dense, 0, gradient, true};
}

// clang-format off
const AddCases conv2d_cases{
    {"conv1d", {{{2, 9, 4}}, {{6, 3, 2}}, {{6}}},
     CALL(conv1d(x[0], x[1], x[2], {.stride = 2, .padding = 1, .dilation = 2, .groups = 2})),
     "conv(F.conv1d, *x, 2, 1, 2, 2)", 12},
    {"conv3d", {{{2, 5, 4, 6, 3}}, {{4, 3, 2, 3, 3}}, {{4}}}, CALL(conv3d(x[0], x[1], x[2], {.padding = {1, 0, 1}})),
     "conv(F.conv3d, *x, padding=(1, 0, 1))", 54},
    {"conv3d_strided_groups", {{{1, 7, 5, 5, 4}}, {{6, 2, 3, 3, 2}}},
     CALL(conv3d(x[0], x[1], {}, {.stride = {2, 2, 1}, .padding = {2, 1, 0}, .dilation = {3, 1, 1}, .groups = 2})),
     "conv(F.conv3d, *x, None, (2, 2, 1), (2, 1, 0), (3, 1, 1), 2)", 36},
    {"lstm", {{{3, 4, 20}}, {{20, 5}}, {{4, 5}}, {{4, 5}}}, BOTH(lstm(x[0], x[1], x[2], x[3])), 60},
    {"lstm_backwards", {{{3, 2, 12}}, {{12, 3}}, {{2, 3}}, {{2, 3}}},
     CALL(lstm(x[0], x[1], x[2], x[3], Direction::backward)), "lstm(*x, backward=True)", 60},
    {"gru", {{{3, 4, 15}}, {{15, 5}}, {{15}}, {{4, 5}}}, BOTH(gru(x[0], x[1], x[2], x[3])), 60},
    {"gru_backwards", {{{3, 2, 9}}, {{9, 3}}, {{2, 3}}}, CALL(gru(x[0], x[1], {}, x[2], Direction::backward)),
     "gru(x[0], x[1], None, x[2], backward=True)", 60},
    {"weight_norm", {{{4, 3, 5}}, {{4, 1, 1}}}, CALL(weight_norm(x[0], x[1])), "_weight_norm(x[0], x[1])", 15},
    {"conv_transpose2d", {{{2, 4, 3, 6}}, {{6, 3, 2, 5}}, {{5}}},
     CALL(conv_transpose2d(x[0], x[1], x[2], {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}})),
     "conv(F.conv_transpose2d, *x, (2, 3), (1, 0), (1, 2))", 40},
    {"conv_transpose2d_of_groups", {{{1, 3, 4, 4}}, {{4, 3, 3, 2}}},
     CALL(conv_transpose2d(x[0], x[1], {}, {.dilation = {2, 1}, .groups = 2})),
     "conv(F.conv_transpose2d, *x, groups=2, dilation=(2, 1))", 30},
    {"conv2d_norm",
     {{{2, 5, 6, 3}}, {{4, 3, 3, 3}}, vector(), vector(), vector(Values::normal, false),
      vector(Values::positive, false)},
     norm<false>, "normed(conv(F.conv2d, x[0], x[1], padding=1), *x[2:6], eps=0.1)", 60},
    {"conv2d_norm_relu_residual",
     {{{2, 5, 6, 3}}, {{4, 3, 3, 3}}, vector(), vector(), vector(Values::normal, false),
      vector(Values::positive, false), {{2, 5, 6, 4}}},
     norm<true>, "relu(normed(conv(F.conv2d, x[0], x[1], padding=1), *x[2:6], eps=0.1) + x[6])", 60, false},
    {"conv2d_statistics", {{{2, 5, 6, 3}}, {{4, 3, 3, 3}}, vector(), vector()}, train,
     "normed(conv(F.conv2d, x[0], x[1], padding=1), *x[2:])", 60, true, Derivative::smooth, {"conv2d", "batch_norm"}},
    {"conv2d", {{{2, 5, 6, 3}}, {{4, 3, 3, 3}}, {{4}}}, conv<{.padding = {1, 1}}>, "conv(F.conv2d, *x, padding=1)", 60},
    {"conv2d_no_bias", {{{1, 4, 4, 2}}, {{3, 3, 3, 2}}}, conv<>, "conv(F.conv2d, *x)", 18},
    {"conv2d_1x1", {{{2, 5, 5, 7}}, {{6, 1, 1, 7}}}, conv<>, "conv(F.conv2d, *x)", 50},
    {"conv2d_1x1_stride", {{{2, 5, 5, 7}}, {{6, 1, 1, 7}}}, conv<{.stride = {2, 2}}>, "conv(F.conv2d, *x, stride=2)",
     18},
    {"conv2d_stride", {{{2, 7, 8, 3}}, {{4, 3, 3, 3}}, {{4}}}, conv<{.stride = {2, 2}, .padding = {1, 1}}>,
     "conv(F.conv2d, *x, 2, 1)", 32},
    {"conv2d_odd", {{{1, 6, 9, 2}}, {{3, 2, 5, 2}}}, conv<{.stride = {3, 2}, .padding = {0, 2}}>,
     "conv(F.conv2d, *x, stride=(3, 2), padding=(0, 2))", 20},
    {"conv2d_dilated", {{{1, 9, 8, 2}}, {{3, 3, 3, 2}}}, conv<{.padding = {2, 1}, .dilation = {2, 3}}>,
     "conv(F.conv2d, *x, padding=(2, 1), dilation=(2, 3))", 60},
    {"conv2d_groups", {{{2, 5, 5, 6}}, {{4, 3, 3, 3}}, {{4}}}, conv<{.padding = {1, 1}, .groups = 2}>,
     "conv(F.conv2d, *x, padding=1, groups=2)", 50},
    {"conv2d_depthwise", {{{2, 5, 5, 6}}, {{6, 3, 3, 1}}}, conv<{.padding = {1, 1}, .groups = 6}>,
     "conv(F.conv2d, *x, padding=1, groups=6)", 50},
    {"conv2d_stem", {{{1, 14, 14, 3}}, {{8, 7, 7, 3}}}, conv<{.stride = {2, 2}, .padding = {3, 3}}>,
     "conv(F.conv2d, *x, stride=2, padding=3)", 147},
    {"conv2d_wide", {{{2, 6, 6, 16}}, {{32, 3, 3, 16}}}, conv<{.padding = {1, 1}}>, "conv(F.conv2d, *x, padding=1)",
     300},
    {"conv2d_transposed_input", {{{2, 5, 6, 6}, Values::normal, Layout::transposed}, {{4, 3, 3, 6}}}, conv<>,
     "conv(F.conv2d, *x)", 54},
    {"conv2d_dilated_groups", {{{1, 8, 9, 4}}, {{6, 3, 3, 2}}, {{6}}},
     conv<{.padding = {2, 2}, .dilation = {2, 2}, .groups = 2}>, "conv(F.conv2d, *x, padding=2, dilation=2, groups=2)",
     60},
    {"conv2d_small_images", {{{2, 3, 3, 17}}, {{33, 3, 3, 17}}}, conv<{.padding = {1, 1}}>,
     "conv(F.conv2d, *x, padding=1)",
     300},
    {"conv2d_one_pixel", {{{1, 1, 1, 1}}, {{1, 3, 3, 1}}, {{1}}}, conv<{.padding = {1, 1}}>,
     "conv(F.conv2d, *x, padding=1)"},
    {"conv2d_no_images", {{{0, 5, 5, 3}}, {{4, 3, 3, 3}}, {{4}}}, conv<>, "conv(F.conv2d, *x)"}};
// clang-format on

TEST(Conv2dGradient, IsAddedToWhatHasComeForTheInput) {
  for (const DeviceKind kind : tests::test_devices())
    for (const int64_t stride : {1, 2}) {
      const auto random = [&](const Shape& sizes) {
        const auto values = tests::uniform(sizes.numel(), DType::f32);
        return Tensor::from(std::vector<float>(values.begin(), values.end()), sizes).to(Device{kind, 0});
      };
      const Tensor x = random({2, 6, 6, 8}), w = random({8, 3, 3, 8}), v = random({8, 1, 1, 8});
      const auto gradient = [&](auto&& body) {
        const Tensor leaf = x.detach().requires_grad_();
        body(affine(leaf, 2, 0));
        return leaf.grad().to_vector<float>();
      };
      const auto left = [&](const Tensor& input) {
        return conv2d(input, w, {}, {.stride = {stride, stride}, .padding = {1, 1}});
      };
      const auto right = [&](const Tensor& input) { return conv2d(input, v, {}, {.stride = {stride, stride}}); };
      const auto total = [](const Tensor& y) { return sum(affine(y, 3, 0)); };
      const auto want = gradient([&](const Tensor& input) {
        total(left(input)).backward({}, /*retain_graph=*/true);
        total(right(input)).backward({}, true);
        if (stride == 1) total(input).backward({}, true);
      });
      std::map<std::string, int> calls;
      const auto found = gradient([&](const Tensor& input) {
        const Tensor both = add(left(input), right(input));
        const Tensor y = total(stride == 1 ? add(both, input) : both);  // a residual block, and where its size changes
        const tests::KernelCalls seen;
        y.backward();
        calls = seen.count;
      });
      EXPECT_EQ(calls["conv2d_backward_input"], 2);
      EXPECT_EQ(calls["binary_forward"], 0) << "the input's gradients need no pass that adds them";
      ASSERT_EQ(found.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << i;
    }
}

}  // namespace
}  // namespace weft::test
