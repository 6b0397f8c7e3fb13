// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "dist/ddp/sharded_state.h"
#include "dist/group/world.h"
#include "optim/optimizer.h"

namespace weft::dist {

class Pipeline;

/// How a model is distributed over the ranks, and how their gradients are averaged. All functions are collective.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// In training and in evaluation.
  virtual Tensor forward(const Tensor& x) = 0;
  /// The parameters for the optimizer.
  virtual std::vector<NamedTensor> parameters() const = 0;
  /// The 2-norm of the whole gradient, a device scalar. Errors: it is sharded by fsdp.
  virtual Tensor grad_norm() const;

  virtual void zero_grad(optim::Optimizer& optimizer) { optimizer.zero_grad(); }
  /// Afterwards each gradient is averaged over all ranks.
  virtual void wait_for_gradients() {}
  virtual void step(optim::Optimizer& optimizer) { optimizer.step(); }

  /// While the result lives, each rank accumulates its own gradients. The next backward outside averages their sum.
  [[nodiscard]] virtual std::shared_ptr<void> no_sync() { return nullptr; }
  /// The gradients of a rank weigh by its samples among those of all ranks. False: all ranks have one weight.
  virtual bool counts_samples() const { return true; }
  /// The input of the next forward is none of the set's; the caller takes 0 times its loss.
  virtual void stand_in() {}

  /// The model's state in a one-process run: whole on rank 0, of no meaning elsewhere.
  virtual StateDict model_state() = 0;
  /// The optimizer's state for whole parameters (`fc.weight.exp_avg`), from the state of this rank.
  virtual StateDict gathered(const StateDict& part) { return part; }
  StateDict optimizer_state(const optim::Optimizer& optimizer) { return gathered(optimizer.state_dict()); }
  /// This rank's part of the model, and of an optimizer's or average's state, whose memory the pieces share. Not
  /// collective. Errors: the model is not sharded.
  virtual ShardedState sharded_model();
  virtual ShardedState sharded(const StateDict& part);
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
  /// sharded_model() and sharded() are there.
  virtual bool has_pieces() const { return is_sharded(); }
  /// A model in stages: Pipeline::run() takes the place of forward and backward in training. Null: there are none.
  virtual Pipeline* pipeline() { return nullptr; }
  /// Ranks that see the same samples.
  virtual int row_size() const { return 1; }
  /// Forward passes with a dummy batch that this rank runs after its `own`, so that all ranks run equally many: a
  /// sharded model needs all ranks for each. Call it before the first.
  int64_t steps_to_join(const World& world, int64_t own) const {
    return is_sharded() ? world.max(own, "steps of the evaluation") - own : 0;
  }
  /// `ddp, 12 buckets`.
  virtual std::string describe() const = 0;
};

}  // namespace weft::dist
