// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "dist/ddp/reducer.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace weft::dist {

struct DistributedOptimizerOptions {
  /// Backward passes whose gradients add up on each rank before they are reduced.
  int backward_passes_per_step = 1;
  ReduceOp op = ReduceOp::avg;  ///< over the ranks: avg or sum
  double bucket_mb = 25;        ///< MiB of gradients that are reduced at once
  double first_bucket_mb = 1;   ///< size of the bucket that fills first
  bool compress_bf16 = false;   ///< gradients travel as bf16, see DdpOptions
  bool same_dropout = false;    ///< with equal seeds all ranks drop the same elements, see DdpOptions
};

/// Data parallelism of Horovod's kind (Sergeev and Del Balso 2018): the model is left alone, the optimizer averages.
///   SGD sgd(model->parameters(), …);
///   DistributedOptimizer optimizer(sgd, world.group());
///   broadcast_parameters(*world.group(), *model);
///   broadcast_optimizer_state(*world.group(), sgd);
///   optimizer.zero_grad(); loss.backward(); optimizer.step();
/// Buckets of gradients travel while backward computes (from the second step on), step() waits for them. Every rank
/// counts the same, whatever the size of its batch: with equal batches n ranks make the steps of one with the whole
/// batch; DDP weighs by samples instead. A parameter that no backward on this rank has reached takes part with a
/// gradient of zero. If no rank has reached the parameter, the step skips it.
/// All ranks call the constructor, backward and step. Schedules take the optimizer inside.
class DistributedOptimizer {
 public:
  /// The optimizer must outlive this. Errors: an op that is neither avg nor sum, option values below 1 or 0.
  DistributedOptimizer(optim::Optimizer& optimizer, ProcessGroupPtr group, DistributedOptimizerOptions options = {});
  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  /// Waits for the reduced gradients and updates the parameters. After fewer passes than backward_passes_per_step (the
  /// tail of an epoch) the gradients so far are reduced.
  void step();
  /// Waits for the reduced gradients alone, before step(): to clip them, say.
  void synchronize();
  /// Errors: gradients that no step() has used.
  void zero_grad();

  const std::vector<Bucket>& buckets() const { return reducer_->buckets(); }

 private:
  void begin_backward();
  void end_backward();

  optim::Optimizer& optimizer_;
  DistributedOptimizerOptions options_;
  std::shared_ptr<int> alive_;  // for the parameters' hooks
  std::shared_ptr<Reducer> reducer_;
  bool in_backward_ = false;
  bool synchronized_ = false;
  int passes_ = 0;  // since the last step
};

/// All ranks get the parameters, buffers and counters of rank `root`. Collective. Errors: models that differ.
void broadcast_parameters(ProcessGroup& group, nn::Module& model, int root = 0);
/// All ranks get the moving averages, the count of steps and the learning rates of rank `root`. Collective.
void broadcast_optimizer_state(ProcessGroup& group, optim::Optimizer& optimizer, int root = 0);

}  // namespace weft::dist
