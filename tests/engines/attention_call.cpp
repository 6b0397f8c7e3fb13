// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/calls.h"

#include <gtest/gtest.h>

#include "tests/engines/sdpa.h"

namespace weft::tests {
namespace {

TEST(Problem, AttentionsKeyHoldsAllThatAPlanDependsOn) {
  const Sdpa one{2, 128, 128, 4, 64, false, false, true};
  const kernels::vendor::Problem key = problem_of(one.call());
  const auto differs = [&](const auto& change) {
    Sdpa other = one;
    change(other);
    return !(problem_of(other.call()) == key);
  };
  EXPECT_FALSE(differs([](Sdpa& p) { p.arguments.scale = 2; }));  // given to each run
  EXPECT_FALSE(differs([](Sdpa& p) { p.q.data = Sdpa::address(0x7000); }));
  EXPECT_TRUE(differs([](Sdpa& p) { p.backward = false; }));
  EXPECT_TRUE(differs([](Sdpa& p) { p.arguments.causal = true; }));
  EXPECT_TRUE(differs([](Sdpa& p) { p.key_lengths = kernels::View::dense(Sdpa::address(0x7000), DType::i64, {2}); }));
  EXPECT_TRUE(differs([](Sdpa& p) { p.q.dtype = DType::f16; }));
  kernels::View Sdpa::*const views[] = {&Sdpa::q,  &Sdpa::k,  &Sdpa::v,  &Sdpa::y,
                                        &Sdpa::dy, &Sdpa::dq, &Sdpa::dk, &Sdpa::dv};
  for (kernels::View Sdpa::*const view : views)
    for (const int d : {0, 1, 2}) EXPECT_TRUE(differs([&](Sdpa& p) { (p.*view).strides[d] += 8; }));
  for (const int d : {0, 1, 2, 3}) EXPECT_TRUE(differs([&](Sdpa& p) { ++p.q.sizes[d]; }));
  EXPECT_TRUE(differs([](Sdpa& p) { ++p.k.sizes[1]; }));
}

}  // namespace
}  // namespace weft::tests
