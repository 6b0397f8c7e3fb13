// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernels/cuda/attention/attention_plan.h"
#include "tests/kernels/attention_problem.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/hopper.h"
#include "tests/support/launches.h"

// Attention on TMA and wgmma (kernels/cuda/attention_*_wgmma.cuh), each way of cutting it.

namespace weft::tests {
namespace {

using kernels::AttentionPlan;
using kernels::AttentionPlanScope;
using kernels::kOneStepKeys;
using kernels::View;

/// The problem on Hopper's kernels in steps of this many keys, which must have been taken in both directions; joint:
/// all gradients in one kernel.
void check_wgmma(DeviceKind kind, DType dtype, const AttentionProblem& problem, int keys = 64, bool joint = false) {
  SCOPED_TRACE(str("steps of ", keys, " keys", joint ? ", gradients in one kernel" : ""));
  const AttentionPlanScope scope({keys, joint});
  check_attention(kind, dtype, problem);
  EXPECT_EQ(scope.uses(), 2);
}

TEST(AttentionWgmma, EveryStepAndWidth) {
  on_wgmma([](DeviceKind kind) {
    for (const int keys : {64, 128})
      for (const int64_t D : {64, 128})
        for (const DType dtype : {DType::bf16, DType::f16}) check_wgmma(kind, dtype, {1, 150, 150, 2, D}, keys);
  });
}

TEST(AttentionWgmma, LengthsOfVisionTransformers) {
  on_wgmma([](DeviceKind kind) {
    check_wgmma(kind, DType::bf16, {1, 197, 197, 1, 64}, 128);
    check_wgmma(kind, DType::bf16, {1, 257, 257, 1, 64}, 64);
    check_wgmma(kind, DType::f16, {1, 261, 261, 1, 128}, 128);
  });
}

TEST(AttentionWgmma, AllKeysInOneStep) {
  on_wgmma([](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16}) check_wgmma(kind, dtype, {1, 197, 197, 2, 64}, kOneStepKeys);
    check_wgmma(kind, DType::bf16, {1, 5, 129, 4, 64}, kOneStepKeys);  // a tile a head
    check_wgmma(kind, DType::bf16, {1, 300, 224, 1, 40}, kOneStepKeys);
    check_wgmma(kind, DType::bf16, {2, 70, 161, 2, 64, false, false, true}, kOneStepKeys);
  });
}

/// One and two tiles of keys a consumer, some without keys; groups, lengths and masks; a block that walks over heads.
TEST(AttentionWgmma, AllGradientsInOneKernel) {
  on_wgmma([](DeviceKind kind) {
    const auto check = [&](DType dtype, const AttentionProblem& problem) {
      check_wgmma(kind, dtype, problem, 128, true);
    };
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const int64_t size : {70, 197}) check(dtype, {1, size, size, 2, 64});
    check(DType::bf16, {1, 5, 256, 1, 64});
    check(DType::bf16, {1, 300, 3, 2, 40});
    check(DType::f16, {1, 64, 129, 1, 8});
    check(DType::bf16, {3, 200, 100, 1, 64, false, true});
    check(DType::f16, {2, 60, 250, 1, 64, false, false, true});
    check(DType::bf16, {.B = 1, .N = 90, .M = 140, .H = 6, .D = 64, .mask = true, .G = 2});
    const kernels::MultiprocessorScope one(1);
    check(DType::bf16, {3, 150, 190, 2, 64, false, true, true});
    check(DType::bf16, {4, 40, 120, 2, 64, false, true});
    check(DType::f16, {.B = 2, .N = 70, .M = 200, .H = 4, .D = 64, .lengths = true, .G = 2});
  });
}

TEST(AttentionWgmma, OtherLengthOfKeys) {
  on_wgmma([](DeviceKind kind) {
    check_wgmma(kind, DType::bf16, {2, 5, 70, 2, 64});
    check_wgmma(kind, DType::bf16, {1, 200, 3, 2, 128}, 128);
    check_wgmma(kind, DType::f16, {1, 40, 301, 1, 64, true}, 128);
    check_wgmma(kind, DType::bf16, {1, 301, 40, 1, 128, true});
  });
}

TEST(AttentionWgmma, AnyNumberOfChannels) {
  on_wgmma([](DeviceKind kind) {
    for (const int64_t D : {8, 40, 80, 104}) check_wgmma(kind, DType::bf16, {1, 70, 70, 2, D}, D == 40 ? 128 : 64);
  });
}

TEST(AttentionWgmma, Masks) {
  on_wgmma([](DeviceKind kind) {
    for (const int keys : {64, 128})
      for (const int64_t D : {64, 128}) {
        check_wgmma(kind, DType::bf16, {1, 270, 270, 1, D, true}, keys);
        check_wgmma(kind, DType::bf16, {3, 150, 150, 1, D, false, true}, keys);
        check_wgmma(kind, DType::f16, {2, 140, 140, 1, D, false, false, true}, keys);
        check_wgmma(kind, DType::bf16, {2, 140, 140, 1, D, true, true, true}, keys);
      }
  });
}

TEST(AttentionWgmma, HeadsShareKeys) {
  on_wgmma([](DeviceKind kind) {
    check_wgmma(kind, DType::bf16, {.B = 1, .N = 40, .M = 40, .H = 32, .D = 64, .causal = true, .G = 8});
    check_wgmma(kind, DType::f16, {.B = 2, .N = 135, .M = 266, .H = 8, .D = 64, .lengths = true, .G = 1}, 128);
    check_wgmma(kind, DType::bf16,
                {.B = 1, .N = 150, .M = 150, .H = 9, .D = 128, .causal = true, .mask = true, .G = 3});
    check_wgmma(kind, DType::bf16, {.B = 1, .N = 70, .M = 71, .H = 4, .D = 64, .dropout = 0.3, .G = 2}, 128);
    const kernels::MultiprocessorScope one(1);  // the rings go round
    check_wgmma(kind, DType::bf16, {.B = 2, .N = 200, .M = 200, .H = 4, .D = 128, .causal = true, .G = 2}, 128);
  });
}

TEST(AttentionWgmma, Windows) {
  on_wgmma([](DeviceKind kind) {
    for (const int keys : {64, 128})
      for (const int64_t D : {64, 128})
        for (const int64_t window : {1L, 20L, 32L, 65L, 270L, 1L << 40})
          check_wgmma(kind, DType::bf16, {.B = 1, .N = 270, .M = 270, .H = 1, .D = D, .causal = true, .window = window},
                      keys);
    check_wgmma(kind, DType::bf16, {.B = 1, .N = 300, .M = 60, .H = 1, .D = 64, .causal = true, .window = 20});
    check_wgmma(kind, DType::f16, {.B = 1, .N = 60, .M = 300, .H = 1, .D = 64, .causal = true, .window = 20}, 128);
    check_wgmma(kind, DType::bf16, {2, 200, 200, 4, 64, true, true, true, 0.3, 2, 50});
    const kernels::MultiprocessorScope one(1);
    check_wgmma(kind, DType::bf16, {.B = 1, .N = 500, .M = 500, .H = 2, .D = 64, .causal = true, .G = 1, .window = 90});
  });
}

TEST(AttentionWgmma, Dropout) {
  on_wgmma([](DeviceKind kind) {
    for (const int keys : {64, 128})
      for (const int64_t D : {64, 128}) {
        check_wgmma(kind, DType::bf16, {1, 150, 150, 2, D, false, false, false, 0.3}, keys);
        check_wgmma(kind, DType::f16, {2, 141, 268, 1, D, true, true, true, 0.5}, keys);
      }
    check_wgmma(kind, DType::bf16, {1, 201, 39, 3, 40, false, true, false, 0.1});  // odd sizes: blocks of draws are cut
    check_wgmma(kind, DType::bf16, {1, 70, 70, 1, 64, false, false, false, 1});    // nothing is kept
  });
}

/// Weights that are kept, one per element: of an identity for v they are y's, of an identity for dy they are dv's.
struct Kept {
  std::vector<bool> of_y, of_dv;
  bool operator==(const Kept&) const = default;
  double share() const {
    return static_cast<double>(std::count(of_y.begin(), of_y.end(), true)) / static_cast<double>(of_y.size());
  }
};

Kept kept_weights(DeviceKind kind, DType dtype, const AttentionReference& want) {
  AttentionCall run(kind, dtype, want);
  run.forward();
  run.backward();
  Kept kept;
  for (const double y : run.y()) kept.of_y.push_back(y != 0);
  for (const double dv : run.gradient(2)) kept.of_dv.push_back(dv != 0);
  return kept;
}

TEST(AttentionWgmma, DropsTheWeightsThatEveryOtherKernelDrops) {
  on_wgmma([](DeviceKind kind) {
    constexpr int64_t kSize = 128;
    AttentionReference want({1, kSize, kSize, 1, kSize, false, false, false, 0.4}, DType::bf16);
    for (std::vector<double>* const one : {&want.v, &want.dy})
      for (size_t i = 0; i < one->size(); ++i) (*one)[i] = i % (kSize + 1) == 0 ? 1 : 0;
    for (std::vector<double>* const one : {&want.q, &want.k})  // no weight comes near 0
      for (double& value : *one) value *= 0.1;
    Kept hopper, mma, fma;
    {
      const AttentionPlanScope scope({128});
      hopper = kept_weights(kind, DType::bf16, want);
      EXPECT_EQ(scope.uses(), 2);
    }
    {
      const kernels::CapabilityScope ampere(80);
      mma = kept_weights(kind, DType::bf16, want);
      fma = kept_weights(kind, DType::f32, want);
    }
    EXPECT_NEAR(hopper.share(), 0.6, 0.03);  // six deviations of 16384 draws are 0.023
    EXPECT_TRUE(hopper == mma);
    EXPECT_TRUE(hopper == fma);
    for (size_t i = 0; i < static_cast<size_t>(kSize); ++i)  // dv = p^T: the same weights, transposed
      for (size_t j = 0; j < static_cast<size_t>(kSize); ++j)
        ASSERT_EQ(hopper.of_dv[j * kSize + i], hopper.of_y[i * kSize + j]) << i << ' ' << j;
  });
}

/// More tiles than blocks: a block's rings go round and its owned tiles change places.
TEST(AttentionWgmma, OneBlockWalksOverManyTiles) {
  on_wgmma([](DeviceKind kind) {
    const kernels::MultiprocessorScope one(1);
    for (const int64_t D : {64, 128}) {
      check_wgmma(kind, DType::bf16, {2, 140, 190, 3, D, false, true});
      check_wgmma(kind, DType::bf16, {1, 400, 400, 2, D, true}, 128);
      check_wgmma(kind, DType::bf16, {2, 200, 200, 2, D, false, false, false, 0.2}, 128);
    }
    check_wgmma(kind, DType::bf16, {3, 197, 197, 3, 64}, kOneStepKeys);
    check_wgmma(kind, DType::f16, {2, 40, 140, 5, 64}, kOneStepKeys);
  });
}

TEST(AttentionWgmma, QueriesThatSeeNoKey) {
  on_wgmma([](DeviceKind kind) {
    AttentionReference want({2, 150, 150, 1, 64, true, true, true}, DType::bf16);
    want.lengths = {0, 150};
    std::fill(want.mask.begin(), want.mask.end(), 0.0);
    want.mask.back() = 1;  // the last query of the second entry sees its own key and nothing else
    AttentionCall run(kind, DType::bf16, want);
    const AttentionPlanScope scope({128});
    run.forward();
    run.backward();
    EXPECT_EQ(scope.uses(), 2);
    const std::vector<double> y = run.y(), lse = run.lse();
    for (size_t i = 0; i < y.size() - 64; ++i) ASSERT_EQ(y[i], 0);
    for (size_t i = 0; i < lse.size() - 1; ++i) ASSERT_EQ(lse[i], -std::numeric_limits<double>::infinity());
    for (size_t d = 0; d < 64; ++d) EXPECT_EQ(y[y.size() - 64 + d], want.v[want.v.size() - 64 + d]);
    std::vector<double> dv(want.v.size());
    std::copy(want.dy.end() - 64, want.dy.end(), dv.end() - 64);
    EXPECT_TRUE(near(run.gradient(2), dv, tolerance(DType::bf16)));
  });
}

TEST(AttentionWgmma, MemoryPastAnEntrysLengthMayBeAnything) {
  on_wgmma([](DeviceKind kind) {
    const AttentionPlan apart{128}, together{128, true};
    for (const auto& [causal, plan] : {std::pair{false, apart}, {true, apart}, {false, together}})
      for (const int64_t N : {150, 186}) {  // packed with k and v, and apart
        AttentionReference want({2, N, 186, 1, 64, causal, true}, DType::bf16);
        const double length = want.lengths.back();
        want.lengths = {length, length};
        want.compute();
        for (size_t b = 0; b < 2; ++b)
          for (size_t i = static_cast<size_t>(length) * 64; i < 186 * 64; ++i)
            want.k[b * 186 * 64 + i] = want.v[b * 186 * 64 + i] = NAN;
        AttentionCall run(kind, DType::bf16, want);
        const AttentionPlanScope scope(plan);
        run.forward();
        run.backward();
        EXPECT_EQ(scope.uses(), 2);
        EXPECT_TRUE(near(run.y(), want.y, tolerance(DType::bf16, 186, 8).times(2)));
        const Tolerance allowed = tolerance(DType::bf16, 2 * 186, 16).times(3);
        EXPECT_TRUE(near(run.gradient(0), want.dq, allowed));
        EXPECT_TRUE(near(run.gradient(1), want.dk, allowed));
        EXPECT_TRUE(near(run.gradient(2), want.dv, allowed));
      }
  });
}

TEST(AttentionWgmma, BackwardGivesTheSameBitsAgainAndInParts) {
  on_wgmma([](DeviceKind kind) {
    for (const double dropout : {0.0, 0.25}) {
      const AttentionReference want({2, 200, 200, 2, 64, true, false, false, dropout, 1, 150}, DType::bf16);
      AttentionCall run(kind, DType::bf16, want);
      const AttentionPlanScope scope({64});
      run.forward();
      run.backward();
      const auto dq = run.gradient(0), dk = run.gradient(1), dv = run.gradient(2);
      in_orders(1, [&] {
        run.poison();
        run.backward(true, false);
        EXPECT_TRUE(near(run.gradient(0), dq, {}));
        run.backward(false, true);
        EXPECT_TRUE(near(run.gradient(1), dk, {}));
        EXPECT_TRUE(near(run.gradient(2), dv, {}));
      });
      EXPECT_EQ(scope.uses(), 6);
    }
  });
}

/// dq, dk and dv of one kernel have the bits of two, with and without keys.
TEST(AttentionWgmma, OneBackwardKernelGivesTheBitsOfTwo) {
  on_wgmma([](DeviceKind kind) {
    AttentionReference want({3, 150, 197, 2, 64, false, true}, DType::bf16);
    want.lengths = {0, 197, 60};
    AttentionCall run(kind, DType::bf16, want);
    run.forward();
    const auto all = [&](bool joint) {
      const AttentionPlanScope scope({128, joint});
      run.poison();
      run.backward();
      return std::array{run.gradient(0), run.gradient(1), run.gradient(2)};
    };
    const auto apart = all(false);
    in_orders(2, [&] { EXPECT_EQ(all(true), apart); });
  });
}

TEST(AttentionWgmma, LeavesWhatItCannotDoToTheOtherKernels) {
  on_wgmma([](DeviceKind kind) {
    const AttentionPlanScope scope({64});
    check_attention(kind, DType::f32, {1, 20, 20, 1, 64});
    check_attention(kind, DType::bf16, {1, 20, 20, 1, 12});  // rows of 24 bytes
    check_attention(kind, DType::bf16, {1, 20, 20, 1, 136});
    check_attention(kind, DType::bf16, {1, 7, 0, 2, 64});
    check_attention(kind, DType::bf16, {1, 20, 20, 1, 12, false, false, false, 0.2});
    EXPECT_EQ(scope.uses(), 0);
  });
}

/// Keys that heads share have a stride of 0, which TMA does not take.
TEST(AttentionWgmma, SharedKeysRunOnTheOtherKernels) {
  on_wgmma([](DeviceKind kind) {
    constexpr int64_t kRows = 20, kHeads = 2;
    constexpr DType kType = DType::bf16;
    const View none = View::none();
    for (const int64_t D : {64, 128}) {
      const auto of_one = [&] { return uniform(kRows * D, kType); };
      const std::vector<double> keys = of_one(), values = of_one();
      const auto for_both = [&](const std::vector<double>& rows) {
        std::vector<double> both;
        for (auto row = rows.begin(); row != rows.end(); row += D)
          for (int64_t h = 0; h < kHeads; ++h) both.insert(both.end(), row, row + D);
        return both;
      };
      const Sizes sizes{1, kRows, kHeads, D}, shared{1, kRows, 1, D};
      const DeviceArray q(kind, kType, sizes, uniform(kRows * kHeads * D, kType));
      const DeviceArray k(kind, kType, sizes, for_both(keys)), v(kind, kType, sizes, for_both(values));
      const DeviceArray one_k(kind, kType, shared, keys), one_v(kind, kType, shared, values);
      const auto run = [&](const View& of_keys, const View& of_values) {
        const DeviceArray y(kind, kType, sizes), lse(kind, DType::f32, {1, kHeads, kRows});
        kernels::attention_forward(queue_on(kind), y, lse, q, of_keys, of_values, none, none, none,
                                   {.scale = 0.1, .random = {}});
        return y.host();
      };
      const auto repeated = [](View view) {
        view.sizes[2] = kHeads;
        view.strides[2] = 0;
        return view;
      };
      const AttentionPlanScope scope({64});
      const std::vector<double> want = run(k, v);
      EXPECT_EQ(scope.uses(), 1);
      EXPECT_TRUE(near(run(repeated(one_k), repeated(one_v)), want, tolerance(kType, kRows, 8))) << D;
      EXPECT_EQ(scope.uses(), 1);
    }
  });
}

// The plan for all keys in one step has neither causal masks nor lengths, dropout or shared keys.
TEST(AttentionWgmma, OneStepIsForPlainAttention) {
  on_wgmma([](DeviceKind kind) {
    check_attention(kind, DType::bf16, {1, 140, 140, 1, 64});
    check_attention(kind, DType::bf16, {1, 140, 140, 1, 64, true});
    check_attention(kind, DType::bf16, {2, 140, 140, 1, 64, false, true});
    check_attention(kind, DType::bf16, {1, 140, 140, 1, 64, false, false, false, 0.2});
    check_attention(kind, DType::bf16, {.B = 2, .N = 70, .M = 140, .H = 6, .D = 64, .G = 2});
  });
}

TEST(AttentionWgmma, OneLaunchForwardAndTwoOrThreeBackward) {
  on_wgmma([](DeviceKind kind) {
    if (!counts_launches()) return;
    const auto backward = [&](const AttentionProblem& problem) {
      AttentionCall run(kind, DType::bf16, AttentionReference(problem, DType::bf16));
      EXPECT_EQ(launches_of([&] { run.forward(); }), 1);
      EXPECT_EQ(launches_of([&] { run.backward(false); }), 2);
      return launches_of([&] { run.backward(); });
    };
    EXPECT_EQ(backward({1, 70, 70, 1, 64}), 2);
    EXPECT_EQ(backward({1, 70, 257, 1, 64}), 3);
    EXPECT_EQ(backward({1, 520, 70, 1, 64}), 3);
    EXPECT_EQ(backward({1, 70, 70, 1, 72}), 3);
    EXPECT_EQ(backward({1, 70, 70, 1, 64, false, false, false, 0.2}), 3);
    kernels::choose_variants("two_backward_kernels");
    EXPECT_EQ(backward({1, 70, 70, 1, 64}), 3);
    kernels::choose_variants("");
  });
}

TEST(AttentionWgmma, PlansFollowTheSizes) {
  EXPECT_EQ(kernels::attention_plan(4096, 128, true).keys, 128);
  EXPECT_EQ(kernels::attention_plan(197, 64, true).keys, kOneStepKeys);
  EXPECT_EQ(kernels::attention_plan(197, 64, false).keys, 128);  // 256 keys either way
  EXPECT_EQ(kernels::attention_plan(197, 80, true).keys, 128);
  EXPECT_EQ(kernels::attention_plan(257, 64, true).keys, 64);  // 320 keys instead of 384
  EXPECT_EQ(kernels::attention_plan(40, 64, true).keys, 64);
}

}  // namespace
}  // namespace weft::tests
