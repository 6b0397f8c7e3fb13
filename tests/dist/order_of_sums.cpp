// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/dist/ranks.h"

namespace weft::dist::testing {
namespace {

/// The input of rank r; magnitudes differ so much that another order of addition gives other bits.
template <class T>
std::vector<T> values(int rank, int64_t count) {
  std::mt19937 random(static_cast<unsigned>(rank + 1));
  std::vector<T> result;
  for (int64_t i = 0; i < count; ++i) {
    const float fraction = static_cast<float>(random() % 100000) / 100000.0f - 0.5f;
    result.push_back(static_cast<T>(std::ldexp(fraction, static_cast<int>(random() % 20))));
  }
  return result;
}

/// ((x0 + x1) + x2) + …, in f32 (f64 for f64) from addend to addend.
template <class T>
std::vector<T> in_rank_order(int size, int64_t count) {
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<A> sum(static_cast<size_t>(count));
  for (int r = 0; r < size; ++r) {
    const std::vector<T> one = values<T>(r, count);
    for (size_t i = 0; i < one.size(); ++i) sum[i] = r == 0 ? static_cast<A>(one[i]) : sum[i] + static_cast<A>(one[i]);
  }
  return {sum.begin(), sum.end()};
}

template <class T>
bool same_bits(const Tensor& got, const T* want) {
  return std::memcmp(got.raw_data(), want, got.nbytes()) == 0;
}

class OrderOfSums : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(OrderOfSums, IsThatOfTheRanksForEveryElement) {
  const auto& [backend, size] = GetParam();
  const auto check = [&]<class T>(T) {
    // Several segments for each rank, more than are under way at once, and an odd rest.
    const int64_t count = 1'300'003 * size_of(DType::f32) / static_cast<int64_t>(sizeof(T)) / size * size;
    const std::vector<T> want = in_rank_order<T>(size, count);
    const auto sum = [&](const ProcessGroupPtr& group) {
      const Tensor x = Tensor::from(values<T>(group->rank(), count));
      const Tensor part = Tensor::empty({count / size}, x.dtype());
      group->reduce_scatter(part, x)->wait();
      EXPECT_TRUE(same_bits(part, want.data() + group->rank() * (count / size))) << x.dtype();
      const Tensor odd = Tensor::from(values<T>(group->rank(), count)).slice(0, 0, count - 1);
      group->all_reduce(odd)->wait();
      EXPECT_TRUE(same_bits(odd, want.data())) << x.dtype();
    };
    run_on(backend, size, sum, {.algorithms = Algorithms::own});
  };
  check(float());
  check(double());
  check(bf16(0));
  check(f16(0));
}

TEST_P(OrderOfSums, LargeBroadcastsAndGathersArriveWhole) {
  const auto& [backend, size] = GetParam();
  run_on(backend, size, [&](const ProcessGroupPtr& group) {
    const int64_t count = 1'300'003;
    const Tensor x = Tensor::from(values<float>(group->rank(), count));
    const Tensor all = Tensor::empty({group->size(), count});
    group->all_gather(all, x)->wait();
    for (int r = 0; r < group->size(); ++r) EXPECT_TRUE(same_bits(all.select(0, r), values<float>(r, count).data()));
    group->broadcast(x, group->size() - 1)->wait();
    EXPECT_TRUE(same_bits(x, values<float>(group->size() - 1, count).data()));
  });
}

INSTANTIATE_TEST_SUITE_P(, OrderOfSums,
                         ::testing::Combine(::testing::ValuesIn(backends()), ::testing::Values(1, 2, 3, 4)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::to_string(std::get<1>(param.param));
                         });

}  // namespace
}  // namespace weft::dist::testing
