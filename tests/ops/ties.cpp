// SPDX-License-Identifier: Apache-2.0
// Where two elements are the largest alike the slope jumps, and central differences say nothing: what PyTorch does.
#include <gtest/gtest.h>

#include "core/autograd.h"
#include "core/ops/max.h"
#include "core/ops/maximum.h"
#include "core/ops/min.h"

namespace weft {
namespace {

using Numbers = std::vector<double>;

Tensor leaf(const Numbers& values) { return Tensor::from(values).requires_grad_(); }

TEST(Ties, MaximumAndMinimumGiveEachHalf) {
  for (const auto f : {&maximum, &minimum}) {
    const Tensor a = leaf({2, 5, -1}), b = leaf({2, 3, -1});
    f(a, b).backward(Tensor::from(Numbers{8, 1, 4}));
    const bool larger = f == &maximum;
    EXPECT_EQ(a.grad().to_vector<double>(), (Numbers{4, larger ? 1.0 : 0.0, 2}));
    EXPECT_EQ(b.grad().to_vector<double>(), (Numbers{4, larger ? 0.0 : 1.0, 2}));
  }
}

TEST(Ties, MaxAndMinShareAmongAllThatAreChosen) {
  const Tensor x = leaf({7, 1, 7, 1, 7, 3});
  max(x).backward(Tensor::full({}, 6, DType::f64));
  EXPECT_EQ(x.grad().to_vector<double>(), (Numbers{2, 0, 2, 0, 2, 0}));
  x.zero_grad();
  min(x).backward(Tensor::full({}, 6, DType::f64));
  EXPECT_EQ(x.grad().to_vector<double>(), (Numbers{0, 3, 0, 3, 0, 0}));
}

}  // namespace
}  // namespace weft
