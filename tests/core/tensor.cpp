// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/layers/linear.h"
#include "core/ops/reduce.h"
#include "tests/support/devices.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Tensor, Creation) {
  EXPECT_THAT(Tensor::arange(4).to_vector<int64_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Tensor::arange(3, DType::f32, {}, 1, 0.5).to_vector<float>(), ElementsAre(1, 1.5, 2));
  EXPECT_THAT(Tensor::full({2}, 2.0, DType::i64).to_vector<int64_t>(), ElementsAre(2, 2));
  EXPECT_EQ(Tensor::zeros({0, 3}).numel(), 0);
  EXPECT_EQ(Tensor::full({}, 3).item(), 3);
  EXPECT_THAT(
      [] {
        Tensor::from<float>({1, 2, 3}, {2});
      },
      ThrowsMessage<Error>(HasSubstr("tensor: 3 values do not fill [2]")));
  EXPECT_THAT(
      [] {
        Tensor::zeros({2, -1});
      },
      ThrowsMessage<Error>(HasSubstr("sizes must not be negative, got [2,-1]")));
  EXPECT_THAT(
      [] {
        Tensor::zeros({int64_t{1} << 40, int64_t{1} << 40});
      },
      ThrowsMessage<Error>(HasSubstr("too large")));
  EXPECT_THAT([] { Tensor::zeros({2}).item(); },
              ThrowsMessage<Error>(HasSubstr("item: expected one element, got f32[2]")));
}

TEST(Tensor, WrapsMemoryOfOthersAndReleasesIt) {
  std::vector<float> memory{1, 2, 3};
  bool released = false;
  {
    const Tensor x = Tensor::wrap(memory.data(), {3}, DType::f32, {}, [&] { released = true; });
    x.mul_(2);
    const Tensor part = x.slice(0, 1, 2);
  }
  EXPECT_TRUE(released);
  EXPECT_THAT(memory, ElementsAre(2, 4, 6));
}

TEST(Tensor, ViewsShareMemory) {
  const Tensor x = Tensor::arange(24, DType::f32).reshape({2, 3, 4});
  x.select(0, 1).transpose(0, 1).select(0, 3).fill_(-1);
  EXPECT_THAT(x.select(-1, 3).reshape({6}).to_vector<float>(), ElementsAre(3, 7, 11, -1, -1, -1));
  EXPECT_EQ(x.flatten(1).sizes(), (Shape{2, 12}));
  EXPECT_EQ(x.reshape({4, -1}).raw_data(), x.raw_data());
  // A transposed matrix cannot be flattened without a copy; cutting its rows can.
  EXPECT_NE(x.transpose(1, 2).reshape({24}).raw_data(), x.raw_data());
  EXPECT_EQ(x.transpose(1, 2).reshape({2, 2, 2, 3}).raw_data(), x.raw_data());
  EXPECT_EQ(x.unsqueeze(1).expand({2, 5, 3, 4}).raw_data(), x.raw_data());
}

TEST(Tensor, ReshapeAgreesWithCopyForAnyStrides) {
  const Tensor x = Tensor::arange(2 * 3 * 4 * 5).reshape({2, 3, 4, 5});
  const Shape orders[] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 2, 3}, {0, 3, 1, 2}, {2, 3, 0, 1}};
  const Shape targets[] = {{120},     {6, 20},    {2, 60},        {5, 24}, {1, 2, 3, 1, 4, 5, 1},
                           {4, 5, 6}, {20, 3, 2}, {2, 3, 2, 2, 5}};
  for (const Shape& order : orders)
    for (const Shape& target : targets) {
      const Tensor view = x.permute(order), dense = view.clone();
      EXPECT_EQ(view.reshape(target).to_vector<int64_t>(), dense.reshape(target).to_vector<int64_t>())
          << order << target;
    }
}

TEST(Tensor, ViewErrors) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_THAT([&] { x.reshape({4}); },
              ThrowsMessage<Error>(HasSubstr("reshape: f32[2,3] on cpu has 6 elements, [4] has 4")));
  EXPECT_THAT([&] { x.reshape({-1, -1}); }, ThrowsMessage<Error>(HasSubstr("at most one -1, got [-1,-1]")));
  EXPECT_THAT(
      [&] {
        x.reshape({-1, 4});
      },
      ThrowsMessage<Error>(HasSubstr("reshape: f32[2,3] on cpu does not fit [-1,4]")));
  EXPECT_THAT(
      [&] {
        x.permute({0, 0});
      },
      ThrowsMessage<Error>(HasSubstr("permute: dimension 0 stands twice in [0,0]")));
  EXPECT_THAT([&] { x.permute({0}); }, ThrowsMessage<Error>(HasSubstr("permute: expected an order of 2 dimensions")));
  EXPECT_THAT(
      [&] { x.slice(1, 2, 2); },
      ThrowsMessage<Error>(HasSubstr("slice: 2 elements from 2 by 1 do not lie in dimension 1 of f32[2,3] on cpu")));
  EXPECT_THAT([&] { x.slice(1, 0, 1, 0); }, ThrowsMessage<Error>(HasSubstr("slice: expected a step of at least 1")));
  EXPECT_THAT([&] { x.select(0, 2); }, ThrowsMessage<Error>(HasSubstr("select: index 2 is outside dimension 0")));
  EXPECT_THAT([&] { x.squeeze(0); }, ThrowsMessage<Error>(HasSubstr("squeeze: expected size 1 in dimension 0")));
  EXPECT_THAT(
      [&] {
        x.expand({3, 3});
      },
      ThrowsMessage<Error>(HasSubstr("expand: f32[2,3] on cpu does not stretch to [3,3]")));
  EXPECT_THAT([&] { x.flatten(1, 0); }, ThrowsMessage<Error>(HasSubstr("flatten: expected first <= last")));
}

TEST(Tensor, DtypesConvert) {
  const Tensor x = Tensor::from<float>({-1.5f, 0, 2.7f});
  EXPECT_THAT(x.to(DType::i64).to_vector<int64_t>(), ElementsAre(-1, 0, 2));
  EXPECT_THAT(x.to(DType::boolean).to_vector<int64_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(x.to(DType::bf16).to(DType::f32).to_vector<float>(), ElementsAre(-1.5f, 0, 2.703125f));
  EXPECT_TRUE(x.to(DType::f32).is_same(x));
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_FALSE(x.clone().is_same(x));
  EXPECT_TRUE(x.to(Device{}).is_same(x));
}

TEST(Tensor, BoolsGoInAndOut) {
  const Tensor mask = Tensor::from<bool>({true, false, true});
  EXPECT_EQ(mask.dtype(), DType::boolean);
  EXPECT_EQ(mask.to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(Tensor::from<float>({0.5f, 0, NAN, -2}).to_vector<bool>(), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(Tensor::from<int64_t>({int64_t{1} << 40, 0}).to_vector<bool>(), (std::vector<bool>{true, false}));
}

TEST(Tensor, AsAConditionIsItsOnlyElement) {
  const auto taken = [](const Tensor& x) { return x ? 1 : 0; };
  EXPECT_EQ(taken(isnan(Tensor::full({}, 1))), 0);
  EXPECT_EQ(taken(isnan(Tensor::full({}, NAN))), 1);
  EXPECT_EQ(taken(Tensor::zeros({1, 1})), 0);
  EXPECT_EQ(taken(Tensor::full({}, NAN)), 1);  // not 0
  EXPECT_EQ(taken(Tensor::full({}, (int64_t{1} << 53) + 1, DType::i64)), 1);
  const Tensor yes = Tensor::ones({}), no = Tensor::zeros({});
  EXPECT_FALSE(!yes);
  EXPECT_TRUE(yes && !no);
  EXPECT_TRUE(no || yes);
  EXPECT_EQ(gt(yes, 5.0) ? 1 : 0, 0);
  EXPECT_FALSE(yes == no);
  int rounds = 0;
  for (Tensor left = Tensor::full({}, 3); left; left = left - 1) ++rounds;
  EXPECT_EQ(rounds, 3);
  EXPECT_THAT(
      [&] {
        taken(Tensor::ones({2, 3}));
      },
      ThrowsMessage<Error>("condition: expected one element, got f32[2,3] on cpu. any() or all() of them is one"));
  EXPECT_THAT([&] { taken(Tensor::ones({0})); }, ThrowsMessage<Error>(HasSubstr("got f32[0] on cpu")));
  EXPECT_THAT(
      [&] { taken({}); },
      ThrowsMessage<Error>("condition: expected a tensor of one element, got none. defined() tells whether there "
                           "is one"));
}

TEST(Tensor, NarrowIsASliceByItsLength) {
  const Tensor x = Tensor::arange(6);
  EXPECT_THAT(x.narrow(0, 2, 3).to_vector<int64_t>(), ElementsAre(2, 3, 4));
}

TEST(Tensor, PromotionInOps) {
  const Tensor i = Tensor::from<int64_t>({7, 2}), b = Tensor::from<int64_t>({1, 0}).to(DType::boolean);
  EXPECT_EQ((i + i).dtype(), DType::i64);
  EXPECT_EQ((b + b).dtype(), DType::i64);
  EXPECT_EQ((i * 1.5).dtype(), DType::f32);
  EXPECT_THAT((i / Tensor::from<int64_t>({2, 4})).to_vector<float>(), ElementsAre(3.5f, 0.5f));
  EXPECT_EQ((Tensor::ones({2}, DType::bf16) * 2.5).dtype(), DType::bf16);
  EXPECT_EQ((Tensor::ones({2}, DType::bf16) - Tensor::ones({2})).dtype(), DType::f32);
}

TEST(Tensor, InPlace) {
  const Tensor x = Tensor::arange(6, DType::f32).reshape({2, 3});
  x.add_(Tensor::ones({3}, DType::f64), 10).mul_(0.5);
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(5, 5.5, 6, 6.5, 7, 7.5));
  x.copy_(Tensor::from<int64_t>({1, 2, 3}));
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(
      [&] {
        x.add_(Tensor::ones({2, 2, 3}));
      },
      ThrowsMessage<Error>(HasSubstr("add_: f32[2,2,3] on cpu does not fit into f32[2,3] on cpu")));
  EXPECT_THAT([&] { x.copy_(Tensor::ones({4})); }, ThrowsMessage<Error>(HasSubstr("does not stretch to [2,3]")));
  EXPECT_THAT([] { Tensor::ones({2}).requires_grad_().mul_(2); },
              ThrowsMessage<Error>(HasSubstr("mul_: f32[2] on cpu needs a gradient and cannot be changed in place")));
  const NoGrad no_grad;
  Tensor::ones({2}).requires_grad_().mul_(2);
}

TEST(Tensor, InPlaceFromItsOwnMemory) {
  const auto counted = [] { return Tensor::arange(9, DType::f32).reshape({3, 3}); };
  const Tensor turned = counted(), with_turned = counted(), with_row = counted(), twice = counted();
  turned.copy_(turned.transpose(0, 1));
  EXPECT_THAT(turned.to_vector<float>(), ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, 8));
  with_turned.add_(with_turned.transpose(0, 1));
  EXPECT_THAT(with_turned.to_vector<float>(), ElementsAre(0, 4, 8, 4, 8, 12, 8, 12, 16));
  with_row.add_(with_row.slice(0, 0, 1));
  EXPECT_THAT(with_row.to_vector<float>(), ElementsAre(0, 2, 4, 3, 5, 7, 6, 8, 10));
  twice.add_(twice);
  EXPECT_THAT(twice.to_vector<float>(), ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16));
}

TEST(Tensor, InPlaceWhereElementsAreOneOrNumbersDoNotFit) {
  const Tensor one = Tensor::zeros({1}).expand({3}), whole = Tensor::from<int64_t>({7});
  const std::string text = ": the elements of f32[3] on cpu along dimension 0 are one in memory. Change its clone()";
  EXPECT_THAT([&] { one.add_(Tensor::ones({3})); }, ThrowsMessage<Error>("add_" + text));
  EXPECT_THAT([&] { one.mul_(2); }, ThrowsMessage<Error>("mul_" + text));
  EXPECT_THAT([&] { one.copy_(Tensor::ones({3})); }, ThrowsMessage<Error>("copy_" + text));
  EXPECT_THAT([&] { whole.add_(Tensor::full({1}, 0.5)); },
              ThrowsMessage<Error>("add_: expected whole numbers for i64[1] on cpu, got 1 times f32[1] on cpu"));
  EXPECT_THAT([&] { whole.add_(whole, 0.5); }, ThrowsMessage<Error>(HasSubstr("got 0.5 times i64[1]")));
  EXPECT_THAT([&] { whole.mul_(0.5); },
              ThrowsMessage<Error>("mul_: expected a whole number for i64[1] on cpu, got 0.5"));
  EXPECT_THAT(whole.add_(whole, 2).mul_(2).to_vector<int64_t>(), ElementsAre(42));
}

TEST(Tensor, InPlaceLosesNoGradient) {
  const Tensor x = Tensor::zeros({2}), w = Tensor::ones({2}).requires_grad_();
  const std::string text =
      ": f32[2] on cpu needs a gradient, and changes in place are not recorded. Use its detach(), or an op that "
      "returns "
      "a new tensor";
  EXPECT_THAT([&] { x.copy_(w); }, ThrowsMessage<Error>("copy_" + text));
  EXPECT_THAT([&] { x.add_(w); }, ThrowsMessage<Error>("add_" + text));
  x.copy_(w.detach());
  const NoGrad no_grad;
  x.add_(w);
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(2, 2));
}

TEST(Tensor, SetDataPointsElsewhere) {
  const Tensor flat = Tensor::arange(6, DType::f32), x = Tensor::zeros({2, 2});
  x.set_data(flat.slice(0, 1, 4).reshape({2, 2}));
  flat.fill_(3);
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT([&] { x.set_data(flat); },
              ThrowsMessage<Error>(HasSubstr("set_data: expected [2,2], got f32[6] on cpu")));
}

TEST(Tensor, WithoutMemoryIsAnErrorInEveryUse) {
  const Tensor sharded = Tensor::wrap(nullptr, {2, 3}, DType::f32, {});
  const std::string text = "f32[2,3] on cpu has no memory now. A sharded parameter has it only while its unit runs";
  EXPECT_THAT([&] { sharded* sharded; }, ThrowsMessage<Error>(HasSubstr("mul: " + text)));
  EXPECT_THAT([&] { sharded.to_vector<float>(); }, ThrowsMessage<Error>(HasSubstr(text)));
  EXPECT_THAT([&] { sharded.slice(0, 1, 1); }, ThrowsMessage<Error>(HasSubstr("slice: " + text)));
  EXPECT_THAT([&] { sum(sharded); }, ThrowsMessage<Error>(HasSubstr("sum: " + text)));
  EXPECT_THAT([&] { linear(Tensor::ones({1, 3}), sharded); }, ThrowsMessage<Error>(HasSubstr(text)));
  EXPECT_THAT([&] { sharded.detach(); }, ThrowsMessage<Error>(HasSubstr(text)));
  EXPECT_EQ(Tensor::wrap(nullptr, {0, 3}, DType::f32, {}).to_vector<float>().size(), 0u);
}

TEST(Tensor, AnUndefinedOneNamesWhatWasAsked) {
  const Tensor none;
  const std::string text =
      ": expected a tensor, got none. It was default-constructed, moved from, or stands for an argument that was left "
      "out: defined() tells";
  const auto says = [&](const char* method, const std::function<void()>& ask) {
    EXPECT_THAT(ask, ThrowsMessage<Error>(method + text));
  };
  says("sizes", [&] { none.sizes(); });
  says("size", [&] { none.size(0); });
  says("stride", [&] { none.stride(0); });
  says("dim", [&] { none.dim(); });
  says("dtype", [&] { none.dtype(); });
  says("device", [&] { none.device(); });
  says("numel", [&] { none.numel(); });
  says("is_contiguous", [&] { none.is_contiguous(); });
  says("dim", [&] { none.dims<2>(); });
  says("view", [&] { none.view(); });
  says("storage", [&] { none.storage(); });
  EXPECT_THAT([&] { none.data<float>(); }, ThrowsMessage<Error>(testing::StartsWith("data")));  // or data<float>
  says("raw_data", [&] { none.raw_data(); });
  says("numel", [&] { none.item(); });
  says("device", [&] { none.to_vector<float>(); });
  says("is_leaf", [&] { none.is_leaf(); });
  says("grad", [&] { none.grad(); });
  says("zero_grad", [&] { none.zero_grad(); });
  says("detach", [&] { none.detach(); });
  says("dtype", [&] { none.zero_(); });
  EXPECT_FALSE(none.requires_grad());
  for (const std::function<void()>& use :
       std::vector<std::function<void()>>{[&] { none.set_grad(Tensor::ones({1})); },
                                          [&] { none.set_grad({}); },
                                          [&] { none.set_data(Tensor::ones({1})); },
                                          [&] { Tensor::ones({1}).set_data(none); },
                                          [&] { none.requires_grad_(); },
                                          [&] { none.requires_grad_(false); },
                                          [&] { none.copy_(Tensor::ones({1})); },
                                          [&] { none.add_(Tensor::ones({1})); },
                                          [&] { none.mul_(2); },
                                          [&] { none.reshape({1}); },
                                          [&] { none.flatten(); },
                                          [&] { none.squeeze(0); },
                                          [&] { none.unsqueeze(0); },
                                          [&] { none.permute({0}); },
                                          [&] { none.transpose(0, 1); },
                                          [&] { none.slice(0, 0, 1); },
                                          [&] { none.select(0, 0); },
                                          [&] { none.expand({1}); },
                                          [&] { none.to(DType::f32); },
                                          [&] { none.to(Device{}); },
                                          [&] { none.contiguous(); },
                                          [&] { none.clone(); },
                                          [&] { none.backward(); },
                                          [&] { none.register_hook({}); },
                                          [&] { none.register_accumulated_hook({}); },
                                          [&] { none.nbytes(); },
                                          [&] { none.is_floating(); },
                                          [&] { none.queue(); },
                                          [&] { empty_like(none); },
                                          [&] { zeros_like(none); }})
    EXPECT_THROW(use(), Error);
  EXPECT_THAT([&] { sum(none); }, ThrowsMessage<Error>(HasSubstr("none")));
}

class TensorOn : public testing::TestWithParam<DeviceKind> {};

// A GPU with the host's page tables (GH200) reads pageable memory itself, when the copy runs.
TEST_P(TensorOn, ACopyLeavesItsSourceToTheHost) {
  const Tensor source = Tensor::ones({1000}), there = Tensor::zeros({1000}, DType::f32, {GetParam(), 0});
  there.copy_(source);
  source.fill_(2);
  EXPECT_EQ(there.to_vector<float>(), std::vector<float>(1000, 1));
}

INSTANTIATE_TEST_SUITE_P(Devices, TensorOn, testing::ValuesIn(tests::test_devices()),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace weft
