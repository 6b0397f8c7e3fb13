// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/support/ranks.h"
#include "core/state_dict.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace weft::support {

struct ParallelOptions {
  std::string kind = "auto";   ///< `none`, `ddp`, `fsdp`; `auto`: ddp on several ranks, else none
  double bucket_mb = 25;       ///< see dist::DdpOptions
  bool compress_bf16 = false;  ///< gradients travel in bf16
  bool sync_batch_norm = false;
  std::string strategy = "full_shard";  ///< a name of dist::Sharding
  int64_t min_num_params = 1'000'000;   ///< see dist::WrapPolicy
  int64_t shard_size = 0;               ///< see dist::FsdpOptions
  std::vector<NamedTensor> order = {};  ///< ddp: how the parameters lie in flat buffers; left out: as in the model
  bool low_precision = false;           ///< the model runs in bf16: sharded weights are gathered in it
};

/// How a model lies on the ranks and how their gradients become one. All ranks call each of these alike.
class Parallel {
 public:
  virtual ~Parallel() = default;

  /// In training and in evaluation.
  virtual Tensor forward(const Tensor& x) = 0;
  /// What the optimizer changes.
  virtual std::vector<NamedTensor> parameters() = 0;
  /// Returns the norm before, a device scalar.
  virtual Tensor clip_grad_norm(double max_norm) = 0;

  /// While what this returns lives, forward and backward leave gradients to each rank; they add up, and the next
  /// backward outside makes them one with those of the other ranks.
  virtual std::shared_ptr<void> no_sync() { return nullptr; }

  /// The model's state in a one-process run: whole on rank 0, of no meaning elsewhere.
  virtual StateDict model_state() = 0;
  /// The same of what an optimizer keeps for each parameter (`fc.weight.exp_avg`), from this rank's part of it.
  virtual StateDict gathered(const StateDict& part) { return part; }
  StateDict optimizer_state(const optim::Optimizer& optimizer) { return gathered(optimizer.state_dict()); }
  /// Take such states, which every rank has read. Errors: it is of another model; `what` begins the text.
  virtual void load_model(const std::string& what, const StateDict& model) = 0;
  /// This rank's part of what gathered() gave.
  virtual StateDict part_of(const StateDict& whole) { return whole; }
  void load(const std::string& what, const StateDict& model, const StateDict& optimizer_state,
            optim::Optimizer& optimizer) {
    load_model(what, model);
    optimizer.load_state_dict(part_of(optimizer_state));
  }

  /// Each forward needs all ranks: parameters are gathered for it.
  virtual bool is_sharded() const { return false; }
  /// `ddp, 12 buckets`.
  virtual std::string describe() const = 0;
};

/// The model is on its device and has its first weights. Errors: an unknown strategy, those of DDP and FSDP.
std::unique_ptr<Parallel> make_parallel(const ParallelOptions& options, std::shared_ptr<nn::Module> model,
                                        const Ranks& ranks);

/// The same for kind `fsdp` (parallel_fsdp.cpp).
std::unique_ptr<Parallel> make_sharded(const ParallelOptions& options, std::shared_ptr<nn::Module> model,
                                       const Ranks& ranks);

/// Batch norms take their statistics over all ranks where the options say so. Returns how many do.
int synchronise_norms(const ParallelOptions& options, nn::Module& model, const Ranks& ranks);

}  // namespace weft::support
