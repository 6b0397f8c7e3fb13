// SPDX-License-Identifier: Apache-2.0
// What users read when they call an op with tensors that do not fit.
#include <gmock/gmock.h>

#include <limits>

#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/einsum.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv3d.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "core/ops/layers/embedding_bag.h"
#include "core/ops/layers/image.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/recurrent.h"
#include "core/ops/layers/resize2d.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/slices.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor zeros(const Shape& sizes, DType dtype = DType::f32) { return Tensor::zeros(sizes, dtype); }

#define EXPECT_ERROR(call, text) EXPECT_THAT([&] { call; }, ThrowsMessage<Error>(HasSubstr(text)))

TEST(Errors, Elementwise) {
  EXPECT_ERROR(exp(zeros({2}, DType::i64)), "exp: expected a floating tensor, got i64[2] on cpu");
  EXPECT_ERROR(exp(Tensor()), "exp: expected a floating tensor, got none");
  for (Tensor (*const f)(const Tensor&) : std::initializer_list<Tensor (*)(const Tensor&)>{neg, abs, sign, square})
    EXPECT_ERROR(f(zeros({2}, DType::u8)),
                 ": expected a floating tensor, or one of i64 or i32, got u8[2] on cpu. Convert it with to(dtype)");
  EXPECT_ERROR(lerp(zeros({2}, DType::u8), zeros({2}, DType::u8), 0.5),
               "lerp: expected floating tensors, got u8[2] on cpu and u8[2] on cpu. Convert one with to(dtype)");
  EXPECT_ERROR(index_add(zeros({3}, DType::i64), 0, zeros({1}, DType::i64), zeros({1}, DType::i64)),
               "index_add: expected floating tensors, got i64[3] on cpu and i64[1] on cpu");
  EXPECT_ERROR(add(zeros({2}), Tensor()), "add: expected two tensors, got f32[2] on cpu and none");
  EXPECT_ERROR(zeros({2, 3}) + zeros({2}), "add: cannot broadcast [2,3] with [2]: sizes 3 and 2 differ in dimension 1");
  EXPECT_ERROR(clamp(zeros({2}), 1, 0), "clamp: expected low <= high, got 1 and 0");
  EXPECT_ERROR(where(zeros({2}), zeros({2}), zeros({2})), "where: expected a bool condition, got f32[2] on cpu");
  EXPECT_ERROR(cross_entropy(zeros({1, 2}), zeros({1, 2}), {.ignore_index = 1}),
               "cross_entropy: expected classes beside ignore_index, got probabilities f32[1,2] on cpu");
  EXPECT_ERROR(zeros({1}).expand({int64_t{1} << 32, int64_t{1} << 32}),
               "shape: [4294967296,4294967296] has more elements than 64 bits count");
  EXPECT_ERROR(normal_(zeros({1}).expand({4})),
               "normal: the elements of f32[4] on cpu along dimension 0 are one in memory. Change its clone()");
  EXPECT_ERROR(uniform_(zeros({1}).expand({4})),
               "uniform: the elements of f32[4] on cpu along dimension 0 are one in memory. Change its clone()");
  EXPECT_ERROR(Tensor::full({}, 1e300, DType::f64).item<float>(), "item: f32 does not hold 1e+300. Use item()");
}

TEST(Errors, Reductions) {
  EXPECT_ERROR(sum(zeros({2, 3}), {2}), "sum: dimension 2 is out of range for 2 dimensions");
  EXPECT_ERROR(sum(zeros({2, 3}), {1, -1}), "sum: dimension -1 is named twice");
  EXPECT_ERROR(max(zeros({0, 3}), {0}), "max: nothing to choose from in f32[0,3] on cpu");
  EXPECT_ERROR(argmax(zeros({0, 3}), 0), "argmax: nothing to choose from in dimension 0 of f32[0,3] on cpu");
  EXPECT_ERROR(softmax(zeros({})), "softmax: expected at least one dimension, got f32[] on cpu");
}

TEST(Errors, Products) {
  EXPECT_ERROR(matmul(zeros({2, 3}), zeros({4, 5})),
               "matmul: columns of the left f32[2,3] on cpu are 3, rows of the right f32[4,5] on cpu are 4");
  EXPECT_ERROR(matmul(zeros({2, 3}), zeros({3, 5}, DType::f64)), "matmul: expected one floating dtype");
  EXPECT_ERROR(matmul(zeros({2, 4, 3}), zeros({3, 3, 5})), "matmul: cannot broadcast [2] with [3]");
  EXPECT_ERROR(
      matmul(zeros({2, 3}, DType::i64), zeros({3, 5}, DType::i64)),
      "matmul: expected one floating dtype, got i64[2,3] on cpu and i64[3,5] on cpu. Convert both with to(dtype)");
  EXPECT_ERROR(
      linear(zeros({2, 3}), zeros({5, 4})),
      "linear: weight f32[5,4] on cpu wants 4 features, input f32[2,3] on cpu has 3. Was the input flattened?");
  EXPECT_ERROR(linear(zeros({2, 3}), zeros({5, 3}), zeros({3})), "linear: expected a bias [5], got f32[3] on cpu");
  EXPECT_ERROR(linear_gelu(zeros({2, 3}), zeros({5, 3}), zeros({3})),
               "linear_gelu: expected a bias [5], got f32[3] on cpu");
}

TEST(Errors, Convolution) {
  EXPECT_ERROR(
      conv2d(zeros({8, 224, 224, 4}), zeros({64, 7, 7, 3})),
      "conv2d: weight f32[64,7,7,3] wants 3 input channels, input f32[8,224,224,4] has 4 (groups=1). Is the input "
      "NHWC?");
  EXPECT_ERROR(conv2d(zeros({8, 8, 3}), zeros({4, 3, 3, 3})), "conv2d: expected an input [N, H, W, C], got f32[8,8,3]");
  EXPECT_ERROR(conv2d(zeros({1, 8, 8, 3}), zeros({4, 3})),
               "conv2d: expected a weight [O, R, S, C / groups], got f32[4,3]");
  EXPECT_ERROR(conv2d(zeros({1, 8, 8, 6}), zeros({5, 3, 3, 3}), {}, {.groups = 2}),
               "conv2d: 5 output channels of weight f32[5,3,3,3] on cpu do not divide into 2 groups");
  EXPECT_ERROR(conv2d(zeros({1, 2, 8, 3}), zeros({4, 3, 3, 3})),
               "conv2d: the kernel of weight f32[4,3,3,3] is larger than the padded input f32[1,2,8,3]");
  EXPECT_ERROR(conv2d(zeros({1, 8, 8, 3}), zeros({4, 3, 3, 3}), {}, {.stride = {0, 1}}), "got stride 0x1");
  EXPECT_ERROR(conv2d(zeros({1, 8, 8, 3}), zeros({4, 3, 3, 3}), zeros({3})), "conv2d: expected a bias [4], got f32[3]");
  EXPECT_ERROR(conv2d(zeros({1, 8, 8, 3}), zeros({4, 3, 3, 3}, DType::f64)), "conv2d: expected one floating dtype");
}

TEST(Errors, Norms) {
  EXPECT_ERROR(batch_norm(zeros({2, 3, 5}), {}, {}, {}, {}, {.training = true}),
               "batch_norm: expected a floating input [N, H, W, C] or [N, C], got f32[2,3,5]");
  EXPECT_ERROR(batch_norm(zeros({2, 5}), zeros({4}), {}, {}, {}, {.training = true}),
               "batch_norm: expected weight f32[5] for input f32[2,5] on cpu, got f32[4] on cpu. Is the input NHWC?");
  EXPECT_ERROR(batch_norm(zeros({2, 5}, DType::bf16), zeros({5}, DType::bf16), {}, {}, {}, {.training = true}),
               "batch_norm: expected weight f32[5] for input bf16[2,5] on cpu, got bf16[5]");
  EXPECT_ERROR(batch_norm(zeros({1, 1, 1, 5}), {}, {}, {}, {}, {.training = true}),
               "batch_norm: expected more than one value per channel when training, got f32[1,1,1,5]");
  // PyTorch's rule: above 0 in training, at least 0 in evaluation; the other norms take any.
  for (const double eps : {0.0, -1.0, double{NAN}})
    EXPECT_ERROR(batch_norm(zeros({2, 5}), {}, {}, {}, {}, {.training = true, .eps = eps}),
                 str("batch_norm: expected an eps above 0 in training, got ", eps));
  EXPECT_ERROR(batch_norm(zeros({2, 5}), {}, {}, zeros({5}), zeros({5}), {.eps = -1}),
               "batch_norm: expected an eps of at least 0, got -1");
  EXPECT_ERROR(batch_norm(zeros({2, 5}), {}, {}, {}, {}),
               "batch_norm: inference needs running_mean and running_var, got none and none");
  EXPECT_ERROR(batch_norm(zeros({2, 5}), {}, {}, zeros({5}), {}, {.training = true}),
               "batch_norm: expected both running statistics or none");
  EXPECT_ERROR(batch_norm(zeros({2, 5}), {}, {}, {}, {}, {.training = true, .residual = zeros({5})}),
               "batch_norm: expected a residual of the input's sizes f32[2,5] on cpu, got f32[5]");
  EXPECT_ERROR(layer_norm(zeros({2, 5}), zeros({2})),
               "layer_norm: expected weight f32[5] for input f32[2,5] on cpu, got f32[2]");
  EXPECT_ERROR(layer_norm(Tensor()), "layer_norm: expected a floating input [..., C], got none");
  EXPECT_ERROR(add_layer_norm(zeros({2, 5}), zeros({5})),
               "add_layer_norm: expected a floating residual of the input's sizes f32[2,5] on cpu, got f32[5]");
  EXPECT_ERROR(rms_norm(zeros({2, 5}), zeros({2})),
               "rms_norm: expected weight f32[5] for input f32[2,5] on cpu, got f32[2]");
  EXPECT_ERROR(rms_norm(Tensor::zeros({2, 5}, DType::i64)),
               "rms_norm: expected a floating input [..., C], got i64[2,5]");
  EXPECT_ERROR(add_rms_norm(zeros({2, 5}), Tensor()),
               "add_rms_norm: expected a floating residual of the input's sizes f32[2,5] on cpu, got none");
}

TEST(Errors, Resizing) {
  EXPECT_ERROR(resize2d(zeros({4, 4, 3}), {2, 2}), "resize2d: expected floating [N, H, W, C], got f32[4,4,3]");
  EXPECT_ERROR(resize2d(zeros({1, 4, 4, 3}, DType::u8), {2, 2}),
               "resize2d: expected floating [N, H, W, C], got u8[1,4,4,3]");
  EXPECT_ERROR(resize2d(zeros({1, 4, 4, 3}), {0, 2}), "resize2d: expected sizes of at least 1, got 4 x 4 to 0 x 2");
  EXPECT_ERROR(resize2d(zeros({1, 0, 4, 3}), {1, 2}), "resize2d: expected sizes of at least 1, got 0 x 4 to 1 x 2");
  EXPECT_ERROR(resize2d_weights({4, 4}, {2, 2}, {}, DType::u8), "resize2d: expected a floating dtype, got u8");
  EXPECT_ERROR(resize2d(zeros({1, 4, 4, 3}), resize2d_weights({4, 5}, {2, 2})),
               "resize2d: weights for images of 4 x 5, got f32[1,4,4,3]");
}

TEST(Errors, Pooling) {
  EXPECT_ERROR(max_pool2d(zeros({4, 4, 3})), "max_pool2d: expected a floating input [N, H, W, C], got f32[4,4,3]");
  EXPECT_ERROR(max_pool2d(zeros({1, 2, 2, 3}), {.kernel = {3, 3}}),
               "max_pool2d: the kernel 3x3 is larger than the padded input f32[1,2,2,3]");
  EXPECT_ERROR(avg_pool2d(zeros({1, 4, 4, 3}), {.kernel = {2, 2}, .padding = {2, 0}}),
               "avg_pool2d: expected padding of at most half of the kernel 2x2, got 2x0");
  EXPECT_ERROR(avg_pool2d(zeros({1, 4, 4, 3}), {.kernel = {0, 2}}),
               "avg_pool2d: expected kernel and stride of at least 1");
  EXPECT_ERROR(adaptive_avg_pool2d(zeros({2, 0, 3, 3})),
               "adaptive_avg_pool2d: expected at least one row and column, got f32[2,0,3,3]");
  EXPECT_ERROR(adaptive_avg_pool2d(zeros({1, 4, 4, 3}), {0, 1}),
               "adaptive_avg_pool2d: expected an output of at least 1x1");
}

TEST(Errors, Losses) {
  EXPECT_ERROR(
      cross_entropy(zeros({3, 10}), Tensor::from<int64_t>({1, 12, 0})),
      "cross_entropy: target 12 in row 1 is no class of logits f32[3,10] on cpu: expected 0 to 9. Does the model "
      "have the data set's number of classes?");
  EXPECT_ERROR(cross_entropy(zeros({3, 10}), Tensor::from<int64_t>({1, 2})),
               "cross_entropy: expected one class per row, i64[3], for logits f32[3,10] on cpu, got i64[2] on cpu");
  EXPECT_ERROR(cross_entropy(zeros({3, 10}), zeros({3, 9})),
               "cross_entropy: expected probabilities of the logits' sizes [3,10], got f32[3,9] on cpu");
  EXPECT_ERROR(cross_entropy(zeros({3, 10}), zeros({3}, DType::i64), {.label_smoothing = 2}),
               "cross_entropy: expected label_smoothing in [0, 1], got 2");
  EXPECT_ERROR(cross_entropy(zeros({3, 10}, DType::i64), zeros({3}, DType::i64)),
               "cross_entropy: expected floating logits [..., classes], got i64[3,10]");
  const Tensor three = zeros({3}, DType::i64);
  EXPECT_ERROR(
      linear_cross_entropy(zeros({3, 4}), zeros({10, 5}), three),
      "linear_cross_entropy: expected an input [..., features] and a weight [classes, features] on one device, "
      "got f32[3,4] on cpu and f32[10,5] on cpu");
  EXPECT_ERROR(linear_cross_entropy(zeros({3, 4}), zeros({10, 4}, DType::f64), three),
               "linear_cross_entropy: expected one floating dtype, got f32[3,4] on cpu and f64[10,4] on cpu");
  EXPECT_ERROR(linear_cross_entropy(zeros({3, 4}), zeros({10, 4}), zeros({3, 10})),
               "linear_cross_entropy: expected one class per row, i64[3] on cpu, got f32[3,10] on cpu");
  EXPECT_ERROR(linear_cross_entropy(zeros({3, 4}), zeros({10, 4}), Tensor::from<int64_t>({1, 12, 0})),
               "linear_cross_entropy: target 12 in row 1 is no class of logits f32[3,10] on cpu");
  EXPECT_ERROR(linear_cross_entropy(zeros({3, 4}), zeros({10, 4}), three, {.label_smoothing = -1}),
               "linear_cross_entropy: expected label_smoothing in [0, 1], got -1");
  EXPECT_ERROR(linear_cross_entropy(zeros({3, 4}), zeros({10, 4}), three, {.rows = -1}),
               "linear_cross_entropy: expected at least 0 rows at a time, got -1");
  EXPECT_ERROR(linear_cross_entropy(zeros({3, 4}), zeros({10, 4}), three, {.reduction = Reduction::none}),
               "linear_cross_entropy: expected the mean or the sum, got Reduction::none. Use cross_entropy(linear(x, "
               "weight), target)");
  EXPECT_ERROR(nll_loss(zeros({3, 10}), zeros({2}, DType::i64)),
               "nll_loss: expected one class per row, i64[3], got i64[2]");
  EXPECT_ERROR(nll_loss(zeros({1, 10}), Tensor::full({1}, 10, DType::i64)), "gather");
  EXPECT_ERROR(mse_loss(zeros({3}), zeros({4})),
               "mse_loss: expected two tensors of one size, got f32[3] on cpu and f32[4]");
}

TEST(Errors, Indexing) {
  EXPECT_ERROR(index_select(zeros({3, 2}), 0, Tensor::from<int64_t>({0, 3})), "index_select");
  EXPECT_ERROR(index_select(zeros({3, 2}), 0, Tensor::from<int64_t>({-1})), "index_select");
  EXPECT_ERROR(index_select(zeros({3, 2}), 0, zeros({2})), "index_select: expected an index i64[n], got f32[2]");
  EXPECT_ERROR(
      gather(zeros({3, 2}), 1, zeros({4, 2}, DType::i64)),
      "gather: index i64[4,2] on cpu is longer than f32[3,2] on cpu in dimension 0; it may be in dimension 1 only");
  EXPECT_ERROR(gather(zeros({3, 2}), 1, zeros({3}, DType::i64)), "gather: expected an i64 index of 2 dimensions");
  EXPECT_ERROR(concat({}), "concat: expected at least one tensor, got none");
  EXPECT_ERROR(concat({zeros({2, 3}), zeros({2, 4})}, 0),
               "concat: f32[2,3] on cpu and f32[2,4] on cpu differ in dimension 1");
  EXPECT_ERROR(stack({zeros({2}), zeros({3})}), "stack: expected tensors like f32[2] on cpu, got f32[3]");
  EXPECT_ERROR(pad(zeros({2}), 0, -1, 0), "pad: expected no negative padding, got -1 and 0");
  const auto at = [](const Shape& sizes, const std::vector<Index>& parts) {
    return [=] { zeros(sizes).index(parts); };
  };
  EXPECT_THAT(at({3}, {0, 0}), ThrowsMessage<Error>(HasSubstr("index: 2 dimensions are too many for f32[3] on cpu")));
  EXPECT_THAT(at({3}, {3}), ThrowsMessage<Error>(HasSubstr("select: index 3 is outside dimension 0 of f32[3]")));
  EXPECT_THAT(at({3}, {Slice{0, 2, 0}}),
              ThrowsMessage<Error>(HasSubstr("index: expected a step of at least 1, got 0")));
  EXPECT_THAT(at({3}, {ellipsis, ellipsis}), ThrowsMessage<Error>(HasSubstr("index: expected one ellipsis")));
  EXPECT_THAT(at({3}, {Tensor::from<int64_t>({0, -4})}),
              ThrowsMessage<Error>(HasSubstr("index: expected positions in [-3, 3), got -4 as number 1 of the index")));
  EXPECT_THAT(at({3}, {zeros({2}, DType::boolean)}),
              ThrowsMessage<Error>(HasSubstr("index: mask bool[2] on cpu does not have the sizes of f32[3] on cpu")));
  EXPECT_THAT(at({3}, {zeros({2})}),
              ThrowsMessage<Error>(HasSubstr("index: expected positions in i64 or i32 or a bool mask, got f32[2]")));
  EXPECT_THAT(at({3}, {Tensor()}), ThrowsMessage<Error>(HasSubstr("index: expected a tensor on the device of f32[3]")));
  EXPECT_ERROR(index_put(zeros({3}), {0}, zeros({}, DType::i64)),
               "index_put: expected values of the dtype and on the device of f32[3] on cpu, got i64[]");
  EXPECT_ERROR(index_put(zeros({3}, DType::i64), {0}, zeros({}, DType::i64), true),
               "index_put: expected a floating tensor to accumulate in, got i64[3]");
  EXPECT_ERROR(masked_select(zeros({3}), zeros({3})), "masked_select: expected a tensor and a bool mask on its device");
  EXPECT_ERROR(nonzero(Tensor()), "nonzero: expected a tensor, got none");
  EXPECT_ERROR(sort(zeros({})), "sort: expected a tensor of at least one dimension, got f32[] on cpu");
  EXPECT_ERROR(argsort(zeros({3}), 1), "argsort: dimension 1 is out of range for 1 dimensions");
  EXPECT_ERROR(topk(zeros({2, 3}), 4), "topk: expected k from 0 to 3 for dimension -1 of f32[2,3] on cpu, got 4");
  EXPECT_ERROR(topk(zeros({2, 3}), -1), "topk: expected k of at least 0, got -1");
  EXPECT_ERROR(
      searchsorted(zeros({3}), zeros({3}, DType::i64)),
      "searchsorted: expected sorted rows [..., n] and values of their dtype on their device, got f32[3] on cpu and");
  EXPECT_ERROR(searchsorted(zeros({2, 3}), zeros({3, 3})),
               "searchsorted: expected one row, or a row for each row of the values, got f32[2,3] on cpu and f32[3,3]");
  EXPECT_ERROR(cumsum(zeros({}), 0), "cumsum: expected a tensor of at least one dimension, got f32[] on cpu");
  EXPECT_ERROR(multinomial(zeros({3}), 4, false), "multinomial: expected at most 3 classes without replacement, got 4");
}

TEST(Errors, Images) {
  EXPECT_ERROR(image_normalize(zeros({1, 4, 4, 3}), {}, {0, 0, 0}, {1, 1, 1}, 4, 4),
               "image_normalize: expected images u8[N, H, W, C], C from 1 to 4, got f32[1,4,4,3]");
  EXPECT_ERROR(image_normalize(zeros({1, 4, 4, 3}, DType::u8), {}, {0, 0}, {1, 1, 1}, 4, 4),
               "image_normalize: expected mean and std of 3 channels, got 2 and 3");
  EXPECT_ERROR(image_normalize(zeros({1, 4, 4, 3}, DType::u8), {}, {0, 0, 0}, {1, 0, 1}, 4, 4),
               "image_normalize: expected a positive std, got 0 for channel 1");
  EXPECT_ERROR(image_normalize(zeros({1, 4, 4, 3}, DType::u8), zeros({2, 3}, DType::i32), {0, 0, 0}, {1, 1, 1}, 4, 4),
               "image_normalize: expected places i32[1,3] on cpu, got i32[2,3]");
  EXPECT_ERROR(image_mix(zeros({2, 4, 3}), {0, 1, 0, 1}, 0.5),
               "image_mix: expected floating images [N, H, W, C], got f32[2,4,3]");
  EXPECT_ERROR(image_mix(zeros({2, 4, 4, 3}), {0, 4, 2, 5}, 0.5),
               "image_mix: expected a box inside of f32[2,4,4,3] on cpu, got rows 0 to 4, columns 2 to 5");
  EXPECT_ERROR(image_mix(zeros({2, 4, 4, 3}), {0, 4, 0, 4}, 1.5),
               "image_mix: expected a share of the image from 0 to 1, got 1.5");
  EXPECT_ERROR(mixed_targets(zeros({2}), 3, 0.5), "mixed_targets: expected labels i64[N], got f32[2]");
  EXPECT_ERROR(mixed_targets(zeros({2}, DType::i64), 0, 0.5), "mixed_targets: expected at least one class, got 0");
  EXPECT_ERROR(mixed_targets(zeros({2}, DType::i64), 3, -0.5),
               "mixed_targets: expected a share of the image's own label from 0 to 1, got -0.5");
  EXPECT_ERROR(mixed_targets(Tensor::from(std::vector<int64_t>{0, 3}), 3, 0.5),
               "mixed_targets: expected labels 0 to 2, got 3 in row 1");
}

TEST(Errors, MoreOps) {
  EXPECT_ERROR(
      bce_with_logits(zeros({2}), zeros({3})),
      "bce_with_logits: expected floating logits and targets of one size, got f32[2] on cpu and f32[3] on cpu");
  EXPECT_ERROR(l1_loss(zeros({2}), zeros({3})),
               "l1_loss: expected two tensors of one size, got f32[2] on cpu and f32[3]");
  EXPECT_ERROR(smooth_l1_loss(zeros({2}), zeros({2}), 0), "smooth_l1_loss: expected a positive beta, got 0");
  EXPECT_ERROR(
      triplet_margin_loss(zeros({2, 3}), zeros({2, 3}), zeros({3, 2})),
      "triplet_margin_loss: expected three floating tensors of one size, got f32[2,3] on cpu, f32[2,3] on cpu");
  EXPECT_ERROR(cross_entropy(zeros({2, 3}), Tensor::zeros({2}, DType::i64), {.weight = zeros({2})}),
               "cross_entropy: expected a weight per class, [3] on cpu, got f32[2] on cpu");
  EXPECT_ERROR(conv1d(zeros({2, 3}), zeros({1, 1, 3})), "conv1d: expected an input [N, L, C], got f32[2,3] on cpu");
  EXPECT_ERROR(
      conv3d(zeros({1, 2, 2, 2, 3}), zeros({4, 1, 1, 1, 2})),
      "conv3d: weight f32[4,1,1,1,2] wants 2 input channels, input f32[1,2,2,2,3] has 3 (groups=1). Is the input "
      "NDHWC?");
  EXPECT_ERROR(conv3d(zeros({1, 2, 2, 2, 3}), zeros({4, 3, 1, 1, 3})),
               "conv3d: weight f32[4,3,1,1,3] is deeper than input f32[1,2,2,2,3] with padding 0");
  EXPECT_ERROR(lstm(zeros({2, 3, 8}), zeros({8, 3}), zeros({3, 2}), zeros({3, 2})),
               "lstm: expected a weight f32[8, 2], got f32[8,3] on cpu");
  EXPECT_ERROR(gru(zeros({0, 3, 6}), zeros({6, 2}), {}, zeros({3, 2})),
               "gru: expected floating [steps, batch, 3 units] with a step, got f32[0,3,6] on cpu");
  EXPECT_ERROR(weight_norm(zeros({3, 2}), zeros({3})), "weight_norm: expected lengths [3,1] for directions f32[3,2]");
  EXPECT_ERROR(embedding_bag(zeros({4, 2}), Tensor::zeros({5}, DType::i64), Tensor::from(std::vector<int64_t>{1, 3})),
               "embedding_bag: expected offsets that ascend from 0 to at most 5, got");
  EXPECT_ERROR(embedding_bag(zeros({4, 2}), Tensor::zeros({5}, DType::i64), Tensor::from(std::vector<int64_t>{0}),
                             {.mode = Bag::max}),
               "embedding_bag: the maximum needs bags of one length, [bags, length]");
  EXPECT_ERROR(resize2d(zeros({1, 2, 2, 1}), {3, 3}, {.interpolation = Interpolation::nearest, .antialias = true}),
               "resize2d: nearest, antialias and align_corners exclude each other");
  EXPECT_ERROR(kl_div(zeros({2}), zeros({3})),
               "kl_div: expected floating log probabilities and probabilities of one size");
  EXPECT_ERROR(logsumexp(zeros({2}, DType::i64)), "logsumexp: expected a floating tensor, got i64[2] on cpu");
  EXPECT_ERROR(var(zeros({2}, DType::i64)), "var: expected a floating tensor, got i64[2] on cpu");
  EXPECT_ERROR(tril(zeros({2})), "tril: expected a matrix [..., R, C], got f32[2] on cpu");
  EXPECT_ERROR(one_hot(zeros({2}), 3), "one_hot: expected integer labels, got f32[2] on cpu");
  EXPECT_ERROR(one_hot(Tensor::from(std::vector<int64_t>{3}), 3), "one_hot: expected labels from 0 to 2, got 3");
  EXPECT_ERROR(one_hot(Tensor::from(std::vector<int64_t>{3}), 0), "one_hot: expected at least one class, got 0");
  EXPECT_ERROR(repeat(zeros({2, 3}), {2}), "repeat: expected a count for each dimension of f32[2,3] on cpu, got 1");
  EXPECT_ERROR(repeat(zeros({2}), {-1}), "repeat: expected no negative count, got -1");
  EXPECT_ERROR(split(zeros({5}), {2, 2}), "split: the sizes sum up to 4, expected 5 of f32[5] on cpu");
  EXPECT_ERROR(split(zeros({5}), {2, 4}), "split: the sizes do not sum up to 5 of f32[5] on cpu");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_ERROR(split(zeros({5}), {1, kMost}), "split: the sizes do not sum up to 5 of f32[5] on cpu");
  EXPECT_ERROR(split(zeros({5}), 0), "split: expected parts of at least 1, got 0");
  EXPECT_ERROR(chunk(zeros({5}), 0), "chunk: expected at least one part, got 0");
  EXPECT_ERROR(scatter_add(zeros({2, 3}), 1, zeros({2, 4}, DType::i64), zeros({2, 3})),
               "scatter_add: index i64[2,4] on cpu is longer than the source f32[2,3] on cpu in dimension 1");
  EXPECT_ERROR(scatter_add(zeros({2, 3}), 1, zeros({3, 4}, DType::i64), zeros({3, 4})),
               "scatter_add: index i64[3,4] on cpu is longer than f32[2,3] on cpu in dimension 0");
  EXPECT_ERROR(scatter_add(zeros({2, 3}), 1, zeros({2, 3}, DType::i64), zeros({3})),
               "scatter_add: expected a source of 2 dimensions, got f32[3]");
  EXPECT_ERROR(scatter(zeros({2, 3}), 1, zeros({4}, DType::i64), zeros({4})),
               "scatter: expected an i64 index of 2 dimensions");
  EXPECT_ERROR(
      scatter(zeros({2, 3}), 0, zeros({1, 3}, DType::i64), zeros({1, 3}, DType::i64)),
      "scatter: expected one dtype and one device, got f32[2,3] on cpu, index i64[1,3] on cpu, source i64[1,3]");
  EXPECT_ERROR(scatter(zeros({3}), 0, Tensor::from(std::vector<int64_t>{-1}), 1),
               "scatter: expected positions from 0 to 2, got -1");
  EXPECT_ERROR(scatter(zeros({3}), 0, Tensor::from(std::vector<int64_t>{3}), 1),
               "scatter: expected positions from 0 to 2, got 3");
  EXPECT_ERROR(scatter(Tensor(), 0, Tensor(), 1), "scatter: expected two tensors, got");
  EXPECT_ERROR(group_norm(zeros({2, 6}), 4), "group_norm: 6 channels of f32[2,6] on cpu do not divide into 4 groups");
  EXPECT_ERROR(group_norm(zeros({2, 6}), 3, zeros({5})),
               "group_norm: expected weight and bias f32[6], got f32[5] on cpu");
  EXPECT_ERROR(randint({2}, 3, 3), "randint: expected low < high, got 3 and 3");
  EXPECT_ERROR(multinomial(zeros({2, 0})),
               "multinomial: expected floating weights [..., classes], got f32[2,0] on cpu");
  EXPECT_ERROR(prod({}), "prod: expected a tensor, got none");
  EXPECT_ERROR(unique({}), "unique: expected a tensor, got none");
  EXPECT_ERROR(bincount(zeros({2})), "bincount: expected integers of rank 1, got f32[2] on cpu");
  EXPECT_ERROR(bincount(Tensor::full({2}, -1, DType::i64)), "bincount: expected no negative element, got -1");
  EXPECT_ERROR(bincount(Tensor::zeros({2}, DType::i64), {}, -1),
               "bincount: expected a least length of at least 0, got -1");
  EXPECT_ERROR(bincount(Tensor::zeros({2}, DType::i64), zeros({3})),
               "bincount: expected floating weights of the sizes [2] on cpu, got f32[3] on cpu");
  EXPECT_ERROR(multinomial(zeros({2}), 0), "multinomial: expected a count of at least 1, got 0");
}

TEST(Errors, ConvTranspose) {
  const auto run = [](const Shape& x, const Shape& w, const ConvTranspose2dOptions& options = {}) {
    return conv_transpose2d(zeros(x), zeros(w), {}, options);
  };
  EXPECT_THAT(
      [&] {
        run({2, 4, 4}, {4, 3, 3, 5});
      },
      ThrowsMessage<Error>(HasSubstr("conv_transpose2d: expected an input [N, H, W, C], got f32[2,4,4] on cpu")));
  EXPECT_THAT(
      [&] {
        run({2, 4, 4, 3}, {4, 3, 3, 5});
      },
      ThrowsMessage<Error>(HasSubstr("wants 4 input channels, input f32[2,4,4,3] has 3. Is the input NHWC?")));
  EXPECT_THAT(
      [&] {
        run({2, 4, 4, 4}, {4, 3, 3, 5}, {.stride = {2, 2}, .output_padding = {2, 0}});
      },
      ThrowsMessage<Error>(HasSubstr("expected an output_padding below the stride 2x2, got 2x0")));
  EXPECT_THAT(
      [&] {
        run({2, 1, 1, 4}, {4, 3, 3, 5}, {.padding = {2, 2}});
      },
      ThrowsMessage<Error>(HasSubstr("the padding takes all of the output")));
}

TEST(Errors, Einsum) {
  const Tensor x = zeros({2, 3});
  const auto error = [&](const char* equation, const std::vector<Tensor>& tensors) {
    try {
      einsum(equation, tensors);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("ij,jk->ik", {x}), HasSubstr("names more than the 1 tensors given"));
  EXPECT_THAT(error("ij", {x, x}), HasSubstr("names 1 tensors, got 2"));
  EXPECT_THAT(error("ijk->i", {x}), HasSubstr("expected a letter for each dimension of f32[2,3] on cpu, got \"ijk\""));
  EXPECT_THAT(error("ij,ik->jk", {x, zeros({3, 3})}), HasSubstr("'i' of \"ij,ik->jk\" has the sizes 2 and 3"));
  EXPECT_THAT(error("ii->i", {x}), HasSubstr("'i' of \"ii->i\" has the sizes 2 and 3"));
  EXPECT_THAT(error("ij->k", {x}), HasSubstr("'k' of the result of \"ij->k\" stands in no tensor, or twice"));
  EXPECT_THAT(error("i1->i", {x}), HasSubstr("expected letters, got '1'"));
}

/// The text of the error, if one comes.
template <class Use>
std::string said_by(Use&& use) {
  try {
    use();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// That of `use` or of the next wait for the device.
template <class Use>
std::string error_by_next_wait(Device device, Use&& use) {
  return said_by([&] {
    use();
    synchronize(device);
  });
}

TEST(Errors, WrongIndicesReadTheSameOnEveryDevice) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const auto on = [&](const Tensor& x) { return x.to(device); };
    const Tensor logits = on(zeros({3, 10})), labels = on(Tensor::from<int64_t>({1, 12, 0}));
    EXPECT_EQ(error_by_next_wait(device, [&] { cross_entropy(logits, labels); }),
              str("cross_entropy: target 12 in row 1 is no class of logits f32[3,10] on ", device,
                  ": expected 0 to 9. Does the model have the data set's number of classes?"));
    EXPECT_EQ(error_by_next_wait(device,
                                 [&] {
                                   cross_entropy(logits, on(Tensor::from<int64_t>({1, -100, 0})));
                                 }),
              "")
        << "an ignored row";
    EXPECT_EQ(error_by_next_wait(device, [&] { nll_loss(logits, labels); }),
              "gather: expected positions in [0, 10), got 12 as number 1 of the index");
    EXPECT_EQ(error_by_next_wait(device,
                                 [&] {
                                   gather(logits, 1, on(Tensor::from<int64_t>({0, -3, 9}, {3, 1})));
                                 }),
              "gather: expected positions in [0, 10), got -3 as number 1 of the index");
    EXPECT_EQ(error_by_next_wait(device,
                                 [&] {
                                   index_select(logits, 0, on(Tensor::from<int64_t>({0, 2, 3})));
                                 }),
              "index_select: expected positions in [0, 3), got 3 as number 2 of the index");
    EXPECT_EQ(error_by_next_wait(device,
                                 [&] {
                                   logits.index({on(Tensor::from<int64_t>({0, -4}))});
                                 }),
              "index: expected positions in [-3, 3), got -4 as number 1 of the index");
    EXPECT_EQ(error_by_next_wait(device, [&] { mixed_targets(labels, 10, 0.5); }),
              "mixed_targets: expected labels 0 to 9, got 12 in row 1");
    EXPECT_EQ(error_by_next_wait(device,
                                 [&] {
                                   cross_entropy(logits, on(Tensor::from<int64_t>({1, 2, 0})));
                                 }),
              "")
        << "an error is told once";
    if (kind == DeviceKind::cpu) continue;
    const Tensor loss = cross_entropy(logits, labels);
    EXPECT_THAT(said_by([&] { loss.item(); }), HasSubstr("cross_entropy: target 12")) << "no wait before this one";
    const Tensor second = cross_entropy(logits, labels);
    Event event(device);
    event.record(current_stream(device));
    EXPECT_THAT(said_by([&] { event.synchronize(); }), HasSubstr("cross_entropy: target 12"));
  }
}

TEST(Errors, ImageLayouts) {
  struct Checks {
    Checks() { check_image_layouts(true); }
    ~Checks() { check_image_layouts(false); }
  };
  const auto text = [](const Tensor& x) { return said_by([&] { max_pool2d(x); }); };
  EXPECT_EQ(text(zeros({2, 3, 32, 32})), "") << "only on demand";
  const Checks checks;
  EXPECT_EQ(text(zeros({2, 3, 32, 32})),
            "max_pool2d: f32[2,3,32,32] on cpu looks like [N, C, H, W] with 3 channels. Images are [N, H, W, C] "
            "(docs/nhwc.md); without WEFT_CHECK=1 nothing is guessed");
  EXPECT_THAT(text(zeros({2, 3, 32, 48})), HasSubstr("looks like [N, C, H, W] with 3 channels"));
  EXPECT_THAT(text(zeros({2, 64, 8, 8})), HasSubstr("with 64 channels"));
  EXPECT_ERROR(conv2d(zeros({2, 32, 16, 32}), zeros({4, 1, 1, 32})),
               "conv2d: f32[2,32,16,32] on cpu looks like [N, C, H, W] with 32");
  EXPECT_ERROR(conv2d(zeros({2, 16, 32, 32}), zeros({4, 1, 1, 32})), "looks like [N, C, H, W] with 16 channels");
  EXPECT_ERROR(avg_pool2d(zeros({2, 3, 8, 8})), "avg_pool2d: f32[2,3,8,8] on cpu looks like");
  EXPECT_ERROR(adaptive_avg_pool2d(zeros({2, 3, 8, 8})), "adaptive_avg_pool2d: f32[2,3,8,8] on cpu looks like");
  EXPECT_ERROR(resize2d(zeros({2, 3, 8, 8}), {4, 4}), "resize2d: f32[2,3,8,8] on cpu looks like");
  EXPECT_ERROR(
      concat({zeros({2, 8, 8, 3}), zeros({2, 8, 8, 3})}, 1),
      "concat: dimension 1 of f32[2,8,8,3] on cpu looks like the rows of images, their channels are dimension 3");
  // These are NHWC.
  for (const Shape& sizes : {Shape{2, 32, 32, 3}, Shape{2, 8, 8, 64}, Shape{2, 24, 32, 3}, Shape{2, 3, 20, 512},
                             Shape{2, 2, 2, 1}, Shape{2, 7, 7, 2048}, Shape{1, 6, 10, 4}})
    EXPECT_EQ(text(zeros(sizes)), "") << sizes;
  EXPECT_EQ(text(zeros({2, 32, 32, 32})), "") << "sizes that tell nothing";
  EXPECT_EQ(concat({zeros({2, 8, 8, 3}), zeros({2, 8, 8, 3})}, -1).size(3), 6);
}

}  // namespace
}  // namespace weft
