// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/kernel_cost.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

// Every contract adds its name to the list while the headers are read.
namespace weft::tests {
static std::vector<std::string>& contracts() {
  static std::vector<std::string> names;
  return names;
}
}  // namespace weft::tests
#undef WEFT_KERNEL
#define WEFT_KERNEL(kernel_name, ...) \
  [[maybe_unused]] static const bool listed_##kernel_name = (weft::tests::contracts().push_back(#kernel_name), true)
#include "contracts.h"  // written by CMake: includes every contract header

namespace weft::tests {
namespace {

using kernels::KernelCall;
using kernels::KernelCost;
using kernels::View;

template <size_t N>
KernelCost cost(const char* name, const std::array<View, N>& views) {
  std::array<const View*, N> pointers;
  for (size_t i = 0; i < N; ++i) pointers[i] = &views[i];
  return kernels::cost_of({name, kernels::Queue{}, pointers});
}

float memory[1];  // views count by their sizes; nothing is read
View f32(std::initializer_list<int64_t> sizes) { return View::dense(memory, DType::f32, sizes); }

TEST(KernelCost, EveryContractHasAnEntry) {
  EXPECT_GE(contracts().size(), 40u);
  for (const std::string& name : contracts()) EXPECT_TRUE(kernels::has_cost(name.c_str())) << name;
  EXPECT_FALSE(kernels::has_cost("no_such_kernel"));
}

TEST(KernelCost, TransformsAndFactorisations) {
  EXPECT_EQ(cost("fft_lines", std::array{f32({3, 8, 2, 2}), f32({3, 8, 2, 2})}).flop, 5.0 * 6 * 8 * 3);
  EXPECT_EQ(cost("rfft_lines", std::array{f32({3, 5, 2, 2}), f32({3, 8, 2})}).flop, 2.5 * 6 * 8 * 3);
  EXPECT_EQ(cost("irfft_lines", std::array{f32({3, 8, 2}), f32({3, 5, 2, 2})}).flop, 2.5 * 6 * 8 * 3);
  const View square = f32({2, 6, 6}), right = f32({2, 6, 4});
  EXPECT_EQ(cost("triangular_solve", std::array{right, square, right}).flop, 2.0 * 6 * 6 * 4);
  EXPECT_EQ(cost("solve", std::array{right, square, right}).flop, 2 * (2.0 / 3 * 216 + 2 * 6 * 6 * 4));
  EXPECT_EQ(cost("svd", std::array{f32({2, 6, 4}), f32({2, 4}), f32({2, 4, 4}), right}).flop, 14.0 * 2 * 6 * 4 * 4);
}

TEST(KernelCost, ConvolutionsAreExact) {
  // 16 images 8x8x32 to 64 channels by 3x3: 2 * 16 * 64 pixels * 64 channels * 9 * 32 operations.
  const View x = f32({16, 8, 8, 32}), w = f32({64, 3, 3, 32}), y = f32({16, 8, 8, 64});
  const double flop = 2.0 * 16 * 8 * 8 * 64 * 3 * 3 * 32;
  const int64_t bytes = 4 * (16 * 64 * 32 + 64 * 9 * 32 + 16 * 64 * 64);
  EXPECT_EQ(cost("conv2d_forward", std::array{y, x, w, f32({64})}).flop, flop);
  EXPECT_EQ(cost("conv2d_forward", std::array{y, x, w, f32({64})}).bytes, bytes + 4 * 64);
  EXPECT_EQ(cost("conv2d_forward", std::array{y, x, w, View::none()}).bytes, bytes);
  const View channel = f32({64}), part = f32({129}), none = View::none();
  const KernelCost norm = cost("conv2d_norm", std::array{y, x, w, none, channel, channel, channel, none, y});
  EXPECT_EQ(norm.flop, flop);
  EXPECT_EQ(norm.bytes, bytes + 4 * (3 * 64 + 16 * 64 * 64)) << "and no y read again";
  EXPECT_EQ(norm.arithmetic, 0) << "products alone are counted";
  EXPECT_EQ(cost("conv2d_statistics", std::array{y, part, x, w, none}).flop, flop);
  EXPECT_EQ(cost("conv2d_statistics", std::array{y, part, x, w, none}).arithmetic, 0);
  EXPECT_EQ(cost("conv2d_statistics", std::array{y, part, x, w, none}).bytes, bytes + 4 * 129);
  EXPECT_EQ(cost("conv2d_backward_input", std::array{x, y, w}).flop, flop);
  EXPECT_EQ(cost("conv2d_backward_weight", std::array{w, y, x}).flop, flop);
}

TEST(KernelCost, GroupsDivideTheWork) {
  // Depthwise: the weight has one channel per group.
  const View x = f32({2, 8, 8, 32}), w = f32({32, 3, 3, 1}), y = f32({2, 8, 8, 32});
  EXPECT_EQ(cost("conv2d_forward", std::array{y, x, w, View::none()}).flop, 2.0 * 2 * 8 * 8 * 32 * 9);
}

TEST(KernelCost, Matmul) {
  const View y = f32({3, 5, 7}), a = f32({3, 5, 11});
  View b = f32({3, 11, 7});
  b.strides[0] = 0;  // one matrix for all three products
  const KernelCost got = cost("matmul", std::array{y, a, b, View::none()});
  EXPECT_EQ(got.flop, 2.0 * 3 * 5 * 7 * 11);
  EXPECT_EQ(got.bytes, 4 * (3 * 5 * 7 + 3 * 5 * 11 + 11 * 7));
  // With every epilogue that a product can have: y, pre, a, b, bias, residual.
  const KernelCost fused = cost("matmul_fused", std::array{y, y, a, b, f32({7}), y});
  EXPECT_EQ(fused.flop, got.flop);
  EXPECT_EQ(fused.arithmetic, 0);
  EXPECT_EQ(fused.bytes, got.bytes + 4 * (2 * 3 * 5 * 7 + 7));
}

TEST(KernelCost, LinearBackward) {
  const View dx = f32({5, 7}), dy = f32({5, 11}), w = f32({11, 7}), db = f32({11});
  EXPECT_EQ(cost("linear_backward_input", std::array{dx, dy, w, dx}).flop, 2.0 * 5 * 7 * 11);
  EXPECT_EQ(cost("linear_backward_input", std::array{dx, dy, w, dx}).bytes, 4 * (2 * 5 * 7 + 5 * 11 + 11 * 7));
  EXPECT_EQ(cost("linear_backward_weight", std::array{w, db, dy, dx}).flop, 2.0 * 5 * 7 * 11);
  EXPECT_EQ(cost("linear_backward_weight", std::array{w, db, dy, dx}).bytes, 4 * (11 * 7 + 11 + 5 * 11 + 5 * 7));
}

TEST(KernelCost, EightBits) {
  const auto codes = [](std::initializer_list<int64_t> sizes) { return View::dense(memory, DType::u8, sizes); };
  const View y = f32({5, 7}), a = codes({5, 11}), b = codes({7, 11}), one = f32({1}), none = View::none();
  EXPECT_EQ(cost("fp8_matmul", std::array{y, none, a, b, f32({7}), one, one}).flop, 2.0 * 5 * 7 * 11);
  EXPECT_EQ(cost("fp8_matmul", std::array{y, none, a, b, f32({7}), one, one}).bytes, 4 * (35 + 7 + 2) + 55 + 77);
  EXPECT_EQ(cost("fp8_quantize", std::array{a, codes({11, 5}), one, f32({5, 11}), one}).bytes, 2 * 55 + 8 + 4 * 55 + 4);
}

TEST(KernelCost, Attention) {
  // 3 batch entries, 5 queries, 7 keys, 2 heads of 16 channels: 2 products forward, 5 backward.
  const View q = f32({3, 5, 2, 16}), k = f32({3, 7, 2, 16}), lse = f32({3, 2, 5}), none = View::none();
  const double product = 2.0 * 3 * 2 * 5 * 7 * 16;
  const int64_t bytes = 4 * (2 * 3 * 5 * 2 * 16 + 2 * 3 * 7 * 2 * 16 + 3 * 2 * 5);
  EXPECT_EQ(cost("attention_forward", std::array{q, lse, q, k, k, none, none, none}).flop, 2 * product);
  EXPECT_EQ(cost("attention_forward", std::array{q, lse, q, k, k, none, none, none}).bytes, bytes);
  EXPECT_EQ(cost("attention_backward", std::array{none, k, k, q, q, k, k, q, lse, none, none, none}).flop, 5 * product);
  // Both heads share one of keys: the same products, and fewer bytes.
  const View shared = f32({3, 7, 1, 16});
  EXPECT_EQ(cost("attention_forward", std::array{q, lse, q, shared, shared, none, none, none}).flop, 2 * product);
  EXPECT_EQ(cost("attention_forward", std::array{q, lse, q, shared, shared, none, none, none}).bytes,
            bytes - 4 * 3 * 7 * 2 * 16);
}

TEST(KernelCost, UpdatedTensorsAreReadAndWritten) {
  const View w = f32({100}), scalars = f32({3});
  // w, velocity, no copy, gradient.
  EXPECT_EQ(cost("sgd_step", std::array{w, w, View::none(), w, scalars}).bytes, 4 * (2 * 100 + 2 * 100 + 100 + 3));
  EXPECT_EQ(cost("a_new_kernel", std::array{w, w}).bytes, 800) << "the bytes of its views";
}

TEST(KernelCost, NormsReadTwiceWhatTheirSumsNeedFirst) {
  const View x = f32({100, 8}), c = f32({8}), none = View::none();
  // y written, x read for the statistics and again; four vectors of statistics, weight and bias.
  EXPECT_EQ(cost("batch_norm_forward", std::array{x, c, c, c, c, x, c, c, none, none}).bytes, 4 * (3 * 800 + 6 * 8));
  EXPECT_EQ(cost("batch_norm_forward", std::array{x, c, c, c, c, x, c, c, x, none}).bytes, 4 * (4 * 800 + 6 * 8));
  // Statistics that are known: one read.
  EXPECT_EQ(cost("batch_norm_of_parts", std::array{x, c, c, none, c, c, x, c, c, none, f32({1, 17}), none}).bytes,
            4 * (2 * 800 + 6 * 8 + 17));
  // A row fits on chip: one read.
  EXPECT_EQ(cost("layer_norm_forward", std::array{x, f32({100}), f32({100}), none, x, none, c, c}).bytes,
            4 * (2 * 800 + 2 * 100 + 2 * 8));
  EXPECT_EQ(cost("batch_norm_forward", std::array{x, c, c, c, c, x, c, c, x, none}).arithmetic, 8 * 800);
  EXPECT_EQ(cost("batch_norm_forward", std::array{x, c, c, c, c, x, c, c, x, none}).flop, 0);
}

TEST(KernelCost, BatchNormBackwardTakesTwoPasses) {
  const View x = f32({100, 8}), c = f32({8}), none = View::none();
  const auto backward = [&](const View& dresidual, const View& y, const View& bias) {
    // dx, dresidual, dweight, dbias, dy, x, y, weight, bias, mean, invstd
    return cost("batch_norm_backward", std::array{x, dresidual, c, c, x, x, y, c, bias, c, c}).bytes - 4 * 5 * 8;
  };
  EXPECT_EQ(backward(none, none, none), 4 * 5 * 800) << "dy and x twice, dx";
  EXPECT_EQ(backward(none, x, none), 4 * 7 * 800) << "y too";
  EXPECT_EQ(backward(none, x, c), 4 * (5 * 800 + 8)) << "the mask follows from x";
  EXPECT_EQ(backward(x, x, none), 4 * 7 * 800) << "dy, y, dresidual twice, x twice, dx";
  const View bits = View::dense(memory, DType::u8, {100, 1});
  EXPECT_EQ(backward(x, bits, none), 4 * 6 * 800 + 100) << "a bit in place of each y";
}

TEST(KernelCost, AProductTellsWhatItMultiplies) {
  const View y = f32({1, 5, 7});
  const View a = View::dense(memory, DType::bf16, {1, 5, 11}), b = View::dense(memory, DType::bf16, {1, 11, 7});
  EXPECT_EQ(cost("matmul", std::array{y, a, b, View::none()}).product, DType::bf16);
  EXPECT_EQ(cost("matmul", std::array{y, y, y, View::none()}).product, DType::f32);
}

}  // namespace
}  // namespace weft::tests
