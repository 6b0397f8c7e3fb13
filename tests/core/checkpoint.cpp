// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"

namespace weft {
namespace {

/// Gradients of a small net, with or without recomputation.
std::vector<std::vector<float>> gradients(bool with_checkpoint, bool low) {
  manual_seed(3);
  const Tensor x = normal({6, 5}).requires_grad_(), w = normal({4, 5}).requires_grad_(),
               v = normal({2, 4}).requires_grad_();
  const auto block = [&](const std::vector<Tensor>& in) { return dropout(relu(linear(in[0], w)), 0.5); };
  Tensor y;
  if (low) {
    const Autocast autocast(DType::bf16);
    y = linear(with_checkpoint ? checkpoint(block, {x}) : block({x}), v);
  } else {
    y = linear(with_checkpoint ? checkpoint(block, {x}) : block({x}), v);
  }
  const Tensor later = dropout(y.to(DType::f32), 0.5);  // draws after the block, in the forward
  sum(later * later).backward();
  const std::vector<float> next = uniform({4}).to_vector<float>();
  return {x.grad().to_vector<float>(), w.grad().to_vector<float>(), v.grad().to_vector<float>(), next};
}

TEST(Checkpoint, SameGradientsBitwiseWithDropout) { EXPECT_EQ(gradients(true, false), gradients(false, false)); }

TEST(Checkpoint, RepeatsAutocast) { EXPECT_EQ(gradients(true, true), gradients(false, true)); }

TEST(Checkpoint, RunsTwiceAndKeepsNothing) {
  int runs = 0;
  const Tensor x = Tensor::ones({4}).requires_grad_();
  const Tensor y = checkpoint(
      [&](const std::vector<Tensor>& in) {
        EXPECT_EQ(grad_enabled(), runs == 1);
        EXPECT_EQ(recomputing(), runs == 1);
        ++runs;
        return in[0] * in[0];
      },
      {x});
  EXPECT_EQ(runs, 1);
  sum(y).backward();
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(recomputing());
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(4, 2.0f));
}

TEST(Checkpoint, ReachesParametersWhenNoInputWantsAGradient) {
  const Tensor x = Tensor::ones({2, 3}), w = Tensor::ones({1, 3}).requires_grad_();
  sum(checkpoint([&](const std::vector<Tensor>& in) { return linear(in[0], w); }, {x})).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(3, 2.0f));
}

TEST(Checkpoint, RunningStatisticsMoveOnce) {
  const Tensor x = normal({8, 3}).requires_grad_(), mean = Tensor::zeros({3}), var = Tensor::ones({3});
  const auto norm = [&](const std::vector<Tensor>& in) {
    return batch_norm(in[0], {}, {}, mean, var, {.training = true});
  };
  const Tensor y = checkpoint(norm, {x});
  const std::vector<float> after_forward = mean.to_vector<float>();
  sum(y * y).backward();
  EXPECT_EQ(mean.to_vector<float>(), after_forward);
  norm({x});
  EXPECT_NE(mean.to_vector<float>(), after_forward);
}

TEST(Checkpoint, Nested) {
  const Tensor x = Tensor::full({2}, 3).requires_grad_();
  const auto inner = [](const std::vector<Tensor>& in) { return in[0] * in[0]; };
  const Tensor y =
      checkpoint([&](const std::vector<Tensor>& in) { return checkpoint(inner, {checkpoint(inner, in)}); }, {x});
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(2, 108.0f));
}

TEST(Checkpoint, Errors) {
  EXPECT_THAT(
      [] { checkpoint([](const std::vector<Tensor>&) { return Tensor(); }, {}); },
      testing::ThrowsMessage<Error>(testing::HasSubstr("checkpoint: expected at least one defined input tensor")));
}

}  // namespace
}  // namespace weft
