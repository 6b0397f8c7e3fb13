// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_lengths.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// The contract's lengths for engines that have other ones. Kernels for the device cuda, run on simt.

namespace weft::tests {
namespace {

constexpr DeviceKind kSimt = DeviceKind::simt;

/// In both orders of the emulated GPU's threads.
template <class Body>
void on_simt(Body&& body) {
  if (!runs_on(kSimt)) GTEST_SKIP() << "needs the device simt";
  for (const DeviceKind kind : device_runs())
    if (kind == kSimt) body();
}

TEST(AttentionLengths, QueriesAndKeysWithinTheArrays) {
  std::vector<double> lengths = integers(300, -2, 9), want(300, 5);  // more than one block
  lengths[0] = -1, lengths[1] = 0, lengths[2] = 7, lengths[3] = 8, lengths[4] = double(int64_t{1} << 40);
  for (const double length : lengths) want.push_back(std::min(std::max(length, 0.0), 7.0));
  const DeviceArray from(kSimt, DType::i64, {300}, lengths), to(kSimt, DType::i32, {600});
  on_simt([&] {
    kernels::simt::attention_lengths(queue_on(kSimt), static_cast<int32_t*>(to.view().data), from, 5, 7);
    EXPECT_EQ(to.host(), want);
  });
}

/// Rows of [B, rows, H, D] from first[b] on must be zeros, the others as they were.
void expect_zeros(const std::vector<double>& now, const std::vector<double>& before, size_t rows, size_t row,
                  const std::vector<size_t>& first) {
  ASSERT_EQ(now.size(), before.size());
  for (size_t i = 0; i < now.size(); ++i)
    ASSERT_EQ(now[i], i / row % rows >= first[i / row / rows] ? 0 : before[i]) << i;
}

void expect_hidden_cleared() {
  constexpr int64_t B = 4, N = 11, M = 21, H = 3, D = 40;
  const DeviceArray lengths(kSimt, DType::i64, {B}, {0, 5, 21, -7});
  const std::vector<size_t> none{0, N, N, 0}, hidden{0, 5, 21, 0};
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto of_queries = uniform(B * N * H * D, dtype, 1, 2), of_keys = uniform(B * M * H * D, dtype, 1, 2);
    const auto statistics = uniform(B * H * N, DType::f32, 1, 2);
    const DeviceArray y(kSimt, dtype, {B, N, H, D}, of_queries), dq(kSimt, dtype, {B, N, H, D}, of_queries);
    const DeviceArray dk(kSimt, dtype, {B, M, H, D}, of_keys), dv(kSimt, dtype, {B, M, H, D}, of_keys);
    const DeviceArray lse(kSimt, DType::f32, {B, H, N}, statistics);
    kernels::simt::attention_clear_results(queue_on(kSimt), y, lse, lengths);
    expect_zeros(y.host(), of_queries, N, H * D, none);
    const std::vector<double> sums = lse.host();
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_EQ(sums[i], none[i / (H * N)] == 0 ? -std::numeric_limits<double>::infinity() : statistics[i]) << i;
    kernels::simt::attention_clear_gradients(queue_on(kSimt), dq, dk, dv, lengths);
    expect_zeros(dq.host(), of_queries, N, H * D, none);
    expect_zeros(dk.host(), of_keys, M, H * D, hidden);
    expect_zeros(dv.host(), of_keys, M, H * D, hidden);
  }
}

TEST(AttentionLengths, WhatNoQuerySeesBecomesZero) { on_simt(expect_hidden_cleared); }

}  // namespace
}  // namespace weft::tests
