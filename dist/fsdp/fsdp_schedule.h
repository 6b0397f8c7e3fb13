// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dist/ddp/flat_buffers.h"
#include "dist/ddp/sample_weight.h"
#include "dist/fsdp/flat_shard.h"
#include "dist/fsdp/fsdp_options.h"
#include "nn/module.h"

namespace weft::dist {

/// The order in which a round (a forward and its backward) needs units, recorded to prefetch in the next round. A round
/// that deviates from the last round prefetches nothing from there on.
class GatherPlan {
 public:
  /// A new round begins.
  void begin() {
    if (!seen_.empty()) known_ = std::move(seen_);
    seen_.clear();
    follows_ = true;
  }
  /// The step needs this unit now, for a new use.
  void needed(size_t unit) {
    follows_ = follows_ && seen_.size() < known_.size() && known_[seen_.size()] == unit;
    seen_.push_back(unit);
  }
  /// The unit that is needed next, or `ahead` uses later.
  std::optional<size_t> next(size_t others = 0) const {
    if (!follows_ || seen_.size() + others >= known_.size()) return {};
    return known_[seen_.size() + others];
  }

 private:
  std::vector<size_t> known_, seen_;
  bool follows_ = true;
};

/// The parameters of a module that belong to no inner unit. Each gather dtype has a FlatShard for parameters that
/// are trained at first, and one for the others.
class FsdpUnit {
 public:
  FsdpUnit(std::string name, nn::Module* module) : name_(std::move(name)), module_(module) {}

  void add(std::unique_ptr<FlatShard> shard) { shards_.push_back(std::move(shard)); }
  /// A trained shard gets a gradient, which is summed over `replicas` too. `low_reduce`: the dtype in which gradients
  /// of parameters with a lower gather precision are reduced.
  void add_gradient(FlatShard& shard, const ProcessGroupPtr& replicas, DType low_reduce);

  /// The path of the module; `root` for the model itself.
  const std::string& name() const { return name_; }
  nn::Module* module() const { return module_; }
  const std::vector<std::unique_ptr<FlatShard>>& shards() const { return shards_; }
  const std::vector<std::unique_ptr<ShardGradient>>& gradients() const { return gradients_; }
  bool has_frozen() const;

  void start_gather();
  void finish_gather();
  void free();
  /// Some buffer is gathered or being gathered; always false if the rank permanently has all parameters.
  bool holds_memory() const;
  bool is_stale() const;
  /// Bytes of all buffers when they are gathered.
  size_t gathered_bytes() const;

  void prepare_gradients();
  bool gradients_are_complete() const;

  bool in_use = false;  ///< gathered and needed, not only prefetched
  int open_inputs =
      0;  ///< uses in the forward whose inputs still wait for their gradient; counted with frozen parameters

 private:
  std::string name_;
  nn::Module* module_;
  std::vector<std::unique_ptr<FlatShard>> shards_;
  std::vector<std::unique_ptr<ShardGradient>> gradients_;
};

/// Decides when units are gathered, released and reduced; hooks of modules and gradients call it. docs/fsdp.md draws a
/// step. Unit 0 is the root.
class FsdpSchedule : public std::enable_shared_from_this<FsdpSchedule> {
 public:
  FsdpSchedule(const FsdpOptions& options, ProcessGroupPtr group, Device device,
               std::vector<std::unique_ptr<FsdpUnit>> units);

  const std::vector<std::unique_ptr<FsdpUnit>>& units() const { return units_; }

  /// Adds the hooks to modules. `owners`: modules with own parameters, and their units; `before_round` runs before each
  /// forward of the whole model.
  void attach(const std::vector<std::pair<nn::Module*, size_t>>& owners, std::function<void()> before_round);
  /// Adds the hooks to the trained parameters that have none.
  void listen();
  /// Removes the modules' hooks.
  void detach();

  /// Each later reduced backward in training broadcasts these buffers from rank 0.
  void share_each_step(std::unique_ptr<FlatBuffers> buffers) { buffers_ = std::move(buffers); }

  /// A round of the whole model begins; in training it has `samples`, unless set_samples() has said more.
  void begin_round(bool training, int64_t samples);
  void set_samples(int64_t samples) { next_samples_ = samples; }
  bool reduces() const { return reduces_; }
  void set_reduces(bool reduces) { reduces_ = reduces; }

  /// Bytes of gathered parameters, now and at the peak.
  size_t gathered_bytes() const { return gathered_bytes_; }
  size_t peak_gathered_bytes() const { return peak_gathered_bytes_; }
  /// Releases everything gathered. For work on the shards between steps.
  void free_all();

 private:
  void before_root(const nn::Module& model, const Tensor& x);
  void before_unit(size_t u, const Tensor& x);
  void after_unit(size_t u, const Tensor& y, bool training);
  void gradient_reaches(size_t u);
  void gradient_left(size_t u);
  void arrived(size_t u, ShardGradient& gradient, size_t i);
  void begin_pass();
  void end_pass();
  void weigh_by(const std::shared_ptr<SampleWeight>& weight);

  void need(size_t u);
  void free(size_t u);
  void release_after_use(size_t u);
  void look_ahead();
  void start_gather(size_t u, FsdpEvent::Kind why);
  size_t gathered_units() const;
  void unit_is_done(size_t u);
  void reduce(size_t u);
  void finish_oldest_reduction();
  void tell(FsdpEvent::Kind kind, size_t u) const;

  FsdpOptions options_;
  Device device_;
  std::vector<std::unique_ptr<FsdpUnit>> units_;
  ProcessGroupPtr group_;
  std::shared_ptr<SampleWeight> weight_;       // weight of the last forward, or of the forward whose backward runs
  std::shared_ptr<SampleWeight> in_backward_;  // weight of the running backward, if the model's output has named one
  std::unique_ptr<FlatBuffers> buffers_;       // null: each rank keeps its own
  std::vector<WorkPtr> sharing_;               // reductions of the running pass
  std::array<GatherPlan, 2> plans_;            // evaluation, training
  size_t plan_ = 0;
  std::deque<ShardGradient*> reducing_;
  std::function<void()> before_round_;
  std::set<const TensorImpl*> listened_to_;
  bool pass_open_ = false;
  bool reduces_ = true;
  std::optional<int64_t> next_samples_;
  bool stands_in_ = false;  // the last forward was of a dummy batch
  size_t gathered_bytes_ = 0, peak_gathered_bytes_ = 0;
  std::vector<std::pair<nn::Module*, int>> module_hooks_;
};

}  // namespace weft::dist
