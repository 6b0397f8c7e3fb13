// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/attention.h"

#include <gmock/gmock.h>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/graph.h"
#include "core/ops/random.h"
#include "core/ops/rearrange.h"
#include "core/random.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"

namespace weft::test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Two batch entries of 7 keys, of which the second has 4 and hides one.
Tensor lengths_on(Device device) { return Tensor::from<int64_t>({7, 4}, device); }
Tensor mask_on(Device device) {
  return Tensor::from<int64_t>({1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1}, {2, 7}, device).to(DType::boolean);
}

// clang-format off
const AddCases attention_cases{
    {"attention", {{{2, 5, 3, 8}}, {{2, 7, 3, 8}}, {{2, 7, 3, 8}}}, BOTH(attention(x[0], x[1], x[2])), 8},
    {"attention_odd", {{{1, 3, 2, 5}}, {{1, 4, 2, 5}}, {{1, 4, 2, 5}}},
     CALL(attention(x[0], x[1], x[2], {.scale = 0.7})), "attention(x[0], x[1], x[2], scale=0.7)", 5},
    {"attention_masked", {{{2, 7, 1, 16}}, {{2, 7, 1, 16}}, {{2, 7, 1, 16}}},
     CALL(attention(x[0], x[1], x[2],
                    {.causal = true, .key_lengths = lengths_on(x[0].device()), .key_mask = mask_on(x[0].device())})),
     "attention(x[0], x[1], x[2], causal=True, keys=tensor([[1, 1, 0, 1, 1, 0, 1], [0, 1, 1, 1, 0, 0, 0]]))", 16},
    {"attention_dropout", {{{2, 7, 2, 8}}, {{2, 7, 2, 8}}, {{2, 7, 2, 8}}},
     CALL(attention(x[0], x[1], x[2], {.dropout = 0.3})), "# draws other numbers", 8},
    {"attention_transposed",
     {{{2, 5, 3, 8}, Values::normal, Layout::transposed}, {{2, 7, 3, 8}, Values::normal, Layout::strided},
      {{2, 7, 3, 8}, Values::normal, Layout::stretched}},
     BOTH(attention(x[0], x[1], x[2])), 14},
    {"attention_groups", {{{2, 5, 6, 8}}, {{2, 7, 2, 8}}, {{2, 7, 2, 8}}},
     CALL(attention(x[0], x[1], x[2], {.key_mask = mask_on(x[0].device())})),
     "attention(x[0], x[1], x[2], keys=tensor([[1, 1, 0, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1, 1]]))", 20},
    {"attention_groups_window", {{{1, 9, 4, 8}}, {{1, 9, 1, 8}}, {{1, 9, 1, 8}}},
     CALL(attention(x[0], x[1], x[2], {.causal = true, .window = 3, .dropout = 0.3})), "# draws other numbers", 36},
    {"attention_groups_one_query", {{{2, 1, 6, 8}}, {{2, 7, 3, 8}}, {{2, 7, 3, 8}}},
     CALL(attention(x[0], x[1], x[2], {.key_lengths = lengths_on(x[0].device()), .dropout = 0.3})),
     "# draws other numbers", 8},
    {"attention_causal_window", {{{2, 9, 4, 8}}, {{2, 9, 1, 8}}, {{2, 9, 1, 8}}},
     CALL(attention(x[0], x[1], x[2], {.causal = true, .window = 3})), "attention(*x, causal=True, window=3)", 36},
    {"attention_window_of_one", {{{1, 12, 2, 8}}, {{1, 12, 2, 8}}, {{1, 12, 2, 8}}},
     CALL(attention(x[0], x[1], x[2], {.causal = true, .window = 1})), "attention(*x, causal=True, window=1)", 12, true,
     Derivative::none},
    {"attention_window_of_two", {{{1, 12, 2, 8}}, {{1, 12, 2, 8}}, {{1, 12, 2, 8}}},
     CALL(attention(x[0], x[1], x[2], {.causal = true, .window = 2})), "attention(*x, causal=True, window=2)", 12},
    {"attention_one_query", {{{2, 1, 6, 16}}, {{2, 20, 2, 16}}, {{2, 20, 2, 16}}}, BOTH(attention(x[0], x[1], x[2])),
     60},
    {"attention_of_a_vit", {{{1, 197, 1, 64}}, {{1, 197, 1, 64}}, {{1, 197, 1, 64}}},
     BOTH(attention(x[0], x[1], x[2])), 197},
    {"attention_packed_window", {{{2, 9, 3, 2, 16}}}, CALL(attention_packed(x[0], {.causal = true, .window = 4})),
     "attention(*x[0].unbind(2), causal=True, window=4)", 16},
    {"attention_packed", {{{2, 70, 3, 2, 64}}}, CALL(attention_packed(x[0])), "attention(*x[0].unbind(2))", 70},
    {"attention_packed_causal", {{{2, 7, 3, 2, 16}}},
     CALL(attention_packed(x[0], {.causal = true, .key_lengths = lengths_on(x[0].device()), .dropout = 0.2})),
     "# draws other numbers", 16},
    {"attention_packed_strided", {{{1, 6, 3, 2, 8}, Values::normal, Layout::strided}}, CALL(attention_packed(x[0])),
     "attention(*x[0].unbind(2))", 8}};
// clang-format on

TEST(Attention, PackedEqualsItsParts) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Tensor qkv = normal({2, 9, 3, 2, 16}, 0, 1, DType::f32, {kind, 0}).requires_grad_();
    const Tensor parts = qkv.detach().clone().requires_grad_();
    const Tensor dy = normal({2, 9, 2, 16}, 0, 1, DType::f32, {kind, 0});
    const Tensor y = attention_packed(qkv);
    y.backward(dy);
    const Tensor z = attention(parts.select(2, 0), parts.select(2, 1), parts.select(2, 2));
    z.backward(dy);
    EXPECT_EQ(y.to_vector<float>(), z.to_vector<float>());
    EXPECT_EQ(qkv.grad().to_vector<float>(), parts.grad().to_vector<float>());
  }
}

TEST(Attention, OnlyTheGradientsThatAreWanted) {
  const Tensor q = normal({1, 4, 1, 8}), k = normal({1, 5, 1, 8}), v = normal({1, 5, 1, 8});
  const Tensor only_v = v.detach().requires_grad_(), only_q = q.detach().requires_grad_();
  attention(q, k, only_v).backward(Tensor::ones({1, 4, 1, 8}));
  EXPECT_TRUE(only_v.grad().defined());
  attention(only_q, k, v).backward(Tensor::ones({1, 4, 1, 8}));
  EXPECT_TRUE(only_q.grad().defined());
  EXPECT_FALSE(attention(q, k, v).requires_grad());
}

TEST(Attention, InTheLowPrecisionUnderAutocast) {
  const Tensor qkv = normal({1, 5, 3, 2, 8}).requires_grad_();
  Tensor y;
  {
    const Autocast low(DType::bf16);
    y = attention_packed(qkv);
    EXPECT_EQ(attention(normal({1, 2, 1, 8}), normal({1, 3, 1, 8}), normal({1, 3, 1, 8})).dtype(), DType::bf16);
  }
  EXPECT_EQ(y.dtype(), DType::bf16);
  y.backward(ones_like(y));
  EXPECT_EQ(qkv.grad().dtype(), DType::f32);
}

TEST(Attention, AllDroppedIsZero) {
  const Tensor qkv = normal({1, 5, 3, 2, 8}).requires_grad_();
  const Tensor y = attention_packed(qkv, {.dropout = 1});
  y.backward(ones_like(y));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(80, 0.0f));
  EXPECT_EQ(qkv.grad().to_vector<float>(), std::vector<float>(240, 0.0f));
}

TEST(Attention, DropoutKeepsTheExpectationAndAdvancesTheGenerator) {
  manual_seed(5);
  // All weights are 1/M and all values 1: the result counts the kept weights of a row.
  const Tensor q = Tensor::zeros({1, 100, 4, 8}), k = Tensor::zeros({1, 99, 4, 8}), v = Tensor::ones({1, 99, 4, 8});
  const std::vector<double> y = attention(q, k, v, {.dropout = 0.25}).to_vector<double>();
  double mean = 0;
  for (const double value : y) mean += value / static_cast<double>(y.size());
  const double weights = 4 * 100 * 99;
  EXPECT_NEAR(mean, 1, 6 * std::sqrt(0.25 / 0.75 / weights));
  EXPECT_EQ(generator({}).offset, 4u * 50 * 50);
  EXPECT_NE(attention(q, k, v, {.dropout = 0.25}).to_vector<double>(), y);
}

TEST(Attention, RecomputationDropsTheSame) {
  const Tensor qkv = normal({2, 6, 3, 2, 8});
  const auto run = [&](bool again) {
    manual_seed(11);
    const Tensor leaf = qkv.detach().requires_grad_();
    const auto block = [](const Inputs& x) { return attention_packed(x[0], {.dropout = 0.4}); };
    const Tensor y = again ? checkpoint(block, {leaf}) : block({leaf});
    dropout(y, 0.5).backward(ones_like(y));  // draws behind the block
    return leaf.grad().to_vector<float>();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Attention, ACapturedStepDropsAsEagerStepsDo) {
  for (const DeviceKind kind : tests::test_devices()) {
    if (kind == DeviceKind::cpu) continue;  // has no graphs
    const Device device{kind, 0};
    const Tensor values = normal({1, 70, 3, 2, 64}, 0, 1, DType::bf16, device);
    const auto run = [&](bool graphed) {
      manual_seed(11);
      const Tensor qkv = values.clone().requires_grad_(), seen = Tensor::zeros({1, 70, 2, 64}, DType::bf16, device);
      const auto step = [&] {
        qkv.zero_grad();
        const Tensor y = attention_packed(qkv, {.causal = true, .dropout = 0.3});
        seen.copy_(y.detach());
        y.backward(ones_like(y));
      };
      Graph graph;
      if (graphed) graph.capture(device, step);
      std::vector<std::vector<float>> results;
      for (int i = 0; i < 3; ++i) {
        graphed ? graph.replay() : step();
        results.push_back(seen.to_vector<float>());
        results.push_back(qkv.grad().to_vector<float>());
      }
      EXPECT_NE(results[0], results[2]) << "each step drops other weights";
      return results;
    };
    EXPECT_EQ(run(true), run(false));
  }
}

TEST(Attention, AMaskChangedBeforeBackwardIsAnError) {
  const Tensor qkv = normal({1, 4, 3, 1, 8}).requires_grad_(), lengths = Tensor::full({1}, 3, DType::i64);
  const Tensor y = attention_packed(qkv, {.key_lengths = lengths});
  lengths.fill_(2);
  EXPECT_THAT([&] { y.backward(ones_like(y)); }, ThrowsMessage<Error>(HasSubstr("attention_packed")));
}

#define EXPECT_ERROR(call, text) EXPECT_THAT([&] { call; }, ThrowsMessage<Error>(HasSubstr(text)))

TEST(Attention, Errors) {
  const Tensor q = Tensor::zeros({2, 5, 3, 8}), k = Tensor::zeros({2, 7, 3, 8}), wide = Tensor::zeros({1, 2, 1, 257});
  EXPECT_ERROR(attention(q, k, q),
               "attention: expected q [B, N, H, D], k and v [B, M, G, D], got f32[2,5,3,8] on cpu, f32[2,7,3,8] on "
               "cpu, f32[2,5,3,8] on cpu");
  EXPECT_ERROR(attention(q, Tensor(), q), "attention: expected q [B, N, H, D], k and v [B, M, G, D], got f32[2,5,3,8]");
  EXPECT_ERROR(attention(q, k.to(DType::f64), k),
               "attention: expected one floating dtype, got f32[2,5,3,8] on cpu, f64");
  EXPECT_ERROR(attention(wide, wide, wide), "attention: expected 1 to 256 channels per head, got 257");
  EXPECT_ERROR(attention(q, k, k, {.scale = 0}), "attention: expected a positive scale, got 0");
  for (const int64_t heads : {0, 2, 6}) {
    const Tensor other = Tensor::zeros({2, 7, heads, 8});
    EXPECT_ERROR(
        attention(q, other, other),
        str("attention: expected heads of q that are a multiple of those of k and v, got f32[2,5,3,8] on cpu and "
            "f32[2,7,",
            heads, ",8]"));
  }
  for (const int64_t window : {0, -3})
    EXPECT_ERROR(attention(q, k, k, {.causal = true, .window = window}),
                 str("attention: expected a window of at least 1 key, got ", window));
  EXPECT_ERROR(attention(q, k, k, {.window = 4}),
               "attention: expected `causal` with a window, got a window of 4 without");
  EXPECT_ERROR(attention_packed(Tensor::zeros({1, 2, 3, 1, 8}), {.window = 4}),
               "attention_packed: expected `causal` with a window, got a window of 4 without");
  EXPECT_ERROR(attention(q, k, k, {.dropout = 1.5}), "attention: expected dropout in [0, 1], got 1.5");
  EXPECT_ERROR(attention(q, k, k, {.key_lengths = Tensor::zeros({3}, DType::i64)}),
               "attention: expected key_lengths i64[2] on cpu, got i64[3] on cpu");
  EXPECT_ERROR(attention(q, k, k, {.key_mask = Tensor::zeros({2, 5}, DType::boolean)}),
               "attention: expected key_mask bool[2,7] on cpu, got bool[2,5] on cpu");
  for (const int64_t length : {9, -1})
    EXPECT_ERROR(attention(q, k, k, {.key_lengths = Tensor::from<int64_t>({7, length})}),
                 str("attention: expected key_lengths from 0 to 7, got ", length, " for batch entry 1"));
  EXPECT_ERROR(attention_packed(Tensor::zeros({1, 2, 3, 1, 8}), {.key_lengths = Tensor::from<int64_t>({3})}),
               "attention_packed: expected key_lengths from 0 to 2, got 3 for batch entry 0");
  EXPECT_ERROR(attention_packed(q), "attention_packed: expected qkv [B, N, 3, H, D], got f32[2,5,3,8] on cpu");
  EXPECT_ERROR(attention_packed(Tensor::zeros({1, 2, 3, 1, 8}, DType::i64)),
               "attention_packed: expected a floating dtype, got i64[1,2,3,1,8]");
}

}  // namespace
}  // namespace weft::test
