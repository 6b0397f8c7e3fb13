// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/cross_entropy.h"
#include "kernels/contracts/cumsum.h"
#include "kernels/contracts/fill.h"
#include "kernels/contracts/fp8.h"
#include "kernels/contracts/group_norm.h"
#include "kernels/contracts/image.h"
#include "kernels/contracts/index.h"
#include "kernels/contracts/layer_norm.h"
#include "kernels/contracts/linear.h"
#include "kernels/contracts/matmul.h"
#include "kernels/contracts/optimizer.h"
#include "kernels/contracts/pool2d.h"
#include "kernels/contracts/random.h"
#include "kernels/contracts/reduce.h"
#include "kernels/contracts/softmax.h"
#include "kernels/contracts/sort.h"
#include "kernels/contracts/unary.h"
#include "tests/support/compare.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"

// The errors of the GPU's kernels about operands that do not fit; the CPU's are tested elsewhere.

namespace weft::tests {
namespace {

using kernels::View;
using testing::HasSubstr;

class RefusalsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
    memory_.emplace(DeviceKind::cuda, DType::f32, Sizes{4096});
  }
  /// A view of these sizes. Large ones have no memory: their call must end before it reads any.
  View of(DType dtype, std::initializer_list<int64_t> sizes) const {
    return View::dense(memory_->view().data, dtype, sizes);
  }
  View f(std::initializer_list<int64_t> sizes) const { return of(DType::f32, sizes); }
  View i(std::initializer_list<int64_t> sizes) const { return of(DType::i64, sizes); }
  View h(std::initializer_list<int64_t> sizes) const { return of(DType::bf16, sizes); }
  /// f32 [2, 3] of a matrix with longer rows.
  View rows() const {
    View view = f({2, 3});
    view.strides[0] = 4;
    return view;
  }
  template <class Call>
  void refuses(const std::string& text, Call&& call) const {
    EXPECT_THAT(error_text(call), HasSubstr(text));
  }

  const kernels::Queue gpu_ = queue_on(DeviceKind::cuda);
  const View none_ = View::none();

 private:
  std::optional<DeviceArray> memory_;
};

constexpr int64_t kTwo31 = int64_t{1} << 31;

TEST_F(RefusalsOnGpu, Matmul) {
  const View y = f({1, 2, 3}), a = f({1, 2, 4}), b = f({1, 4, 3});
  const auto text = [&](const View& result, const View& left, const View& right, const View& bias) {
    return error_text([&] { kernels::matmul(gpu_, result, left, right, bias, {}); });
  };
  EXPECT_THAT(text(y, a, f({1, 5, 3}), none_),
              HasSubstr("matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got f32[1,2,3] = f32[1,2,4] @ f32[1,5,3]"));
  EXPECT_THAT(text(y, a, b, f({2})), HasSubstr("expected a dense bias [3] of the operands' dtype, got f32[2]"));
  EXPECT_THAT(text(h({1, 2, 3}), a, b, none_), HasSubstr("matmul: expected the result in f32, got bf16[1,2,3]"));
  View strided = a;
  strided.strides = {16, 8, 2};
  EXPECT_THAT(text(y, strided, b, none_), HasSubstr("matmul: a f32[1,2,4] has strides 8, 2"));
  View overlapping = y;
  overlapping.strides = {4, 2, 1};
  EXPECT_THAT(text(overlapping, a, b, none_),
              HasSubstr("matmul: expected a result with dense rows, got f32[1,2,3] of strides 2, 1"));
  const std::string limit = "matmul: expected sizes below 2^31, got ";
  EXPECT_THAT(text(f({1, kTwo31, 3}), f({1, kTwo31, 4}), b, none_), HasSubstr(limit));
  EXPECT_THAT(text(f({1, 2, kTwo31}), a, f({1, 4, kTwo31}), none_), HasSubstr(limit));
  EXPECT_THAT(text(y, f({1, 2, kTwo31}), f({1, kTwo31, 3}), none_), HasSubstr(limit));
  EXPECT_THAT(text(f({1, kTwo31 / 2, 1 << 20}), f({1, kTwo31 / 2, 8}), f({1, 8, 1 << 20}), none_),
              HasSubstr("matmul: expected less than 2^31 tiles, got "));
}

TEST_F(RefusalsOnGpu, LinearBackwardWeight) {
  const auto text = [&](int64_t O, int64_t I, int64_t M) {
    return error_text([&] { kernels::linear_backward_weight(gpu_, f({O, I}), f({O}), f({M, O}), f({M, I})); });
  };
  for (const auto& said : {text(kTwo31, 3, 2), text(3, kTwo31, 2), text(3, 2, kTwo31)})
    EXPECT_THAT(said, HasSubstr("linear_backward_weight: expected sizes below 2^31, got f32["));
}

TEST_F(RefusalsOnGpu, Conv2d) {
  const View x = f({1, 6, 6, 4}), y = f({1, 4, 4, 8}), w = f({8, 3, 3, 4});
  const auto forward = [&](const View& result, const View& input, const View& filters,
                           kernels::Conv2dArguments arguments) {
    return [&, arguments] { kernels::conv2d_forward(gpu_, result, input, filters, none_, arguments); };
  };
  refuses("conv2d_forward: weight f32[8,3,3,3] does not fit input f32[1,6,6,4] with groups=1",
          forward(y, x, f({8, 3, 3, 3}), {}));
  refuses("conv2d_forward: expected contiguous [N,H,W,C], [O,R,S,C/groups] and [N,P,Q,O], got f32[6,6,4], ",
          forward(y, f({6, 6, 4}), w, {}));
  const std::string positive = "conv2d_forward: expected positive stride and dilation and no negative padding";
  refuses(positive, forward(y, x, w, {.stride = {0, 1}}));
  refuses(positive, forward(y, x, w, {.dilation = {1, 0}}));
  refuses(positive, forward(y, x, w, {.padding = {0, -1}}));
  refuses("conv2d_forward: expected one dtype, got f32[1,4,4,8] = f32[1,6,6,4] * bf16[8,3,3,4]",
          forward(y, x, h({8, 3, 3, 4}), {}));
  refuses("elements per image, got f32[1,65536,32768,1] and f32[1,65536,32768,1]. Use a smaller batch",
          forward(f({1, 65536, 32768, 1}), f({1, 65536, 32768, 1}), f({1, 1, 1, 1}), {}));
  refuses("conv2d_forward_depthwise: expected a filter of at most ",
          forward(f({1, 1, 1, 8}), f({1, 200, 200, 8}), f({8, 200, 200, 1}), {.groups = 8}));
  refuses("conv2d_backward_input: input f32[1,6,6,4] and weight f32[8,3,3,4] do not give f32[1,5,4,8]", [&] {
    kernels::conv2d_backward_input(gpu_, x, f({1, 5, 4, 8}), w, none_, {});
  });
  refuses("conv2d_backward_input: expected one dtype, got f32[1,6,6,4] = f32[1,4,4,8] * bf16[8,3,3,4]", [&] {
    kernels::conv2d_backward_input(gpu_, x, y, h({8, 3, 3, 4}), none_, {});
  });
  refuses("conv2d_backward_weight: expected one dtype (or dw in f32), got bf16[8,3,3,4] = f32[1,4,4,8] * f32[1,6,6,4]",
          [&] {
            kernels::conv2d_backward_weight(gpu_, h({8, 3, 3, 4}), y, x, {});
          });
}

TEST_F(RefusalsOnGpu, BatchNorm) {
  const View x = f({2, 3}), c = f({3}), wrong = f({2, 3, 4});
  const std::string said = ": expected contiguous [M, C], got f32[2,3,4]";
  refuses("batch_norm_forward" + said,
          [&] { kernels::batch_norm_forward(gpu_, x, c, c, none_, none_, wrong, none_, none_, none_, none_, {}); });
  refuses("batch_norm_inference" + said,
          [&] { kernels::batch_norm_inference(gpu_, x, wrong, c, c, none_, none_, none_, {}); });
  refuses("batch_norm_statistics" + said, [&] { kernels::batch_norm_statistics(gpu_, f({7}), wrong); });
  const auto of_parts = [&](const View& input, const View& parts) {
    return [&] {
      kernels::batch_norm_of_parts(gpu_, x, c, c, none_, none_, none_, input, none_, none_, none_, parts, none_, {});
    };
  };
  refuses("batch_norm_of_parts" + said, of_parts(wrong, f({1, 7})));
  refuses("batch_norm_of_parts: expected contiguous parts [n, 7], got f32[1,6]", of_parts(x, f({1, 6})));
  refuses("batch_norm_of_parts: expected contiguous parts [n, 7], got f32[0,7]", of_parts(x, f({0, 7})));
  const auto backward = [&](const View& input, bool relu) {
    return [&, relu] {
      kernels::batch_norm_backward(gpu_, x, none_, none_, none_, x, input, none_, none_, none_, c, c, {.relu = relu});
    };
  };
  refuses("batch_norm_backward" + said, backward(wrong, false));
  refuses("batch_norm_backward: expected the forward's output y with relu", backward(x, true));
  const auto backward_input = [&](const View& input, bool relu) {
    return [&, relu] {
      kernels::batch_norm_backward_input(gpu_, x, none_, c, c, x, input, none_, none_, none_, c, c, {.relu = relu});
    };
  };
  refuses("batch_norm_backward_input" + said, backward_input(wrong, false));
  refuses("batch_norm_backward_input: expected the forward's output y with relu", backward_input(x, true));
}

TEST_F(RefusalsOnGpu, Rows) {
  const View x = f({2, 3}), other = f({2, 4}), m = f({2});
  const std::string said = ": expected contiguous [M, C] of one dtype, got f32[2,3] and f32[2,4]",
                    mixed = ": expected contiguous [M, C] of one dtype, or 16 bits beside f32, got f32[2,3] and f32[2,4]";
  refuses("layer_norm_forward" + mixed,
          [&] { kernels::layer_norm_forward(gpu_, other, m, m, none_, x, none_, none_, none_, 1); });
  refuses("layer_norm_forward" + mixed,
          [&] { kernels::layer_norm_forward(gpu_, x, m, m, x, x, other, none_, none_, 1); });
  refuses("layer_norm_backward" + said,
          [&] { kernels::layer_norm_backward(gpu_, x, none_, none_, other, x, none_, m, m, none_); });
  const View samples = f({2, 5, 6}), wrong = f({2, 5, 4}), groups = f({2, 3}), uneven = f({2, 4});
  refuses("group_norm_forward: expected two dense [N, P, C] of one dtype, got f32[2,5,6] and f32[2,5,4]",
          [&] { kernels::group_norm_forward(gpu_, wrong, groups, groups, samples, none_, none_, 1); });
  refuses("group_norm_backward: expected a mean and a deviation for each sample and group of f32[2,5,6]",
          [&] { kernels::group_norm_backward(gpu_, samples, none_, none_, samples, samples, none_, uneven, uneven); });
  refuses("rms_norm_forward" + mixed, [&] { kernels::rms_norm_forward(gpu_, other, m, none_, x, none_, none_, 1); });
  refuses("rms_norm_forward" + mixed, [&] { kernels::rms_norm_forward(gpu_, x, m, x, x, other, none_, 1); });
  refuses("rms_norm_backward" + said, [&] { kernels::rms_norm_backward(gpu_, x, none_, other, x, none_, m, none_); });

  refuses("softmax_forward: expected contiguous tensors of equal sizes and dtype, got f32[2,4] and f32[2,3]",
          [&] { kernels::softmax_forward(gpu_, other, x, false); });
  refuses("softmax_backward: expected contiguous tensors of equal sizes and dtype, got f32[2,4] and f32[2,3]",
          [&] { kernels::softmax_backward(gpu_, other, x, x, false); });
  refuses("softmax_backward: expected dy like f32[2,3], got f32[2,4]",
          [&] { kernels::softmax_backward(gpu_, x, other, x, false); });

  View columns = x;
  columns.strides = {1, 2};
  refuses("cross_entropy_backward: expected a gradient laid out as f32[2,3], got f32[2,3] of row strides 3 and 4",
          [&] { kernels::cross_entropy_backward(gpu_, rows(), m, x, x, i({2}), {}); });
  for (const bool forward : {true, false}) {
    const std::string name = forward ? "cross_entropy_forward" : "cross_entropy_backward";
    const auto call = [&](const View& logits, const View& target) {
      return [&, forward] {
        if (forward)
          kernels::cross_entropy_forward(gpu_, m, x, none_, logits, target, {});
        else
          kernels::cross_entropy_backward(gpu_, logits, m, logits, x, target, {});
      };
    };
    refuses(name + ": expected logits [N, C] with dense rows, got f32[2,3] of strides 1, 2", call(columns, i({2})));
    const std::string classes = name + ": expected classes i64[2] or probabilities like f32[2,3], got ";
    refuses(classes + "i64[3]", call(x, i({3})));
    refuses(classes + "f32[2,4]", call(x, other));
  }
  refuses("cumsum: expected contiguous tensors of equal sizes, the sums of integers in i64, got f32[2,4] and f32[2,3]",
          [&] { kernels::cumsum(gpu_, other, x, false); });
  refuses("sort: expected contiguous values like x and i64 indices, got f32[2,3], f32[2,3] and f32[2,3]",
          [&] { kernels::sort(gpu_, x, x, x, false); });
  refuses("search_sorted: expected dense values and i64 positions of equal sizes, got f32[2,3], f32[2,3] and f32[2,3]",
          [&] { kernels::search_sorted(gpu_, x, x, x, false); });
  refuses("sort: expected at most 3 (and 2^31) elements of a row, got 4", [&] {
    kernels::sort(gpu_, other, i({2, 4}), x, false);
  });
}

TEST_F(RefusalsOnGpu, Elementwise) {
  const View x = f({2, 3}), other = f({2, 4}), half = h({2, 3}), flags = of(DType::boolean, {2, 3});
  const auto add = [&](const View& b) {
    return [&] { kernels::binary_forward(gpu_, kernels::Binary::add, x, x, b, 1); };
  };
  refuses("binary_forward: expected one dtype, got f32[2,3], f32[2,3] and bf16[2,3]", add(half));
  refuses("binary_forward: expected operands of equal sizes, got f32[2,3] and f32[2,4]", add(other));
  refuses("compare: expected bool from one dtype, got bool[2,3], f32[2,3] and bf16[2,3]",
          [&] { kernels::compare(gpu_, kernels::Compare::eq, flags, x, half); });
  refuses("where: expected a bool condition and one dtype, got f32[2,3], f32[2,3], f32[2,3] and f32[2,3]",
          [&] { kernels::where(gpu_, x, x, x, x); });
  refuses("unary_forward: expected one dtype, got f32[2,3] and bf16[2,3]",
          [&] { kernels::unary_forward(gpu_, kernels::Unary::exp, x, half, {}); });
  refuses("unary_forward: expected a floating dtype, got i64[2,3]", [&] {
    kernels::unary_forward(gpu_, kernels::Unary::exp, i({2, 3}), i({2, 3}), {});
  });
  refuses("unary_backward: expected one dtype, got f32[2,3], f32[2,3] and bf16[2,3]",
          [&] { kernels::unary_backward(gpu_, kernels::Unary::exp, x, x, half, {}); });
  refuses("arange: expected a contiguous output, got f32[2,3]", [&] { kernels::arange(gpu_, rows(), 0, 1); });
  refuses("fp8_quantize: expected less than 2^31 tiles of 128 x 128, got bf16[", [&] {
    const int64_t n = int64_t{1} << 23;
    kernels::fp8_quantize(gpu_, of(DType::u8, {n, n}), none_, f({1}), h({n, n}), f({1}), kernels::Fp8::e4m3);
  });
}

TEST_F(RefusalsOnGpu, Index) {
  using namespace kernels;
  const View x = f({2, 3}), y = f({2, 2}), at = i({2}), both = i({2, 2});
  const std::string wanted = ": expected contiguous tensors of one dtype and an i64 index, got ";
  refuses("index_select: expected a dimension of f32[2,3], got 2", [&] { index_select(gpu_, y, x, at, 2); });
  refuses("index_select" + wanted, [&] { index_select(gpu_, y, x, f({2}), 1); });
  refuses("index_select: expected equal sizes but for dimension 0, got f32[2,2] and f32[2,3]",
          [&] { index_select(gpu_, y, x, at, 0); });
  refuses("index_select: expected 2 positions, got i64[3]", [&] { index_select(gpu_, y, x, i({3}), 1); });
  refuses("index_select_backward" + wanted, [&] { index_select_backward(gpu_, x, y, f({2}), 1); });
  refuses("index_select_backward: expected 2 positions, got i64[3]",
          [&] { index_select_backward(gpu_, x, y, i({3}), 1); });
  refuses("gather" + wanted, [&] { gather(gpu_, y, x, f({2, 2}), 1); });
  refuses("gather: expected an index of the output's sizes f32[2,2], got i64[2]", [&] { gather(gpu_, y, x, at, 1); });
  refuses("gather_backward" + wanted, [&] { gather_backward(gpu_, x, y, f({2, 2}), 1); });
  refuses("gather_backward: expected an index of the sizes of f32[2,2], got i64[2]",
          [&] { gather_backward(gpu_, x, y, at, 1); });
  refuses("index_put" + wanted, [&] { index_put(gpu_, x, f({1, 3}), f({1})); });
  refuses("index_put: expected 1 positions, got i64[2]", [&] { index_put(gpu_, x, f({1, 3}), at); });
  refuses("ravel_index: expected contiguous tensors of equal sizes, got i64[2] and i64[2,2]",
          [&] { ravel_index(gpu_, at, both, 3); });
  refuses("nonzero: expected contiguous tensors y [count, 2] and ends [6], got i64[2,3] and i64[6]", [&] {
    nonzero(gpu_, i({2, 3}), of(DType::boolean, {2, 3}), i({6}));
  });
}

TEST_F(RefusalsOnGpu, Images) {
  using namespace kernels;
  const View x = f({1, 4, 4, 3}), y = f({1, 2, 2, 4}), index = of(DType::i32, {1, 2, 2, 4});
  const std::string said =
      ": expected contiguous [N, H, W, C] and [N, P, Q, C] of one dtype, got f32[1,4,4,3] and f32[1,2,2,4]";
  refuses("max_pool2d_forward" + said, [&] { max_pool2d_forward(gpu_, y, index, x, {}); });
  refuses("max_pool2d_backward" + said, [&] { max_pool2d_backward(gpu_, x, y, index, {}); });
  refuses("avg_pool2d_forward" + said, [&] { avg_pool2d_forward(gpu_, y, x, {}); });
  refuses("avg_pool2d_backward" + said, [&] { avg_pool2d_backward(gpu_, x, y, {}); });
  refuses("adaptive_avg_pool2d_forward" + said, [&] { adaptive_avg_pool2d_forward(gpu_, y, x); });
  refuses("adaptive_avg_pool2d_backward" + said, [&] { adaptive_avg_pool2d_backward(gpu_, x, y); });
  const View small = f({1, 1, 1, 1}), large = f({1, 65536, 32768, 1});
  refuses("avg_pool2d_forward: expected images of fewer than 2^31 elements, got f32[1,65536,32768,1] and f32[1,1,1,1]",
          [&] { avg_pool2d_forward(gpu_, small, large, {}); });
  refuses("avg_pool2d_forward: expected images of fewer than 2^31 elements, got f32[1,1,1,1] and f32[1,65536,32768,1]",
          [&] { avg_pool2d_forward(gpu_, large, small, {}); });
  const View bytes = of(DType::u8, {1, 4, 4, 3});
  refuses(
      "image_normalize: expected contiguous [N, H, W, C] and [N, P, Q, C] with C <= 4, got u8[1,4,4,3] and "
      "f32[1,2,2,4]",
      [&] { image_normalize(gpu_, y, bytes, none_, {}); });
  refuses("image_normalize: expected crop i32[1,3], got i32[2,3]", [&] {
    image_normalize(gpu_, f({1, 2, 2, 3}), bytes, of(DType::i32, {2, 3}), {});
  });
  refuses("mixed_targets: expected contiguous targets f32 [N, C] and labels [N], got f32[2,3] and i64[3]", [&] {
    mixed_targets(gpu_, f({2, 3}), i({3}), 0.5);
  });
}

TEST_F(RefusalsOnGpu, Random) {
  using namespace kernels;
  const auto all = [&](const View& y, const View& state, const std::string& text) {
    refuses("random_uniform" + text, [&] { random_uniform(gpu_, y, state, {}, uniform_range(DType::f32, 0, 1)); });
    refuses("random_normal" + text, [&] { random_normal(gpu_, y, state, {}, 0, 1); });
    refuses("random_bernoulli" + text, [&] { random_bernoulli(gpu_, y, state, {}, 0.5); });
    refuses("random_integers" + text, [&] { random_integers(gpu_, y, state, {}, 0, 2); });
    refuses("random_permutation" + text, [&] { random_permutation(gpu_, y, state, {}); });
    refuses("dropout" + text, [&] { dropout(gpu_, y, y, state, {}, 0.5); });
  };
  all(rows(), i({2}), ": expected a contiguous output, got f32[2,3]");
  all(f({2, 3}), i({3}), ": expected a state i64[2], got i64[3]");
  refuses("dropout: expected f32[2,3], got f32[2,4]", [&] { dropout(gpu_, f({2, 3}), f({2, 4}), i({2}), {}, 0.5); });
}

TEST_F(RefusalsOnGpu, Reduce) {
  using namespace kernels;
  const View x = f({2, 3});
  const auto sum = [&](const View& y, const View& from, Reduce how = Reduce::sum) {
    return [&, how] { reduce(gpu_, how, y, from); };
  };
  refuses("reduce: expected an output of the input's rank, got f32[2] from f32[2,3]", sum(f({2}), x));
  refuses("reduce: expected size 1 or equal sizes, got f32[2,2] from f32[2,3]", sum(f({2, 2}), x));
  refuses("reduce: max and min of nothing, from f32[2,0]", sum(f({2, 1}), f({2, 0}), Reduce::max));
  refuses("reduce: expected i64 or f32, got bf16[2,1]", sum(h({2, 1}), i({2, 3})));
  refuses("reduce: expected a floating dtype, got i64[2,3]", sum(i({2, 1}), i({2, 3}), Reduce::mean));
  refuses("reduce: too many outputs: ", sum(f({int64_t{1} << 40, 1}), f({int64_t{1} << 40, 2})));
  refuses("argmax: expected an i64 output, got f32[2,1]", [&] { argmax(gpu_, f({2, 1}), x, 1); });
  refuses("argmax: expected an output of size 1 along dimension 0 only, got i64[2,1] from f32[2,3]", [&] {
    argmax(gpu_, i({2, 1}), x, 0);
  });
  refuses("argmax: expected at least one element along dimension 1, got f32[2,0]", [&] {
    argmax(gpu_, i({2, 1}), f({2, 0}), 1);
  });
}

TEST_F(RefusalsOnGpu, Optimizer) {
  using namespace kernels;
  const View w = f({4}), wide = of(DType::f64, {4}), scalars = f({4});
  refuses("sgd_step: expected flat weights and gradient of one length, got f32[4] and f32[3]",
          [&] { sgd_step(gpu_, w, none_, none_, f({3}), scalars, {}); });
  refuses("sgd_step: expected an f64 gradient for f64 weights, got f32[4]",
          [&] { sgd_step(gpu_, wide, none_, none_, w, scalars, {}); });
  refuses("clip_gradient: expected a contiguous gradient, got f32[2,3]",
          [&] { clip_gradient(gpu_, rows(), f({1}), 1); });
  refuses("ema_step: expected flat ranges of one size and dtype, got f32[4] and f32[3]",
          [&] { ema_step(gpu_, w, f({3}), none_, {}); });
  refuses("exchange: expected flat ranges of one size and dtype, got f32[4] and f64[4]",
          [&] { exchange(gpu_, w, wide); });
}

}  // namespace
}  // namespace weft::tests
