// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/random.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/launches.h"

namespace weft::test {
namespace {

/// A loss with each reduction.
Tensor reductions(const std::function<Tensor(Reduction)>& loss) {
  return concat({loss(Reduction::mean).flatten(), loss(Reduction::sum).flatten(), loss(Reduction::none).flatten()});
}

// clang-format off
#define REDUCED(...) CALL(reductions([&](Reduction reduction) { return __VA_ARGS__; }))

const AddCases losses_cases{
    {"softmax", {{{3, 7}}}, BOTH(softmax(x[0])), 7},
    {"softmax_first", {{{5, 3, 2}}}, BOTH(softmax(x[0], 0)), 5},
    {"softmax_long", {{{2, 1030}}}, BOTH(softmax(x[0])), 1030},
    {"softmax_one", {{{4, 1}}}, BOTH(softmax(x[0]))},
    {"softmax_empty", {{{0, 4}}}, BOTH(softmax(x[0]))},
    {"log_softmax", {{{3, 7}}}, BOTH(log_softmax(x[0])), 7},
    {"log_softmax_middle", {{{2, 5, 3}}}, BOTH(log_softmax(x[0], 1)), 5},
    {"cross_entropy", {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}}, BOTH(cross_entropy(x[0], x[1])), 60},
    {"cross_entropy_smoothed", {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     CALL(cross_entropy(x[0], x[1], {.label_smoothing = 0.1})), "cross_entropy(x[0], x[1], label_smoothing=0.1)", 60},
    {"cross_entropy_ignoring", {{{24, 10}}, {{24}, Values::classes, Layout::dense, 10}},
     CALL(cross_entropy(x[0], x[1], {.label_smoothing = 0.2, .ignore_index = 1})),
     "cross_entropy(x[0], x[1], label_smoothing=0.2, ignore_index=1)", 240},
    {"cross_entropy_sum", {{{5, 130}}, {{5}, Values::classes, Layout::dense, 130}},
     CALL(cross_entropy(x[0], x[1], {.reduction = Reduction::sum})), "cross_entropy(x[0], x[1], reduction='sum')",
     650},
    {"cross_entropy_rows", {{{2, 3, 7}}, {{2, 3}, Values::classes, Layout::dense, 7}},
     CALL(cross_entropy(x[0], x[1], {.reduction = Reduction::none})),
     "cross_entropy(nchw(x[0]), x[1], reduction='none')", 7},
    {"cross_entropy_rows_smoothed", {{{2, 3, 7}}, {{2, 3}, Values::classes, Layout::dense, 7}},
     CALL(cross_entropy(x[0], x[1], {.label_smoothing = 0.125, .reduction = Reduction::none})),
     "cross_entropy(nchw(x[0]), x[1], label_smoothing=0.125, reduction='none')", 7},
    {"cross_entropy_probabilities", {{{6, 10}}, {{6, 10}, Values::simplex}},
     BOTH(cross_entropy(x[0], x[1])), 60},
    {"cross_entropy_probabilities_smoothed", {{{6, 10}}, {{6, 10}, Values::simplex}},
     CALL(cross_entropy(x[0], x[1], {.label_smoothing = 0.3})), "cross_entropy(x[0], x[1], label_smoothing=0.3)", 60},
    {"cross_entropy_weighted",
     {{{24, 7}}, {{24}, Values::classes, Layout::dense, 7}, {{7}, Values::positive, Layout::dense, 0, false, true}},
     CALL(cross_entropy(x[0], x[1], {.label_smoothing = 0.2, .ignore_index = 1, .weight = x[2]})),
     "cross_entropy(*x, label_smoothing=0.2, ignore_index=1)", 170},
    {"cross_entropy_weighted_rows",
     {{{2, 3, 7}}, {{2, 3}, Values::classes, Layout::dense, 7}, {{7}, Values::positive, Layout::dense, 0, false, true}},
     CALL(cross_entropy(x[0], x[1], {.reduction = Reduction::none, .weight = x[2]})),
     "cross_entropy(x[0].mT, x[1], x[2], reduction='none')", 7},
    {"cross_entropy_weighted_probabilities",
     {{{6, 10}}, {{6, 10}, Values::simplex},
      {{10}, Values::positive, Layout::dense, 0, false, true}},
     CALL(cross_entropy(x[0], x[1], {.label_smoothing = 0.3, .weight = x[2]})),
     "cross_entropy(*x, label_smoothing=0.3)", 60},
    // A margin that no distance reaches; the next ones have kinks.
    {"triplet_margin_loss", {{{6, 5}}, {{6, 5}}, {{6, 5}}}, CALL(triplet_margin_loss(x[0], x[1], x[2], {.margin = 20})),
     "triplet_margin_loss(*x, margin=20)", 30},
    {"linear_cross_entropy", {{{7, 5}}, {{10, 5}}, {{7}, Values::classes, Layout::dense, 10}},
     CALL(linear_cross_entropy(x[0], x[1], x[2], {.ignore_index = 1, .rows = 3})),
     "cross_entropy(linear(x[0], x[1]), x[2], ignore_index=1)", 70},
    {"linear_cross_entropy_sum", {{{2, 3, 5}}, {{11, 5}}, {{2, 3}, Values::classes, Layout::dense, 11}},
     CALL(linear_cross_entropy(x[0], x[1], x[2], {.label_smoothing = 0.1, .reduction = Reduction::sum})),
     "cross_entropy(linear(x[0], x[1]).mT, x[2], label_smoothing=0.1, reduction='sum')", 66},
    {"linear_cross_entropy_no_rows", {{{0, 5}}, {{11, 5}}, {{0}, Values::classes, Layout::dense, 11}},
     CALL(linear_cross_entropy(x[0], x[1], x[2], {.reduction = Reduction::sum})),
     "cross_entropy(linear(x[0], x[1]), x[2], reduction='sum')"},
    {"cross_entropy_no_rows", {{{0, 10}}, {{0}, Values::classes, Layout::dense, 10}},
     CALL(cross_entropy(x[0], x[1], {.reduction = Reduction::sum})), "cross_entropy(x[0], x[1], reduction='sum')"},
    {"nll_loss", {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}}, BOTH(nll_loss(x[0], x[1])), 6},
    {"nll_loss_ignoring", {{{24, 6}}, {{24}, Values::classes, Layout::dense, 6}},
     CALL(nll_loss(x[0], x[1], {.ignore_index = 1})), "nll_loss(x[0], x[1], ignore_index=1)", 24},
    {"nll_loss_sum", {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     CALL(nll_loss(x[0], x[1], {.reduction = Reduction::sum})), "nll_loss(x[0], x[1], reduction='sum')", 6},
    {"nll_loss_rows", {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     CALL(nll_loss(x[0], x[1], {.ignore_index = 2, .reduction = Reduction::none})),
     "nll_loss(x[0], x[1], ignore_index=2, reduction='none')", 6},
    {"mse_loss_rows", {{{6, 5}}, {{6, 5}}}, CALL(mse_loss(x[0], x[1], Reduction::none)),
     "mse_loss(*x, reduction='none')"},
    {"mse_loss", {{{6, 5}}, {{6, 5}}}, BOTH(mse_loss(x[0], x[1])), 30},
    {"mse_loss_sum", {{{6, 5}}, {{6, 5}}}, CALL(mse_loss(x[0], x[1], Reduction::sum)),
     "mse_loss(*x, reduction='sum')", 30},
    {"bce_with_logits", {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}},
     CALL(bce_with_logits(x[0], x[1])), "binary_cross_entropy_with_logits(*x)", 30},
    {"bce_with_logits_weighted",
     {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}, {{5}, Values::positive, Layout::dense, 0, false}},
     CALL(bce_with_logits(x[0], x[1], {.positive_weight = x[2], .reduction = Reduction::none})),
     "binary_cross_entropy_with_logits(x[0], x[1], pos_weight=x[2], reduction='none')", 4},
    {"l1_loss", {{{6, 5}, Values::apart}, {{6, 5}, Values::apart}}, CALL(l1_loss(x[0], add(x[1], x[1]))),
     "l1_loss(x[0], 2 * x[1])", 30},
    {"smooth_l1_loss", {{{6, 5}}, {{6, 5}}}, CALL(smooth_l1_loss(x[0], x[1], 0.7)), "smooth_l1_loss(*x, beta=0.7)", 30},
    {"kl_div", {{{6, 5}}, {{6, 5}, Values::simplex}}, CALL(kl_div(x[0], x[1], Reduction::sum)),
     "kl_div(*x, reduction='sum')", 30},
    {"cross_entropy_default_ignored", {{{24, 4}}, {{24}, Values::classes, Layout::dense, 4}},
     BOTH(cross_entropy(x[0], masked_fill(x[1], x[1] == 0, -100))), 96},
    {"nll_loss_default_ignored", {{{24, 4}}, {{24}, Values::classes, Layout::dense, 4}},
     BOTH(nll_loss(x[0], masked_fill(x[1], x[1] == 0, -100))), 24},
    {"cross_entropy_one", {{{1, 1}}, {{1}, Values::classes, Layout::dense, 1}}, BOTH(cross_entropy(x[0], x[1]))},
    {"cross_entropy_reductions", {{{12, 4}}, {{12}, Values::classes, Layout::dense, 4}},
     REDUCED(cross_entropy(x[0], x[1], {.label_smoothing = 0.1, .ignore_index = 3, .reduction = reduction})),
     "reductions(lambda r: cross_entropy(*x, label_smoothing=0.1, ignore_index=3, reduction=r))", 48},
    {"cross_entropy_probabilities_reductions", {{{4, 3}}, {{4, 3}, Values::simplex, Layout::dense, 0, false}},
     REDUCED(cross_entropy(x[0], x[1], {.label_smoothing = 0.2, .reduction = reduction})),
     "reductions(lambda r: cross_entropy(*x, label_smoothing=0.2, reduction=r))", 12},
    {"cross_entropy_weighted_reductions",
     {{{24, 7}}, {{24}, Values::classes, Layout::dense, 7}, {{7}, Values::positive, Layout::dense, 0, false, true}},
     REDUCED(cross_entropy(x[0], x[1], {.ignore_index = 1, .reduction = reduction, .weight = x[2]})),
     "reductions(lambda r: cross_entropy(*x, ignore_index=1, reduction=r))", 170},
    {"cross_entropy_weighted_probabilities_reductions",
     {{{6, 10}}, {{6, 10}, Values::simplex, Layout::dense, 0, false},
      {{10}, Values::positive, Layout::dense, 0, false, true}},
     REDUCED(cross_entropy(x[0], x[1], {.label_smoothing = 0.2, .reduction = reduction, .weight = x[2]})),
     "reductions(lambda r: cross_entropy(*x, label_smoothing=0.2, reduction=r))", 60},
    {"triplet_margin_loss_reductions", {{{8, 7}}, {{8, 7}}, {{8, 7}}},
     REDUCED(triplet_margin_loss(x[0], x[1], x[2], {.margin = 2, .reduction = reduction})),
     "reductions(lambda r: triplet_margin_loss(*x, margin=2, reduction=r))", 56, false, Derivative::kinks},
    {"triplet_margin_loss_swap", {{{8, 7}}, {{8, 7}}, {{8, 7}}},
     REDUCED(triplet_margin_loss(x[0], x[1], x[2], {.margin = 2, .swap = true, .reduction = reduction})),
     "reductions(lambda r: triplet_margin_loss(*x, margin=2, swap=True, reduction=r))", 56, false, Derivative::kinks},
    {"bce_with_logits_reductions",
     {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}, {{5}, Values::positive, Layout::dense, 0, false}},
     REDUCED(bce_with_logits(x[0], x[1], {.positive_weight = x[2], .reduction = reduction})),
     "reductions(lambda r: binary_cross_entropy_with_logits(x[0], x[1], pos_weight=x[2], reduction=r))", 30},
    {"l1_loss_reductions", {{{3, 5}, Values::apart}, {{3, 5}, Values::apart}},
     REDUCED(l1_loss(x[0], 2 * x[1], reduction)), "reductions(lambda r: l1_loss(x[0], 2 * x[1], reduction=r))", 15},
    {"smooth_l1_loss_reductions", {{{3, 5}}, {{3, 5}}}, REDUCED(smooth_l1_loss(x[0], x[1], 0.8, reduction)),
     "reductions(lambda r: smooth_l1_loss(*x, beta=0.8, reduction=r))", 15},
    {"kl_div_reductions", {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}},
     REDUCED(kl_div(x[0], x[1], reduction)), "reductions(lambda r: kl_div(*x, reduction=r))", 30},
    {"huber_loss_reductions", {{{3, 7}, Values::apart}, {{3, 7}, Values::positive}},
     REDUCED(huber_loss(4 * x[0], x[1], 0.7, reduction)),
     "reductions(lambda r: huber_loss(4 * x[0], x[1], delta=0.7, reduction=r))", 21},
    {"gaussian_nll_loss_reductions", {{{3, 7}}, {{3, 7}}, {{3, 7}, Values::positive}},
     REDUCED(gaussian_nll_loss(x[0], x[1], x[2], {.reduction = reduction})),
     "reductions(lambda r: gaussian_nll_loss(*x, reduction=r))", 21}};
// clang-format on

// The losses, the sums of losses and weights together, their quotient; dy over the weights, and the gradient.
TEST(CrossEntropy, AMeanTakesThreeLaunchesAndItsGradientTwo) {
  if (!tests::runs_on(DeviceKind::cuda) || !tests::counts_launches())
    GTEST_SKIP() << "the emulated GPU counts launches";
  const Device gpu{DeviceKind::cuda, 0};
  const Tensor x = normal({6, 10}, 0, 1, DType::f32, gpu).requires_grad_();
  const Tensor t = Tensor::zeros({6}, DType::i64, gpu), dy = Tensor::ones({}, DType::f32, gpu);
  Tensor y;
  EXPECT_EQ(tests::launches_of([&] { y = cross_entropy(x, t); }), 3);
  EXPECT_EQ(tests::launches_of([&] { y.backward(dy); }), 2);
}

}  // namespace
}  // namespace weft::test
