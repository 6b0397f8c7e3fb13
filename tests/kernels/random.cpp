// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/random.h"

#include <bit>
#include <map>
#include <set>

#include "kernels/contracts/permutation.h"
#include "kernels/runtime/wrong_index.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

DeviceArray state(DeviceKind kind, int64_t seed, int64_t base) {
  return {kind, DType::i64, {2}, {static_cast<double>(seed), static_cast<double>(base)}};
}

struct Statistics {
  double mean = 0, variance = 0;
  explicit Statistics(const std::vector<double>& x) {
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  }
};

const DType kDrawn[] = {DType::f32, DType::f64, DType::bf16, DType::f16};
constexpr int64_t kFar = 5000000000;  ///< a counter of more than 32 bits

TEST(Philox, KnownAnswers) {  // Random123's published vectors for philox4x32-10
  const Philox4 zero = philox(0, 0, 0), ones = philox(~0ull, ~0ull, ~0ull);
  const uint32_t want_zero[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const uint32_t want_ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(zero.word[i], want_zero[i]);
    EXPECT_EQ(ones.word[i], want_ones[i]);
  }
}

TEST(Random, UniformIsTheDocumentedFunction) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kDrawn)
      for (const int64_t n : {int64_t{1}, int64_t{2}, int64_t{3}, pick(4, 999), int64_t{1030}}) {
        const int64_t seed = pick(0, 1 << 30), base = pick(0, 1000) + (n % 2 ? kFar : 0);
        const uint64_t offset = static_cast<uint64_t>(pick(0, 50));
        const DeviceArray y(kind, dtype, {n});
        kernels::random_uniform(queue_on(kind), y, state(kind, seed, base), {offset},
                                kernels::uniform_range(dtype, -2, 3));
        std::vector<double> want;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t per_block = dtype == DType::f64 ? 2 : 4, j = i % per_block;
          const Philox4 block =
              philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(base + i / per_block) + offset);
          want.push_back(-2 + 5 * (dtype == DType::f64 ? uniform01(block.word[2 * j], block.word[2 * j + 1])
                                                       : static_cast<double>(uniform01(block.word[j]))));
        }
        // -2 + 5 u rounds at the size of 5 u.
        EXPECT_TRUE(near(y.host(), want, tolerance(dtype), std::vector<double>(want.size(), 5))) << dtype << ' ' << n;
      }
}

TEST(Random, NormalHasItsMomentsAndFormula) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kDrawn) {
      const int64_t seed = pick(0, 1 << 30), n = 20001;
      const DeviceArray y(kind, dtype, {n});
      kernels::random_normal(queue_on(kind), y, state(kind, seed, kFar), {}, 1, 2);
      std::vector<double> want;
      const double turn = 2 * std::acos(-1.0);
      for (int64_t i = 0; i < n; ++i) {
        const bool wide = dtype == DType::f64;
        const Philox4 block = philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(kFar + i / (wide ? 2 : 4)));
        const int64_t pair = i % 4 / 2 * 2;
        const double u =
            wide ? uniform01(block.word[0], block.word[1]) : static_cast<double>(uniform01(block.word[pair]));
        const double v =
            wide ? uniform01(block.word[2], block.word[3]) : static_cast<double>(uniform01(block.word[pair + 1]));
        want.push_back(1 + 2 * std::sqrt(-2 * std::log(1 - u)) * (i % 2 ? std::sin(turn * v) : std::cos(turn * v)));
      }
      const auto got = y.host();
      EXPECT_TRUE(near(got, want, tolerance(dtype, 16, 8))) << dtype;
      const Statistics s(got);  // 6.5 standard deviations of each estimate
      EXPECT_NEAR(s.mean, 1, 6.5 * 2 / std::sqrt(n));
      EXPECT_NEAR(s.variance, 4, 6.5 * 4 * std::sqrt(2.0 / static_cast<double>(n)) + 0.02);
    }
}

TEST(Random, UniformIsNotRoundedToItsEnd) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kDrawn) {
      const DeviceArray y(kind, dtype, {20001});
      kernels::random_uniform(queue_on(kind), y, state(kind, pick(0, 1 << 30), kFar), {},
                              kernels::uniform_range(dtype, 0, 1));
      for (const double value : y.host()) ASSERT_TRUE(value >= 0 && value < 1) << value << " in " << dtype;
    }
}

TEST(Random, CheckWeightsNamesARowThatIsWrong) {
  for (const DeviceKind kind : test_devices()) {
    const auto check = [kind](const std::vector<double>& fine) {
      const DeviceArray rows(kind, DType::boolean, {static_cast<int64_t>(fine.size())}, fine);
      kernels::check_weights(queue_on(kind), rows, 2);
      rows.host();
      kernels::check_wrong_index({kind, 0});
    };
    check({1, 1, 1});
    for (int row = 0; row < 3; ++row) {
      std::vector<double> fine(3, 1);
      fine[static_cast<size_t>(row)] = 0;
      EXPECT_EQ(
          error_text([&] { check(fine); }),
          str("multinomial: expected finite weights of at least 0, 2 or more of them positive, got others in row ",
              row));
    }
  }
}

TEST(Random, BernoulliOfEveryDtype) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype :
         {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean}) {
      const int64_t n = 10001, seed = pick(0, 1 << 30);
      const DeviceArray y(kind, dtype, {n});
      kernels::random_bernoulli(queue_on(kind), y, state(kind, seed, kFar), {7}, 0.3);
      const auto got = y.host();
      std::vector<double> want;
      for (int64_t i = 0; i < n; ++i)
        want.push_back(
            uniform01(philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(kFar + 7 + i / 4)).word[i % 4]) < 0.3f);
      EXPECT_EQ(got, want) << dtype << " on " << name(kind);
      EXPECT_NEAR(Statistics(got).mean, 0.3, 6.5 * std::sqrt(0.21 / static_cast<double>(n))) << dtype;
    }
}

TEST(Random, IntegersAreTheFloorsOfTheDraws) {
  for (const DeviceKind kind : test_devices())
    for (const int64_t count : {int64_t{1}, int64_t{10}, int64_t{1} << 53}) {
      const int64_t n = 1001, seed = pick(0, 1 << 30), low = -7;
      const DeviceArray y(kind, DType::i64, {n});
      kernels::random_integers(queue_on(kind), y, state(kind, seed, kFar), {7}, low, count);
      std::vector<double> want;
      for (int64_t i = 0; i < n; ++i) {
        const Philox4 block = philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(kFar + 7 + i / 2));
        const double draw = uniform01(block.word[i % 2 * 2], block.word[i % 2 * 2 + 1]);
        want.push_back(static_cast<double>(low + static_cast<int64_t>(std::floor(draw * static_cast<double>(count)))));
      }
      EXPECT_EQ(y.host(), want) << count << " on " << name(kind);
    }
}

TEST(Random, PermutationHoldsEachNumberOnce) {
  for (const DeviceKind kind : test_devices())
    for (const int64_t n : {0L, 1L, 2L, 3L, 5L, 16L, 17L, 64L, 65L, 1000L, 4097L, 262144L}) {
      const int64_t seed = pick(0, 1 << 30);
      const DeviceArray y(kind, DType::i64, {n}), other(kind, DType::i64, {n});
      kernels::random_permutation(queue_on(kind), y, state(kind, seed, kFar), {3});
      kernels::random_permutation(queue_on(kind), other, state(kind, seed, kFar + 1), {3});
      auto got = y.host();
      const Permutation order = permutation_of(static_cast<uint64_t>(seed), kFar + 3, n);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<double>(order(i)));
      if (n >= 1000) {
        EXPECT_NE(got, other.host()) << "the counter must matter";
      }
      std::sort(got.begin(), got.end());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<double>(i)) << "n " << n;
    }
}

TEST(Permutation, IsOneForEverySizeAndHasOneFixedPointOnAverage) {
  double fixed = 0;
  constexpr int64_t kMost = 300;
  for (int64_t n = 1; n <= kMost; ++n) {
    std::vector<bool> seen(static_cast<size_t>(n));
    const Permutation order = permutation_of(12, static_cast<uint64_t>(n), n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = order(i);
      ASSERT_TRUE(value >= 0 && value < n && !seen[static_cast<size_t>(value)]) << value << " of " << n;
      seen[static_cast<size_t>(value)] = true;
      fixed += value == i;
    }
  }
  EXPECT_NEAR(fixed / kMost, 1, 6.5 / std::sqrt(kMost));
  for (const int64_t n : {(int64_t{1} << 61) + 1, int64_t{1} << 62}) {  // the largest halves: no neighbour is hit twice
    std::set<int64_t> values;
    const Permutation order = permutation_of(12, 0, n);
    for (int64_t i = 0; i < 4000; ++i) {
      const int64_t value = order(n - 1 - i);
      ASSERT_TRUE(value >= 0 && value < n && values.insert(value).second) << value;
    }
  }
}

/// Fails where counts of equally likely cells differ by more than chance: the bound is 7.5 standard deviations of the
/// sum of squares, which chance exceeds with a probability below 1e-9 (Wilson and Hilferty 1931).
void expect_equal_shares(const std::vector<int64_t>& counts, const std::string& what) {
  double total = 0, sum = 0;
  for (const int64_t count : counts) total += static_cast<double>(count);
  const double cells = static_cast<double>(counts.size()), want = total / cells, freedom = cells - 1;
  for (const int64_t count : counts) sum += std::pow(static_cast<double>(count) - want, 2) / want;
  const double spread = 2 / (9 * freedom);
  EXPECT_LT((std::cbrt(sum / freedom) - (1 - spread)) / std::sqrt(spread), 7.5) << what << ": " << sum;
}

TEST(Permutation, EveryOrderIsEquallyLikely) {
  for (const int64_t n : {2, 3, 4, 5, 8}) {
    int64_t orders = 1;
    for (int64_t i = 2; i <= n; ++i) orders *= i;
    std::vector<int64_t> counts(static_cast<size_t>(orders));
    for (int64_t key = 0; key < std::max<int64_t>(10 * orders, 50000); ++key) {
      const Permutation order = permutation_of(static_cast<uint64_t>(key), 5, n);
      int64_t number = 0, rest = (1 << n) - 1;  // which of the orders; the elements that did not come yet
      for (int64_t i = 0; i < n; ++i) {
        const int64_t value = order(i);
        number = number * (n - i) + std::popcount(static_cast<uint64_t>(rest & ((1 << value) - 1)));
        rest &= ~(int64_t{1} << value);
      }
      ++counts[static_cast<size_t>(number)];
    }
    expect_equal_shares(counts, str("orders of ", n));
  }
}

TEST(Permutation, NeighboursArePairsOfAllKinds) {
  for (const int64_t n : {16, 17, 32, 60}) {  // both places of two neighbours, for many keys
    std::vector<int64_t> pairs(static_cast<size_t>(n * (n - 1)));
    for (uint64_t key = 0; key < 60000; ++key) {
      const Permutation order = permutation_of(key, 6, n);
      const int64_t at = static_cast<int64_t>(key) % (n - 1), a = order(at), b = order(at + 1);
      ++pairs[static_cast<size_t>(a * (n - 1) + b - (b > a ? 1 : 0))];
    }
    expect_equal_shares(pairs, str("pairs of ", n));
  }
  for (const int64_t n : {int64_t{1} << 10, int64_t{1} << 18, int64_t{1000003}, int64_t{1} << 40, int64_t{1} << 61}) {
    int most = 0;  // how often neighbours of one order differ by the same number
    std::vector<int64_t> quarters(256);
    for (uint64_t key = 0; key < 100; ++key) {
      const Permutation order = permutation_of(key, 7, n);
      std::map<int64_t, int> differences;
      int64_t last = order(0), shares = 0;
      for (int64_t i = 1; i < 1000; ++i) {
        const int64_t value = order(i);
        most = std::max(most, ++differences[value < last ? value - last + n : value - last]);
        shares = (shares * 4 + value / (n / 4 + 1)) % 256;
        if (i % 4 == 0) ++quarters[static_cast<size_t>(shares)];
        last = value;
      }
    }
    EXPECT_LE(most, n < 2000 ? 13 : 7) << n;
    expect_equal_shares(quarters, str("quarters of ", n));
  }
}

TEST(Random, DropoutKeepsScalesAndRepeats) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kDrawn)
      for (const int64_t n : {1, 2, 3, 1030, 10007}) {
        const int64_t seed = pick(0, 1 << 30);
        const auto x = uniform(n, dtype, 1, 2);
        const DeviceArray in(kind, dtype, {n}, x), y(kind, dtype, {n}), again(kind, dtype, {n}), all(kind, dtype, {n});
        kernels::dropout(queue_on(kind), y, in, state(kind, seed, kFar + 3), {}, 0.25);
        kernels::dropout(queue_on(kind), again, in, state(kind, seed, kFar), {3}, 0.25);
        const auto got = y.host();
        EXPECT_TRUE(near(got, again.host(), {})) << "base and offset add";
        std::vector<double> want;
        double kept = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          const Philox4 block = philox(static_cast<uint64_t>(seed), kFar + 3 + i / 4);
          want.push_back(uniform01(block.word[i % 4]) >= 0.25f ? x[i] / 0.75 : 0);
          kept += got[i] != 0;
        }
        EXPECT_TRUE(near(got, want, tolerance(dtype)));
        EXPECT_NEAR(kept / static_cast<double>(n), 0.75, 6.5 * std::sqrt(0.1875 / static_cast<double>(n)));
        kernels::dropout(queue_on(kind), all, in, state(kind, seed, 3), {}, 0);
        EXPECT_TRUE(near(all.host(), x, {}));
        kernels::dropout(queue_on(kind), all, in, state(kind, seed, 3), {}, 1);
        EXPECT_TRUE(near(all.host(), std::vector<double>(x.size()), {}));
      }
}

}  // namespace
}  // namespace weft::tests
