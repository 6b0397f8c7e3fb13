// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/random.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/launches.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases losses_cases{
    {"softmax", {{{3, 7}}}, [](const Inputs& x) { return softmax(x[0]); }, 7},
    {"softmax_first", {{{5, 3, 2}}}, [](const Inputs& x) { return softmax(x[0], 0); }, 5},
    {"softmax_long", {{{2, 1030}}}, [](const Inputs& x) { return softmax(x[0]); }, 1030},
    {"softmax_one", {{{4, 1}}}, [](const Inputs& x) { return softmax(x[0]); }},
    {"softmax_empty", {{{0, 4}}}, [](const Inputs& x) { return softmax(x[0]); }},
    {"log_softmax", {{{3, 7}}}, [](const Inputs& x) { return log_softmax(x[0]); }, 7},
    {"log_softmax_middle", {{{2, 5, 3}}}, [](const Inputs& x) { return log_softmax(x[0], 1); }, 5},
    {"cross_entropy",
     {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1]); },
     60},
    {"cross_entropy_smoothed",
     {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.label_smoothing = 0.1}); },
     60},
    {"cross_entropy_ignoring",
     {{{24, 10}}, {{24}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.label_smoothing = 0.2, .ignore_index = 1}); },
     240},
    {"cross_entropy_sum",
     {{{5, 130}}, {{5}, Values::classes, Layout::dense, 130}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::sum}); },
     650},
    {"cross_entropy_rows",
     {{{2, 3, 7}}, {{2, 3}, Values::classes, Layout::dense, 7}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::none}); },
     7},
    {"cross_entropy_probabilities",
     {{{6, 10}}, {{6, 10}, Values::simplex, Layout::dense, 0, false}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1]); },
     60},
    {"cross_entropy_probabilities_smoothed",
     {{{6, 10}}, {{6, 10}, Values::simplex, Layout::dense, 0, false}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.label_smoothing = 0.3}); },
     60},
    {"cross_entropy_weighted",
     {{{24, 7}}, {{24}, Values::classes, Layout::dense, 7}, {{7}, Values::positive, Layout::dense, 0, false, true}},
     [](const Inputs& x) {
       return cross_entropy(x[0], x[1], {.label_smoothing = 0.2, .ignore_index = 1, .weight = x[2]});
     },
     170},
    {"cross_entropy_weighted_rows",
     {{{2, 3, 7}}, {{2, 3}, Values::classes, Layout::dense, 7}, {{7}, Values::positive, Layout::dense, 0, false, true}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::none, .weight = x[2]}); },
     7},
    {"cross_entropy_weighted_probabilities",
     {{{6, 10}},
      {{6, 10}, Values::simplex, Layout::dense, 0, false},
      {{10}, Values::positive, Layout::dense, 0, false, true}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.label_smoothing = 0.3, .weight = x[2]}); },
     60},
    // A margin that no distance reaches: the kinks are for golden files.
    {"triplet_margin_loss",
     {{{6, 5}}, {{6, 5}}, {{6, 5}}},
     [](const Inputs& x) { return triplet_margin_loss(x[0], x[1], x[2], {.margin = 20}); },
     30},
    {"linear_cross_entropy",
     {{{7, 5}}, {{10, 5}}, {{7}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return linear_cross_entropy(x[0], x[1], x[2], {.ignore_index = 1, .rows = 3}); },
     70},
    {"linear_cross_entropy_sum",
     {{{2, 3, 5}}, {{11, 5}}, {{2, 3}, Values::classes, Layout::dense, 11}},
     [](const Inputs& x) {
       return linear_cross_entropy(x[0], x[1], x[2], {.label_smoothing = 0.1, .reduction = Reduction::sum});
     },
     66},
    {"linear_cross_entropy_no_rows",
     {{{0, 5}}, {{11, 5}}, {{0}, Values::classes, Layout::dense, 11}},
     [](const Inputs& x) { return linear_cross_entropy(x[0], x[1], x[2], {.reduction = Reduction::sum}); }},
    {"cross_entropy_no_rows",
     {{{0, 10}}, {{0}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::sum}); }},
    {"nll_loss",
     {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return nll_loss(x[0], x[1]); },
     6},
    {"nll_loss_ignoring",
     {{{24, 6}}, {{24}, Values::classes, Layout::dense, 6}},
     [](const Inputs& x) { return nll_loss(x[0], x[1], {.ignore_index = 1}); },
     24},
    {"nll_loss_sum",
     {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return nll_loss(x[0], x[1], {.reduction = Reduction::sum}); },
     6},
    {"nll_loss_rows",
     {{{6, 10}}, {{6}, Values::classes, Layout::dense, 10}},
     [](const Inputs& x) { return nll_loss(x[0], x[1], {.ignore_index = 2, .reduction = Reduction::none}); },
     6},
    {"mse_loss_rows", {{{6, 5}}, {{6, 5}}}, [](const Inputs& x) { return mse_loss(x[0], x[1], Reduction::none); }},
    {"mse_loss", {{{6, 5}}, {{6, 5}}}, [](const Inputs& x) { return mse_loss(x[0], x[1]); }, 30},
    {"mse_loss_sum", {{{6, 5}}, {{6, 5}}}, [](const Inputs& x) { return mse_loss(x[0], x[1], Reduction::sum); }, 30},
    {"bce_with_logits",
     {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}},
     [](const Inputs& x) { return bce_with_logits(x[0], x[1]); },
     30},
    {"bce_with_logits_weighted",
     {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}, {{5}, Values::positive, Layout::dense, 0, false}},
     [](const Inputs& x) {
       return bce_with_logits(x[0], x[1], {.positive_weight = x[2], .reduction = Reduction::none});
     },
     4},
    {"l1_loss",
     {{{6, 5}, Values::apart}, {{6, 5}, Values::apart}},
     [](const Inputs& x) { return l1_loss(x[0], add(x[1], x[1])); },
     30},
    {"smooth_l1_loss", {{{6, 5}}, {{6, 5}}}, [](const Inputs& x) { return smooth_l1_loss(x[0], x[1], 0.7); }, 30},
    {"kl_div",
     {{{6, 5}}, {{6, 5}, Values::simplex, Layout::dense, 0, false}},
     [](const Inputs& x) { return kl_div(x[0], x[1], Reduction::sum); },
     30},
};

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
