// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "dist/fsdp/sharded_checkpoint.h"
#include "dist/group/world.h"
#include "dist/pipeline/pipeline.h"
#include "dist/tensor/tensor_parallel.h"
#include "nn/init.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace weft::train {

struct StrategyOptions {
  std::string kind = "auto";   ///< `none`, `ddp`, `fsdp`; `auto`: ddp on several ranks, else none
  double bucket_mb = 25;       ///< see dist::DdpOptions
  bool compress_bf16 = false;  ///< gradients travel in bf16
  bool sync_batch_norm = false;
  std::string strategy = "full_shard";  ///< a name of dist::Sharding
  int64_t min_num_params = 1'000'000;   ///< see dist::WrapPolicy; 0: `kinds` alone are units
  std::vector<std::string> kinds = {};  ///< see dist::WrapPolicy
  std::string offload = "none";         ///< a name of dist::Offload
  int64_t shard_size = 0;               ///< see dist::FsdpOptions
  std::vector<NamedTensor> order = {};  ///< ddp: how the parameters lie in flat buffers; left out: as in the model
  bool low_precision = false;           ///< the model runs in bf16: sharded weights are gathered in it
  bool sharded_accumulation = false;    ///< fsdp: each backward reduces; gradients add up in the shards
  std::shared_ptr<nn::DeferredInit> deferred = {};  ///< fsdp: writes the weights that were left for later
  std::optional<Device> device = {};  ///< where the model goes, under fsdp unit by unit; left out: it is there
};

/// How a model lies on the ranks and how their gradients become one. All ranks call each of these alike.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// In training and in evaluation.
  virtual Tensor forward(const Tensor& x) = 0;
  /// What the optimizer changes.
  virtual std::vector<NamedTensor> parameters() = 0;
  /// The 2-norm of the whole gradient, a device scalar. Errors: it is sharded by fsdp.
  virtual Tensor grad_norm();

  virtual void zero_grad(optim::Optimizer& optimizer) { optimizer.zero_grad(); }
  /// After it the gradients are those of all ranks.
  virtual void wait_for_gradients() {}
  virtual void step(optim::Optimizer& optimizer) { optimizer.step(); }

  /// While what this returns lives, forward and backward leave gradients to each rank; they add up, and the next
  /// backward outside makes them one with those of the other ranks.
  virtual std::shared_ptr<void> no_sync() { return nullptr; }
  /// The gradients of a rank weigh by its samples among those of all ranks. Else each rank's count alike.
  virtual bool counts_samples() const { return true; }
  /// The input of the next forward is none of the set's; the caller takes 0 times its loss.
  virtual void stand_in() {}

  /// The model's state in a one-process run: whole on rank 0, of no meaning elsewhere.
  virtual StateDict model_state() = 0;
  /// The same of what an optimizer keeps for each parameter (`fc.weight.exp_avg`), from this rank's part of it.
  virtual StateDict gathered(const StateDict& part) { return part; }
  StateDict optimizer_state(const optim::Optimizer& optimizer) { return gathered(optimizer.state_dict()); }
  /// Where is_sharded(): what this rank has of the model, and of an optimizer's or average's state (of which the pieces
  /// are views), for the folder of a sharded checkpoint. Not collective.
  virtual dist::ShardedState sharded_model() { fail("strategy: the model is not sharded"); }
  virtual dist::ShardedState sharded(const StateDict& /*part*/) { fail("strategy: the model is not sharded"); }
  /// Take such states, which every rank has read. Errors: it is of another model; `what` begins the text.
  virtual void load_model(const std::string& what, const StateDict& model) = 0;
  /// This rank's part of what gathered() gave.
  virtual StateDict part_of(const StateDict& whole) { return whole; }
  void load(const std::string& what, const StateDict& model, const StateDict& optimizer_state,
            optim::Optimizer& optimizer) {
    load_model(what, model);
    optimizer.load_state_dict(part_of(optimizer_state));
  }

  /// Where ranks hold copies that kernels of several GPUs may let drift: makes them equal again.
  virtual void synchronise() {}
  /// Each forward needs all ranks: parameters are gathered for it.
  virtual bool is_sharded() const { return false; }
  /// A model in stages: Pipeline::run() takes the place of forward and backward in training. Null: there are none.
  virtual dist::Pipeline* pipeline() { return nullptr; }
  /// Ranks that see the same samples.
  virtual int row_size() const { return 1; }
  /// Forward passes of a stand-in that this rank owes the others after `own` of its own: where the model is sharded,
  /// the rank with most of them needs all ranks for each. All ranks call it ahead of their passes.
  int64_t steps_to_join(const dist::World& world, int64_t own) const {
    return is_sharded() ? world.max(own, "steps of the evaluation") - own : 0;
  }
  /// `ddp, 12 buckets`.
  virtual std::string describe() const = 0;
};

/// The model has its first weights. Errors: an unknown strategy, those of DDP and FSDP.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, std::shared_ptr<nn::Module> model,
                                        const dist::World& ranks);

/// Gradients are averaged by the optimizer alone, as Horovod does (dist/ddp/distributed_optimizer.h): each rank's batch
/// counts the same. One backward pass per step.
std::unique_ptr<Strategy> make_averaging_strategy(std::shared_ptr<nn::Module> model, optim::Optimizer& optimizer,
                                                  const dist::World& ranks);

/// Tensor parallelism over a grid of ranks (dist/tensor/tensor_parallel.h), and a pipeline where the grid has stages
/// (dist/pipeline/pipeline.h).
std::unique_ptr<Strategy> make_grid_strategy(std::shared_ptr<nn::Module> model, const dist::Grid& grid,
                                             const dist::PipelineOptions& options);

}  // namespace weft::train
