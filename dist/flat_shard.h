// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/flat_parameters.h"
#include "dist/process_group.h"

namespace weft::dist {

/// One parameter in the flat buffer of a unit, and the part of it that this rank keeps.
struct ShardedParameter {
  std::string name;
  Tensor parameter;    ///< the model's own; has memory while gathered
  int64_t offset = 0;  ///< in the flat buffer, in elements
  int64_t numel = 0;
  int64_t begin = 0;   ///< first element of this rank's part
  int64_t length = 0;  ///< elements of this rank's part; 0 where it has none
  Tensor shard;        ///< this rank's part, of the parameter's rank [length, 1, …]: what an optimizer takes
};

/// Parameters that are gathered and reduced together: a flat buffer [numel], of which rank r keeps the r-th of n equal
/// parts in f32 (or f64).
///
///   parameters  | weight 0 ….| bias 0 .| weight 1 ……………… |.....|      dots: padding, zero
///   ranks       |      rank 0      |      rank 1      |  rank 2 …
///
/// Slices begin at multiples of FlatParameters::kAlignment, and so do the parts, so the parts of one rank are slices of
/// FlatParameters again. gather() fills a buffer of `dtype` from all parts and makes the parameters views of it; free()
/// gives its memory back. Buffers of one rank alone in f32 are the shard itself and always there.
class FlatShard {
 public:
  /// `group`: the ranks that share the buffer. `parameters` must have one dtype (f32 or f64), be dense and have memory.
  /// `dtype`: in which they are gathered.
  FlatShard(std::string name, ProcessGroupPtr group, DType dtype, bool trained,
            const std::vector<NamedTensor>& parameters);

  /// Gives the memory of the parameters back and keeps this rank's part on `device`; first all ranks of `world` take
  /// the values of its rank 0. Collective.
  void shard(ProcessGroup& world, Device device);
  /// From now on the part lies in `master` [shard_numel()], which holds its values.
  void set_master(const Tensor& master);

  const std::string& name() const { return name_; }
  const std::vector<ShardedParameter>& parameters() const { return parameters_; }
  bool trained() const { return trained_; }
  DType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }
  int64_t shard_numel() const { return numel_ / group_->size(); }
  /// This rank's part, padding included.
  const Tensor& master() const { return master_; }
  const ProcessGroupPtr& group() const { return group_; }

  /// This rank's part of a parameter, [length], in a buffer like master().
  Tensor part(const Tensor& buffer, const ShardedParameter& parameter) const;
  /// Takes this rank's part out of the whole parameter (any dtype, device, strides) into the shard.
  void write(const ShardedParameter& parameter, const Tensor& whole) const;

  /// Enqueues the gather; nothing where it is there or under way.
  void start_gather();
  /// Waits for it; the parameters have memory then.
  void finish_gather();
  /// Gives the gathered memory back, waiting for a gather under way.
  void free();
  /// True where the shard has changed since it was gathered.
  bool is_stale() const { return !is_resident_ && holds_memory() && version_ != master_.storage()->version(); }
  bool holds_memory() const { return !is_resident_ && gathered_.defined() && gathered_.storage()->has_memory(); }
  size_t gathered_bytes() const { return is_resident_ ? 0 : static_cast<size_t>(numel_) * size_of(dtype_); }

  /// All values in f32 (f64), whatever `dtype` is: a new tensor [numel]. Collective in the group.
  Tensor gather_full(const Tensor& part) const;

 private:
  void bind();
  void unbind();

  std::string name_;
  ProcessGroupPtr group_;
  DType dtype_;
  bool trained_;
  bool is_resident_ = false;
  std::vector<ShardedParameter> parameters_;
  int64_t numel_ = 0;
  Tensor master_;
  Tensor gathered_;              // [numel]; its storage stays, the memory comes and goes
  int64_t gathered_offset_ = 0;  // in its storage: not 0 for a resident part of the flat parameters
  uint32_t version_ = 0;         // of the master when it was gathered last
  WorkPtr work_;
};

/// A tensor [sizes] at element `offset` of a storage; without memory where the storage has none.
Tensor place_in(const Ref<Storage>& storage, int64_t offset, const Shape& sizes, DType dtype);

}  // namespace weft::dist
