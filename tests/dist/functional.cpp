// SPDX-License-Identifier: Apache-2.0
#include "dist/group/functional.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "nn/linear.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

constexpr int64_t kColumns = 2;

/// Small integers, which sums and products keep exact.
std::vector<double> integers(uint64_t seed, int64_t rows) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kColumns; ++i) values.push_back(static_cast<double>(random() % 9) - 4);
  return values;
}
Tensor matrix(const std::vector<double>& values) {
  return Tensor::from(values).reshape({static_cast<int64_t>(values.size()) / kColumns, kColumns});
}

/// The rows of rank `rank` in a matrix with rows[r] for each.
std::vector<double> part_of(const std::vector<double>& all, const std::vector<int64_t>& rows, int rank) {
  const auto begin = all.begin() + kColumns * std::accumulate(rows.begin(), rows.begin() + rank, int64_t{0});
  return {begin, begin + kColumns * rows[static_cast<size_t>(rank)]};
}
std::vector<double> joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
std::vector<double> summed(const std::vector<std::vector<double>>& terms) {
  std::vector<double> sum(terms.front().size());
  for (const auto& term : terms)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  return sum;
}

class Functional : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  /// rows[from][to]: of an all_to_all.
  std::vector<std::vector<int64_t>> rows(bool even) const {
    std::vector<std::vector<int64_t>> table;
    for (int from = 0; from < size_; ++from)
      for (int to = 0; to < size_; ++to) {
        if (to == 0) table.emplace_back();
        table.back().push_back(even ? 3 : (from + 2 * to) % 4);
      }
    return table;
  }

  const std::string backend_ = std::get<0>(GetParam());
  const int size_ = std::get<1>(GetParam());
};

/// x and dy of each rank give y and dx of this one: y by `forward`, dx of sum over the ranks of sum(dy y).
void expect_gradient(const Tensor& x, const Tensor& dy, const std::vector<double>& y_wanted,
                     const std::vector<double>& dx_wanted, const std::function<Tensor(const Tensor&)>& forward) {
  x.requires_grad_();
  const Tensor y = forward(x);
  EXPECT_EQ(y.to_vector<double>(), y_wanted);
  sum(y * dy).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), dx_wanted);
}

TEST_P(Functional, GradientsAreThoseOfTheSumOfAllRanksLosses) {
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    const int rank = group->rank();
    for (const bool even : {true, false}) {
      const auto table = rows(even);
      const std::vector<int64_t> parts = table.front();
      const std::vector<int64_t> given = even ? std::vector<int64_t>() : parts;
      const int64_t all = std::accumulate(parts.begin(), parts.end(), int64_t{0});
      std::vector<std::vector<double>> small, small_too, large, large_too, sent, back, arrived, left;
      for (int r = 0; r < size_; ++r) {
        const auto seed = static_cast<uint64_t>(10 * r);
        small.push_back(integers(seed, parts[static_cast<size_t>(r)]));
        large.push_back(integers(seed + 1, all));
        large_too.push_back(integers(seed + 2, all));
        const auto& row = table[static_cast<size_t>(r)];
        sent.push_back(integers(seed + 3, std::accumulate(row.begin(), row.end(), int64_t{0})));
      }
      const auto own = static_cast<size_t>(rank);
      expect_gradient(matrix(large[own]), matrix(large_too[own]), summed(large), summed(large_too),
                      [&](const Tensor& x) { return all_reduce(x, group); });
      expect_gradient(matrix(small[own]), matrix(large[own]), joined(small), part_of(summed(large), parts, rank),
                      [&](const Tensor& x) { return all_gather(x, group, given); });
      expect_gradient(matrix(large[own]), matrix(small[own]), part_of(summed(large), parts, rank), joined(small),
                      [&](const Tensor& x) { return reduce_scatter(x, group, given); });

      std::vector<int64_t> received;
      for (int r = 0; r < size_; ++r) {
        received.push_back(table[static_cast<size_t>(r)][own]);
        arrived.push_back(part_of(sent[static_cast<size_t>(r)], table[static_cast<size_t>(r)], rank));
      }
      // Each element has one gradient: itself, when dy is y.
      const std::vector<double> y = joined(arrived);
      expect_gradient(matrix(sent[own]), matrix(y), y, sent[own], [&](const Tensor& x) {
        return even ? all_to_all(x, group) : all_to_all(x, group, received, table[own]);
      });
    }
  });
}

/// SimCLR's loss (Chen et al. 2020) of this rank's rows, two views of each of its samples, among those of all ranks.
Tensor contrastive_loss(const Tensor& z, const ProcessGroupPtr& group, int64_t blocks) {
  const Tensor own = z / norm(z, {1}, true), all = all_gather(own, group);
  const int64_t rows = own.size(0), block = rows / blocks, first = group->rank() * rows;
  Tensor self = Tensor::zeros({rows, all.size(0)}, z.dtype());
  std::vector<int64_t> others;
  for (int64_t i = 0; i < rows; ++i) {
    self.select(0, i).select(0, first + i).fill_(-1e9);
    others.push_back(first + i / block * block + (i % block + block / 2) % block);
  }
  return cross_entropy(matmul(own, all.transpose(0, 1)) * 2 + self, Tensor::from(others));
}

TEST_P(Functional, AContrastiveLossOverRanksIsThatOfOneRank) {
  constexpr int64_t kRows = 6, kWidth = 5;
  const auto build_encoder = [] {
    return build([] { return std::make_shared<nn::Linear>(5, 4); }, 7, DeviceKind::cpu);
  };
  const auto images = [](int64_t first, int64_t count) {
    return samples(0, first, count, {kWidth}, DeviceKind::cpu).to(DType::f64);
  };
  const auto alone = build_encoder();
  alone->to(DType::f64);
  const Tensor want = contrastive_loss((*alone)(images(0, size_ * kRows)), make_process_group_alone(), size_);
  want.backward();
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    const auto model = build_encoder();
    model->to(DType::f64);
    DDP ddp(model, group);
    const Tensor loss = contrastive_loss(ddp(images(group->rank() * kRows, kRows)), group, 1);
    loss.backward();
    const Tensor mean = loss.detach().clone();
    group->all_reduce(mean, ReduceOp::avg)->wait();
    const tests::Tolerance tolerance = tests::tolerance(DType::f64, size_ * kRows * kWidth);
    EXPECT_TRUE(tests::near(mean.to_vector<double>(), want.to_vector<double>(), tolerance));
    EXPECT_TRUE(tests::near(gradients_of(*model), gradients_of(*alone), tolerance));
  });
}

INSTANTIATE_TEST_SUITE_P(, Functional, ::testing::Combine(::testing::ValuesIn(backends()), ::testing::Values(1, 2, 4)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::to_string(std::get<1>(param.param));
                         });

TEST(FunctionalErrors, NameTheOp) {
  const ProcessGroupPtr group = make_process_group_alone();
  EXPECT_EQ(error_text([&] { all_gather(Tensor::ones({}), group); }),
            "all_gather: expected a tensor of at least one dimension, got f32[] on cpu");
  EXPECT_EQ(error_text([&] { all_reduce({}, group); }), "all_reduce: expected a tensor, got none");
  EXPECT_EQ(error_text([&] { all_to_all(Tensor::ones({2}), nullptr); }), "all_to_all: expected a group, got none");
  EXPECT_EQ(error_text([&] { reduce_scatter(Tensor::ones({2}), group, {1}); }),
            "reduce_scatter 'differentiable' on rank 0: input f32[2] on cpu: expected as many rows as {1} together");
  run_ranks(2, [](const ProcessGroupPtr& two) {
    EXPECT_EQ(error_text([&] {
                reduce_scatter(Tensor::ones({3, 2}), two);
              }),
              "reduce_scatter: expected rows that divide by 2 ranks, got f32[3,2] on cpu");
  });
}

}  // namespace
}  // namespace weft::dist::testing
