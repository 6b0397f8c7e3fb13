// SPDX-License-Identifier: Apache-2.0
// Integers beyond what f32 and f64 hold, and numbers beside tensors of integers, on every device.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr int64_t kFar = (int64_t{1} << 53) + 1, kLeast = std::numeric_limits<int64_t>::min(),
                  kMost = std::numeric_limits<int64_t>::max();

template <class T>
using Values = std::vector<T>;

void expect(const Tensor& y, DType dtype, const Values<int64_t>& values) {
  EXPECT_EQ(y.dtype(), dtype);
  EXPECT_EQ(y.to_vector<int64_t>(), values);
}

void expect(const Tensor& y, const Values<float>& values) {
  EXPECT_EQ(y.dtype(), DType::f32);
  EXPECT_EQ(y.to_vector<float>(), values);
}

class Integers : public testing::Test {
 protected:
  template <class Body>
  void each_device(const Body& body) {
    for (const DeviceKind kind : tests::test_devices()) body(Device{kind, 0});
  }
};

TEST_F(Integers, StayIntegersBesideAWholeNumber) {
  each_device([](Device device) {
    const Tensor x = Tensor::from(Values<int64_t>{16777217, -16777217, kFar}, device);
    expect(x + 2, DType::i64, {16777219, -16777215, kFar + 2});
    expect(2 + x, DType::i64, {16777219, -16777215, kFar + 2});
    expect(x - 2, DType::i64, {16777215, -16777219, kFar - 2});
    expect(2 - x, DType::i64, {-16777215, 16777219, 2 - kFar});
    expect(x * 3, DType::i64, {50331651, -50331651, 3 * kFar});
    expect(-3 * x, DType::i64, {-50331651, 50331651, -3 * kFar});
    expect(x + kFar, DType::i64, {16777217 + kFar, kFar - 16777217, 2 * kFar});
    expect(affine(x, 2, -1), DType::i64, {33554433, -33554435, 2 * kFar - 1});
    expect(clamp(x, -1, kFar - 1), DType::i64, {16777217, -1, kFar - 1});
    expect(add(x, x, 2), DType::i64, {50331651, -50331651, 3 * kFar});
    expect(pow(Tensor::from(Values<int64_t>{3, -3}, device), 35), DType::i64, {50031545098999707, -50031545098999707});
    const Tensor i = Tensor::from(Values<int32_t>{16777217, -7}, device);
    expect(i + 2, DType::i32, {16777219, -5});
    expect(i * -2, DType::i32, {-33554434, 14});
    expect(pow(i.slice(0, 1, 1), 2), DType::i32, {49});
    expect(clamp(i, 0, 16777216), DType::i32, {16777216, 0});
    const Tensor u = Tensor::from(Values<uint8_t>{200, 3}, device);  // they count in i64, where PyTorch's wrap
    expect(u + 100, DType::i64, {300, 103});
    expect(u - 4, DType::i64, {196, -1});
    expect(gt(u, 100) * 2, DType::i64, {2, 0});
  });
}

TEST_F(Integers, BecomeF32BesideAFraction) {
  each_device([](Device device) {
    const Tensor x = Tensor::from(Values<int64_t>{1, -7, 49}, device);
    expect(x + 2.5, {3.5, -4.5, 51.5});
    expect(x * 0.5, {0.5, -3.5, 24.5});
    expect(x * 2.0, {2, -14, 98});  // it is written as a floating number
    expect(x / 2, {0.5, -3.5, 24.5});
    expect(x / 49, {1.0F / 49, -7.0F / 49, 1});  // rounded once
    expect(49 / x, {49, -7, 1});
    expect(pow(x, 0.5).slice(0, 2, 1), {7});
    expect(clamp(x, 0, 2.5), {1, 0, 2.5});
    expect(clamp(x, 0, INFINITY), {1, 0, 49});
    expect(where(gt(x, 0), x, 2.5), {1, 2.5, 49});
    expect(where(gt(x, 0), 0.0, x), {0, -7, 0});
  });
}

TEST_F(Integers, AreComparedWithNumbersExactly) {
  each_device([](Device device) {
    const Tensor x = Tensor::from(Values<int64_t>{kFar - 1, kFar, kMost, kLeast}, device);
    expect(eq(x, kFar), DType::boolean, {0, 1, 0, 0});
    expect(x == static_cast<double>(kFar - 1), DType::boolean, {1, 0, 0, 0});
    expect(x < kFar, DType::boolean, {1, 0, 0, 1});
    expect(x > static_cast<double>(kFar - 1), DType::boolean, {0, 1, 1, 0});
    expect(x < 0x1p63, DType::boolean, {1, 1, 1, 1});
    expect(x == 0x1p63, DType::boolean, {0, 0, 0, 0});
    expect(x >= -0x1p63, DType::boolean, {1, 1, 1, 1});
    expect(x == -0x1p63, DType::boolean, {0, 0, 0, 1});
    expect(x > -INFINITY, DType::boolean, {1, 1, 1, 1});
    expect(x != static_cast<double>(NAN), DType::boolean, {1, 1, 1, 1});
    expect(x <= 0.5, DType::boolean, {0, 0, 0, 1});
    expect(5 < Tensor::from(Values<uint8_t>{4, 5, 6}, device), DType::boolean, {0, 0, 1});
    expect(Tensor::from(Values<uint8_t>{4}, device) > -1, DType::boolean, {1});
    expect(Tensor::from(Values<int32_t>{4}, device) < int64_t{3000000000}, DType::boolean, {1});
    expect(x == x, DType::boolean, {1, 1, 1, 1});
  });
}

TEST_F(Integers, ReductionsAndOrdersAreExact) {
  each_device([](Device device) {
    const Tensor x = Tensor::from(Values<int64_t>{kFar, 1, kFar + 1, kLeast, kLeast + 1, kMost}, device);
    const Tensor few = x.slice(0, 0, 3);
    expect(sum(few), DType::i64, {2 * kFar + 2});
    expect(sum(few.reshape({1, 3}).expand({2, 3}), {0}), DType::i64, {2 * kFar, 2, 2 * kFar + 2});
    expect(cumsum(few, 0), DType::i64, {kFar, kFar + 1, 2 * kFar + 2});
    expect(max(few), DType::i64, {kFar + 1});
    expect(min(x), DType::i64, {kLeast});
    expect(argmax(few, 0), DType::i64, {2});
    expect(argmin(x, 0), DType::i64, {3});
    expect(argmin(Tensor::from(Values<uint8_t>{3, 2, 2}, device), 0, true), DType::i64, {1});
    expect(sort(x).values, DType::i64, {kLeast, kLeast + 1, 1, kFar, kFar + 1, kMost});
    expect(topk(x, 2).values, DType::i64, {kMost, kFar + 1});
    expect(maximum(few, few - 1), DType::i64, {kFar, 1, kFar + 1});
    for (const DType dtype : {DType::u8, DType::boolean, DType::i32})
      expect(sum(Tensor::ones({300}, dtype, device)), DType::i64, {300});
    expect(cumsum(Tensor::full({2}, 200, DType::u8, device), 0), DType::i64, {200, 400});
    expect(mean(Tensor::from(Values<int64_t>{16777217, -16777216}, device)), {0.5});
    expect(concat({few, few}), DType::i64, {kFar, 1, kFar + 1, kFar, 1, kFar + 1});
  });
}

TEST_F(Integers, FilledAndChosenExactly) {
  each_device([](Device device) {
    expect(Tensor::full({2}, kFar, DType::i64, device), DType::i64, {kFar, kFar});
    expect(Tensor::arange(3, DType::i64, device, kFar, -1), DType::i64, {kFar, kFar - 1, kFar - 2});
    expect(Tensor::arange(2, DType::u8, device, 255, -255), DType::u8, {255, 0});
    const Tensor x = Tensor::from(Values<int64_t>{1, 2, 3}, device), mask = x > 1;
    expect(x.clone().fill_(kMost), DType::i64, {kMost, kMost, kMost});
    expect(where(mask, x, kFar), DType::i64, {kFar, 2, 3});
    expect(masked_fill(x, mask, kFar), DType::i64, {1, kFar, kFar});
    expect(index_put(x, {mask}, kFar), DType::i64, {1, kFar, kFar});
    expect(scatter(x, 0, Tensor::from(Values<int64_t>{2}, device), kFar), DType::i64, {1, 2, kFar});
    expect(x.clone().add_(x, kFar), DType::i64, {1 + kFar, 2 + 2 * kFar, 3 + 3 * kFar});
    expect(x.clone().mul_(kFar), DType::i64, {kFar, 2 * kFar, 3 * kFar});
    expect(tril(x.reshape({1, 3}).expand({2, 3})), DType::i64, {1, 0, 0, 1, 2, 0});
    EXPECT_EQ(tril(Tensor::ones({2, 2}, DType::boolean, device)).dtype(), DType::boolean);
    EXPECT_EQ(Tensor::full({}, kFar, DType::i64, device).item<int64_t>(), kFar);
  });
}

TEST_F(Integers, RefuseNumbersThatTheyDoNotHold) {
  const Tensor x = Tensor::ones({2}, DType::i32), u = Tensor::ones({2}, DType::u8), mask = x == 1;
  const auto text = [](const auto& call) { return error_text([&] { call(); }); };
  EXPECT_EQ(text([&] { x + int64_t{3000000000}; }), "add: i32 does not hold 3000000000");
  EXPECT_EQ(text([&] { x - int64_t{3000000000}; }), "sub: i32 does not hold 3000000000");
  EXPECT_EQ(text([&] { int64_t{3000000000} * x; }), "mul: i32 does not hold 3000000000");
  EXPECT_EQ(text([&] { add(x, x, 0.5); }), "add: i64 does not hold 0.5");
  EXPECT_EQ(text([&] { clamp(x, 0, int64_t{3000000000}); }), "clamp: i32 does not hold 3000000000");
  EXPECT_EQ(text([&] { clamp(x, 1, 0); }), "clamp: expected low <= high, got 1 and 0");
  EXPECT_THAT(text([&] { pow(x, -1); }),
              HasSubstr("pow: expected integers to a power of at least 0, got -1 for i32[2]"));
  EXPECT_EQ(text([] { Tensor::full({}, 2.5, DType::i64); }), "full: i64 does not hold 2.5");
  EXPECT_EQ(text([] { Tensor::full({}, NAN, DType::i64); }), "full: i64 does not hold nan");
  EXPECT_EQ(text([] { Tensor::full({}, 0x1p63, DType::i64); }), "full: i64 does not hold 9.22337204e+18");
  EXPECT_EQ(text([] { Tensor::full({}, uint64_t{1} << 63, DType::i64); }), "full: i64 does not hold 9.22337204e+18");
  EXPECT_EQ(text([&] { u.fill_(256); }), "fill_: u8 does not hold 256");
  EXPECT_EQ(text([&] { u.fill_(-1); }), "fill_: u8 does not hold -1");
  EXPECT_EQ(text([&] { x.mul_(int64_t{3000000000}); }), "mul_: i32 does not hold 3000000000");
  EXPECT_EQ(text([&] { x.add_(x, INFINITY); }), "add_: i64 does not hold inf");
  // A bool beside a number becomes the number's kind.
  const Tensor truths = Tensor::from<bool>({true, false});
  EXPECT_EQ(fmod(truths, 2).to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(remainder(truths, 3).to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(where(truths, 5, truths).to_vector<int64_t>(), (std::vector<int64_t>{5, 0}));
  EXPECT_EQ(where(truths, truths, false).dtype(), DType::boolean);
  EXPECT_EQ(remainder(u, 300).dtype(), DType::i64);
  EXPECT_EQ(text([&] { where(mask, u, 300); }), "where: u8 does not hold 300");
  EXPECT_EQ(text([&] { masked_fill(x, mask, 2.5); }), "masked_fill: i32 does not hold 2.5");
  EXPECT_EQ(text([] { Tensor::arange(5, DType::i64, {}, 0, 0.5); }), "arange: i64 does not hold 0.5");
  EXPECT_EQ(text([] { Tensor::arange(257, DType::u8); }), "arange: u8 does not hold 256");
  EXPECT_EQ(text([] { Tensor::arange(3, DType::i64, {}, kMost, 1); }),
            "arange: 3 numbers from 9223372036854775807 by 1 go beyond i64");
  EXPECT_EQ(text([] { Tensor::full({}, kFar, DType::i64).item(); }),
            "item: f64 does not hold 9007199254740993. Use item<int64_t>()");
  EXPECT_EQ(text([] { Tensor::full({}, 2.5).item<int64_t>(); }), "item: i64 does not hold 2.5");
  EXPECT_EQ(text([] { Tensor::full({}, 300).item<uint8_t>(); }), "item: u8 does not hold 300");
  EXPECT_EQ(text([] { Tensor::full({}, -1, DType::i64).to_vector<uint8_t>(); }), "to_vector: u8 does not hold -1");
  EXPECT_EQ(text([] { Tensor::full({}, NAN).to_vector<int64_t>(); }), "to_vector: i64 does not hold nan");
  EXPECT_EQ(text([] { Tensor::full({}, 0x1p31).to_vector<int32_t>(); }), "to_vector: i32 does not hold 2.14748365e+09");
  EXPECT_EQ(Tensor::full({}, -0x1p31).to_vector<int32_t>()[0], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Tensor::full({}, 255.5).to_vector<uint8_t>()[0], 255);
}

TEST_F(Integers, AnyAndAll) {
  each_device([](Device device) {
    const Tensor x = Tensor::from(Values<int64_t>{0, 2, 0, 0}, {2, 2}, device);
    expect(any(x), DType::boolean, {1});
    expect(all(x), DType::boolean, {0});
    expect(any(x, {1}), DType::boolean, {1, 0});
    expect(all(x, {0}, true), DType::boolean, {0, 0});
    expect(all(x + 1), DType::boolean, {1});
    expect(any(Tensor::zeros({0}, DType::f32, device)), DType::boolean, {0});
    expect(all(Tensor::zeros({0}, DType::f32, device)), DType::boolean, {1});
    expect(any(Tensor::full({1}, NAN, DType::f32, device)), DType::boolean, {1});
  });
}

TEST_F(Integers, ProductsAreExact) {
  each_device([](Device device) {
    const Tensor x = Tensor::from(Values<int64_t>{94906267, 94906267, -3, 1}, {2, 2}, device);
    expect(prod(x, {1}), DType::i64, {9007199515875289, -3});
    expect(prod(x, {0}, true), DType::i64, {-284718801, 94906267});
    expect(prod(Tensor::from(Values<uint8_t>{200, 200}, device)), DType::i64, {40000});
    expect(prod(Tensor::from(Values<int64_t>{2, 0, 3}, device).to(DType::boolean)), DType::i64, {0});
    expect(prod(Tensor::zeros({0}, DType::i32, device)), DType::i64, {1});
  });
}

TEST_F(Integers, UniqueAndBincount) {
  each_device([](Device device) {
    const int64_t big = 9007199254740993;
    const Unique found = unique(Tensor::from(Values<int64_t>{3, big, 3, -1, big, big - 1}, {2, 3}, device));
    expect(found.values, DType::i64, {-1, 3, big - 1, big});
    expect(found.inverse, DType::i64, {1, 3, 1, 0, 3, 2});
    expect(found.counts, DType::i64, {1, 2, 1, 2});
    EXPECT_EQ(found.inverse.sizes(), (Shape{2, 3}));
    expect(unique(Tensor::full({3}, NAN, DType::f32, device)).counts, DType::i64, {1, 1, 1});
    expect(unique(Tensor::from(Values<int64_t>{2, 0, 3}, device).to(DType::boolean)).counts, DType::i64, {1, 2});
    expect(unique(Tensor::zeros({0, 2}, DType::f32, device)).counts, DType::i64, {});
    expect(bincount(Tensor::from(Values<int32_t>{1, 3, 1}, device)), DType::i64, {0, 2, 0, 1});
    expect(bincount(Tensor::from(Values<uint8_t>{1, 0}, device), {}, 4), DType::i64, {1, 1, 0, 0});
    expect(bincount(Tensor::zeros({0}, DType::i64, device), {}, 2), DType::i64, {0, 0});
    EXPECT_EQ(bincount(Tensor::from(Values<int64_t>{1, 1}, device), Tensor::full({2}, 0.25, DType::f32, device))
                  .to_vector<float>(),
              (std::vector<float>{0, 0.5}));
  });
}

// A dimension or a count is a whole number: what is a condition or a fraction does not compile.
template <class T>
concept IsADimension = requires(Tensor x, T dim) {
  sort(x, dim), argmax(x, dim), cumsum(x, dim), x.size(dim), topk(x, dim);
};
static_assert(IsADimension<int> && IsADimension<int64_t> && IsADimension<size_t>);
template <class T>
concept Sorts = requires(Tensor x, T dim) {
  sort(x, dim);
};
static_assert(!Sorts<bool> && !Sorts<double> && !Sorts<float> && !Sorts<Tensor> && !Sorts<const char*>);
template <class T>
concept Indexes = requires(Tensor x, T at) {
  x.index({at});
};
static_assert(Indexes<int> && Indexes<Tensor> && !Indexes<bool> && !Indexes<double>);
template <class T>
concept Selects = requires(Tensor x, T at) {
  x.select(0, at);
};
static_assert(!Selects<double> && !Selects<bool> && !std::is_convertible_v<Tensor, double> &&
              !std::is_convertible_v<Tensor, bool> && !std::is_convertible_v<int, Tensor>);

}  // namespace
}  // namespace weft
