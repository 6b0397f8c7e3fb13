// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/autograd.h"
#include "core/dlpack.h"
#include "core/flat_parameters.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "tests/support/error_text.h"

// Whoever holds a tensor that shares memory with a parameter or a gradient sees what PyTorch shows: the memory may have
// moved into flat buffers since.

namespace weft {
namespace {

using ::testing::HasSubstr;

using Values = std::vector<float>;

Tensor leaf(const Values& values) { return Tensor::from(values).requires_grad_(); }
Values values(const Tensor& tensor) { return tensor.detach().to_vector<float>(); }

TEST(Handles, OfWeightsFollowThemIntoFlatBuffers) {
  const Tensor w = Tensor::from<float>({1, 2, 3, 4}, {2, 2}).requires_grad_(), other = leaf({5});
  const Tensor detached = w.detach(), row = w.detach().select(0, 1), turned = w.detach().transpose(0, 1), same = w;
  const auto first = FlatParameters::of({{"w", w}, {"other", other}});
  {
    const NoGrad no_grad;
    first->master().fill_(7);
    w.select(0, 1).fill_(8);
  }
  EXPECT_EQ(values(detached), (Values{7, 7, 8, 8}));
  EXPECT_EQ(values(row), (Values{8, 8}));
  EXPECT_EQ(values(turned), (Values{7, 8, 7, 8}));
  EXPECT_EQ(values(same), (Values{7, 7, 8, 8}));
  row.fill_(9);
  EXPECT_EQ(values(w), (Values{7, 7, 9, 9}));
  EXPECT_EQ(values(first->master().slice(0, 0, 4)), (Values{7, 7, 9, 9}));
}

TEST(Handles, FollowFromOneFlatBufferToTheNext) {
  const Tensor w = leaf({1, 2}), other = leaf({3});
  auto first = FlatParameters::of({{"w", w}});
  const Tensor held = w.detach(), master = first->master();
  first = nullptr;
  const auto second = FlatParameters::of({{"other", other}, {"w", w}});
  {
    const NoGrad no_grad;
    w.fill_(4);
  }
  EXPECT_EQ(values(held), (Values{4, 4}));
  EXPECT_EQ(values(second->master().slice(0, 32, 2)), (Values{4, 4}));
  second->add({{"more", leaf(Values(40, 6))}});
  {
    const NoGrad no_grad;
    w.fill_(5);
  }
  EXPECT_EQ(values(held), (Values{5, 5}));
  EXPECT_EQ(values(second->master().slice(0, 32, 2)), (Values{5, 5}));
  EXPECT_EQ(values(second->master().slice(0, 64, 40)), Values(40, 6));
}

TEST(Handles, ABackwardOfBeforeTheMoveIsRight) {
  const Tensor w = leaf({2, 3});
  const Tensor loss = sum(w * w);
  const auto flat = FlatParameters::of({{"w", w}});
  loss.backward();
  EXPECT_EQ(values(w.grad()), (Values{4, 6}));
}

TEST(Handles, AWriteToOneParameterIsNoneToAnother) {
  const Tensor w = leaf({2, 3}), other = leaf({1});
  const auto flat = FlatParameters::of({{"w", w}, {"other", other}});
  const uint32_t before = w.storage()->version(), whole = flat->master().storage()->version();
  {
    const NoGrad no_grad;
    other.fill_(2);
  }
  EXPECT_EQ(w.storage()->version(), before);
  EXPECT_NE(flat->master().storage()->version(), whole);
  flat->weights_changed(/*copied=*/false);
  EXPECT_NE(w.storage()->version(), before);
}

class Gradients : public ::testing::TestWithParam<bool> {
 protected:
  /// Flat or not.
  Tensor weight() {
    const Tensor w = leaf({2, 3});
    if (GetParam()) flat_ = FlatParameters::of({{"other", leaf({1})}, {"w", w}});
    return w;
  }
  std::shared_ptr<FlatParameters> flat_;
};

TEST_P(Gradients, ThatAreHeldKeepTheirValuesAfterZeroGrad) {
  const Tensor w = weight();
  sum(w).backward();
  const Tensor held = w.grad(), part = held.slice(0, 1, 1);
  sum(w * 2.0).backward();
  EXPECT_EQ(values(held), (Values{3, 3})) << "sums are in place";
  w.zero_grad();
  EXPECT_EQ(values(w.grad()), (Values{0, 0}));
  sum(w * w).backward();
  EXPECT_EQ(values(held), (Values{3, 3}));
  EXPECT_EQ(values(part), (Values{3}));
  EXPECT_EQ(values(w.grad()), (Values{4, 6}));
  if (flat_) {
    EXPECT_EQ(values(flat_->gradient().slice(0, 32, 2)), (Values{4, 6}));
  }
}

TEST_P(Gradients, ThatOneHeldPartOfKeepTheirValues) {
  const Tensor w = weight();
  sum(w).backward();
  const Tensor part = w.grad().slice(0, 1, 1);
  w.zero_grad();
  sum(w * w).backward();
  EXPECT_EQ(values(part), (Values{1}));
}

TEST_P(Gradients, ThatNobodyHoldsKeepTheirMemory) {
  const Tensor w = weight();
  sum(w).backward();
  const void* const memory = w.grad().raw_data();
  w.zero_grad();
  sum(w).backward();
  EXPECT_EQ(w.grad().raw_data(), memory);
}

INSTANTIATE_TEST_SUITE_P(FlatOrNot, Gradients, ::testing::Bool());

TEST(Handles, OfAGradientFollowIntoFlatBuffers) {
  const Tensor w = leaf({2, 3});
  sum(w).backward();
  const Tensor held = w.grad();
  const auto flat = FlatParameters::of({{"other", leaf({1})}, {"w", w}});
  sum(w).backward();
  EXPECT_EQ(values(held), (Values{2, 2}));
}

TEST(Handles, MemoryThatCannotMoveIsAnError) {
  const auto text = [](const Tensor& w) { return error_text([&] { FlatParameters::of({{"w", w}}); }); };
  float outside[2] = {1, 2};
  EXPECT_EQ(
      text(Tensor::wrap(outside, {2}, DType::f32, {}).requires_grad_()),
      "flat_parameters: parameter 'w' f32[2] on cpu cannot move into flat memory: another library holds its memory "
      "(Tensor::wrap, DLPack). Give it a clone() of its own");
  const Tensor shared = Tensor::from<float>({1, 2});
  const auto release = [](DLManagedTensor* managed) { from_dlpack(managed); };
  release(to_dlpack(shared));
  EXPECT_THAT(text(shared.detach().requires_grad_()), HasSubstr("another library holds its memory"));
  const Tensor large = Tensor::from<float>({1, 2, 3, 4});
  EXPECT_THAT(text(large.slice(0, 1, 2).requires_grad_()),
              HasSubstr("other tensors share its memory, of which it is a part"));
  const Tensor a = leaf({1, 2}), b = a.detach().requires_grad_();
  EXPECT_EQ(error_text([&] {
              FlatParameters::of({{"a", a}, {"b", b}});
            }),
            "flat_parameters: parameter 'b' f32[2] on cpu cannot move into flat memory: another parameter has the same "
            "memory. Give it a clone() of its own");
}

}  // namespace
}  // namespace weft
