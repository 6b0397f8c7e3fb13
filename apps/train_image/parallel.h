// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/support/ranks.h"
#include "apps/train_image/options.h"
#include "core/state_dict.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace weft::train_image {

/// How a model lies on the ranks and how their gradients become one. All ranks call each of these alike.
class Parallel {
 public:
  virtual ~Parallel() = default;

  /// In training and in evaluation.
  virtual Tensor forward(const Tensor& x) = 0;
  /// What the optimizer changes.
  virtual std::vector<NamedTensor> parameters() = 0;
  virtual void clip_grad_norm(double max_norm) = 0;

  /// The state of a one-process run: whole on rank 0, of no meaning elsewhere.
  virtual StateDict model_state() = 0;
  virtual StateDict optimizer_state(const optim::Optimizer& optimizer) = 0;
  /// Takes such a state, which every rank has read. Errors: it is of another model; `what` begins the text.
  virtual void load(const std::string& what, const StateDict& model, const StateDict& optimizer_state,
                    optim::Optimizer& optimizer) = 0;

  /// Each forward needs all ranks: parameters are gathered for it.
  virtual bool is_sharded() const { return false; }
  /// `ddp, 12 buckets`.
  virtual std::string describe() const = 0;
};

/// What --parallel says: `auto` is ddp on several ranks, else none. The model is on its device and has its first
/// weights. Errors: those of DDP and FSDP.
std::unique_ptr<Parallel> make_parallel(const Options& options, std::shared_ptr<nn::Module> model,
                                        const support::Ranks& ranks);

/// The same for --parallel fsdp (parallel_fsdp.cpp).
std::unique_ptr<Parallel> make_sharded(const Options& options, std::shared_ptr<nn::Module> model,
                                       const support::Ranks& ranks);

/// Batch norms take their statistics over all ranks where --sync-batch-norm says so. Returns how many do.
int synchronise_norms(const Options& options, nn::Module& model, const support::Ranks& ranks);

}  // namespace weft::train_image
