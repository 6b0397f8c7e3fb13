// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_lengths.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// The contract's lengths for engines that have other ones: kernels for the device cuda alone.

namespace weft::tests {
namespace {

constexpr DeviceKind kCuda = DeviceKind::cuda;

TEST(AttentionLengths, QueriesAndKeysWithinTheArrays) {
  if (!runs_on(kCuda)) GTEST_SKIP() << "needs the device cuda";
  std::vector<double> lengths = integers(300, -2, 9), want(300, 5);  // more than one block
  lengths[0] = -1, lengths[1] = 0, lengths[2] = 7, lengths[3] = 8, lengths[4] = double(int64_t{1} << 40);
  for (const double length : lengths) want.push_back(std::min(std::max(length, 0.0), 7.0));
  const DeviceArray from(kCuda, DType::i64, {300}, lengths), to(kCuda, DType::i32, {600});
  kernels::cuda::attention_lengths(queue_on(kCuda), static_cast<int32_t*>(to.view().data), from, 5, 7);
  EXPECT_EQ(to.host(), want);
}

/// Rows of [B, rows, H, D] from first[b] on must be zeros, the others as they were.
void expect_zeros(const std::vector<double>& now, const std::vector<double>& before, size_t rows, size_t row,
                  const std::vector<size_t>& first) {
  ASSERT_EQ(now.size(), before.size());
  for (size_t i = 0; i < now.size(); ++i)
    ASSERT_EQ(now[i], i / row % rows >= first[i / row / rows] ? 0 : before[i]) << i;
}

TEST(AttentionLengths, WhatNoQuerySeesBecomesZero) {
  if (!runs_on(kCuda)) GTEST_SKIP() << "needs the device cuda";
  constexpr int64_t B = 4, N = 11, M = 21, H = 3, D = 40;
  const DeviceArray lengths(kCuda, DType::i64, {B}, {0, 5, 21, -7});
  const std::vector<size_t> none{0, N, N, 0}, hidden{0, 5, 21, 0};
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto of_queries = uniform(B * N * H * D, dtype, 1, 2), of_keys = uniform(B * M * H * D, dtype, 1, 2);
    const auto statistics = uniform(B * H * N, DType::f32, 1, 2);
    const DeviceArray y(kCuda, dtype, {B, N, H, D}, of_queries), dq(kCuda, dtype, {B, N, H, D}, of_queries);
    const DeviceArray dk(kCuda, dtype, {B, M, H, D}, of_keys), dv(kCuda, dtype, {B, M, H, D}, of_keys);
    const DeviceArray lse(kCuda, DType::f32, {B, H, N}, statistics);
    kernels::cuda::attention_clear_results(queue_on(kCuda), y, lse, lengths);
    expect_zeros(y.host(), of_queries, N, H * D, none);
    const std::vector<double> sums = lse.host();
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_EQ(sums[i], none[i / (H * N)] == 0 ? -std::numeric_limits<double>::infinity() : statistics[i]) << i;
    kernels::cuda::attention_clear_gradients(queue_on(kCuda), dq, dk, dv, lengths);
    expect_zeros(dq.host(), of_queries, N, H * D, none);
    expect_zeros(dk.host(), of_keys, M, H * D, hidden);
    expect_zeros(dv.host(), of_keys, M, H * D, hidden);
  }
}

}  // namespace
}  // namespace weft::tests
