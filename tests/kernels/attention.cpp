// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/kernels/attention_problem.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/error_text.h"
#include "tests/support/hopper.h"

namespace weft::tests {
namespace {

/// A softmax of one key is 1 whatever q and k are: their gradients are rounding noise.
void expect_no_slope(const AttentionCall& run, DType dtype) {
  for (const int which : {0, 1}) {
    double largest = 0;
    for (const double g : run.gradient(which)) largest = std::max(largest, std::isnan(g) ? INFINITY : std::abs(g));
    EXPECT_LE(largest, 256 * epsilon_of(dtype == DType::f64 ? DType::f64 : DType::f32)) << dtype << ' ' << which;
  }
}

/// How far e^(score - score) may lie from 1 where the kernel subtracts a rounded score from a product. The compiler may
/// fuse the two (nvcc does; GCC for aarch64 does, for x86-64 without FMA it cannot): the product is not rounded, so
/// half a unit of the score is left, |score| eps / 2.
double fused_score_error(const std::vector<double>& scores, DType wide) {
  double largest = 0;
  for (const double score : scores) largest = std::max(largest, std::abs(score));
  return largest * epsilon_of(wide) / 2;
}

/// How far e^(score - score) may lie from 1 where the forward adds the products of a score in another order than the
/// backward: each order is off by at most D eps / 2 times the sum of the sizes.
double reordered_score_error(const AttentionReference& want, DType wide) {
  double largest = 0;
  const auto D = static_cast<size_t>(want.p.D);
  for (size_t row = 0; row < want.q.size(); row += D) {
    double sizes = 0;
    for (size_t d = 0; d < D; ++d) sizes += std::abs(want.q[row + d] * want.k[row + d]);
    largest = std::max(largest, sizes);
  }
  return static_cast<double>(D) * epsilon_of(wide) * largest * want.scale;
}

void check(DeviceKind kind, DType dtype, const AttentionProblem& problem) {
  const kernels::CapabilityScope ampere(80);  // Hopper's kernels have tests of their own
  check_attention(kind, dtype, problem);
}

const DType kAttended[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

TEST(Attention, EqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended) {
      check(kind, dtype, {2, 37, 37, 2, 8});
      check(kind, dtype, {1, 70, 70, 2, 64});
      check(kind, dtype, {1, 33, 33, 1, 128});
    }
}

TEST(Attention, OneQueryAndOneKey) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : kAttended) {
      const AttentionReference want({2, 1, 1, 2, 64}, dtype);
      AttentionCall run(kind, dtype, want);
      run.forward();
      run.backward();
      EXPECT_TRUE(near(run.y(), want.v, {})) << dtype;
      // The weight is 1 once it is rounded to bf16 or f16. In f32 and f64 its product is rounded too.
      const bool low = dtype == DType::bf16 || dtype == DType::f16;
      const double error =
          low ? 0 : fused_score_error(want.lse, dtype) + reordered_score_error(want, dtype) + epsilon_of(dtype) / 2;
      EXPECT_TRUE(near(run.gradient(2), want.dy, {error, error})) << dtype;
      expect_no_slope(run, dtype);
    }
  });
}

TEST(Attention, OtherLengthOfKeys) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended) {
      check(kind, dtype, {2, 5, 70, 2, 64});
      check(kind, dtype, {1, 70, 3, 2, 64});
      check(kind, dtype, {1, 40, 67, 1, 32, true});
      check(kind, dtype, {1, 67, 40, 1, 32, true});
    }
}

TEST(Attention, FewQueries) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended)
      for (const int64_t N : {1L, 3L, 4L, 5L}) {
        check(kind, dtype, {2, N, 261, 3, 40});
        check(kind, dtype, {2, N, 70, 2, 65, true, true, true});
      }
  for (const DeviceKind kind : test_devices()) check(kind, DType::f32, {1, 2, 300, 2, 64, false, false, true, 0.3});
}

TEST(Attention, AnyNumberOfChannels) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended)
      for (const int64_t D : {1L, 5L, 80L, 104L, 131L, 256L}) check(kind, dtype, {1, 19, 19, 2, D});
}

TEST(Attention, LengthsOfVisionTransformers) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      check(kind, dtype, {1, 197, 197, 1, 64});
      if (dtype == DType::bf16) check(kind, dtype, {1, 257, 257, 1, 64});
      check(kind, dtype, {1, 261, 261, 1, 16, true});
    }
}

TEST(Attention, Masks) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended) {
      check(kind, dtype, {1, 75, 75, 1, 64, true});
      check(kind, dtype, {3, 40, 40, 1, 64, false, true});
      check(kind, dtype, {2, 66, 66, 1, 64, false, false, true});
      check(kind, dtype, {2, 70, 70, 1, 128, true, true, true});
    }
}

TEST(Attention, Dropout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended) {
      check(kind, dtype, {1, 37, 37, 2, 64, false, false, false, 0.3});
      check(kind, dtype, {1, 41, 68, 2, 128, true, true, true, 0.5});
    }
}

TEST(Attention, HeadsShareKeys) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended) {
      check(kind, dtype, {.B = 1, .N = 40, .M = 40, .H = 32, .D = 16, .causal = true, .G = 8});
      check(kind, dtype, {.B = 2, .N = 35, .M = 66, .H = 8, .D = 64, .lengths = true, .G = 1});
      check(kind, dtype, {.B = 2, .N = 70, .M = 70, .H = 9, .D = 24, .causal = true, .mask = true, .G = 3});
      check(kind, dtype, {.B = 1, .N = 37, .M = 41, .H = 4, .D = 128, .dropout = 0.3, .G = 2});
      check(kind, dtype, {.B = 2, .N = 3, .M = 70, .H = 6, .D = 20, .mask = true, .G = 2});  // few queries
    }
}

TEST(Attention, Windows) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAttended) {
      for (const int64_t window : {1L, 5L, 64L, 149L, 150L, 1L << 40})
        check(kind, dtype, {.B = 1, .N = 150, .M = 150, .H = 1, .D = 64, .causal = true, .window = window});
      check(kind, dtype, {.B = 1, .N = 150, .M = 60, .H = 1, .D = 16, .causal = true, .window = 20});  // none for some
      check(kind, dtype, {.B = 1, .N = 60, .M = 150, .H = 1, .D = 16, .causal = true, .window = 20});
      check(kind, dtype, {.B = 1, .N = 300, .M = 300, .H = 2, .D = 128, .causal = true, .G = 1, .window = 33});
      check(kind, dtype, {2, 140, 140, 4, 64, true, true, true, 0.3, 2, 50});
      check(kind, dtype, {.B = 1, .N = 4, .M = 4, .H = 2, .D = 8, .causal = true, .window = 2});  // few queries
    }
}

// A kernel that multiplied such keys would have NaN for a weight of 0.
TEST(Attention, SkipsWhatNoWindowOfATileHolds) {
  constexpr int64_t kRows = 600, kChannels = 16;
  constexpr size_t kFarKeys = 256 * kChannels, kFrom = 384 * kChannels, kFarQueries = 512 * kChannels;
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : kAttended) {
      const auto expect_near = [&](const std::vector<double>& got, const std::vector<double>& want, size_t begin,
                                   size_t end) {
        const auto part = [&](const std::vector<double>& x) {
          return std::vector<double>(x.begin() + static_cast<ptrdiff_t>(begin),
                                     x.begin() + static_cast<ptrdiff_t>(end));
        };
        EXPECT_TRUE(near(part(got), part(want), tolerance(dtype, kChannels, 16).times(3))) << dtype;
      };
      const AttentionReference want(
          {.B = 1, .N = kRows, .M = kRows, .H = 1, .D = kChannels, .causal = true, .window = 9}, dtype);
      AttentionReference keys = want, queries = want;
      for (std::vector<double>* const one : {&keys.k, &keys.v}) std::fill_n(one->begin(), kFarKeys, NAN);
      for (std::vector<double>* const one : {&queries.q, &queries.dy})
        std::fill(one->begin() + kFarQueries, one->end(), NAN);
      AttentionCall late(kind, dtype, keys), early(kind, dtype, queries);
      for (AttentionCall* const run : {&late, &early}) {
        run->forward();
        run->backward();
      }
      expect_near(late.y(), want.y, kFrom, want.y.size());
      expect_near(late.gradient(0), want.dq, kFrom, want.dq.size());
      expect_near(early.gradient(1), want.dk, 0, kFrom);
      expect_near(early.gradient(2), want.dv, 0, kFrom);
    }
  });
}

TEST(Attention, WrongHeadsAndWindowsAreErrors) {
  for (const DeviceKind kind : test_devices()) {
    const auto error_of = [&](int64_t H, int64_t G, bool causal, int64_t window) {
      const DeviceArray y(kind, DType::f32, {1, 2, H, 4}), k(kind, DType::f32, {1, 3, G, 4});
      const DeviceArray lse(kind, DType::f32, {1, H, 2});
      const kernels::View none = kernels::View::none();
      return error_text([&] {
        kernels::attention_forward(queue_on(kind), y, lse, y, k, k, none, none, none,
                                   {.causal = causal, .random = {}, .window = window});
      });
    };
    for (const int64_t G : {2, 18})
      EXPECT_THAT(error_of(9, G, false, 0), testing::HasSubstr("attention_forward: expected heads of q that are a "
                                                               "multiple of those of k, got f32[1,2,9,4]"));
    for (const bool causal : {false, true})
      EXPECT_THAT(error_of(1, 1, causal, causal ? -1 : 2),
                  testing::HasSubstr(str("attention_forward: expected a window of at least 1 key of a causal mask, or "
                                         "0, got ",
                                         causal ? -1 : 2)));
  }
}

TEST(Attention, QueriesThatSeeNoKey) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : kAttended) {
      AttentionReference want({2, 70, 70, 1, 64, true, true, true}, dtype);
      want.lengths = {0, 70};
      std::fill(want.mask.begin(), want.mask.end(), 0.0);
      want.mask.back() = 1;  // the last query of the second entry sees its own key and nothing else
      AttentionCall run(kind, dtype, want);
      run.forward();
      run.backward();
      const std::vector<double> y = run.y(), lse = run.lse();
      for (size_t i = 0; i < y.size() - 64; ++i) ASSERT_EQ(y[i], 0) << dtype;
      for (size_t i = 0; i < lse.size() - 1; ++i) ASSERT_EQ(lse[i], -std::numeric_limits<double>::infinity()) << dtype;
      for (size_t d = 0; d < 64; ++d) EXPECT_EQ(y[y.size() - 64 + d], want.v[want.v.size() - 64 + d]) << dtype;
      expect_no_slope(run, dtype);
      std::vector<double> dv(want.v.size());
      std::copy(want.dy.end() - 64, want.dy.end(), dv.end() - 64);
      EXPECT_TRUE(near(run.gradient(2), dv, tolerance(dtype))) << dtype;
    }
  });
}

TEST(Attention, NoKeysAndNoQueries) {
  for (const DeviceKind kind : test_devices()) {
    check(kind, DType::f32, {1, 7, 0, 2, 8});
    check(kind, DType::bf16, {1, 7, 0, 2, 64});
    check(kind, DType::f32, {1, 0, 7, 2, 8});
    check(kind, DType::bf16, {1, 0, 7, 2, 64});
    check(kind, DType::f32, {0, 3, 3, 2, 8});
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : kAttended) {
      AttentionReference want({1, 2, 600, 1, 64}, dtype);  // more keys than any kernel takes at once
      want.scale = 300;                                    // e^score is beyond f32 and f64
      std::vector<double> y, lse;
      for (const size_t i : {0, 1}) {  // a key along the query: its score is far above all others
        const size_t query = i * 64, key = (i == 0 ? 7 : 590) * 64;
        double square = 0;
        for (size_t d = 0; d < 64; ++d) {
          want.k[key + d] = 2 * want.q[query + d];
          square += want.q[query + d] * want.q[query + d];
          y.push_back(want.v[key + d]);
        }
        lse.push_back(600 * square);
      }
      AttentionCall run(kind, dtype, want);
      run.forward();
      // The largest weight enters the product as 1, in bf16 and f16, and the sum of the row as it is. In f32 and f64
      // both weights are equal, and their quotient within a unit of 1.
      const bool low = dtype == DType::bf16 || dtype == DType::f16;
      const double error = epsilon_of(dtype) + (low ? fused_score_error(lse, DType::f32) : 0);
      EXPECT_TRUE(near(run.y(), y, {error, error})) << dtype;
      EXPECT_TRUE(near(run.lse(), lse, tolerance(dtype == DType::f64 ? dtype : DType::f32, 64))) << dtype;
    }
  });
}

TEST(Attention, BackwardGivesTheSameBitsAgainAndInParts) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const AttentionReference want({2, 130, 130, 2, 64, true, false, false, 0.2, 1, 100}, dtype);
      AttentionCall run(kind, dtype, want);
      run.forward();
      run.backward();
      const auto dq = run.gradient(0), dk = run.gradient(1), dv = run.gradient(2);
      in_orders(1, [&] {
        run.poison();
        run.backward(true, false);
        EXPECT_TRUE(near(run.gradient(0), dq, {})) << dtype;
        run.backward(false, true);
        EXPECT_TRUE(near(run.gradient(1), dk, {})) << dtype;
        EXPECT_TRUE(near(run.gradient(2), dv, {})) << dtype;
      });
    }
  });
}

}  // namespace
}  // namespace weft::tests
