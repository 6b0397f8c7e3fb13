// SPDX-License-Identifier: Apache-2.0
// Ops that others make up, and members and operators of Tensor.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/einsum.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/patches.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/random.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

#define EXPECT_ERROR(call, text) EXPECT_THAT([&] { call; }, ThrowsMessage<Error>(HasSubstr(text)))

Tensor on(const Tensor& x, const std::vector<int64_t>& values, const Shape& sizes) {
  return Tensor::from(values, sizes).to(x.device());
}

/// [3, 5]: all of the last row goes to place 0.
Tensor places(const Tensor& x) { return on(x, {0, 1, 1, 3, 0, 2, 2, 2, 3, 0, 0, 0, 0, 0, 0}, {3, 5}); }

/// Every reduction, with x's own elements or without.
Tensor reduced(const Tensor& x, const Tensor& source, const std::vector<bool>& with_own) {
  Inputs all;
  for (const bool own : with_own)
    for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min})
      all.push_back(scatter_reduce(x, 1, places(x), source, reduce, own));
  return concat(all);
}

Tensor ctc(const Tensor& x, const CtcLossOptions& options) {
  return ctc_loss(log_softmax(x.to(x.dtype() == DType::f64 ? DType::f64 : DType::f32), 2),
                  on(x, {1, 2, 2, 4, 3, 0, 1, 0, 0}, {3, 3}), on(x, {9, 7, 4}, {3}), on(x, {3, 2, 1}, {3}), options);
}

const PatchOptions kPatches{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};

// clang-format off
const AddCases everyday_cases{
    {"logical_not", {{{3, 5}, Values::apart}}, CALL(!(x[0] > 0.5)), "logical_not(x[0] > 0.5)", 1, true,
     Derivative::none},
    {"logical_xor", {{{3, 5}, Values::apart}, {{5}, Values::apart}}, BOTH(logical_xor(x[0] > 0, x[1] > 0)), 1, true,
     Derivative::none},
    {"isinf", {{{3, 5}, Values::apart}}, BOTH(isinf(1 / (x[0] - x[0].select(0, 1)))), 1, true, Derivative::none},
    {"cumprod", {{{3, 7}, Values::positive}}, BOTH(cumprod(x[0], 1)), 49},
    {"cumprod_first", {{{5, 2}, Values::positive}}, BOTH(cumprod(x[0], 0)), 25},
    {"cummax", {{{3, 7}, Values::apart}}, BOTH(cummax(x[0], 1).values)},
    {"cummax_places", {{{5, 3}, Values::ties}}, BOTH(cummax(x[0], 0).indices), 1, true, Derivative::none},
    {"cummin", {{{5, 3}, Values::apart, Layout::transposed}}, BOTH(cummin(x[0], 0).values)},
    {"cummin_ties", {{{2, 9, 2}, Values::ties}}, BOTH(cummin(x[0], 1).values), 1, true, Derivative::kinks},
    {"logcumsumexp", {{{3, 7}}}, BOTH(logcumsumexp(x[0], 1)), 7},
    {"logcumsumexp_first", {{{5, 2}, Values::normal, Layout::transposed}}, CALL(logcumsumexp(60 * x[0], 0)),
     "logcumsumexp(60 * x[0], 0)", 300},
    {"cdist", {{{2, 3, 4}}, {{2, 5, 4}}}, BOTH(cdist(x[0], x[1])), 20},
    {"median", {{{4, 6}, Values::apart}}, BOTH(median(x[0]))},
    {"median_rows", {{{4, 7}, Values::apart}}, BOTH(median(x[0], 0, true).values)},
    {"quantile", {{{4, 6}, Values::apart}}, BOTH(quantile(x[0], 0.3)), 4},
    {"quantile_ends", {{{4, 6}, Values::apart}},
     CALL(concat({quantile(x[0], 0, 1, true), quantile(x[0], 1, 1, true)})),
     "concat([quantile(x[0], 0., 1, True), quantile(x[0], 1., 1, True)])", 4},
    {"quantile_rows", {{{4, 6}, Values::apart}}, BOTH(quantile(x[0], 0.7, 0)), 4},
    {"histogram", {{{4, 6}, Values::apart}}, CALL(histogram(x[0], 5, -1.01, 1.01)), "histc(x[0], 5, -1.01, 1.01)", 1,
     true, Derivative::none},
    {"repeat_interleave", {{{3, 4}}}, BOTH(repeat_interleave(x[0], 3, 1)), 3},
    {"repeat_interleave_counts", {{{4, 3}}}, CALL(repeat_interleave(x[0], on(x[0], {2, 0, 3, 1}, {4}), 0)),
     "repeat_interleave(x[0], tensor([2, 0, 3, 1]), 0)", 3},
    {"logspace", {{{1}}}, CALL(logspace(-1, 2, 7, 3, x[0].dtype(), x[0].device())), "logspace(-1, 2, 7, base=3)", 1, true,
     Derivative::none},
    {"rot90", {{{3, 5, 2}}}, CALL(rot90(x[0], 1, 0, 2)), "rot90(x[0], 1, (0, 2))"},
    {"rot90_back", {{{3, 5}}}, CALL(rot90(x[0], -1)), "rot90(x[0], -1)"},
    {"rot90_half", {{{3, 5}}}, CALL(rot90(x[0], 6)), "rot90(x[0], 6)"},
    {"tril_indices", {{{1}}}, CALL(tril_indices(4, 6, 1, x[0].device())), "tril_indices(4, 6, 1)", 1, false,
     Derivative::none},
    {"triu_indices", {{{1}}}, CALL(triu_indices(4, 6, -1, x[0].device())), "triu_indices(4, 6, -1)", 1, false,
     Derivative::none},
    {"linspace", {{{1}}}, CALL(linspace(-1, 2, 7, x[0].dtype(), x[0].device())), "linspace(-1, 2, 7)", 1, true,
     Derivative::none},
    {"eye", {{{1}}}, CALL(eye(4, x[0].dtype(), x[0].device())), "eye(4)", 1, true, Derivative::none},
    {"diagonal", {{{2, 4, 5}}}, CALL(diagonal(x[0], 1)), "diagonal(x[0], 1, -2, -1)"},
    {"diag_embed", {{{2, 4}}}, BOTH(diag_embed(x[0], -1))},
    {"diagonal_below", {{{4, 5}}}, BOTH(diagonal(x[0], -2))},
    {"diag_embed_above", {{{2, 4}}}, BOTH(diag_embed(x[0], 2))},
    {"diag_of_a_matrix", {{{3, 5}}}, BOTH(diag(x[0], 2))},
    {"diag", {{{4}}}, BOTH(diag(x[0], 2))},
    {"meshgrid", {{{3}}, {{4}}}, CALL(stack(meshgrid({x[0], x[1]}))), "stack(meshgrid(*x, indexing='ij'))", 4},
    {"unbind", {{{3, 4}}}, BOTH(unbind(x[0], 1)[2])},
    {"scatter_reduce", {{{3, 4}, Values::apart}, {{3, 5}, Values::apart}},
     CALL(reduced(x[0], x[1] + 0.0625, {true, false})), "reduced(x[0], x[1] + 0.0625, True, False)", 6},
    {"scatter_reduce_ties", {{{3, 4}, Values::ties}, {{3, 5}, Values::ties}}, CALL(reduced(x[0], x[1], {true})),
     "reduced(x[0], x[1], True)", 6, true, Derivative::kinks},
    {"pad_reflect", {{{2, 5}}}, CALL(pad(x[0], 1, 3, 2, PadMode::reflect)), "F.pad(x[0], (3, 2), 'reflect')", 2},
    {"pad_replicate", {{{2, 3}}}, CALL(pad(x[0], 1, 4, 1, PadMode::replicate)), "F.pad(x[0], (4, 1), 'replicate')",
     5},
    {"pad_circular", {{{4, 2}}}, CALL(pad(x[0], 0, 3, 4, PadMode::circular)), "F.pad(x[0].mT, (3, 4), 'circular').mT",
     3},
    {"pixel_shuffle", {{{2, 2, 3, 8}}}, CALL(pixel_shuffle(x[0], 2)), "images(F.pixel_shuffle, x[0], 2)"},
    {"pixel_unshuffle", {{{2, 4, 6, 2}}}, CALL(pixel_unshuffle(x[0], 2)), "images(F.pixel_unshuffle, x[0], 2)"},
    {"unfold", {{{2, 5, 6, 3}}}, CALL(unfold(x[0], kPatches)), "unfolded(x[0], (3, 2), (1, 2), (1, 0), (2, 1))", 6},
    {"fold", {{{2, 12, 18}}}, CALL(fold(x[0], {5, 6}, kPatches)),
     "folded(x[0], (5, 6), (3, 2), (1, 2), (1, 0), (2, 1))", 6},
    {"grid_sample", {{{2, 5, 6, 3}}, {{2, 3, 4, 2}}}, CALL(grid_sample(x[0], x[1])),
     "images(F.grid_sample, *x, align_corners=False)", 48, false},
    {"grid_sample_border", {{{2, 5, 6, 3}}, {{2, 3, 4, 2}}},
     CALL(grid_sample(x[0], x[1], {.beyond = Beyond::border, .align_corners = true})),
     "images(F.grid_sample, *x, padding_mode='border', align_corners=True)", 48, false},
    {"grid_sample_border_only", {{{2, 5, 6, 3}}, {{2, 3, 4, 2}}},
     CALL(grid_sample(x[0], x[1], {.beyond = Beyond::border})),
     "images(F.grid_sample, *x, padding_mode='border', align_corners=False)", 48, false},
    {"grid_sample_corners", {{{2, 5, 6, 3}}, {{2, 3, 4, 2}}}, CALL(grid_sample(x[0], x[1], {.align_corners = true})),
     "images(F.grid_sample, *x, align_corners=True)", 48, false},
    {"grid_sample_nearest_border", {{{2, 5, 6, 3}}, {{2, 3, 4, 2}, Values::normal, Layout::dense, 0, false}},
     CALL(grid_sample(x[0], x[1], {.nearest = true, .beyond = Beyond::border, .align_corners = true})),
     "images(F.grid_sample, *x, 'nearest', 'border', True)", 48, false},
    {"grid_sample_nearest", {{{2, 5, 6, 3}}, {{2, 3, 4, 2}, Values::normal, Layout::dense, 0, false}},
     CALL(grid_sample(x[0], x[1], {.nearest = true})),
     "images(F.grid_sample, *x, mode='nearest', align_corners=False)", 48, false},
    {"max_pool1d", {{{2, 9, 3}, Values::apart}}, CALL(max_pool1d(x[0], {.kernel = 3, .stride = 2, .padding = 1})),
     "images(F.max_pool1d, x[0], 3, 2, 1)", 3},
    {"avg_pool1d", {{{2, 9, 3}}}, CALL(avg_pool1d(x[0], {.kernel = 3, .padding = 1})),
     "images(F.avg_pool1d, x[0], 3, 3, 1)", 3},
    {"adaptive_max_pool1d", {{{2, 9, 3}, Values::apart}}, CALL(adaptive_max_pool1d(x[0], 4)),
     "images(F.adaptive_max_pool1d, x[0], 4)"},
    {"adaptive_max_pool1d_up", {{{2, 3, 2}, Values::apart}}, CALL(adaptive_max_pool1d(x[0], 5)),
     "images(F.adaptive_max_pool1d, x[0], 5)", 3},
    {"adaptive_max_pool2d", {{{2, 7, 6, 3}, Values::apart}}, CALL(adaptive_max_pool2d(x[0], {3, 2})),
     "images(F.adaptive_max_pool2d, x[0], (3, 2))"},
    {"adaptive_max_pool2d_global", {{{2, 5, 4, 3}, Values::apart}}, CALL(adaptive_max_pool2d(x[0])),
     "images(F.adaptive_max_pool2d, x[0], 1)"},
    {"adaptive_max_pool3d", {{{1, 4, 5, 4, 2}, Values::apart}}, CALL(adaptive_max_pool3d(x[0], {2, 1, 3})),
     "images(F.adaptive_max_pool3d, x[0], (2, 1, 3))"},
    {"adaptive_avg_pool1d", {{{2, 9, 3}}}, CALL(adaptive_avg_pool1d(x[0], 4)), "images(F.adaptive_avg_pool1d, x[0], 4)",
     3},
    {"max_pool3d", {{{1, 4, 5, 4, 2}, Values::apart}},
     CALL(max_pool3d(x[0], {.kernel = {2, 3, 2}, .stride = 2, .padding = {1, 1, 0}})),
     "images(F.max_pool3d, x[0], (2, 3, 2), 2, (1, 1, 0))", 12},
    {"avg_pool3d", {{{1, 4, 5, 4, 2}}},
     CALL(avg_pool3d(x[0], {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false})),
     "images(F.avg_pool3d, x[0], 3, 2, 1, count_include_pad=False)", 27},
    {"avg_pool3d_padded", {{{1, 4, 5, 4, 2}}},
     CALL(avg_pool3d(x[0], {.kernel = {2, 3, 2}, .stride = 2, .padding = {1, 1, 0}})),
     "images(F.avg_pool3d, x[0], (2, 3, 2), 2, (1, 1, 0))", 12},
    {"adaptive_avg_pool3d", {{{1, 4, 5, 4, 2}}}, CALL(adaptive_avg_pool3d(x[0], {2, 1, 3})),
     "images(F.adaptive_avg_pool3d, x[0], (2, 1, 3))", 27},
    {"conv_transpose1d", {{{2, 5, 4}}, {{4, 3, 3}}, {{6}}},
     CALL(conv_transpose1d(x[0], x[1], x[2], {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2})),
     "conv(F.conv_transpose1d, *x, 2, 1, 1, 2)", 60},
    {"conv_transpose3d", {{{1, 3, 2, 3, 4}}, {{4, 2, 3, 2, 3}}, {{6}}},
     CALL(conv_transpose3d(x[0], x[1], x[2],
                           {.stride = {2, 1, 2}, .padding = {1, 1, 0}, .output_padding = {1, 0, 1}, .groups = 2})),
     "conv(F.conv_transpose3d, *x, (2, 1, 2), (1, 1, 0), (1, 0, 1), 2)", 150},
    {"huber_loss", {{{3, 7}, Values::apart}, {{3, 7}, Values::positive}}, CALL(huber_loss(4 * x[0], x[1], 0.7)),
     "huber_loss(4 * x[0], x[1], delta=0.7)", 21},
    {"gaussian_nll_loss", {{{3, 7}}, {{3, 7}}, {{3, 1}, Values::positive}},
     CALL(gaussian_nll_loss(x[0], x[1], x[2], {.full = true})), "gaussian_nll_loss(*x, full=True)", 60},
    {"normalize", {{{3, 7}}}, BOTH(normalize(x[0])), 14},
    {"normalize_first", {{{3, 7}}}, CALL(normalize(x[0], 0)), "normalize(x[0], dim=0)", 14},
    {"cosine_similarity", {{{3, 7}}, {{3, 7}}}, BOTH(cosine_similarity(x[0], x[1])), 28},
    {"cosine_embedding_loss", {{{4, 7}}, {{4, 7}}},
     CALL(cosine_embedding_loss(x[0], x[1], on(x[0], {1, -1, 1, -1}, {4}), -1.5)),
     "cosine_embedding_loss(*x, tensor([1, -1, 1, -1]), -1.5)", 60},
    {"ctc_loss", {{{9, 3, 5}}}, CALL(ctc(x[0], {})), "ctc(x[0])", 200},
    {"ctc_loss_reductions", {{{9, 3, 6}}},
     CALL(concat({ctc(x[0], {.blank = 5, .reduction = Reduction::sum}).flatten(),
                  ctc(x[0], {.blank = 5, .reduction = Reduction::none})})),
     "concat([ctc(x[0], 5, 'sum').flatten(), ctc(x[0], 5, 'none')])", 200},
    {"einsum_ellipsis", {{{2, 3, 4}}, {{3, 4, 5}}},
     CALL(einsum("...ij,...jk", {x[0].unsqueeze(0), x[1].unsqueeze(1).expand({3, 2, 4, 5})})),
     "einsum('...ij,...jk', x[0].unsqueeze(0), x[1].unsqueeze(1).expand(3, 2, 4, 5))", 20},
    {"einsum_diagonal", {{{4, 3, 4}}, {{4, 2}}}, CALL(einsum("iji,ik->jk", {x[0], x[1]})), "einsum('iji,ik->jk', *x)",
     12},
    {"attention_bias", {{{2, 3, 2, 4}}, {{2, 5, 2, 4}}, {{2, 5, 2, 4}}, {{2, 1, 5}}},
     CALL(attention(x[0], x[1], x[2], {.bias = x[3].unsqueeze(0)})), "attention(x[0], x[1], x[2], bias=x[3])", 60},
    {"attention_bias_causal", {{{2, 4, 2, 3}}, {{2, 5, 2, 3}}, {{2, 5, 2, 3}}, {{4, 5}}},
     CALL(attention(x[0], x[1], x[2], {.causal = true, .bias = x[3]})),
     "attention(x[0], x[1], x[2], causal=True, bias=x[3])",
     60},
    {"attention_hidden", {{{2, 3, 2, 4}}, {{2, 5, 2, 4}}, {{2, 5, 2, 4}}},
     CALL(attention(x[0], x[1], x[2], {.bias = on(x[0], {1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}, {3, 5}) != 0})),
     "attention(x[0], x[1], x[2], seen=tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]))", 60},
    {"index_list", {{{4, 5}}}, CALL(x[0].index({std::vector<int64_t>{2, 0, -1}, Slice{1}})), "x[0][[2, 0, -1], 1:]", 3,
     true, Derivative::smooth, {"index"}}};
// clang-format on

std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }

// An assignment that would change nothing does not compile: copy_() and fill_() write elements.
template <class T>
concept Writes = requires(Tensor x, T y) {
  x[0] = y;
}
|| requires(Tensor x, T y) { x.select(0, 1) = y; }
|| requires(Tensor x, T y) { x[0] += y; }
|| requires(Tensor x, T y) { x.sizes()[0] = y; };
static_assert(!Writes<Tensor> && !Writes<double> && !Writes<int> && std::is_nothrow_move_assignable_v<Tensor>);

TEST(Everyday, MembersAreTheFunctions) {
  const Tensor x = Tensor::from<double>({1, -2, 3, 4, 5, -6}, {2, 3});
  EXPECT_EQ(x.sum().item(), 5);
  EXPECT_EQ(numbers(x.sum(1)), (std::vector<double>{2, 3}));
  EXPECT_EQ(x.sum({0, 1}).item(), 5);
  EXPECT_EQ(numbers(x.mean(0)), (std::vector<double>{2.5, 1.5, -1.5}));
  EXPECT_EQ(x.max(1, true).sizes(), (Shape{2, 1}));
  EXPECT_EQ(x.t().sizes(), (Shape{3, 2}));
  EXPECT_EQ(numbers(x.abs().sqrt().square().round()), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.view({3, -1}).sizes(), (Shape{3, 2}));
  EXPECT_EQ(numbers(x.sort(1).values[1]), (std::vector<double>{-6, 4, 5}));
  EXPECT_EQ(numbers(x.topk(1, 0).values), (std::vector<double>{4, 5, 3}));
  EXPECT_EQ(x.argmax(1).to_vector<int64_t>(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(numbers(x.clamp(-1, 4).cumsum(1)), (std::vector<double>{1, 0, 3, 4, 8, 7}));
  EXPECT_EQ(numbers(x.std(1)), numbers(weft::std(x, {.dims = {1}})));
  EXPECT_EQ(numbers(x.chunk(2)[1].flatten()), (std::vector<double>{4, 5, -6}));
  EXPECT_EQ(numbers(x.unbind(1)[2]), (std::vector<double>{3, -6}));
  EXPECT_EQ(numbers(x.cumprod(1).tril()), (std::vector<double>{1, 0, 0, 4, 20, 0}));
  EXPECT_EQ(numbers(x.triu(1).diagonal(1)), (std::vector<double>{-2, -6}));
  EXPECT_EQ(numbers(x.roll(1, 1).movedim(0, 1)), (std::vector<double>{3, -6, 1, 4, -2, 5}));
  EXPECT_EQ(numbers(x.masked_select(x > 3).maximum(Tensor::full({2}, 4.5, DType::f64))), (std::vector<double>{4.5, 5}));
  EXPECT_EQ(numbers(x.minimum(x.abs()).index_select(1, Tensor::from<int64_t>({2, 1}))),
            (std::vector<double>{3, -2, -6, 5}));
  EXPECT_EQ(x.argsort(1, true).to_vector<int>(), (std::vector<int>{2, 0, 1, 1, 0, 2}));
  EXPECT_EQ((x < 0).nonzero().to_vector<int>(), (std::vector<int>{0, 1, 1, 2}));
  EXPECT_EQ(numbers(x.median(1).values), (std::vector<double>{1, 4}));
  EXPECT_EQ(x.median().item(), 1);
  EXPECT_EQ(numbers(x.abs().minimum(Tensor::full({}, 2, DType::f64)).unique().counts), (std::vector<double>{1, 5}));
  const Tensor at = Tensor::from<int64_t>({1, 0}, {2, 1}), ones = Tensor::ones({2, 1}, DType::f64);
  EXPECT_EQ(numbers(x.scatter(1, at, ones).scatter_add(1, at, ones)), (std::vector<double>{1, 2, 3, 2, 5, -6}));
  EXPECT_EQ(numbers(x.repeat_interleave(2, 0)[1]), (std::vector<double>{1, -2, 3}));
  EXPECT_ERROR(x.t().view({6}), "view: the strides of f64[3,2] on cpu demand a copy for sizes [6]. Use reshape");
  EXPECT_ERROR(x.unsqueeze(0).t(), "t: expected at most 2 dimensions, got f64[1,2,3] on cpu. Use transpose");
}

TEST(Everyday, RunningExtremesKeepNaNAndTheLastOfEquals) {
  const auto line = [](const std::vector<double>& values) { return Tensor::from(values); };
  const Sorted up = cummax(line({1, 3, 3, 2, NAN, 5, NAN}), 0), down = cummin(line({2, 3, 1, 1, NAN, 0}), 0);
  EXPECT_EQ(up.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 2, 4, 4, 6}));
  EXPECT_EQ(down.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 2, 3, 4, 4}));
  EXPECT_EQ(numbers(up.values.slice(0, 0, 4)), (std::vector<double>{1, 3, 3, 3}));
  EXPECT_TRUE(std::isnan(up.values.select(0, 5).item()) && std::isnan(down.values.select(0, 5).item()));
  const Tensor masks = cummax(line({0, 1, 0}).to(DType::boolean), 0).values;
  EXPECT_EQ(masks.dtype(), DType::boolean);
  EXPECT_EQ(numbers(masks), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(cummin(Tensor::zeros({2, 0}), 1).indices.sizes(), (Shape{2, 0}));
  EXPECT_EQ(numbers(logcumsumexp(line({-INFINITY, -INFINITY, 0, 1000}), 0)),
            (std::vector<double>{-INFINITY, -INFINITY, 0, 1000}));
}

TEST(Everyday, BracketsChoose) {
  const Tensor x = Tensor::arange(6, DType::f64).reshape({2, 3});
  EXPECT_EQ(numbers(x[-1]), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(x[1][2].item(), 5);
  EXPECT_EQ(numbers(x[x > 3]), (std::vector<double>{4, 5}));
  EXPECT_EQ(numbers(x[{Slice{}, std::vector<int64_t>{2, 0}}]), (std::vector<double>{2, 0, 5, 3}));
  EXPECT_ERROR(x.index({std::vector<int64_t>{2}}), "2");
}

TEST(Everyday, AssignmentsMakeAnotherTensor) {
  const Tensor w = Tensor::ones({2}, DType::f64).requires_grad_(), x = Tensor::from<double>({1, 2});
  Tensor total = w * x;
  const Tensor before = total;
  total += x;
  total *= 3;
  total -= 1;
  total /= Tensor::full({}, 2, DType::f64);
  EXPECT_EQ(numbers(total), (std::vector<double>{2.5, 5.5}));
  EXPECT_EQ(numbers(before), (std::vector<double>{1, 2}));
  sum(total).backward();
  EXPECT_EQ(numbers(w.grad()), (std::vector<double>{1.5, 3}));
  Tensor leaf = w;
  EXPECT_ERROR(leaf += 1, "operator+=: f64[2] on cpu is a leaf that requires a gradient");
}

TEST(Everyday, TruthsAreCombined) {
  const Tensor a = Tensor::from<bool>({true, true, false, false}), b = Tensor::from<bool>({true, false, true, false});
  const auto truths = [](const Tensor& x) { return x.to_vector<int>(); };
  EXPECT_EQ(truths(a & b), (std::vector<int>{1, 0, 0, 0}));
  EXPECT_EQ(truths(a | b), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(truths(!a), (std::vector<int>{0, 0, 1, 1}));
  if (!Tensor::ones({})) FAIL() << "one element is a condition";
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(truths(isinf(Tensor::from<double>({inf, -inf, 1, std::nan("")}))), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_ERROR(a & Tensor::ones({4}), "operator&: expected two bool tensors, got bool[4] on cpu and f32[4] on cpu");
}

TEST(Everyday, NaNAndEmptyEnds) {
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(median(Tensor::from<double>({1, nan, 0})).item()));
  EXPECT_TRUE(std::isnan(quantile(Tensor::from<double>({1, nan, 0}), 0).item()));
  EXPECT_EQ(histogram(Tensor::from<double>({nan, -1, 0, 0.5, 1, 2}), 2, 0, 1).to_vector<int>(),
            (std::vector<int>{1, 2}));
  EXPECT_EQ(linspace(3, 5, 1).to_vector<double>(), (std::vector<double>{3}));
  EXPECT_EQ(diagonal(Tensor::ones({2, 3}), 5).sizes(), (Shape{0}));
  EXPECT_EQ(repeat_interleave(Tensor::ones({2, 3}), 0, 1).sizes(), (Shape{2, 0}));
  // An equal three share the gradient.
  const Tensor x = Tensor::ones({1}, DType::f64).requires_grad_(), s = Tensor::ones({2}, DType::f64).requires_grad_();
  scatter_reduce(x, 0, Tensor::from<int64_t>({0, 0}), s, Reduce::max).backward(Tensor::full({1}, 3, DType::f64));
  EXPECT_EQ(x.grad().item(), 1);
  EXPECT_EQ(numbers(s.grad()), (std::vector<double>{1, 1}));
  // A target longer than its input.
  const Tensor p = Tensor::zeros({1, 1, 3}), t = Tensor::from<int64_t>({1, 2}, {1, 2});
  const Tensor one = Tensor::from<int64_t>({1}), two = Tensor::from<int64_t>({2});
  EXPECT_EQ(ctc_loss(p, t, one, two).item(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ctc_loss(p, t, one, two, {.zero_infinity = true}).item(), 0);
}

TEST(Everyday, ReviewedEdges) {
  const auto near = [](const Tensor& found, const std::vector<double>& wanted) {
    EXPECT_THAT(found.to_vector<double>(), testing::Pointwise(testing::DoubleNear(1e-4), wanted));
  };
  const double inf = std::numeric_limits<double>::infinity();
  // Lengths are those of the common sizes.
  near(cosine_similarity(Tensor::arange(12, DType::f64).reshape({2, 3, 2}),
                         Tensor::arange(4, DType::f64, {}, 1).reshape({2, 1, 2}), 1),
       {0.774597, 0.878310, 0.979796, 0.983935});
  // A step at which three classes are impossible.
  Tensor steps = Tensor::full({6, 1, 4}, -1.4, DType::f64);
  steps.select(0, 2).copy_(Tensor::from<double>({-inf, -inf, -inf, 0}).reshape({1, 4}));
  steps.requires_grad_();
  const Tensor lost = ctc_loss(steps, Tensor::from<int64_t>({1, 2, 3}).reshape({1, 3}), Tensor::from<int64_t>({6}),
                               Tensor::from<int64_t>({3}));
  EXPECT_TRUE(std::isfinite(lost.item()));
  lost.backward();
  for (const double g : steps.grad().to_vector<double>()) EXPECT_TRUE(std::isfinite(g));
  // A window beyond the length, by the kernel and by ops.
  const Tensor ones = Tensor::ones({1, 3, 1, 2}, DType::f64), v = Tensor::arange(6, DType::f64).reshape({1, 3, 1, 2});
  const AttentionOptions whole{.causal = true, .window = std::numeric_limits<int64_t>::max()};
  AttentionOptions biased = whole;
  biased.bias = Tensor::zeros({1}, DType::f64);
  near(attention(ones, ones, v, whole), {0, 1, 1, 2, 2, 3});
  near(attention(ones, ones, v, biased), {0, 1, 1, 2, 2, 3});
  // Outside of an image lies nothing, whatever its first pixel is.
  near(grid_sample(Tensor::from<double>({inf, 1, 2, 3}).reshape({1, 2, 2, 1}),
                   Tensor::full({1, 1, 1, 2}, 5, DType::f64)),
       {0});
  // Results have memory of their own.
  const Tensor x = Tensor::ones({2}, DType::f64);
  for (const Tensor& y : {repeat(x, {1}), roll(x, 2, 0), flip(x, {}), cumprod(x.slice(0, 0, 1), 0)}) y.fill_(5);
  near(x, {1, 1});
  EXPECT_EQ(split(Tensor::zeros({0, 3}), 2).size(), 1u);
  EXPECT_EQ(chunk(Tensor::zeros({0, 3}), 3).size(), 3u);
  near(cosine_embedding_loss(Tensor::ones({2, 3}), Tensor::ones({2, 3}), Tensor::from<int64_t>({0, 1}), 0,
                             Reduction::none),
       {0, 0});
  near(cosine_embedding_loss(Tensor::ones({2, 3}), Tensor::ones({2, 3}), Tensor::from<double>({1, -1}), 0,
                             Reduction::none),
       {0, 1});
  // A variance for each row.
  const Tensor two = Tensor::zeros({2, 2}, DType::f64), rows = Tensor::from<double>({1, 4});
  near(gaussian_nll_loss(two, two, rows, {.reduction = Reduction::none}), {0, 0, 0.693147, 0.693147});
  EXPECT_ERROR(gaussian_nll_loss(two, two, Tensor::ones({2, 3}, DType::f64)),
               "gaussian_nll_loss: expected variances of the sizes [2,2]");
  EXPECT_ERROR(gaussian_nll_loss(two, two, Tensor::full({2, 2}, -1, DType::f64)), "expected variances of at least 0");
  EXPECT_ERROR(repeat(Tensor::zeros({4}), {int64_t{1} << 62}), "repeat: expected at most 2^60 elements");
  EXPECT_ERROR(histogram(Tensor::zeros({2}), 2, -inf, inf),
               "histogram: expected a floating tensor, at least one bin and finite low < high");
  EXPECT_ERROR(bincount(Tensor::from<int64_t>({std::numeric_limits<int64_t>::max()})),
               "bincount: expected elements below 2^40");
}

TEST(Everyday, AQueryWhoseBiasIsMinusInfinityEverywhereSeesNothing) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const float none = -std::numeric_limits<float>::infinity();
    const Tensor q = normal({1, 2, 1, 4}, 0, 1, DType::f32, device).requires_grad_();
    const Tensor bias = Tensor::from(std::vector<float>{none, none, none, 0}, {2, 2}).to(device);
    const Tensor y = attention(q, q, q, {.bias = bias});
    sum(y).backward();
    const auto values = y.to(Device{}).to_vector<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 4), std::vector<float>(4, 0));
    EXPECT_EQ(std::vector<float>(values.begin() + 4, values.end()),
              q.to(Device{}).select(1, 1).contiguous().to_vector<float>());
    for (const float gradient : q.grad().to(Device{}).to_vector<float>()) EXPECT_TRUE(std::isfinite(gradient));
  }
}

TEST(Everyday, Refusals) {
  const auto zeros = [](const Shape& sizes, DType dtype = DType::f32) { return Tensor::zeros(sizes, dtype); };
  const Tensor ints = zeros({2, 3}, DType::i64);
  EXPECT_ERROR(cumprod(zeros({}), 0), "cumprod: expected a tensor of at least one dimension, got f32[] on cpu");
  EXPECT_ERROR(cummax(zeros({}), 0), "cummax: expected a tensor of at least one dimension, got f32[] on cpu");
  EXPECT_ERROR(cummin(zeros({2}), 1), "cummin: ");
  EXPECT_ERROR(logcumsumexp(ints, 0),
               "logcumsumexp: expected a floating tensor of at least one dimension, got i64[2,3]");
  EXPECT_ERROR(cdist(zeros({2, 3}), zeros({2, 4})),
               "cdist: expected floating points [..., N, D] and [..., M, D], got f32[2,3]");
  EXPECT_ERROR(median(zeros({0})), "median: expected a floating tensor with elements, got f32[0] on cpu");
  EXPECT_ERROR(quantile(zeros({2}), 1.5), "quantile: expected q in [0, 1], got 1.5");
  EXPECT_ERROR(histogram(zeros({2}), 0, 0, 1),
               "histogram: expected a floating tensor, at least one bin and finite low < high");
  EXPECT_ERROR(repeat_interleave(zeros({2}), -1, 0),
               "repeat_interleave: expected a tensor of at least one dimension and no");
  EXPECT_ERROR(repeat_interleave(zeros({2}), zeros({3}, DType::i64), 0),
               "repeat_interleave: expected a count for each slice");
  EXPECT_ERROR(repeat_interleave(zeros({2}), Tensor::from<int64_t>({1, -1}), 0),
               "repeat_interleave: expected no negative count");
  EXPECT_ERROR(rot90(zeros({3})), "rot90: expected a tensor of at least two dimensions, got f32[3]");
  EXPECT_ERROR(rot90(zeros({3, 3}), 1, 1, -1), "rot90: expected two dimensions, got 1 and -1");
  EXPECT_ERROR(logspace(0, 1, 3, 10, DType::i64), "logspace: expected a floating dtype, got i64");
  EXPECT_ERROR(linspace(0, 1, 0), "linspace: expected at least one number of a floating dtype, got 0 of f32");
  EXPECT_ERROR(eye(-1), "eye: expected no negative size, got -1");
  EXPECT_ERROR(diagonal(zeros({2})), "diagonal: expected matrices [..., R, C], got f32[2] on cpu");
  EXPECT_ERROR(diag_embed(zeros({})), "diag_embed: expected vectors [..., m], got f32[] on cpu");
  EXPECT_ERROR(diag(zeros({1, 2, 3})), "diag: expected a vector or a matrix, got f32[1,2,3] on cpu");
  EXPECT_ERROR(meshgrid({zeros({2, 2})}), "meshgrid: expected vectors, got f32[2,2] on cpu");
  EXPECT_ERROR(unbind(zeros({})), "unbind: expected a tensor of at least one dimension, got f32[] on cpu");
  EXPECT_ERROR(scatter_reduce(ints, 0, ints, ints, Reduce::sum),
               "scatter_reduce: expected a floating tensor, got i64[2,3]");
  EXPECT_ERROR(pad(zeros({3}), 0, 3, 0, PadMode::reflect),
               "pad: expected at most 2 elements beyond dimension 0 of f32[3] on cpu, got 3 and 0");
  EXPECT_ERROR(pad(zeros({0}), 0, 1, 0, PadMode::replicate),
               "pad: expected at most 0 elements beyond dimension 0 of f32[0]");
  EXPECT_ERROR(pad(zeros({3}), 0, 0, -1, PadMode::circular), "pad: expected no negative padding, got 0 and -1");
  EXPECT_ERROR(pad(zeros({}), 0, 1, 0, PadMode::circular), "pad: expected a tensor of at least one dimension");
  EXPECT_ERROR(pixel_shuffle(zeros({1, 2, 2, 6}), 2),
               "pixel_shuffle: expected an input [N, H, W, C] with channels that 2^2 divides");
  EXPECT_ERROR(pixel_unshuffle(zeros({1, 3, 2, 6}), 2),
               "pixel_unshuffle: expected an input [N, H, W, C] with height and width");
  EXPECT_ERROR(unfold(zeros({3, 3}), {}), "unfold: expected an input [N, H, W, C], got f32[3,3] on cpu");
  EXPECT_ERROR(unfold(zeros({1, 2, 3, 1}), {}),
               "unfold: expected a kernel that fits 2 elements with padding 0, got kernel 3");
  EXPECT_ERROR(fold(zeros({3, 3}), 3, {}), "fold: expected floating windows [N, P Q, R S C], got f32[3,3] on cpu");
  EXPECT_ERROR(fold(zeros({1, 2, 9}), 3, {}), "fold: expected windows [N, 1, 9 C], got f32[1,2,9] on cpu");
  EXPECT_ERROR(grid_sample(zeros({3, 3}), zeros({1, 2, 2, 2})), "grid_sample: expected a floating input [N, H, W, C]");
  EXPECT_ERROR(grid_sample(zeros({1, 3, 3, 1}), zeros({2, 2, 2, 2})),
               "grid_sample: expected a grid f32[1, P, Q, 2] on cpu, got");
  EXPECT_ERROR(max_pool1d(zeros({3, 3})), "max_pool1d: expected a floating input [N, L, C], got f32[3,3] on cpu");
  EXPECT_ERROR(avg_pool3d(zeros({3, 3})), "avg_pool3d: expected a floating input [N, D, H, W, C], got f32[3,3] on cpu");
  EXPECT_ERROR(max_pool3d(zeros({1, 2, 8, 8, 3}), {.kernel = 3}),
               "max_pool3d: the kernel 3 is larger than the padded dimension 1 of f32[1,2,8,8,3] on cpu");
  EXPECT_ERROR(avg_pool1d(zeros({1, 8, 3}), {.kernel = 0}), "avg_pool1d: expected a kernel of at least 1");
  EXPECT_ERROR(avg_pool3d(zeros({1, 8, 8, 8, 3}), {.padding = {0, 0, 2}}),
               "avg_pool3d: expected padding of at most half of the kernel 2, got 2");
  EXPECT_ERROR(adaptive_avg_pool1d(zeros({3, 3})), "adaptive_avg_pool1d: expected a floating input [N, L, C]");
  EXPECT_ERROR(adaptive_max_pool1d(zeros({3, 3})), "adaptive_max_pool1d: expected a floating input [N, L, C]");
  EXPECT_ERROR(adaptive_max_pool2d(zeros({1, 3, 3, 1}), {0, 1}),
               "adaptive_max_pool2d: expected an output of at least 1, got 0");
  EXPECT_ERROR(adaptive_max_pool2d(zeros({1, 0, 3, 1})), "adaptive_max_pool2d: expected an input with elements");
  EXPECT_ERROR(adaptive_avg_pool3d(zeros({3, 3})), "adaptive_avg_pool3d: expected a floating input [N, D, H, W, C]");
  EXPECT_ERROR(conv_transpose1d(zeros({3, 3}), zeros({1, 1, 1})),
               "conv_transpose1d: expected an input [N, L, C] and a weight");
  EXPECT_ERROR(conv_transpose3d(zeros({3, 3}), zeros({1, 1, 1})),
               "conv_transpose3d: expected an input [N, D, H, W, C] and a weight");
  const Tensor volume = zeros({1, 1, 1, 1, 2}), kernel = zeros({2, 1, 1, 1, 3});
  EXPECT_ERROR(conv_transpose3d(volume, kernel, {}, {.padding = {1, 0, 0}}),
               "conv_transpose3d: expected a depth that leaves output");
  EXPECT_ERROR(conv_transpose3d(volume, kernel, zeros({2})),
               "conv_transpose3d: expected a bias [3], got f32[2] on cpu");
  EXPECT_ERROR(huber_loss(zeros({2}), zeros({3})), "huber_loss: expected two tensors of one size, got f32[2]");
  EXPECT_ERROR(flip(zeros({2, 3}), {0, -2}), "flip: expected each dimension once, got -2 again");
  EXPECT_ERROR(huber_loss(zeros({2}), zeros({2}), 0), "huber_loss: expected a positive delta, got 0");
  EXPECT_ERROR(gaussian_nll_loss(zeros({2}), zeros({3}), zeros({2})),
               "gaussian_nll_loss: expected floating predictions");
  EXPECT_ERROR(normalize(ints), "normalize: expected floating vectors, got i64[2,3] on cpu");
  EXPECT_ERROR(cosine_similarity(ints, ints), "cosine_similarity: expected floating vectors, got i64[2,3] on cpu");
  for (const Tensor& target : {zeros({3}), zeros({2}).to(DType::boolean)})
    EXPECT_ERROR(cosine_embedding_loss(zeros({2, 3}), zeros({2, 3}), target),
                 "cosine_embedding_loss: expected vectors [N, C]");
  EXPECT_ERROR(einsum("...i,ij", {zeros({3})}), "einsum: \"...i,ij\" does not name 1 tensors");
  EXPECT_ERROR(einsum("...ij->i", {zeros({3})}),
               "einsum: expected a letter for each dimension of f32[3] on cpu, got \"...ij\"");
  const Tensor q = zeros({2, 3, 2, 4});
  EXPECT_ERROR(attention(q, q, q, {.bias = zeros({4, 3})}),
               "attention: expected a floating or bool bias that broadcasts to [2,2,3,3]");
  const Tensor p = zeros({4, 2, 3}), t = Tensor::from<int64_t>({1, 2, 1, 5}, {2, 2}),
               two = Tensor::from<int64_t>({2, 2});
  EXPECT_ERROR(ctc_loss(zeros({4, 2}), t, two, two),
               "ctc_loss: expected log probabilities [T, N, C], got f32[4,2] on cpu");
  EXPECT_ERROR(ctc_loss(p, zeros({2, 2}), two, two),
               "ctc_loss: expected targets i64[2, S] on cpu, got f32[2,2] on cpu");
  EXPECT_ERROR(ctc_loss(p, t, two, zeros({2})), "ctc_loss: expected lengths i64[2] on cpu, got f32[2] on cpu");
  EXPECT_ERROR(ctc_loss(p, t, two, two, {.blank = 3}), "ctc_loss: expected a blank from 0 to 2, got 3");
  EXPECT_ERROR(ctc_loss(p, t, Tensor::from<int64_t>({5, 4}), two),
               "ctc_loss: expected input lengths from 1 to 4, got 5");
  EXPECT_ERROR(ctc_loss(p, t, two, Tensor::from<int64_t>({3, 1})),
               "ctc_loss: expected target lengths from 0 to 2, got 3");
  EXPECT_ERROR(ctc_loss(p, t, two, two), "ctc_loss: expected classes from 0 to 2, got 5");
}

}  // namespace
}  // namespace weft::test
