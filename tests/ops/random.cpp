// SPDX-License-Identifier: Apache-2.0
#include "core/ops/random.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/autograd.h"
#include "core/ops/layers/activations.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/rows.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Random, SameSeedSameNumbers) {
  manual_seed(11);
  const auto first = normal({100}).to_vector<float>(), second = normal({100}).to_vector<float>();
  manual_seed(11);
  EXPECT_EQ(normal({100}).to_vector<float>(), first);
  EXPECT_EQ(normal({100}).to_vector<float>(), second);
  EXPECT_NE(first, second);
}

TEST(Random, DrawsOfAnySizeAdvanceByBlocks) {
  manual_seed(11);
  uniform({5});
  EXPECT_EQ(generator({}).offset, 2u);
  uniform({4}, 0, 1, DType::f64);
  EXPECT_EQ(generator({}).offset, 4u);
}

TEST(Random, Moments) {
  constexpr int64_t kCount = 40'000;
  const double sigma = 1 / std::sqrt(static_cast<double>(kCount));
  const std::vector<double> u = uniform({kCount}, -1, 3, DType::f64).to_vector<double>();
  EXPECT_NEAR(mean_of(u), 1, 6 * sigma * 4 / std::sqrt(12));
  for (const double value : u) ASSERT_TRUE(value >= -1 && value < 3);
  std::vector<double> g = normal({kCount}, 2, 3).to_vector<double>();
  EXPECT_NEAR(mean_of(g), 2, 6 * sigma * 3);
  for (double& value : g) value = (value - 2) * (value - 2);
  EXPECT_NEAR(mean_of(g), 9, 6 * sigma * 9 * std::sqrt(2));
  EXPECT_NEAR(mean_of(bernoulli({kCount}, 0.3).to_vector<double>()), 0.3, 6 * sigma * 0.46);
}

/// The numbers of a call after the seed was set.
std::vector<double> drawn(const std::function<Tensor()>& call) {
  manual_seed(11);
  return call().to_vector<double>();
}

TEST(Random, EveryDeviceDrawsTheSame) {
  const auto row = [](const char* op, DeviceKind device, DType dtype) {
    tests::add_row({"op", op, "", std::string(name(device)), std::string(name(dtype)), "forward"});
  };
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(str(dtype, " on ", name(kind)));
      const Device device{kind, 0};
      // The formulas' own roundings differ (fused multiply-add, sine and cosine of a GPU), the draws do not.
      const tests::Tolerance few = tests::tolerance(dtype, 1, 8);
      const auto same = [&](const char* op, const std::function<Tensor(Device)>& call) {
        EXPECT_TRUE(tests::near(drawn([&] { return call(device); }), drawn([&] { return call({}); }), few)) << op;
        row(op, kind, dtype);
      };
      same("uniform", [&](Device to) { return uniform({13, 7}, -1, 3, dtype, to); });
      same("uniform_", [&](Device to) { return uniform_(Tensor::zeros({13, 7}, dtype, to), -1, 3); });
      same("normal", [&](Device to) { return normal({13, 7}, 2, 0.5, dtype, to); });
      same("normal_", [&](Device to) { return normal_(Tensor::zeros({13, 7}, dtype, to), 2, 0.5); });
    }
}

TEST(Random, PermutationHoldsEachNumberOnce) {
  for (const int64_t n : {0, 1, 2, 17, 1000}) {
    std::vector<int64_t> order = permutation(n).to_vector<int64_t>();
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
  }
  EXPECT_NE(permutation(1000).to_vector<int64_t>(), permutation(1000).to_vector<int64_t>());
}

TEST(Random, InPlaceOnStridedMemoryLeavesTheRest) {
  const Tensor buffer = Tensor::full({4, 6}, 9);
  uniform_(buffer.slice(1, 0, 3, 2));
  const std::vector<float> values = buffer.to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i] == 9, i % 2 == 1) << i;
}

TEST(Random, Errors) {
  EXPECT_THAT([] { uniform({2}, 1, 0); },
              ThrowsMessage<Error>(HasSubstr("uniform: expected finite low <= high, got 1 and 0")));
  EXPECT_THAT([] { normal({2}, 0, 1, DType::i64); },
              ThrowsMessage<Error>(HasSubstr("normal: expected a floating tensor, got i64[2] on cpu")));
  EXPECT_THAT([] { bernoulli({2}, 1.5); }, ThrowsMessage<Error>(HasSubstr("bernoulli: expected p in [0, 1], got 1.5")));
  EXPECT_THAT([] { permutation(-1); },
              ThrowsMessage<Error>(HasSubstr("permutation: expected n of at least 0, got -1")));
  EXPECT_THAT([] { normal_(Tensor::zeros({2}).requires_grad_()); },
              ThrowsMessage<Error>(HasSubstr("needs a gradient and cannot be changed in place")));
  EXPECT_THAT([] { dropout(Tensor::zeros({2}), -0.1); },
              ThrowsMessage<Error>(HasSubstr("dropout: expected p in [0, 1], got -0.1")));
}

TEST(Dropout, DropsWholeChannels) {
  const Tensor y = feature_dropout(Tensor::ones({50, 3, 2, 8}), 0.25);
  const std::vector<float> first = y.select(2, 1).select(1, 2).flatten().to_vector<float>();
  EXPECT_EQ(y.to_vector<float>(), (y.slice(1, 1, 1).slice(2, 0, 1).expand({50, 3, 2, 8})).to_vector<float>());
  const auto dropped = std::count(first.begin(), first.end(), 0.0f);
  EXPECT_EQ(dropped + std::count(first.begin(), first.end(), 1 / 0.75f), 400);
  EXPECT_NEAR(static_cast<double>(dropped), 100, 6 * std::sqrt(400 * 0.25 * 0.75));
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_TRUE(feature_dropout(x, 0.5, false).is_same(x));
  EXPECT_THAT([] { feature_dropout(Tensor::ones({2}), 0.5); },
              ThrowsMessage<Error>(HasSubstr("feature_dropout: expected a floating tensor [N, ..., C], got f32[2]")));
  EXPECT_THAT(
      [] {
        feature_dropout(Tensor::ones({2, 2}), 2);
      },
      ThrowsMessage<Error>(HasSubstr("feature_dropout: expected p in [0, 1], got 2")));
}

TEST(Dropout, KeepsMeanAndVarianceForSelu) {
  manual_seed(7);
  const double bound = 1.7580993408473766;
  const Tensor y = alpha_dropout(normal({200'000}), 0.25);
  EXPECT_NEAR(mean(y).item(), 0, 0.02);
  EXPECT_NEAR(var(y).item(), 1, 0.03);
  const std::vector<float> of_zeros = alpha_dropout(Tensor::zeros({400}), 0.25).to_vector<float>();
  const double scale = 1 / std::sqrt(0.75 * (1 + 0.25 * bound * bound));
  const auto dropped = std::count_if(of_zeros.begin(), of_zeros.end(), [](float v) { return v < 0; });
  EXPECT_NEAR(static_cast<double>(dropped), 100, 6 * std::sqrt(400 * 0.25 * 0.75));
  for (const float v : of_zeros) EXPECT_NEAR(v, scale * bound * (v < 0 ? -0.75 : 0.25), 1e-6);
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_TRUE(alpha_dropout(x, 0.5, false).is_same(x));
  EXPECT_EQ(alpha_dropout(x, 1).to_vector<float>(), std::vector<float>(6, 0));
  EXPECT_THAT([] { alpha_dropout(Tensor::ones({2}), 2); },
              ThrowsMessage<Error>(HasSubstr("alpha_dropout: expected p in [0, 1], got 2")));
}

TEST(Dropout, KeepsScalesAndDropsTheSameInBackward) {
  const Tensor x = Tensor::full({10'000}, 3).requires_grad_();
  const Tensor y = dropout(x, 0.25);
  y.backward(Tensor::full({10'000}, 3));
  const std::vector<float> kept = y.to_vector<float>();
  EXPECT_EQ(x.grad().to_vector<float>(), kept);
  int64_t zeros = 0;
  for (const float value : kept) {
    zeros += value == 0;
    ASSERT_TRUE(value == 0 || value == 4) << value;
  }
  EXPECT_NEAR(static_cast<double>(zeros), 2500, 6 * std::sqrt(10'000 * 0.25 * 0.75));
}

TEST(Random, UniformStaysInItsIntervalInEveryDtype) {
  manual_seed(11);
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const auto& [low, high] :
           {std::pair{0.0, 1.0}, {0.1, 0.3}, {-1.0, -0.9}, {-1.0, 1.0}, {1.0, 1.01}, {-0.0, 1e-6}})
        for (const double value : uniform({100'000}, low, high, dtype, {kind, 0}).to_vector<double>())
          ASSERT_TRUE(value >= low && value < high) << value << " in " << dtype << " of " << low << " to " << high;
  EXPECT_EQ(uniform({2}, 3, 3, DType::bf16).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(uniform({2}, 1, 1.0001, DType::bf16).to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Random, UniformRefusesIntervalsWithoutNumbers) {
  const auto text = [](double low, double high, DType dtype) {
    return error_text([&] { uniform({2}, low, high, dtype); });
  };
  EXPECT_EQ(text(1.0001, 1.0002, DType::bf16), "uniform: no bf16 lies in [1.0001, 1.0002)");
  EXPECT_EQ(text(0, 1e6, DType::f16), "uniform: f16 does not hold the range from 0 to 1000000");
  EXPECT_EQ(text(-3e38, 3e38, DType::f32), "uniform: f32 does not hold the range from -3e+38 to 3e+38");
  EXPECT_EQ(text(0, NAN, DType::f32), "uniform: expected finite low <= high, got 0 and nan");
  EXPECT_EQ(text(0, INFINITY, DType::f64), "uniform: expected finite low <= high, got 0 and inf");
}

TEST(Random, RandintOfLargeNumbers) {
  manual_seed(11);
  const int64_t far = int64_t{1} << 62;
  for (const int64_t value : randint({1000}, far, far + 3).to_vector<int64_t>())
    ASSERT_TRUE(value >= far && value < far + 3) << value;
  EXPECT_EQ(error_text([&] { randint({1}, -far, far); }),
            "randint: expected at most 2^53 numbers to draw from, got 9223372036854775808 from -4611686018427387904 to "
            "4611686018427387904");
}

TEST(Random, RefusesWhatIsNoProbabilityOrDeviation) {
  EXPECT_EQ(error_text([] { bernoulli({1}, NAN); }), "bernoulli: expected p in [0, 1], got nan");
  EXPECT_EQ(error_text([] { normal({1}, 0, NAN); }),
            "normal: expected a finite mean and a finite std of at least 0, got 0 and nan");
  EXPECT_EQ(error_text([] { normal({1}, INFINITY, 1); }),
            "normal: expected a finite mean and a finite std of at least 0, got inf and 1");
  EXPECT_EQ(error_text([] { dropout(Tensor::ones({1}), NAN); }), "dropout: expected p in [0, 1], got nan");
}

TEST(Random, MultinomialRefusesWhatIsNoWeight) {
  for (const DeviceKind kind : tests::test_devices()) {
    const auto text = [kind](const std::vector<double>& weights, int64_t count, bool replacement, DType dtype) {
      return error_text([&] {
        const Tensor given = Tensor::from(weights, {2, 3}).to(dtype).to(Device{kind, 0});
        multinomial(given, count, replacement).to_vector<int64_t>();
      });
    };
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const double wrong : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
        EXPECT_EQ(
            text({1, 1, 1, 1, wrong, 0}, 2, true, dtype),
            "multinomial: expected finite weights of at least 0, 1 or more of them positive, got others in row 1");
    EXPECT_THAT(text({0, 0, 0, 1, 1, 1}, 1, true, DType::f32), HasSubstr("got others in row 0"));
    EXPECT_EQ(text({1, 1, 1, 1, 0, 0}, 2, false, DType::f32),
              "multinomial: expected finite weights of at least 0, 2 or more of them positive, got others in row 1");
    EXPECT_THAT(text({1, 1, NAN, 1, 1, 1}, 2, false, DType::f32), HasSubstr("got others in row 0"));
  }
  // A weight beyond f32's range is a weight in f64.
  EXPECT_EQ(multinomial(Tensor::from(std::vector<double>{1e-300, 1e300}), 2).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 1}));
}

TEST(Dropout, OffInInferenceAndAtZero) {
  const Tensor x = Tensor::ones({5});
  EXPECT_TRUE(dropout(x, 0.5, false).is_same(x));
  EXPECT_TRUE(dropout(x, 0).is_same(x));
  EXPECT_EQ(dropout(x, 1).to_vector<float>(), std::vector<float>(5, 0.0f));
}

}  // namespace
}  // namespace weft
