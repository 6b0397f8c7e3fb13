// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/several_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <sstream>
#include <thread>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "core/stream.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/zero_redundancy_optimizer.h"
#include "dist/group/functional.h"
#include "kernels/runtime/runtime.h"
#include "nn/batch_norm.h"
#include "optim/optimizers.h"
#include "tests/dist/fake_membership.h"
#include "tests/dist/memory_store.h"
#include "tests/support/error_text.h"
#include "train/strategy.h"

namespace weft::dist::testing {

void SeveralGpus::require(int gpus) {
  if (!WEFT_HAVE_NCCL) GTEST_SKIP() << "built without NCCL";
  if (kernels::runtime(DeviceKind::cuda).device_count() < gpus) GTEST_SKIP() << "needs " << gpus << " GPUs";
}

std::vector<std::string> errors_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                                        GroupOptions options, const std::shared_ptr<FakeJob>& job) {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank, options]() mutable {
      options.gpu = rank;
      const ThreadGenerators generators;  // as each process has
      ProcessGroupPtr group;
      try {
        const auto membership = job ? std::make_shared<FakeMembership>(job, rank) : nullptr;
        group = make_process_group("nccl", rank, size, store, membership, options);
        function(group);
        weft::synchronize(gpu(rank));
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        if (group) group->abort(str("rank ", rank, " ended with: ", error.what()));
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void run_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                 const std::shared_ptr<FakeJob>& job) {
  EXPECT_THAT(errors_on_gpus(size, function, {.timeout = kDeadline}, job), ::testing::Each(""));
}

size_t lines_with(const std::string& text, const std::string& part) {
  size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) count += line.find(part) != std::string::npos;
  return count;
}

namespace {

/// Rows of two columns: 100 rank + place.
std::vector<double> rows_of(int rank, int64_t rows) {
  std::vector<double> values;
  for (int64_t i = 0; i < 2 * rows; ++i) values.push_back(100 * rank + static_cast<double>(i));
  return values;
}

/// The values of the parts, one after the other.
std::vector<double> joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// This rank's part of rows [all, 2], of which rank r has rows[r].
std::vector<double> part_of(const std::vector<double>& all, const std::vector<int64_t>& rows, int rank) {
  const auto begin = all.begin() + 2 * std::accumulate(rows.begin(), rows.begin() + rank, int64_t{0});
  return {begin, begin + 2 * rows[static_cast<size_t>(rank)]};
}

TEST_F(SeveralGpus, RanksMeetAtSeveralRoots) {
  constexpr int kRanks = 4;
  require(kRanks);
  if (IsSkipped()) return;
  for (const int ranks_per_root : {1, 3, 4}) {
    const auto store = std::make_shared<MemoryStore>();
    std::vector<double> sums(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const GroupOptions options{.timeout = kDeadline, .gpu = rank, .nccl_ranks_per_root = ranks_per_root};
        const ProcessGroupPtr world = make_process_group("nccl", rank, kRanks, store, nullptr, options);
        const Tensor x = Tensor::full({1}, rank + 1, DType::f32, gpu(rank));
        world->all_reduce(x)->wait();
        sums[static_cast<size_t>(rank)] = x.item();
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(sums, ::testing::Each(10.0));
    EXPECT_EQ(store->find_all("nccl/1/id", kRanks + 1, Milliseconds(0)).size(),
              static_cast<size_t>((kRanks + ranks_per_root - 1) / ranks_per_root));
  }
}

// With equal parts nccl's own calls run, and with others groups of messages; small integers are added exactly.
TEST_F(SeveralGpus, CollectivesOfPartsAreTheirDefinition) {
  constexpr int kRanks = 4;
  require(kRanks);
  if (IsSkipped()) return;
  run_on_gpus(kRanks, [](const ProcessGroupPtr& world) {
    const int rank = world->rank();
    const Device device = gpu(rank);
    const auto tensor = [&](const std::vector<double>& values) {
      return Tensor::from(values).to(DType::f32).reshape({-1, 2}).to(device);
    };
    const auto empty = [&](int64_t rows) { return Tensor::full({rows, 2}, -1, DType::f32, device); };
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{2, 2, 2, 2}, {3, 0, 1, 2}}) {
      const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0}), own = rows[static_cast<size_t>(rank)];
      std::vector<std::vector<double>> each;
      std::vector<double> sums(static_cast<size_t>(2 * all));
      for (int r = 0; r < kRanks; ++r) {
        each.push_back(rows_of(r, rows[static_cast<size_t>(r)]));
        const std::vector<double> whole = rows_of(r, all);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += whole[i];
      }
      const CollectiveOptions options{.name = "x", .rows = rows};
      const Tensor mine = tensor(rows_of(rank, own)), whole = empty(all), part = empty(own);
      world->all_gather(whole, mine, options)->wait();
      EXPECT_EQ(whole.to_vector<double>(), joined(each));
      world->reduce_scatter(part, tensor(rows_of(rank, all)), ReduceOp::sum, options)->wait();
      EXPECT_EQ(part.to_vector<double>(), part_of(sums, rows, rank));
      for (int root = 0; root < kRanks; ++root) {
        const bool is_root = rank == root;
        const Tensor gathered = is_root ? empty(all) : Tensor();
        world->gather(gathered, mine, root, options)->wait();
        if (is_root) {
          EXPECT_EQ(gathered.to_vector<double>(), joined(each));
        }
        world->scatter(part, is_root ? tensor(rows_of(root, all)) : Tensor(), root, options)->wait();
        EXPECT_EQ(part.to_vector<double>(), part_of(rows_of(root, all), rows, rank));
        const Tensor x = tensor(rows_of(rank, all));
        world->reduce(x, root)->wait();
        EXPECT_EQ(x.to_vector<double>(), is_root ? sums : rows_of(rank, all));
      }
      // Rank r sends rank q rows[(q + r) % 4] rows, which is the same the other way round.
      std::vector<int64_t> exchanged;
      std::vector<std::vector<double>> arrived;
      for (int r = 0; r < kRanks; ++r) {
        std::vector<int64_t> theirs;
        for (int q = 0; q < kRanks; ++q) theirs.push_back(rows[static_cast<size_t>((q + r) % kRanks)]);
        exchanged.push_back(theirs[static_cast<size_t>(rank)]);
        arrived.push_back(part_of(rows_of(r, all), theirs, rank));
      }
      const Tensor output = empty(all), input = tensor(rows_of(rank, all)).requires_grad_();
      (rows[0] == rows[1] ? world->all_to_all(output, input) : world->all_to_all(output, input, exchanged, exchanged))
          ->wait();
      EXPECT_EQ(output.to_vector<double>(), joined(arrived));
      sum(all_to_all(input, world, exchanged, exchanged) * output).backward();
      EXPECT_EQ(input.grad().to_vector<double>(), rows_of(rank, all));
    }
    const Tensor least = tensor(rows_of(rank, 3));
    world->all_reduce(least, ReduceOp::min)->wait();
    EXPECT_EQ(least.to_vector<double>(), rows_of(0, 3));
    world->monitored_barrier(kDeadline, "all here");
  });
}

TEST_F(SeveralGpus, AMonitoredBarrierNamesAllThatAreMissing) {
  constexpr int kRanks = 4;
  require(kRanks);
  if (IsSkipped()) return;
  const auto job = std::make_shared<FakeJob>(kRanks);
  std::atomic<int> failed{0};
  run_on_gpus(
      kRanks,
      [&](const ProcessGroupPtr& world) {
        world->monitored_barrier(kDeadline, "all here");
        while (world->rank() >= 2 && failed < 2) std::this_thread::yield();
        if (world->rank() >= 2) return;
        EXPECT_THAT(error_text([&] { world->monitored_barrier(Milliseconds(2000), "step 7"); }),
                    ::testing::AllOf(::testing::HasSubstr("monitored_barrier #2 'step 7' of group world passed its "
                                                          "deadline of 2 s on rank "),
                                     ::testing::HasSubstr("missing rank 2 (process 102 on host2"),
                                     ::testing::HasSubstr("missing rank 3 (process 103 on host3")));
        ++failed;
      },
      job);
}

// Equal sums of gradients make equal steps, also of a parameter that is larger than a bucket.
TEST_F(SeveralGpus, ShardedOptimizerStateChangesNoBit) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const auto train = [&](bool shards) {
      const auto model = std::make_shared<Factor>(300'000, 0);
      model->to(device);
      DDP ddp(model, world, {.bucket_mb = 0.5});
      EXPECT_EQ(ddp.buckets().size(), 1u);
      const auto adamw = [](const optim::ParameterGroups& parts) {
        return std::make_unique<optim::AdamW>(parts, optim::AdamWOptions{.lr = 0.01});
      };
      const auto plain = shards ? nullptr : adamw(ddp.parameters());
      const auto zero = shards ? std::make_unique<ZeroRedundancyOptimizer>(ddp.parameters(), world, adamw) : nullptr;
      for (int step = 0; step < 3; ++step) {
        shards ? zero->zero_grad() : plain->zero_grad();
        const Tensor y = ddp(Tensor::full({1, 300'000}, 1 + 0.5 * world->rank(), DType::f32, device));
        mean(y * y).backward();
        shards ? zero->step() : plain->step();
      }
      return model->weight.to_vector<float>();
    };
    EXPECT_EQ(train(true), train(false));
  });
}

// The norms' small messages would queue behind the gradients' buckets in a communicator that they shared.
TEST_F(SeveralGpus, NormsHaveAGroupOfTheirOwn) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const auto norm = std::make_shared<nn::BatchNorm2d>(8);
    norm->to(device);
    const auto strategy =
        train::make_strategy({.kind = "ddp", .sync_batch_norm = true}, norm, World::around(world, device));
    const Tensor y = strategy->forward(Tensor::full({2, 3, 3, 8}, world->rank(), DType::f32, device));
    sum(y).backward();
    const float one = 2 * static_cast<float>(world->rank()) - 1;  // less the mean 1/2, by the deviation 1/2
    for (const float value : y.to_vector<float>()) ASSERT_NEAR(value, one, 1e-4);  // eps is 4e-5 of the variance
    EXPECT_EQ(lines_with(world->flight_log(), "batch statistics"), 0u);
  });
}

}  // namespace
}  // namespace weft::dist::testing
