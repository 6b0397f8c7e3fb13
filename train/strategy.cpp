// SPDX-License-Identifier: Apache-2.0
#include "train/strategy.h"

#include <unordered_set>

#include "core/autograd.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/ddp/sync_batch_norm.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/sharded_checkpoint.h"
#include "dist/group/same_lines.h"
#include "io/checkpoint.h"
#include "train/exit.h"

namespace weft::train {
namespace {

void load_whole(const std::string& what, nn::Module& model, const StateDict& state) {
  require_match(what, model.state_dict(), state);
  model.load_state_dict(state);
}

/// Each rank reads its part of a file by itself.
void check_same_files(dist::ProcessGroup& ranks, const nn::DeferredInit* deferred) {
  if (deferred)  // a rank without files asks too
    dist::check_same_lines(ranks, deferred->sources(), "weights: the file is", "All ranks must read the same one");
}

/// Batch norms take their statistics over all ranks where the options say so.
void synchronise_norms(const StrategyOptions& options, nn::Module& model, const dist::World& ranks) {
  if (!options.sync_batch_norm) return;
  // In a group of their own the small messages do not queue behind gradients.
  dist::convert_sync_batch_norm(model, ranks.group()->split(0, ranks.rank(), "batch_norm"));
}

/// One rank, or several that know nothing of each other.
class Single : public Strategy {
 public:
  explicit Single(std::shared_ptr<nn::Module> model) : model_(std::move(model)) {}

  Tensor forward(const Tensor& x) override { return (*model_)(x); }
  std::vector<NamedTensor> parameters() const override { return model_->parameters(); }
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

}  // namespace

dist::FsdpOptions fsdp_options(const StrategyOptions& o, nn::Module& model) {
  if (o.compress_bf16 && !o.low_precision)
    throw UsageError(
        "--grad-compression bf16: expected bf16 products under --parallel fsdp, whose gradients have the weights' "
        "dtype");
  dist::FsdpOptions options;
  options.strategy = strategy_of(o.strategy);
  options.policy = dist::wrap_policy(model, o.min_num_params);
  options.device = o.device;
  if (o.low_precision) {
    options.precision.param = DType::bf16;
    options.precision.reduce = o.compress_bf16 ? DType::bf16 : DType::f32;
  }
  options.shard_size = static_cast<int>(o.shard_size);
  options.sharded_accumulation = o.sharded_accumulation;
  options.offload = offload_of(o.offload);
  options.deferred = o.deferred.get();
  return options;
}

void read_parts(Strategy& strategy, const WeightsFile& file, const std::string& ending, const StateDict& state) {
  StateDict own;
  for (const NamedTensor& entry : state.tensors)
    if (entry.name.ends_with(ending)) own.tensors.push_back(entry);
  const std::vector<dist::TensorPiece> pieces =
      (strategy.has_pieces() ? strategy.sharded(own) : dist::sharded_state(own)).pieces;
  const auto name = [&](const dist::TensorPiece& piece) {
    return piece.name.substr(0, piece.name.size() - ending.size());
  };
  std::vector<std::string> misshapen, missing, unexpected;
  std::unordered_set<std::string> known;
  for (const dist::TensorPiece& piece : pieces) {
    WEFT_CHECK(piece.of.run == 0, "read_parts: '", piece.name, "' is divided among model ranks");
    known.insert(name(piece));
    const int64_t found = file.find(name(piece));
    if (found < 0)
      missing.push_back(name(piece));
    else if (const Shape& got = file.tensors()[static_cast<size_t>(found)].sizes; got != piece.sizes)
      misshapen.push_back(str(name(piece), " (expected ", piece.sizes, ", got ", got, ")"));
  }
  for (const WeightInfo& info : file.tensors())
    if (!known.contains(info.name)) unexpected.push_back(info.name);
  const std::string text = mismatch_text(misshapen, missing, unexpected);
  WEFT_CHECK(text.empty(), "the tensors *", ending, " do not fit", text);
  const NoGrad no_grad;
  for (const dist::TensorPiece& piece : pieces) {
    const auto index = static_cast<size_t>(file.find(name(piece)));
    if (piece.sizes.rank() > 0)
      read_elements(piece.sizes, piece.begin, piece.values,
                    [&](const WeightBlock& block) { return file.read_block(index, block); });
    else
      piece.values.copy_(file.read(index).flatten().slice(0, piece.begin, piece.values.numel()));
  }
}

std::unique_ptr<Strategy> make_averaging_strategy(std::shared_ptr<nn::Module> model, optim::Optimizer& optimizer,
                                                  const dist::World& ranks) {
  return std::make_unique<Averaging>(model, optimizer, ranks);
}

std::unique_ptr<Strategy> make_grid_strategy(std::shared_ptr<nn::Module> model, const dist::Grid& grid,
                                             const dist::PipelineOptions& options) {
  if (options.fsdp) check_same_files(*grid.world(), options.fsdp->deferred);
  if (grid.pipe()->size() > 1) return std::make_unique<dist::Pipeline>(std::move(model), grid, options);
  if (options.fsdp) return std::make_unique<dist::TensorParallel>(std::move(model), grid, *options.fsdp);
  if (options.device) model->to(*options.device);
  return std::make_unique<dist::TensorParallel>(std::move(model), grid, options.ddp);
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, std::shared_ptr<nn::Module> model,
                                        const dist::World& ranks) {
  const bool single = options.kind == "none" || (options.kind == "auto" && ranks.size() == 1);
  if (options.device && (single || options.kind != "fsdp")) model->to(*options.device);
  if (single) return std::make_unique<Single>(std::move(model));
  if (ranks.size() > 1) synchronise_norms(options, *model, ranks);
  if (options.kind == "fsdp") check_same_files(*ranks.group(), options.deferred.get());
  if (options.kind == "fsdp") return std::make_unique<dist::FSDP>(model, ranks.group(), fsdp_options(options, *model));
  const auto flat = options.order.empty() ? nullptr : FlatParameters::of(options.order);  // which DDP finds
  return std::make_unique<dist::DDP>(
      std::move(model), ranks.group(),
      dist::DdpOptions{.bucket_mb = options.bucket_mb, .compress_bf16 = options.compress_bf16});
}

}  // namespace weft::train
