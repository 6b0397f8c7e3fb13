// SPDX-License-Identifier: Apache-2.0
#include "core/autocast.h"

#include <gmock/gmock.h>

#include "core/autograd.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"

namespace weft {
namespace {

TEST(Autocast, ProductsAreLowAndSumsAreWide) {
  const Autocast low(DType::bf16);
  const Tensor x = normal({4, 6}), w = normal({3, 6}), b = normal({3});
  EXPECT_EQ(linear(x, w, b).dtype(), DType::bf16);
  EXPECT_EQ(matmul(x, w.transpose(0, 1)).dtype(), DType::bf16);
  EXPECT_EQ(conv2d(normal({1, 4, 4, 2}), normal({3, 3, 3, 2})).dtype(), DType::bf16);
  const Tensor y = linear(x, w, b);
  EXPECT_EQ(sum(y).dtype(), DType::f32);
  EXPECT_EQ(softmax(y).dtype(), DType::f32);
  EXPECT_EQ(cross_entropy(y, Tensor::zeros({4}, DType::i64)).dtype(), DType::f32);
  const Autocast off(DType::f32);
  EXPECT_EQ(linear(x, w, b).dtype(), DType::f32);
}

TEST(Autocast, WeightGradientsComeInFullPrecision) {
  // The sum of 4,096 products in bf16 would be wrong by about 1/256; the gradient is accumulated and stored in f32.
  const Tensor x = Tensor::ones({4096, 1}), w = Tensor::ones({1, 1}).requires_grad_();
  Tensor y;
  {
    const Autocast low(DType::bf16);
    y = linear(x, w);
  }
  y.backward(Tensor::full({4096, 1}, 1.0078125, DType::bf16));
  EXPECT_EQ(w.grad().dtype(), DType::f32);
  EXPECT_EQ(w.grad().item(), 4128);
}

TEST(Autocast, LeavesDoublesAlone) {
  const Autocast low(DType::bf16);
  EXPECT_EQ(matmul(Tensor::ones({2, 2}, DType::f64), Tensor::ones({2, 2}, DType::f64)).dtype(), DType::f64);
}

TEST(Autocast, Errors) {
  EXPECT_THAT([] { Autocast guard(DType::i64); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("autocast: expected bf16, f16 or f32 (off), got i64")));
}

}  // namespace
}  // namespace weft
