// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "dist/group/process_group.h"
#include "optim/optimizer.h"

namespace weft::dist {

/// An optimizer of which each rank keeps the state of its n-th part of the parameters alone (stage 1 of ZeRO,
/// Rajbhandari et al. 2020), for models that every rank holds whole:
///   DDP ddp(model, world);
///   ZeroRedundancyOptimizer optimizer(ddp.parameters(), world.group(), [](const optim::ParameterGroups& parts) {
///     return std::make_unique<optim::AdamW>(parts, optim::AdamWOptions{.lr = 1e-3});
///   });
///   optimizer.zero_grad(); loss.backward(); optimizer.step();
/// Gradients must be the same on all ranks, as after DDP's backward. step() updates this rank's part and gathers the
/// others'. A rule on single elements (SGD, Adam, AdamW, Lion, …) makes the same weights as without shards, bit for
/// bit; LARS and LAMB add up their norms in another order; Adafactor needs whole parameters and refuses.
///
/// Memory of a rank, for P bytes of parameters and a rule with k states: (k + 2) P / n in place of k P, since it works
/// on copies of its part of the weights and of the gradient.
///
/// Constructor, step() and state_dict() are collective.
class ZeroRedundancyOptimizer {
 public:
  /// Makes the optimizer from this rank's parts of the parameters, which have their names and groups.
  using Maker = std::function<std::unique_ptr<optim::Optimizer>(const optim::ParameterGroups& parts)>;
  /// Errors: no group; no parameter that requires a gradient; FSDP's parts; a maker that makes none.
  ZeroRedundancyOptimizer(const optim::ParameterGroups& parameters, ProcessGroupPtr group, const Maker& make);

  /// Errors: a parameter that was frozen or thawed since the constructor; those of Optimizer::step().
  void step();
  void zero_grad();
  /// The optimizer of this rank's part: what schedules take. Its own step() and zero_grad() are errors.
  optim::Optimizer& optimizer() { return *optimizer_; }
  /// The whole parameters: what Ema takes.
  const std::shared_ptr<FlatParameters>& flat() const { return flat_; }

  /// The state of one process, on all ranks; collective.
  StateDict state_dict() const;
  /// Takes this rank's part of it. Errors: those of Optimizer::load_state_dict(); a tensor that belongs to no trained
  /// parameter, or of another shape.
  void load_state_dict(const StateDict& full);

 private:
  /// This rank's elements [begin, begin + length) of a parameter, where it has any.
  struct Part {
    FlatSlice whole;
    int64_t begin = 0, length = 0;
    Tensor shard;
  };
  int64_t first() const { return group_->rank() * part_; }
  void close();
  const Part* find(const std::string& state) const;

  const ProcessGroupPtr group_;
  std::shared_ptr<FlatParameters> flat_;
  std::vector<Part> parts_;
  std::vector<NamedTensor> frozen_;
  int64_t part_ = 0;           // elements of a rank; the last ranks may have fewer
  std::vector<int64_t> rows_;  // elements per rank
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace weft::dist
