// SPDX-License-Identifier: Apache-2.0
#include "apps/support/exit.h"
#include "apps/support/parallel.h"
#include "dist/fsdp_state.h"

namespace weft::support {
namespace {

dist::Sharding strategy_of(const std::string& name) {
  for (const dist::Sharding one : {dist::Sharding::full_shard, dist::Sharding::shard_grad_op,
                                   dist::Sharding::hybrid_shard, dist::Sharding::no_shard})
    if (dist::name(one) == name) return one;
  throw UsageError("--fsdp-strategy: unknown '" + name + "'");
}

dist::FsdpOptions fsdp_options(const ParallelOptions& o) {
  dist::FsdpOptions options;
  options.strategy = strategy_of(o.strategy);
  options.policy.min_num_params = o.min_num_params;
  if (o.low_precision) {
    options.precision.param = DType::bf16;
    options.precision.reduce = o.compress_bf16 ? DType::bf16 : DType::f32;
  }
  options.shard_size = static_cast<int>(o.shard_size);
  return options;
}

/// Parameters, gradients and optimizer state are shared out over the ranks.
class Sharded final : public Parallel {
 public:
  Sharded(const ParallelOptions& options, std::shared_ptr<nn::Module> model, const Ranks& ranks)
      : norms_(synchronise_norms(options, *model, ranks)),
        fsdp_(std::move(model), ranks.group(), fsdp_options(options)) {}

  Tensor forward(const Tensor& x) override { return fsdp_(x); }
  std::vector<NamedTensor> parameters() override { return fsdp_.parameters(); }
  Tensor clip_grad_norm(double max_norm) override { return fsdp_.clip_grad_norm(max_norm); }
  std::shared_ptr<void> no_sync() override {
    return std::shared_ptr<dist::FSDP::NoSync>(new dist::FSDP::NoSync(fsdp_.no_sync()));
  }
  StateDict model_state() override { return dist::full_state_dict(fsdp_); }
  StateDict gathered(const StateDict& part) override { return dist::full_optimizer_state(fsdp_, part); }
  StateDict part_of(const StateDict& whole) override { return dist::shard_optimizer_state(fsdp_, whole); }
  void load_model(const std::string& what, const StateDict& model) override {
    try {
      dist::load_full_state_dict(fsdp_, model);
    } catch (const Error& error) {
      fail(what, ": ", error.what());
    }
  }
  bool is_sharded() const override { return true; }
  std::string describe() const override {
    return str("fsdp ", dist::name(fsdp_.options().strategy), ", ", fsdp_.units().size(),
               fsdp_.units().size() == 1 ? " unit" : " units",
               norms_ > 0 ? str(", ", norms_, " batch norms over all ranks") : "");
  }

 private:
  int norms_;
  dist::FSDP fsdp_;
};

}  // namespace

std::unique_ptr<Parallel> make_sharded(const ParallelOptions& options, std::shared_ptr<nn::Module> model,
                                       const Ranks& ranks) {
  return std::make_unique<Sharded>(options, std::move(model), ranks);
}

}  // namespace weft::support
