// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/layer_norm.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

// x, weight, bias, and perhaps a residual.
template <bool with_relu>
Tensor train(const Inputs& x) {
  return batch_norm(x[0], x[1], x[2], {}, {},
                    {.training = true, .relu = with_relu, .residual = x.size() > 3 ? x[3] : Tensor()});
}

// x, weight, bias, running mean, running variance, and perhaps a residual. An eps that a gradient feels.
template <bool with_relu>
Tensor infer(const Inputs& x) {
  return batch_norm(x[0], x[1], x[2], x[3], x[4],
                    {.training = false, .eps = 0.1, .relu = with_relu, .residual = x.size() > 5 ? x[5] : Tensor()});
}

/// The running mean and variance after a step of training.
Tensor running(const Tensor& x, const Tensor& mean, const Tensor& var) {
  const Tensor m = mean.clone(), v = var.clone();
  batch_norm(x, {}, {}, m, v, {.training = true, .momentum = 0.3});
  return concat({m, v});
}

OpInput wide(const Shape& sizes, Values values = Values::normal, bool gradient = true) {
  return {sizes, values, Layout::dense, 0, gradient, true};
}

// clang-format off
const AddCases norms_cases{
    {"batch_norm", {{{2, 3, 4, 5}}, wide({5}), wide({5})}, train<false>, "normed(*x)", 24},
    {"batch_norm_rows", {{{9, 33}}, wide({33}), wide({33})}, train<false>, "normed(*x)", 9},
    // Statistics are summed as distances from one row, which may be three deviations away.
    {"batch_norm_tall", {{{700, 3}}, wide({3}), wide({3})}, train<false>, "normed(*x)", 9 * 700},
    {"batch_norm_relu", {{{2, 3, 4, 5}}, wide({5}), wide({5})}, train<true>, "relu(normed(*x))", 24, false},
    {"batch_norm_residual", {{{2, 3, 4, 5}}, wide({5}), wide({5}), {{2, 3, 4, 5}}}, train<false>,
     "normed(*x[:3]) + x[3]", 24},
    {"batch_norm_relu_residual", {{{2, 3, 4, 5}}, wide({5}), wide({5}), {{2, 3, 4, 5}}}, train<true>,
     "relu(normed(*x[:3]) + x[3])", 24, false},
    {"batch_norm_plain", {{{8, 4}}}, CALL(batch_norm(x[0], {}, {}, {}, {}, {.training = true})), "normed(x[0])", 8},
    {"batch_norm_transposed", {{{2, 3, 4, 6}, Values::normal, Layout::transposed}, wide({6}), wide({6})}, train<false>,
     "normed(*x)", 24},
    {"batch_norm_inference",
     {{{2, 3, 4, 5}}, wide({5}), wide({5}), wide({5}, Values::normal, false), wide({5}, Values::positive, false)},
     infer<false>, "normed(*x, eps=0.1)", 24},
    {"batch_norm_inference_relu_residual",
     {{{2, 3, 4, 5}}, wide({5}), wide({5}), wide({5}, Values::normal, false),
      wide({5}, Values::positive, false), {{2, 3, 4, 5}}},
     infer<true>, "relu(normed(*x[:5], eps=0.1) + x[5])", 24, false},
    {"batch_norm_running", {{{4, 5, 3, 7}}, wide({7}, Values::normal, false), wide({7}, Values::positive, false)},
     BOTH(running(x[0], x[1], x[2])), 60, true, Derivative::none},
    {"layer_norm", {{{3, 4, 7}}, wide({7}), wide({7})}, BOTH(layer_norm(x[0], x[1], x[2])), 12},
    {"layer_norm_long", {{{3, 1030}}, wide({1030}), wide({1030})}, BOTH(layer_norm(x[0], x[1], x[2])), 1030},
    {"layer_norm_plain", {{{5, 33}}}, BOTH(layer_norm(x[0])), 33},
    {"layer_norm_transposed", {{{6, 5}, Values::normal, Layout::transposed}, wide({5}), wide({5})},
     BOTH(layer_norm(x[0], x[1], x[2])), 6},
    {"layer_norm_no_rows", {{{0, 5}}, wide({5}), wide({5})}, BOTH(layer_norm(x[0], x[1], x[2]))},
    {"rms_norm", {{{3, 4, 7}}, wide({7})}, BOTH(rms_norm(x[0], x[1])), 12},
    {"rms_norm_plain", {{{5, 33}}}, BOTH(rms_norm(x[0])), 33},
    {"rms_norm_transposed", {{{6, 5}, Values::normal, Layout::transposed}, wide({5})}, BOTH(rms_norm(x[0], x[1])), 6},
    // The stream and its norm are used, so that the stream's gradient comes from two sides.
    {"add_layer_norm", {{{3, 4, 7}}, {{3, 4, 7}}, wide({7}), wide({7})},
     [](const Inputs& x) { const NormedSum n = add_layer_norm(x[0], x[1], x[2], x[3]); return mul(n.sum, n.y); },
     "(x[0] + x[1]) * layer_norm(x[0] + x[1], x[2], x[3])", 24},
    // the stream ends here
    {"add_layer_norm_alone", {{{5, 16}}, {{5, 16}, Values::normal, Layout::transposed}, wide({16}), wide({16})},
     CALL(add_layer_norm(x[0], x[1], x[2], x[3]).y), "layer_norm(x[0] + x[1], x[2], x[3])", 24},
    {"add_rms_norm", {{{3, 4, 7}}, {{3, 4, 7}}, wide({7})},
     [](const Inputs& x) { const NormedSum n = add_rms_norm(x[0], x[1], x[2]); return mul(n.sum, n.y); },
     "(x[0] + x[1]) * rms_norm(x[0] + x[1], x[2])", 24},
    {"group_norm", {{{2, 3, 4, 6}}, wide({6}), wide({6})}, CALL(group_norm(x[0], 3, x[1], x[2])),
     "images(F.group_norm, x[0], 3, x[1], x[2])", 24},
    {"group_norm_of_all", {{{2, 3, 4, 6}}, wide({6}), wide({6})}, CALL(group_norm(x[0], 1, x[1], x[2])),
     "images(F.group_norm, x[0], 1, x[1], x[2])", 72},
    {"group_norm_of_each_channel", {{{2, 5, 4}}}, CALL(group_norm(x[0], 4)), "images(F.group_norm, x[0], 4)", 5}};
// clang-format on

}  // namespace
}  // namespace weft::test
