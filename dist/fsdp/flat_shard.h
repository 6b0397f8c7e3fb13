// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/flat_parameters.h"
#include "dist/fsdp/fsdp_options.h"
#include "dist/group/process_group.h"
#include "nn/init.h"

namespace weft::dist {

/// A parameter in the flat buffer of a unit, and this rank's part.
struct ShardedParameter {
  std::string name;
  Tensor parameter;    ///< the model's own; has memory while gathered
  int64_t offset = 0;  ///< in the flat buffer, in elements
  int64_t numel = 0;
  int64_t begin = 0;     ///< first element of this rank's part
  int64_t length = 0;    ///< elements of this rank's part; 0 if it has none
  bool trained = false;  ///< wants a gradient in this round
  Tensor shard;  ///< this rank's part [length, 1, …] with the parameter's number of dimensions, for the optimizer
};

/// Weights that are written while a model is sharded. A rank that fails goes on, since the others wait for it in
/// collectives; check() then ends all of them.
struct DeferredWeights {
  nn::DeferredInit* notes = nullptr;
  mutable std::string problem = {};  ///< this rank's first error

  void attempt(const std::function<void(nn::DeferredInit&)>& work) const;
  /// Collective. Errors (on every rank): the first rank's problem.
  void check(ProcessGroup& world) const;
};

/// Parameters that are gathered and reduced together: a flat buffer [numel], of which rank r keeps the r-th of n equal
/// parts in f32 (or f64).
///
///   parameters  | weight 0 ….| bias 0 .| weight 1 ……………… |.....|      dots: padding, zero
///   ranks       |      rank 0      |      rank 1      |  rank 2 …
///
/// Slices and parts begin at multiples of FlatParameters::kAlignment, so the parts of one rank are slices of
/// FlatParameters again. gather() fills a buffer of `dtype` from all parts and makes the parameters views of it; free()
/// releases its memory. For a single rank in f32 the buffer is the shard itself and never released.
class FlatShard {
 public:
  /// `group`: the ranks that share the buffer. `parameters` must have one dtype (f32 or f64), be dense and have memory.
  /// `dtype`: the dtype of the gathered buffer.
  FlatShard(std::string name, ProcessGroupPtr group, DType dtype, bool trained,
            const std::vector<NamedTensor>& parameters, Offload offload = Offload::none);

  /// Releases the memory of the parameters and keeps this rank's part on `device`, or on the host under an offload;
  /// first all ranks of `world` get the values of its rank 0, which writes those that were deferred. Where
  /// several ranks share the buffer, each reads its own part of weights that can be read in parts. Collective.
  void shard(ProcessGroup& world, Device device, const DeferredWeights& deferred);
  /// Moves the part to `master` [shard_numel()], which holds its values.
  void set_master(const Tensor& master);
  /// Parameter `i` is trained from now on, or frozen.
  void set_trained(size_t i, bool trained);
  /// Gives each part its own memory, before they become slices of the flat parameters.
  void begin_training();

  const std::string& name() const { return name_; }
  const std::vector<ShardedParameter>& parameters() const { return parameters_; }
  /// The parameters are slices of the flat parameters, since one of them is or was trained.
  bool trained() const { return trained_; }
  /// The number of parameters that are trained in this round.
  size_t trained_parameters() const { return trained_parameters_; }
  DType dtype() const { return dtype_; }
  /// The device on which parameters are gathered; an offloaded master() is on the host.
  Device device() const { return device_; }
  int64_t numel() const { return numel_; }
  int64_t shard_numel() const { return numel_ / group_->size(); }
  /// This rank's part, padding included.
  const Tensor& master() const { return master_; }
  const ProcessGroupPtr& group() const { return group_; }

  /// This rank's part of a parameter, [length], in a buffer like master().
  Tensor part(const Tensor& buffer, const ShardedParameter& parameter) const;
  /// Copies this rank's part of the whole parameter (any dtype, device, strides) into the shard.
  void write(const ShardedParameter& parameter, const Tensor& whole) const;

  /// Enqueues the gather, unless it is done or running.
  void start_gather();
  /// Waits for it; then the parameters have memory.
  void finish_gather();
  /// Releases the gathered memory, after a running gather.
  void free();
  /// Whether the shard has changed since it was gathered.
  bool is_stale() const { return !is_resident_ && holds_memory() && version_ != master_.storage()->version(); }
  bool holds_memory() const { return !is_resident_ && gathered_.defined() && gathered_.storage()->has_memory(); }
  size_t gathered_bytes() const { return is_resident_ ? 0 : static_cast<size_t>(numel_) * size_of(dtype_); }

  /// All values in f32 (f64), independent of `dtype`: a new tensor [numel]. Collective in the group.
  Tensor gather_full(const Tensor& part) const;

 private:
  void read_parts(ProcessGroup& world, const DeferredWeights& deferred);
  void bind();
  void unbind();
  /// The part as it goes into a gather, on the device.
  Tensor own_part();

  std::string name_;
  ProcessGroupPtr group_;
  DType dtype_;
  bool trained_;
  Offload offload_;
  Device device_;
  size_t trained_parameters_ = 0;
  bool is_resident_ = false;
  std::vector<ShardedParameter> parameters_;
  int64_t numel_ = 0;
  Tensor master_;
  Tensor on_device_;             // a copy of it in `dtype`; Offload::optimizer
  Tensor gathered_;              // [numel]; its storage stays, its memory is allocated and released
  int64_t gathered_offset_ = 0;  // in its storage: not 0 for a resident part of the flat parameters
  uint32_t version_ = 0;         // the master's version at the last gather
  WorkPtr work_;
};

/// A tensor [sizes] at element `offset` of a storage; without memory if the storage has none.
Tensor place_in(const Ref<Storage>& storage, int64_t offset, const Shape& sizes, DType dtype);

/// The gradients of a FlatShard during backward: collected in a flat buffer, weighted, then reduced to this rank's
/// part, which is added to the gradients of the shards. Frozen parameters have none. The buffer exists from the first
/// use in backward to the end of the reduction (longer while gradients are accumulated unsharded).
class ShardGradient {
 public:
  /// `replicas`: the ranks that hold the same part; their gradients are summed too. `reduce`: the dtype of the
  /// reduction.
  ShardGradient(FlatShard& shard, ProcessGroupPtr replicas, DType reduce);
  /// This rank's part of the flat gradient [shard_numel()].
  void set_target(const Tensor& target) { target_ = target.detach(); }

  const FlatShard& shard() const { return *shard_; }

  /// Sets the parameters' gradients to their slices of the buffer, so that backward writes there.
  void prepare();
  /// Parameter `i` has its gradient of one pass: adds it to the buffer, times `weight` [1] (undefined: 1).
  void take(size_t i, const Tensor& weight);
  /// Every trained parameter's gradient has been added since the last reduction, and no running pass will compute
  /// another.
  bool is_complete() const;
  /// There is something to reduce.
  bool has_any() const { return arrived_ > 0 || held_; }
  /// The pass ends without a reduction: its gradients stay for the next one.
  void hold();
  /// Forgets the gradients that stayed and were zeroed since, by zero_grad() of their shards.
  void drop_zeroed();

  /// Enqueues the reduction among the ranks of a shard, then that among its copies.
  void start_reduce();
  void start_across();
  /// Waits for it and adds the result to the gradients of the shards (or sets them if they count as zero).
  void finish_reduce();
  bool is_reducing() const { return reducing_.defined(); }
  /// Discards everything after a failed backward.
  void drop();

 private:
  /// Withdraws the slices without a gradient, and releases an empty buffer.
  void withdraw();
  void make_buffer();
  Tensor place(size_t i) const;
  /// The replicas' reduction can begin behind the other one while this rank computes.
  bool follows_on_device() const;

  FlatShard* shard_;
  ProcessGroupPtr replicas_;
  DType reduce_;
  Tensor target_;
  Tensor buffer_;               // [numel] of the unit
  std::vector<bool> taken_;     // since the last reduction, per parameter
  std::vector<bool> prepared_;  // the parameter's grad() is its slice
  size_t arrived_ = 0;          // trained parameters' gradients
  bool held_ = false;           // earlier passes left gradients
  WorkPtr work_, across_;       // among the ranks of a shard, and among those that hold the same part
  Tensor reducing_, part_;
};

}  // namespace weft::dist
