// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dist/fsdp/flat_shard.h"
#include "dist/fsdp/shard_gradient.h"
#include "nn/module.h"

namespace weft::dist {

/// The parameters of one module that belong to no unit inside it: one FlatShard for each gather dtype, trained and
/// frozen ones separately.
class FsdpUnit {
 public:
  FsdpUnit(std::string name, nn::Module* module) : name_(std::move(name)), module_(module) {}

  void add(std::unique_ptr<FlatShard> shard) { shards_.push_back(std::move(shard)); }
  /// Trained shards get a gradient, which is summed over `replicas` too. `low_reduce`: the dtype in which gradients of
  /// parameters with a lower gather precision are reduced.
  void add_gradients(const ProcessGroupPtr& replicas, DType low_reduce);

  /// The path of the module; `root` for the model itself.
  const std::string& name() const { return name_; }
  nn::Module* module() const { return module_; }
  const std::vector<std::unique_ptr<FlatShard>>& shards() const { return shards_; }
  const std::vector<std::unique_ptr<ShardGradient>>& gradients() const { return gradients_; }
  bool has_frozen() const { return gradients_.size() < shards_.size(); }

  void start_gather();
  void finish_gather();
  void free();
  /// Some buffer is gathered or being gathered; always false if the rank permanently has all parameters.
  bool holds_memory() const;
  bool is_stale() const;
  /// Of all buffers when they are gathered.
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

}  // namespace weft::dist
