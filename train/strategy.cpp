// SPDX-License-Identifier: Apache-2.0
#include "train/strategy.h"

#include "core/ops/concat.h"
#include "core/ops/reduce.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/ddp/sync_batch_norm.h"
#include "dist/fsdp/fsdp_state.h"
#include "dist/pipeline/pipeline_state.h"
#include "dist/tensor/tensor_parallel_state.h"
#include "io/checkpoint.h"
#include "train/exit.h"

namespace weft::train {
namespace {

void load_whole(const std::string& what, nn::Module& model, const StateDict& state) {
  require_match(what, model.state_dict(), state);
  model.load_state_dict(state);
}

/// Batch norms take their statistics over all ranks where the options say so. Returns how many do.
int synchronise_norms(const StrategyOptions& options, nn::Module& model, const dist::World& ranks) {
  if (!options.sync_batch_norm || ranks.size() == 1) return 0;
  // In a group of their own the small messages do not queue behind gradients.
  const dist::ProcessGroupPtr& group = ranks.group();
  return dist::convert_sync_batch_norm(model, group->split(0, group->rank(), "batch_norm"));
}

std::shared_ptr<void> without_sync(dist::DDP& ddp) {
  return std::shared_ptr<dist::DDP::NoSync>(new dist::DDP::NoSync(ddp.no_sync()));
}

/// One rank, or several that know nothing of each other.
class Single : public Strategy {
 public:
  explicit Single(std::shared_ptr<nn::Module> model) : model_(std::move(model)) {}

  Tensor forward(const Tensor& x) override { return (*model_)(x); }
  std::vector<NamedTensor> parameters() override { return model_->parameters(); }
  StateDict model_state() override { return model_->state_dict(); }
  void load_model(const std::string& what, const StateDict& model) override { load_whole(what, *model_, model); }
  std::string describe() const override { return "none"; }

 private:
  std::shared_ptr<nn::Module> model_;
};

/// The model is left alone, the optimizer averages the gradients.
class Averaging final : public Single {
 public:
  Averaging(const std::shared_ptr<nn::Module>& model, optim::Optimizer& optimizer, const dist::World& ranks)
      : Single(model), distributed_(optimizer, ranks.group()) {
    dist::broadcast_parameters(*ranks.group(), *model);
    dist::broadcast_optimizer_state(*ranks.group(), optimizer);
  }
  void zero_grad(optim::Optimizer&) override { distributed_.zero_grad(); }
  void wait_for_gradients() override { distributed_.synchronize(); }
  void step(optim::Optimizer&) override { distributed_.step(); }
  bool counts_samples() const override { return false; }
  std::string describe() const override { return "averaging optimizer"; }

 private:
  dist::DistributedOptimizer distributed_;
};

/// Every rank holds the whole model.
class Replicated final : public Strategy {
 public:
  Replicated(const StrategyOptions& options, std::shared_ptr<nn::Module> model, const dist::World& ranks)
      : norms_(synchronise_norms(options, *model, ranks)),
        flat_(options.order.empty() ? nullptr : FlatParameters::of(options.order)),
        ddp_(std::move(model), ranks.group(),
             {.bucket_mb = options.bucket_mb, .compress_bf16 = options.compress_bf16}) {}

  Tensor forward(const Tensor& x) override { return ddp_(x); }
  std::vector<NamedTensor> parameters() override { return ddp_.parameters(); }
  std::shared_ptr<void> no_sync() override { return without_sync(ddp_); }
  void stand_in() override { ddp_.set_samples(0); }
  StateDict model_state() override { return ddp_.module().state_dict(); }
  void load_model(const std::string& what, const StateDict& model) override { load_whole(what, ddp_.module(), model); }
  std::string describe() const override {
    return str("ddp, ", ddp_.buckets().size(), ddp_.buckets().size() == 1 ? " bucket" : " buckets",
               norms_ > 0 ? str(", ", norms_, " batch norms over all ranks") : "");
  }

 private:
  int norms_;
  std::shared_ptr<FlatParameters> flat_;  // made before ddp_, which finds it
  dist::DDP ddp_;
};

dist::Sharding strategy_of(const std::string& name) {
  for (const dist::Sharding one : {dist::Sharding::full_shard, dist::Sharding::shard_grad_op,
                                   dist::Sharding::hybrid_shard, dist::Sharding::no_shard})
    if (dist::name(one) == name) return one;
  throw UsageError("--fsdp-strategy: unknown '" + name + "'");
}

dist::Offload offload_of(const std::string& name) {
  for (const dist::Offload one : {dist::Offload::none, dist::Offload::optimizer, dist::Offload::parameters})
    if (dist::name(one) == name) return one;
  throw UsageError("--fsdp-offload: unknown '" + name + "'");
}

dist::FsdpOptions fsdp_options(const StrategyOptions& o) {
  dist::FsdpOptions options;
  options.strategy = strategy_of(o.strategy);
  options.policy = {.min_num_params = o.min_num_params, .kinds = o.kinds};
  options.device = o.device;
  if (o.low_precision) {
    options.precision.param = DType::bf16;
    options.precision.reduce = o.compress_bf16 ? DType::bf16 : DType::f32;
  }
  options.shard_size = static_cast<int>(o.shard_size);
  options.offload = offload_of(o.offload);
  if (o.deferred) options.initialise = [later = o.deferred](const Tensor& weight) { later->write(weight); };
  return options;
}

/// Parameters, gradients and optimizer state are shared out over the ranks.
class Sharded final : public Strategy {
 public:
  Sharded(const StrategyOptions& options, std::shared_ptr<nn::Module> model, const dist::World& ranks)
      : norms_(synchronise_norms(options, *model, ranks)),
        fsdp_(std::move(model), ranks.group(), fsdp_options(options)),
        sharded_accumulation_(options.sharded_accumulation) {}

  Tensor forward(const Tensor& x) override { return fsdp_(x); }
  std::vector<NamedTensor> parameters() override { return fsdp_.parameters(); }
  std::shared_ptr<void> no_sync() override {
    if (sharded_accumulation_) return nullptr;
    return std::shared_ptr<dist::FSDP::NoSync>(new dist::FSDP::NoSync(fsdp_.no_sync()));
  }
  void stand_in() override { fsdp_.set_samples(0); }
  StateDict model_state() override { return dist::full_state_dict(fsdp_); }
  StateDict gathered(const StateDict& part) override { return dist::full_optimizer_state(fsdp_, part); }
  StateDict part_of(const StateDict& whole) override { return dist::shard_optimizer_state(fsdp_, whole); }
  dist::ShardedState sharded_model() override { return dist::sharded_state(fsdp_); }
  dist::ShardedState sharded(const StateDict& part) override { return dist::sharded_state(fsdp_, part); }
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
               fsdp_.options().offload == dist::Offload::none
                   ? ""
                   : str(", ", dist::name(fsdp_.options().offload), " on the host"),
               norms_ > 0 ? str(", ", norms_, " batch norms over all ranks") : "");
  }

 private:
  int norms_;
  dist::FSDP fsdp_;
  bool sharded_accumulation_;
};

/// A model that the model ranks of a grid hold together and its data ranks replicate.
class InParts final : public Strategy {
 public:
  InParts(std::shared_ptr<nn::Module> model, const dist::Grid& grid, const dist::DdpOptions& options)
      : tensor_(std::move(model), grid, options) {}

  Tensor forward(const Tensor& x) override { return tensor_(x); }
  std::vector<NamedTensor> parameters() override { return tensor_.parameters(); }
  Tensor grad_norm() override { return tensor_.grad_norm(); }
  std::shared_ptr<void> no_sync() override { return without_sync(tensor_.ddp()); }
  void stand_in() override { tensor_.ddp().set_samples(0); }
  StateDict model_state() override { return dist::full_state_dict(tensor_); }
  StateDict gathered(const StateDict& part) override { return dist::full_optimizer_state(tensor_, part); }
  StateDict part_of(const StateDict& whole) override { return dist::part_of_optimizer_state(tensor_, whole); }
  void load_model(const std::string&, const StateDict& model) override { dist::load_full_state_dict(tensor_, model); }
  void synchronise() override { tensor_.synchronise(); }
  int row_size() const override { return tensor_.grid().row_size(); }
  std::string describe() const override {
    const dist::Grid& grid = tensor_.grid();
    return str("tensor, ", grid.data()->size(), " data x ", grid.model()->size(), " model ranks");
  }

 private:
  dist::TensorParallel tensor_;
};

/// A model whose stages lie on the pipes of a grid.
class InStages final : public Strategy {
 public:
  InStages(std::shared_ptr<nn::Module> model, const dist::Grid& grid, const dist::PipelineOptions& options)
      : pipeline_(std::move(model), grid, options) {}

  Tensor forward(const Tensor& x) override { return pipeline_(x); }
  dist::Pipeline* pipeline() override { return &pipeline_; }
  std::vector<NamedTensor> parameters() override { return pipeline_.parameters(); }
  Tensor grad_norm() override { return pipeline_.grad_norm(); }
  StateDict model_state() override { return dist::full_state_dict(pipeline_); }
  StateDict gathered(const StateDict& part) override { return dist::full_optimizer_state(pipeline_, part); }
  StateDict part_of(const StateDict& whole) override { return dist::part_of_optimizer_state(pipeline_, whole); }
  void load_model(const std::string&, const StateDict& model) override { dist::load_full_state_dict(pipeline_, model); }
  void synchronise() override { pipeline_.tensor().synchronise(); }
  int row_size() const override { return pipeline_.grid().row_size(); }
  std::string describe() const override {
    const dist::Grid& grid = pipeline_.grid();
    return str("pipeline, ", grid.pipe()->size(), " stages of ", pipeline_.chunks(),
               pipeline_.chunks() == 1 ? " chunk, " : " chunks, ", grid.data()->size(), " data x ",
               grid.model()->size(), " model ranks");
  }

 private:
  dist::Pipeline pipeline_;
};

}  // namespace

Tensor Strategy::grad_norm() {
  WEFT_CHECK(!is_sharded(), "grad_norm: expected whole gradients on each rank, got those of fsdp");
  std::vector<Tensor> norms;
  for (const auto& [name, parameter] : parameters())
    if (parameter.grad().defined()) norms.push_back(norm(parameter.grad()));
  return norm(stack(norms, 0));
}

std::unique_ptr<Strategy> make_averaging_strategy(std::shared_ptr<nn::Module> model, optim::Optimizer& optimizer,
                                                  const dist::World& ranks) {
  return std::make_unique<Averaging>(model, optimizer, ranks);
}

std::unique_ptr<Strategy> make_grid_strategy(std::shared_ptr<nn::Module> model, const dist::Grid& grid,
                                             const dist::PipelineOptions& options) {
  if (grid.pipe()->size() > 1) return std::make_unique<InStages>(std::move(model), grid, options);
  if (options.device) model->to(*options.device);
  return std::make_unique<InParts>(std::move(model), grid, options.ddp);
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, std::shared_ptr<nn::Module> model,
                                        const dist::World& ranks) {
  const bool single = options.kind == "none" || (options.kind == "auto" && ranks.size() == 1);
  if (options.device && (single || options.kind != "fsdp")) model->to(*options.device);
  if (single) return std::make_unique<Single>(std::move(model));
  if (options.kind == "fsdp") return std::make_unique<Sharded>(options, std::move(model), ranks);
  return std::make_unique<Replicated>(options, std::move(model), ranks);
}

}  // namespace weft::train
