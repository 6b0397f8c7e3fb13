// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/autocast.h"
#include "dist/ddp/strategy.h"
#include "dist/fsdp/fsdp_options.h"
#include "dist/group/world.h"
#include "nn/module_of.h"

namespace weft::dist {

class FlatShard;     // dist/fsdp/flat_shard.h
class FsdpSchedule;  // dist/fsdp/fsdp_schedule.h
class FsdpUnit;

/// A model whose parameters, gradients and optimizer state are sharded over the ranks (fully sharded data parallelism;
/// Rajbhandari et al. 2020, Zhao et al. 2023). Each rank runs its own part of the batch; a unit's parameters are
/// gathered just before their use and released after it, its gradients are averaged and scattered during
/// backward:
///   FSDP fsdp(model, group, {.policy = {.min_num_params = 1'000'000}});
///   AdamW adam(fsdp.parameters(), …);                        // made after FSDP: it updates this rank's shards
///   loss = cross_entropy(fsdp(images), labels); adam.zero_grad(); loss.backward(); adam.step();
/// The average counts samples as DDP's does (SampleWeight). Between steps the model's own parameters have no memory:
/// state dicts come from dist/fsdp/fsdp_state.h. A parameter or its shard may be frozen or thawed later
/// (requires_grad_()): the next forward drops or adds the parameter, with memory for its whole unit. Call modules by
/// operator(), not by forward(). All ranks make the same calls in the same order. See docs/fsdp.md.
class FSDP final : public Strategy {
 public:
  /// All ranks get the parameters, buffers and counters of rank 0. Errors: models that differ between ranks; a
  /// parameter that is neither f32 nor f64, or of another dtype or device than the first; options that contradict each
  /// other.
  FSDP(std::shared_ptr<nn::Module> model, ProcessGroupPtr group, FsdpOptions options = {});
  FSDP(std::shared_ptr<nn::Module> model, const World& world, FsdpOptions options = {});
  template <class Other, class... More>
  requires(!std::is_convertible_v<Other, std::shared_ptr<nn::Module>> &&
           !std::is_base_of_v<FSDP, Other>) explicit FSDP(const Other&, const More&...) {
    static_assert(
        sizeof(Other) == 0,
        "FSDP takes the model in a std::shared_ptr: FSDP fsdp(model, group); the optimizer takes fsdp.parameters()");
  }
  /// The model's parameters stay without memory: save the state first if you need it.
  ~FSDP() override;
  FSDP(const FSDP&) = delete;
  FSDP& operator=(const FSDP&) = delete;

  /// The model's forward, under Autocast if a lower precision was chosen; with more inputs that of a ModuleOf them. In
  /// training (gradients on, or Module::train()) counts x.size(0) samples.
  template <class... More>
  Tensor operator()(const Tensor& x, const More&... more) {
    const Autocast low(forward_dtype());
    return nn::call(*model_, cast_input(x), cast_input(more)...);
  }
  /// For models whose forward is not one call (of stages): call this before the modules of a step run. With gradients
  /// on, its backwards weigh by `samples`; then it is training.
  void before_forward(int64_t samples);
  /// Samples of the next forward, if that is not the first size of its input; 0: a dummy batch, as in DDP.
  void set_samples(int64_t samples);

  /// This rank's part of every parameter, frozen ones too, under its name: [length, 1, …] with the rank of the
  /// parameter, so that rules by rank (without_decay_on_vectors) still work; length 0 if other ranks have all of it.
  /// Trained ones are slices of one FlatParameters: an optimizer's step is one launch.
  std::vector<NamedTensor> parameters() const override { return shards_; }

  /// While the result lives, gradients stay unsharded on each rank and accumulate (each backward weighted by its
  /// samples); the next backward after it reduces their sum. Without it each backward adds to the shards.
  /// FsdpOptions::sharded_accumulation: it always does.
  [[nodiscard]] std::shared_ptr<void> no_sync() override;

  /// Scales all gradients so that their common 2-norm over all ranks is at most `max_norm`; returns the norm before (a
  /// device scalar). Collective. Errors: max_norm not positive; nothing is trained.
  Tensor clip_grad_norm(double max_norm);

  nn::Module& module() { return *model_; }
  const ProcessGroupPtr& group() const { return group_; }
  /// The ranks that share a copy of the weights, and the ranks with the same part of the copy: group() and a group of
  /// one, or the reverse under no_shard; two parts of group() under hybrid_shard.
  const ProcessGroupPtr& shard_group() const { return shard_group_; }
  const ProcessGroupPtr& replica_group() const { return replicas_; }
  const FsdpOptions& options() const { return options_; }
  /// Which copy of its shards this rank holds; 0 if shards are not replicated.
  int replica() const { return replicas_->rank(); }
  /// The root first, then in the order of the model (dist/fsdp/fsdp_schedule.h).
  const std::vector<std::unique_ptr<FsdpUnit>>& units() const;
  /// This rank's trained weights and gradients; null if nothing is trained.
  const std::shared_ptr<FlatParameters>& flat() const { return flat_; }

  /// Bytes of this rank's shards of all parameters.
  size_t shard_bytes() const;
  /// Bytes of gathered parameters, now and at the peak.
  size_t gathered_bytes() const;
  size_t peak_gathered_bytes() const;
  void free_gathered();

  Tensor forward(const Tensor& x) override;
  void stand_in() override { set_samples(0); }
  bool is_sharded() const override { return true; }
  StateDict model_state() override;
  StateDict gathered(const StateDict& part) override;
  StateDict part_of(const StateDict& whole) override;
  void load_model(const std::string& what, const StateDict& model) override;
  ShardedState sharded_model() override;
  ShardedState sharded(const StateDict& part) override;
  std::string describe() const override;

 private:
  /// Autocast's dtype in the forward: the chosen lower precision, else that outside.
  DType forward_dtype() const;
  /// An input in the precision of the forward.
  Tensor cast_input(const Tensor& x) const;
  template <class Other>
  const Other& cast_input(const Other& other) const {
    return other;
  }
  void check_options() const;
  void make_groups();
  std::vector<std::unique_ptr<FsdpUnit>> make_units(std::vector<std::pair<nn::Module*, size_t>>& owners);
  /// These shards join the flat parameters, with gradients.
  void train(const std::vector<std::pair<size_t, FlatShard*>>& by_unit);
  /// Follows what was frozen or thawed since the last forward.
  void take_in_changes();
  void share_buffers(Device device);

  std::shared_ptr<nn::Module> model_;
  ProcessGroupPtr group_, shard_group_, replicas_;
  FsdpOptions options_;
  std::shared_ptr<FlatParameters> flat_;
  std::shared_ptr<FsdpSchedule> schedule_;
  std::vector<NamedTensor> shards_;
  std::map<const FlatShard*, int64_t> places_;  // in flat_
};

}  // namespace weft::dist
