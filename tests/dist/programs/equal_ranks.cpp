// SPDX-License-Identifier: Apache-2.0
// Usage: dist_equal_ranks cpu|cuda STEPS [RANKS]
// n ranks equal one: trains small models with DDP and with each strategy of FSDP, and in one process on the same global
// batches, and compares losses and weights. With RANKS the ranks are threads of this process; without, they are
// processes, whose backend the launcher decides. Rank 0 prints a line per case with the errors, their limits, and a
// hash of losses and weights. The hash must not depend on the backend. Exit code 1 when a case is too far off.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>

#include "dist/ddp/sync_batch_norm.h"
#include "dist/group/world.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"

using namespace weft;
using namespace weft::dist;
using namespace weft::dist::testing;

namespace {

struct Case {
  std::string name;
  ShardedTraining training;
  double condition = 1;  // factor by which the model enlarges the roundings of its sums
};

struct Strategy {
  std::string name;
  bool replicas;
  FsdpOptions options;
};

std::vector<Strategy> strategies(int ranks) {
  std::vector<Strategy> all{{"ddp", true, {}}};
  for (const Sharding sharding :
       {Sharding::full_shard, Sharding::shard_grad_op, Sharding::hybrid_shard, Sharding::no_shard}) {
    FsdpOptions options{.strategy = sharding, .policy = {.kinds = {"Block"}}};
    if (sharding == Sharding::hybrid_shard) options.shard_size = ranks % 2 == 0 ? 2 : 1;
    all.push_back({std::string(name(sharding)), false, options});
  }
  return all;
}

std::vector<Case> cases(const Strategy& strategy, int ranks, int steps, Device device) {
  ShardedTraining base{.make = [] { return std::make_shared<Tower>(6, 10, 3, 4); },
                       .parts = equal_parts(steps, ranks, 3),
                       .replicas = strategy.replicas,
                       .options = strategy.options,
                       .dtype = device.kind == DeviceKind::cpu ? DType::f64 : DType::f32,
                       .device = device};
  std::vector<Case> all{{"equal", base}};
  ShardedTraining next = base;
  next.parts.back() = unequal_parts(steps, ranks).back();  // the last batch is short, and uneven
  next.parts.back().back() = 4;
  all.push_back({"last", next});
  next.parts = unequal_parts(steps, ranks);
  all.push_back({"unequal", next});
  next.parts = unequal_parts(3 * steps, ranks);
  next.micro_batches = 3;
  all.push_back({"accumulated", next});
  next.unsharded = true;
  all.push_back({"no_sync", next});
  next = base;
  next.make = normed_net;
  if (!strategy.replicas) next.options.policy.kinds = {"Conv2d"};
  next.sample = {8, 8, 3};
  next.parts = unequal_parts(steps, ranks);
  for (auto& step : next.parts) ++step.front();  // one image alone has no statistics
  next.prepare = [](nn::Module& model, const ProcessGroupPtr& group) {
    const bool alone = group->size() == 1;
    convert_sync_batch_norm(model, alone ? group : group->split(0, group->rank(), "batch_norm"));
  };
  all.push_back({"batch_norm", next, 4});
  return all;
}

/// FNV-1a over the bits.
uint64_t hash_of(const ShardedResult& result) {
  uint64_t hash = 14695981039346656037u;
  for (const auto* values : {&result.losses, &result.weights})
    for (const double value : *values) {
      uint64_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      for (int i = 0; i < 64; i += 8) hash = (hash ^ (bits >> i & 255)) * 1099511628211u;
    }
  return hash;
}

double error_of(const std::vector<double>& got, const std::vector<double>& want) {
  WEFT_CHECK(got.size() == want.size() && !got.empty(), "expected ", want.size(), " values, got ", got.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / norm);
}

/// True where rank 0's result is near enough.
bool report(const std::string& name, const Case& c, int ranks, const ShardedResult& got) {
  const ShardedResult want = train_whole(c.training);
  const double losses = error_of(got.losses, want.losses), weights = error_of(got.weights, want.weights),
               allowed = c.condition * allowed_error(c.training);
  const bool near = losses <= allowed && weights <= allowed;  // false for NaN
  std::printf("%-13s %-11s ranks %d  losses %.1e  weights %.1e  allowed %.1e  bits %016lx%s\n", name.c_str(),
              c.name.c_str(), ranks, losses, weights, allowed, hash_of(got), near ? "" : "  TOO FAR");
  return near;
}

/// `text` names a kind of device; which of them a rank has is its world's to say.
int run(const std::string& text, int steps, int threads) {
  World world;
  if (threads == 0) world = init({.device = text});
  const Device device = threads == 0 ? world.device() : parse_device(text);
  const int ranks = threads > 0 ? threads : world.size();
  bool all_near = true;
  for (const Strategy& strategy : strategies(ranks))
    for (const Case& c : cases(strategy, ranks, steps, device)) {
      ShardedResult got;
      if (threads > 0)
        got = train_sharded(c.training, threads);
      else
        got = train_rank(c.training, make_model(c.training), world.group());
      if (threads > 0 || world.is_first()) all_near &= report(strategy.name, c, ranks, got);
      if (threads == 0) world.group()->barrier();
    }
  return all_near ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    WEFT_CHECK(argc == 3 || argc == 4, "usage: dist_equal_ranks cpu|cuda STEPS [RANKS]");
    return run(argv[1], std::atoi(argv[2]), argc > 3 ? std::atoi(argv[3]) : 0);
  } catch (const std::exception& error) {
    std::cerr << str("dist_equal_ranks: ", error.what(), "\n");
    return 1;
  }
}
