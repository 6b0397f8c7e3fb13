// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "tests/dist/ranks.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::dist::testing {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};
constexpr int64_t kCounts[] = {0, 1, 7, 1024, 5003};
constexpr int64_t kLarge = 600'003;  // several segments for each rank, and an odd rest

/// The values of rank `rank`: the same on all calling ranks, and exact in `dtype`.
std::vector<double> values(uint64_t seed, int rank, int64_t count, DType dtype) {
  std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(rank));
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i) {
    const auto integer = static_cast<int>(random() % 61);
    if (dtype == DType::u8)
      result.push_back(integer);
    else if (!is_floating(dtype))
      result.push_back(integer - 30);
    else
      result.push_back((static_cast<double>(random() % 4096) - 2048) / 1024);
  }
  const Tensor rounded = Tensor::from(result).to(dtype);
  return rounded.to_vector<double>();
}

Tensor tensor(const std::vector<double>& host, DType dtype, DeviceKind kind) {
  return Tensor::from(host).to(dtype).to(Device{kind, 0});
}

std::vector<double> reduced(uint64_t seed, int size, int64_t count, DType dtype, ReduceOp op,
                            const std::vector<double>& factors = {}, bool magnitudes = false) {
  std::vector<double> result;
  for (int r = 0; r < size; ++r) {
    std::vector<double> one = values(seed, r, count, dtype);
    if (magnitudes)
      for (double& value : one) value = std::abs(value);
    for (size_t i = 0; i < one.size(); ++i) {
      const double value = factors.empty() ? one[i] : one[i] * factors[static_cast<size_t>(r)];
      if (r == 0)
        result.push_back(value);
      else if (op == ReduceOp::max || op == ReduceOp::min)
        result[i] = op == ReduceOp::max ? std::max(result[i], value) : std::min(result[i], value);
      else
        result[i] += value;
    }
  }
  if (op == ReduceOp::avg)
    for (double& value : result) value /= size;
  return result;
}

bool is_ours(const std::string& backend) { return !backend.ends_with("_library"); }

/// Ours round the result alone. A library rounds each of its size - 1 partial sums, and an average once more: by
/// Higham's bound each element errs by at most size * u * (the sum of its terms' magnitudes), however much they cancel.
::testing::AssertionResult near_sum(const std::vector<double>& got, const std::vector<double>& want,
                                    const std::string& backend, DType dtype, int size,
                                    const std::vector<double>& terms) {
  const tests::Tolerance tolerance = tests::tolerance(dtype, size);
  return is_ours(backend) ? tests::near(got, want, tolerance) : tests::near(got, want, tolerance.times(size), terms);
}

class Collectives : public ::testing::TestWithParam<std::tuple<std::string, DeviceKind, int>> {
 protected:
  const std::string backend_ = std::get<0>(GetParam());
  const DeviceKind device_ = std::get<1>(GetParam());
  const int size_ = std::get<2>(GetParam());
  const uint64_t seed_ = shared_seed();

  /// Calls body(group, dtype, count) on every rank, for all dtypes and counts.
  template <class Body>
  void for_all(Body body) {
    run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
      EXPECT_EQ(group->size(), size_);
      for (const DType dtype : kTypes)
        for (const int64_t count : kCounts) body(*group, dtype, count);
    });
  }
};

TEST_P(Collectives, AllReduce) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
      if (op == ReduceOp::avg && !is_floating(dtype)) continue;
      const Tensor x = tensor(values(seed_, group.rank(), count, dtype), dtype, device_);
      group.all_reduce(x, op, {.name = "x"})->wait();
      EXPECT_TRUE(near_sum(x.to_vector<double>(), reduced(seed_, size_, count, dtype, op), backend_, dtype, size_,
                           reduced(seed_, size_, count, dtype, op, {}, true)))
          << dtype << ' ' << count << ' ' << name(op);
    }
  });
}

TEST_P(Collectives, ReduceScatter) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    const std::vector<double> want = reduced(seed_, size_, count * size_, dtype, ReduceOp::sum);
    const std::vector<double> part(want.begin() + group.rank() * count, want.begin() + (group.rank() + 1) * count);
    const std::vector<double> mine = values(seed_, group.rank(), count * size_, dtype);
    const Tensor input = tensor(mine, dtype, device_);
    const Tensor output = Tensor::empty({count}, dtype, {device_, 0});
    group.reduce_scatter(output, input, ReduceOp::sum, {.name = "y"})->wait();
    const std::vector<double> all = reduced(seed_, size_, count * size_, dtype, ReduceOp::sum, {}, true);
    const std::vector<double> terms(all.begin() + group.rank() * count, all.begin() + (group.rank() + 1) * count);
    EXPECT_TRUE(near_sum(output.to_vector<double>(), part, backend_, dtype, size_, terms)) << dtype << ' ' << count;
    EXPECT_EQ(input.to_vector<double>(), mine);

    const Tensor own = input.slice(0, group.rank() * count, count);
    group.reduce_scatter(own, input)->wait();
    EXPECT_EQ(own.to_vector<double>(), output.to_vector<double>());
  });
}

TEST_P(Collectives, AllGather) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    std::vector<double> want;
    for (int r = 0; r < size_; ++r) {
      const std::vector<double> one = values(seed_, r, count, dtype);
      want.insert(want.end(), one.begin(), one.end());
    }
    const Tensor input = tensor(values(seed_, group.rank(), count, dtype), dtype, device_);
    const Tensor output = Tensor::empty({size_, count}, dtype, {device_, 0});
    group.all_gather(output, input)->wait();
    EXPECT_EQ(output.to_vector<double>(), want) << dtype << ' ' << count;

    const Tensor whole = Tensor::zeros({size_ * count}, dtype, {device_, 0});
    const Tensor own = whole.slice(0, group.rank() * count, count);
    own.copy_(input);
    group.all_gather(whole, own)->wait();
    EXPECT_EQ(whole.to_vector<double>(), want);
  });
}

TEST_P(Collectives, Broadcast) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    for (int root = 0; root < size_; ++root) {
      const Tensor x = tensor(values(seed_, group.rank(), count, dtype), dtype, device_);
      group.broadcast(x, root)->wait();
      EXPECT_EQ(x.to_vector<double>(), values(seed_, root, count, dtype)) << dtype << ' ' << count << ' ' << root;
    }
  });
}

TEST_P(Collectives, Reduce) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min})
      for (int root = 0; root < size_; ++root) {
        if (op == ReduceOp::avg && !is_floating(dtype)) continue;
        const std::vector<double> mine = values(seed_, group.rank(), count, dtype);
        const Tensor x = tensor(mine, dtype, device_);
        group.reduce(x, root, op, {.name = "x"})->wait();
        if (group.rank() != root) {
          EXPECT_EQ(x.to_vector<double>(), mine) << "the others' stay";
        } else {  // ours, where a library has no such one
          EXPECT_TRUE(near_sum(x.to_vector<double>(), reduced(seed_, size_, count, dtype, op), "", dtype, size_, {}))
              << dtype << ' ' << count << ' ' << name(op) << ' ' << root;
        }
      }
  });
}

constexpr int64_t kColumns = 3;

/// Rows of rank r: none of rank 1's.
std::vector<int64_t> uneven_rows(int size, int64_t count) {
  std::vector<int64_t> rows;
  for (int r = 0; r < size; ++r) rows.push_back(r == 1 ? 0 : count + r);
  return rows;
}

/// The elements of rank `rank`'s part.
std::vector<double> part_of(const std::vector<double>& all, const std::vector<int64_t>& rows, int rank) {
  const auto begin = all.begin() + kColumns * std::accumulate(rows.begin(), rows.begin() + rank, int64_t{0});
  return {begin, begin + kColumns * rows[static_cast<size_t>(rank)]};
}

TEST_P(Collectives, GatherAndScatter) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    for (const bool even : {true, false})
      for (int root = 0; root < size_; ++root) {
        const int rank = group.rank();
        const std::vector<int64_t> rows =
            even ? std::vector<int64_t>(static_cast<size_t>(size_), count) : uneven_rows(size_, count);
        const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0});
        const std::vector<double> whole = values(seed_, root, all * kColumns, dtype);
        const std::vector<double> mine = part_of(whole, rows, rank);
        const Tensor input = tensor(whole, dtype, device_).reshape({all, kColumns});
        const Tensor part = Tensor::empty({rows[static_cast<size_t>(rank)], kColumns}, dtype, {device_, 0});
        const CollectiveOptions options{.name = "x", .rows = even ? std::vector<int64_t>() : rows};
        group.scatter(part, rank == root ? input : Tensor(), root, options)->wait();
        EXPECT_EQ(part.to_vector<double>(), mine) << dtype << ' ' << count << ' ' << even << ' ' << root;
        const Tensor back = rank == root ? Tensor::empty({all, kColumns}, dtype, {device_, 0}) : Tensor();
        group.gather(back, part, root, options)->wait();
        if (rank != root) continue;
        EXPECT_EQ(back.to_vector<double>(), whole) << dtype << ' ' << count << ' ' << even;
      }
  });
}

TEST_P(Collectives, UnevenAllGatherAndReduceScatter) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    const std::vector<int64_t> rows = uneven_rows(size_, count);
    const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    const int64_t own = rows[static_cast<size_t>(group.rank())];
    std::vector<double> want;
    for (int r = 0; r < size_; ++r) {
      const std::vector<double> one = values(seed_, r, rows[static_cast<size_t>(r)] * kColumns, dtype);
      want.insert(want.end(), one.begin(), one.end());
    }
    const Tensor part = tensor(part_of(want, rows, group.rank()), dtype, device_).reshape({own, kColumns});
    const Tensor whole = Tensor::empty({all, kColumns}, dtype, {device_, 0});
    group.all_gather(whole, part, {.name = "x", .rows = rows})->wait();
    EXPECT_EQ(whole.to_vector<double>(), want) << dtype << ' ' << count;

    const std::vector<double> sums = reduced(seed_, size_, all * kColumns, dtype, ReduceOp::sum);
    const Tensor input = tensor(values(seed_, group.rank(), all * kColumns, dtype), dtype, device_);
    group.reduce_scatter(part, input.reshape({all, kColumns}), ReduceOp::sum, {.name = "x", .rows = rows})->wait();
    EXPECT_TRUE(near_sum(part.to_vector<double>(), part_of(sums, rows, group.rank()), "", dtype, size_, {}))
        << dtype << ' ' << count;
  });
}

TEST_P(Collectives, AllToAll) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    const int rank = group.rank();
    for (const bool even : {true, false}) {
      const auto rows = [&](int from, int to) { return even ? count : (count + from + 2 * to) % 5 * (count / 5 + 1); };
      const auto sent = [&](int from) {
        std::vector<int64_t> list;
        for (int to = 0; to < size_; ++to) list.push_back(rows(from, to));
        return list;
      };
      const auto input_of = [&](int from) {
        const std::vector<int64_t> list = sent(from);
        return values(seed_, from, kColumns * std::accumulate(list.begin(), list.end(), int64_t{0}), dtype);
      };
      std::vector<double> want;
      std::vector<int64_t> received;
      for (int r = 0; r < size_; ++r) {
        received.push_back(rows(r, rank));
        const std::vector<double> one = part_of(input_of(r), sent(r), rank);
        want.insert(want.end(), one.begin(), one.end());
      }
      const Tensor input = tensor(input_of(rank), dtype, device_).reshape({-1, kColumns});
      const Tensor output =
          Tensor::empty({static_cast<int64_t>(want.size()) / kColumns, kColumns}, dtype, {device_, 0});
      (even ? group.all_to_all(output, input, {.name = "x"})
            : group.all_to_all(output, input, received, sent(rank), {.name = "x"}))
          ->wait();
      EXPECT_EQ(output.to_vector<double>(), want) << dtype << ' ' << count << ' ' << even;
    }
  });
}

TEST_P(Collectives, SendAndReceive) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    // Everybody sends to everybody before anybody receives.
    std::vector<WorkPtr> sends;
    for (int r = 0; r < size_; ++r) {
      if (r == group.rank()) continue;
      const Tensor x = tensor(values(seed_ + static_cast<uint64_t>(r), group.rank(), count, dtype), dtype, device_);
      sends.push_back(group.send(x, r, {.name = "message"}));
    }
    for (int r = 0; r < size_; ++r) {
      if (r == group.rank()) continue;
      const Tensor x = Tensor::empty({count}, dtype, {device_, 0});
      group.receive(x, r, {.name = "message"})->wait();
      EXPECT_EQ(x.to_vector<double>(), values(seed_ + static_cast<uint64_t>(group.rank()), r, count, dtype));
    }
    for (const WorkPtr& work : sends) work->wait();
  });
}

TEST_P(Collectives, EachRankHasItsFactor) {
  for_all([&](ProcessGroup& group, DType dtype, int64_t count) {
    if (!is_floating(dtype)) return;
    std::vector<double> factors;
    for (int r = 0; r < size_; ++r) factors.push_back(1.0 / (3 + r));
    const Tensor factor =
        Tensor::from<float>({static_cast<float>(factors[static_cast<size_t>(group.rank())])}).to({device_, 0});
    const std::vector<double> want = reduced(seed_, size_, count * size_, dtype, ReduceOp::sum, factors);
    const Tensor x = tensor(values(seed_, group.rank(), count * size_, dtype), dtype, device_);
    const std::vector<double> before = x.to_vector<double>();
    const Tensor part = Tensor::empty({count}, dtype, {device_, 0});
    group.reduce_scatter(part, x, ReduceOp::sum, {.name = "x", .scale = factor})->wait();
    EXPECT_EQ(x.to_vector<double>(), before);
    group.all_reduce(x, ReduceOp::sum, {.name = "x", .scale = factor})->wait();
    // Each product is rounded to the dtype before the addition (the factor is f32). So terms that cancel leave an error
    // of their own size.
    const tests::Tolerance tolerance =
        tests::tolerance(dtype == DType::f64 ? DType::f32 : dtype, size_).times(is_ours(backend_) ? 1 : size_ + 1);
    const std::vector<double> terms = reduced(seed_, size_, count * size_, dtype, ReduceOp::sum, factors, true);
    const auto check = [&](const std::vector<double>& got) { return tests::near(got, want, tolerance, terms); };
    EXPECT_TRUE(check(x.to_vector<double>())) << dtype << ' ' << count;
    const Tensor own = x.slice(0, group.rank() * count, count);
    if (is_ours(backend_)) {
      EXPECT_EQ(part.to_vector<double>(), own.to_vector<double>());
    } else {
      std::vector<double> whole = x.to_vector<double>();
      const std::vector<double> mine = part.to_vector<double>();
      std::copy(mine.begin(), mine.end(), whole.begin() + group.rank() * count);
      EXPECT_TRUE(check(whole)) << dtype << ' ' << count;
    }
  });
}

TEST_P(Collectives, LargeTensors) {
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    const int rank = group->rank();
    const std::vector<double> mine = values(seed_, rank, kLarge, DType::f32);
    const Tensor x = tensor(mine, DType::f32, device_);
    const Tensor all = Tensor::empty({size_, kLarge}, DType::f32, {device_, 0});
    group->all_gather(all, x)->wait();
    for (int r = 0; r < size_; ++r)
      EXPECT_EQ(all.select(0, r).to_vector<double>(), values(seed_, r, kLarge, DType::f32));
    // Every rank has the same `all`, so part r of its sum is size_ times what rank r has.
    const Tensor part = Tensor::empty({kLarge}, DType::f32, {device_, 0});
    group->reduce_scatter(part, all, ReduceOp::avg)->wait();
    EXPECT_TRUE(tests::near(part.to_vector<double>(), mine,
                            tests::tolerance(DType::f32, size_).times(is_ours(backend_) ? 1 : size_)));
    group->all_reduce(x)->wait();
    EXPECT_TRUE(tests::near(x.to_vector<double>(), reduced(seed_, size_, kLarge, DType::f32, ReduceOp::sum),
                            tests::tolerance(DType::f32, size_).times(is_ours(backend_) ? 1 : size_)));
    group->broadcast(part, size_ - 1)->wait();
    EXPECT_TRUE(tests::near(part.to_vector<double>(), values(seed_, size_ - 1, kLarge, DType::f32),
                            tests::tolerance(DType::f32, size_).times(is_ours(backend_) ? 1 : size_)));
  });
}

TEST_P(Collectives, TheLargestAndSmallestOfNanAreNan) {
  run_on(backend_, size_, [&](const ProcessGroupPtr& group) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (int who = 0; who < size_; ++who) {
        const Tensor x = tensor({group->rank() == who ? NAN : 1, 2}, dtype, device_);
        const Tensor y = x.clone();
        group->all_reduce(x, ReduceOp::max)->wait();
        group->all_reduce(y, ReduceOp::min)->wait();
        for (const Tensor& most : {x, y}) {
          EXPECT_TRUE(std::isnan(most.to_vector<double>()[0])) << dtype << ' ' << who;
          EXPECT_EQ(most.to_vector<double>()[1], 2);
        }
      }
  });
}

INSTANTIATE_TEST_SUITE_P(, Collectives,
                         ::testing::Combine(::testing::ValuesIn(with_libraries(backends())),
                                            ::testing::ValuesIn(tests::test_devices()), ::testing::Values(1, 2, 3, 4)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::string(name(std::get<1>(param.param))) + "_" +
                                  std::to_string(std::get<2>(param.param));
                         });

}  // namespace
}  // namespace weft::dist::testing
