// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "core/autograd.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "nn/sequential.h"
#include "optim/optimizers.h"
#include "tests/dist/fsdp/sharded_training.h"

namespace weft::dist::testing {
namespace {

using ::testing::ElementsAreArray;

/// A rank's costs for some steps of a tower of blocks.
struct Costs {
  std::vector<std::vector<std::string>> events;  ///< per step
  std::vector<uint64_t> sent;                    ///< per step, without the count of samples
  std::vector<size_t> units;                     ///< gathered bytes of each, the root first
  std::vector<int64_t> flat;                     ///< elements of each, padding included
  size_t peak = 0, shards = 0;
  int64_t parameters = 0;
};

/// The measured model.
struct Stack {
  bool with_ends = true;   ///< parameters of the root's own
  bool recompute = false;  ///< each block inside checkpoint(); with ends only
  int64_t width = 16;
  int blocks = 4;
};

std::shared_ptr<nn::Module> make(const Stack& stack) {
  if (stack.with_ends) {
    const auto tower = std::make_shared<Tower>(6, stack.width, stack.blocks, 4);
    tower->checkpoint_blocks = stack.recompute;
    return tower;
  }
  std::vector<std::shared_ptr<nn::Module>> all;
  for (int i = 0; i < stack.blocks; ++i) all.push_back(std::make_shared<Block>(stack.width));
  return std::make_shared<nn::Sequential>(std::move(all));
}

Costs measure(int ranks, const FsdpOptions& options, int steps, const Stack& stack = {}) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(make(stack));
  Costs costs;
  for (const NamedTensor& parameter : models[0]->parameters()) costs.parameters += parameter.tensor.numel();
  run_ranks(ranks, [&](const ProcessGroupPtr& group) {
    const bool first = group->rank() == 0;
    FsdpOptions own = options;
    own.policy = {.kinds = {"Block"}};
    std::vector<std::string> events;
    if (first) own.on_event = [&](const FsdpEvent& event) { events.push_back(str(name(event.kind), ' ', event.unit)); };
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group, own);
    optim::SGD sgd(fsdp.parameters(), {.lr = 0.01});
    const Tensor x = Tensor::ones({2, stack.with_ends ? 6 : stack.width}),
                 target = Tensor::zeros({2, stack.with_ends ? 4 : stack.width});
    for (int step = 0; step < steps; ++step) {
      const uint64_t before = group->bytes_sent();
      events.clear();
      sgd.zero_grad();
      loss_of(fsdp(x), target).backward();
      sgd.step();
      if (!first) continue;
      const uint64_t count = ranks == 1 ? 0 : 2 * 8 * static_cast<uint64_t>(ranks - 1) / static_cast<uint64_t>(ranks);
      costs.sent.push_back(group->bytes_sent() - before - count);
      costs.events.push_back(events);
    }
    if (!first) return;
    EXPECT_EQ(fsdp.gathered_bytes(), 0u);
    costs.peak = fsdp.peak_gathered_bytes();
    costs.shards = fsdp.shard_bytes();
    for (const auto& unit : fsdp.units()) {
      costs.units.push_back(unit->gathered_bytes());
      int64_t numel = 0;
      for (const auto& shard : unit->shards()) numel += shard->numel();
      costs.flat.push_back(numel);
    }
  });
  return costs;
}

uint64_t total(const std::vector<int64_t>& numbers) {
  return static_cast<uint64_t>(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}));
}

class FsdpCosts : public ::testing::TestWithParam<int> {};

// Rajbhandari et al. 2020, section 7: what each rank sends in a step.
TEST_P(FsdpCosts, BytesPerStepEqualTheory) {
  const auto n = static_cast<uint64_t>(GetParam());
  const auto sent = [&](Sharding strategy) {
    const Costs costs = measure(GetParam(), {.strategy = strategy}, 3);
    const bool twice = strategy == Sharding::full_shard;  // in a step: but for the root and the last unit, later
    const uint64_t kept = twice ? (costs.units.front() + costs.units.back()) * (n - 1) / n : 0;
    EXPECT_EQ(costs.sent[0], costs.sent[1] + kept) << "gathering ahead costs nothing";
    EXPECT_EQ(costs.sent[1], costs.sent[2]);
    // Padding: at most 31 elements behind each parameter, and 32 n - 1 behind each unit.
    EXPECT_LE(total(costs.flat), static_cast<uint64_t>(costs.parameters) + 28 * 31 + 5 * (32 * n - 1));
    return std::pair(costs.sent[0], total(costs.flat) * 4 * (n - 1) / n);
  };
  const auto [full, each_full] = sent(Sharding::full_shard);
  EXPECT_EQ(full, 3 * each_full) << "gather, gather, reduce";
  const auto [grad, each_grad] = sent(Sharding::shard_grad_op);
  EXPECT_EQ(grad, 2 * each_grad) << "gather, reduce";
  const auto [none, each_none] = sent(Sharding::no_shard);
  EXPECT_EQ(none, 2 * each_none) << "all_reduce";
}

// Inside a group of s ranks as full_shard, across the n / s groups an all_reduce of the part.
TEST(FsdpCostsOfGroups, HybridShardKeepsTheGathersInsideItsGroups) {
  constexpr int64_t n = 4, s = 2;
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int64_t rank = 0; rank < n; ++rank) models.push_back(make({}));
  run_ranks(n, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group,
              {.strategy = Sharding::hybrid_shard, .policy = {.kinds = {"Block"}}, .shard_size = s});
    EXPECT_EQ(fsdp.shard_group()->size(), s);
    EXPECT_EQ(fsdp.replica_group()->size(), n / s);
    int64_t bytes = 0;  // all parameters, padded, in f32
    for (const auto& unit : fsdp.units())
      for (const auto& shard : unit->shards()) bytes += shard->numel() * 4;
    const uint64_t inside = fsdp.shard_group()->bytes_sent(), across = fsdp.replica_group()->bytes_sent();
    loss_of(fsdp(Tensor::ones({2, 6})), Tensor::zeros({2, 4})).backward();
    EXPECT_EQ(fsdp.shard_group()->bytes_sent() - inside, static_cast<uint64_t>(3 * bytes * (s - 1) / s));
    const int64_t groups = n / s, part = bytes / s;
    EXPECT_EQ(fsdp.replica_group()->bytes_sent() - across, static_cast<uint64_t>(2 * part * (groups - 1) / groups));
  });
}

TEST_P(FsdpCosts, RecomputationGathersNothingTwice) {
  const auto n = static_cast<uint64_t>(GetParam());
  for (const auto& [strategy, times] : {std::pair(Sharding::full_shard, 3), std::pair(Sharding::shard_grad_op, 2)}) {
    const Costs costs = measure(GetParam(), {.strategy = strategy}, 2, {.recompute = true});
    EXPECT_EQ(costs.sent[0], static_cast<uint64_t>(times) * (total(costs.flat) * 4 * (n - 1) / n)) << name(strategy);
    const uint64_t kept = strategy == Sharding::full_shard ? costs.units.front() + costs.units.back() : 0;
    EXPECT_EQ(costs.sent[1], costs.sent[0] - kept * (n - 1) / n) << name(strategy);
  }
}

TEST_P(FsdpCosts, LowerPrecisionSendsFewerBytes) {
  const auto n = static_cast<uint64_t>(GetParam());
  const auto each = [n](uint64_t bytes) { return bytes * (n - 1) / n; };
  const Costs full = measure(GetParam(), {}, 2);
  const Costs low = measure(GetParam(), {.precision = {.param = DType::bf16}}, 2);
  const Costs wide = measure(GetParam(), {.precision = {.param = DType::bf16, .reduce = DType::f32}}, 2);
  const uint64_t units = std::accumulate(low.units.begin(), low.units.end(), uint64_t{0});
  EXPECT_LT(units, total(full.flat) * 4 * 2 / 3) << "half, but for norms and padding";
  EXPECT_EQ(low.sent[0], 3 * each(units));
  EXPECT_EQ(wide.sent[0], 2 * each(units) + each(total(wide.flat) * 4));
  EXPECT_EQ(low.sent[1], low.sent[0] - each(low.units.front() + low.units.back()));
}

// The passes of a step but the last one: gradients stay whole on each rank, or add up in the shards.
TEST(FsdpCostsOfAccumulation, ShardsReduceInEachPass) {
  for (const bool sharded : {false, true})
    run_ranks(2, [&](const ProcessGroupPtr& group) {
      size_t reduced = 0;
      FSDP fsdp(make({}), group,
                {.policy = {.kinds = {"Block"}},
                 .sharded_accumulation = sharded,
                 .on_event = [&](const FsdpEvent& event) { reduced += event.kind == FsdpEvent::Kind::reduce; }});
      const Tensor x = Tensor::ones({2, 6}), target = Tensor::zeros({2, 4});
      {
        const auto quiet = fsdp.no_sync();
        loss_of(fsdp(x), target).backward();
      }
      const size_t units = fsdp.units().size();
      EXPECT_EQ(reduced, sharded ? units : 0);
      loss_of(fsdp(x), target).backward();
      EXPECT_EQ(reduced, sharded ? 2 * units : units);
    });
}

TEST_P(FsdpCosts, PeakIsTheShardsAndTwoUnits) {
  const auto bound = [](std::vector<size_t> units) {
    std::sort(units.begin() + 1, units.end(), std::greater<>());
    return units[0] + units[1] + (units.size() > 2 ? units[2] : 0);
  };
  for (const int ahead : {1, 2}) {
    // Without parameters of the root: the shards, 1/n, and the two largest units.
    const Costs costs = measure(GetParam(), {.max_gathered = ahead}, 3, {.with_ends = false});
    EXPECT_EQ(costs.units[0], 0u);
    EXPECT_EQ(costs.shards, total(costs.flat) * 4 / static_cast<uint64_t>(GetParam()));
    EXPECT_EQ(costs.peak, static_cast<size_t>(ahead) * costs.units[1]);
    EXPECT_LE(costs.peak, bound(costs.units));
    const auto n = static_cast<uint64_t>(GetParam());
    EXPECT_EQ(costs.sent[2], costs.sent[0] - costs.units.back() * (n - 1) / n);
    // The root's own parameters stay gathered while any unit runs.
    const Costs with_root = measure(GetParam(), {.max_gathered = ahead}, 3);
    EXPECT_LE(with_root.peak, bound(with_root.units));
    EXPECT_GT(with_root.units[0], 0u);
  }
  const Costs whole = measure(GetParam(), {.strategy = Sharding::shard_grad_op}, 2);
  EXPECT_EQ(whole.peak, std::accumulate(whole.units.begin(), whole.units.end(), size_t{0}));
}

INSTANTIATE_TEST_SUITE_P(Ranks, FsdpCosts, ::testing::Values(2, 4));

TEST(FsdpOrder, TheFirstStepLearnsWhatLaterStepsGatherAhead) {
  const Costs costs = measure(2, {}, 3, {.with_ends = false, .blocks = 3});
  const std::vector<std::string> learning = {"use root", "gather 0", "use 0",  "free 0",   "gather 1", "use 1",
                                             "free 1",   "gather 2", "use 2",  "free 2",   "gather 2", "use 2",
                                             "use root", "reduce 2", "free 2", "gather 1", "use 1",    "reduce 1",
                                             "free 1",   "gather 0", "use 0",  "reduce 0", "free 0"};
  EXPECT_THAT(costs.events[0], ElementsAreArray(learning));
  const std::vector<std::string> ahead = {
      "use root", "prefetch 0", "use 0",      "prefetch 1", "free 0",   "use 1",      "prefetch 2", "free 1",
      "use 2",    "use 2",      "use root",   "prefetch 1", "reduce 2",   "free 2",
      "use 1",    "prefetch 0", "reduce 1",   "free 1",     "use 0",    "reduce 0",   "free 0"};
  EXPECT_THAT(costs.events[1], ElementsAreArray(ahead));
  EXPECT_EQ(costs.events[2], costs.events[1]);
}

TEST(FsdpOrder, ALimitOfOneGathersNothingAhead) {
  const Costs costs = measure(2, {.max_gathered = 1}, 3, {.with_ends = false, .blocks = 3});
  std::vector<std::string> but_the_last = costs.events[0];  // which is gathered once
  const std::vector<std::string> again = {"free 2", "gather 2"};
  const auto found = std::search(but_the_last.begin(), but_the_last.end(), again.begin(), again.end());
  ASSERT_NE(found, but_the_last.end());
  but_the_last.erase(found, found + 2);
  EXPECT_EQ(costs.events[1], but_the_last);
  EXPECT_THAT(costs.events[1], ::testing::Not(::testing::Contains(::testing::StartsWith("prefetch"))));
}

TEST(FsdpOrder, AHigherLimitKeepsMoreUnitsAtATime) {
  const Costs two = measure(2, {.max_gathered = 2}, 3, {.with_ends = false}),
              three = measure(2, {.max_gathered = 3}, 3, {.with_ends = false});
  EXPECT_EQ(two.peak, 2 * two.units[1]);
  EXPECT_EQ(three.peak, 3 * three.units[1]);
  EXPECT_EQ(two.sent, three.sent);
}

TEST(GatherPlan, FollowsTheLastRoundUntilItGoesAnotherWay) {
  GatherPlan plan;
  plan.begin();
  for (const size_t unit : {1u, 2u, 3u}) {
    EXPECT_FALSE(plan.next());
    plan.needed(unit);
  }
  plan.begin();
  EXPECT_EQ(plan.next(), 1u);
  plan.needed(1);
  EXPECT_EQ(plan.next(), 2u);
  plan.needed(3);
  EXPECT_FALSE(plan.next()) << "another way";
  plan.begin();
  plan.needed(1);
  EXPECT_EQ(plan.next(), 3u) << "the last round counts";
  plan.needed(3);
  EXPECT_FALSE(plan.next()) << "its end";
}

}  // namespace
}  // namespace weft::dist::testing
