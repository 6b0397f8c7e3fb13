// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/state_dict.h"

namespace weft {

/// Where one parameter lies in the flat buffers, in elements. Padding fills up to the next slice.
struct FlatSlice {
  std::string name;
  Tensor parameter;
  int64_t offset = 0;
  int64_t numel = 0;
};

/// Elements offset … offset + numel - 1 of the flat buffers.
struct FlatRange {
  int64_t offset = 0;
  int64_t numel = 0;
};

/// The state of a model as flat buffers: every parameter becomes a slice of a master buffer (f32, or f64). Its gradient
/// has the same place in the gradient buffer. Tensors that share a parameter's or a gradient's memory
/// move along (core/storage.h). So the optimizer is a single launch and the gradient norm a single reduction; a bucket
/// of gradients or a shard of weights is a range. With a compute dtype (bf16, f16) a low-precision
/// copy of the weights is kept too, which autocast uses instead of casting (core/autocast.h).
class FlatParameters : public std::enable_shared_from_this<FlatParameters> {
 public:
  /// Slices begin at multiples of this many elements: 128 bytes in f32, 64 in bf16. Padding is zero and stays zero.
  static constexpr int64_t kAlignment = 32;

  /// Moves the parameters (values kept, their order kept) into flat buffers; sizes and strides stay as they are up to
  /// density. If some of them are slices of a FlatParameters already (made by data parallelism, say), the others join
  /// and this object is returned. Errors: none given, mixed dtypes or devices, not f32 or f64, a tensor
  /// twice, a tensor that is no leaf; memory that cannot move: of another library, of parts of another tensor; of a
  /// parameter that FSDP has sharded.
  static std::shared_ptr<FlatParameters> of(const std::vector<NamedTensor>& parameters);

  /// As above, at places that the caller has chosen, in buffers of `numel` elements: the shards of all ranks must line
  /// up. Offsets ascend; the gaps between slices are padding. Slices may be empty. Errors: as of the other form; an
  /// offset that is no multiple of kAlignment, slices that overlap or reach past the end.
  static std::shared_ptr<FlatParameters> of(std::vector<FlatSlice> slices, int64_t numel);

  /// Use of(); public for std::make_shared only.
  FlatParameters(std::vector<FlatSlice> slices, int64_t numel);

  /// More of them, behind those that are here. Errors: those of of(); parameters that are divided among ranks.
  void add(const std::vector<NamedTensor>& parameters);
  /// Adds slices at the caller's places, which begin at numel(), and makes the buffers `numel` long. Divided parameters
  /// may join. Errors: those of both forms of of().
  void add(const std::vector<FlatSlice>& slices, int64_t numel);
  /// `function` runs at the end of each add().
  void on_add(std::function<void()> function);
  /// Makes a buffer [n] longer, up to `numel`, filled with `value`. Tensors that share its memory move along.
  static void lengthen(Tensor& buffer, int64_t numel, double value = 0);

  const std::vector<FlatSlice>& slices() const { return slices_; }
  /// Where these parameters lie, neighbours merged: one range when they are all of them. Errors: not in here.
  std::vector<FlatRange> ranges(const std::vector<NamedTensor>& parameters) const;
  int64_t numel() const { return master_.numel(); }
  DType dtype() const { return master_.dtype(); }
  Device device() const { return master_.device(); }

  /// All weights, rank 1; padding included.
  const Tensor& master() const { return master_; }
  /// All gradients, rank 1. Slices that no backward reached since zero_grad() are filled with zeros by this call.
  const Tensor& gradient();
  /// The low-precision weights; undefined without compute dtype.
  const Tensor& compute_copy() const { return compute_copy_; }

  /// Keeps a copy of the weights in `dtype` (bf16 or f16) from now on. Errors: any other dtype; f64 weights.
  void keep_compute_copy(DType dtype);
  /// After the master buffer was written through master(): raises its version; with `copied` the writer has written the
  /// compute copy too, else the weights are cast again.
  void weights_changed(bool copied);

  /// All gradients count as zero (nothing is written: the next backward overwrites).
  void zero_grad() const;

  /// The 2-norm of whole parameters' gradients: a collective where ranks hold parts of them.
  Tensor whole_norm(const std::vector<NamedTensor>& parameters);
  /// sums [n, slices] over this rank's elements of each slice become sums over the whole parameters: a collective where
  /// ranks hold parts of them.
  Tensor whole_sums(const Tensor& sums) const;

  /// Which parameters a group of ranks divides, and how the ranks' numbers are gathered: own [k] of each -> [ranks, k].
  struct Division {
    std::function<bool(const Tensor& parameter)> is_divided;
    std::function<Tensor(const Tensor& own, const char* name)> gather;
    std::vector<int> others = {};  ///< the job's other ranks, which hold other parts
    bool of_slices = false;        ///< the slices are parts (FSDP's): no rank has the parameters themselves
  };
  /// Adds a division: FSDP's parts are slices, of parts that TensorParallel made.
  void divide(Division division);
  /// Forgets the divisions and stages, which another strategy over these parameters made.
  void undivide();
  /// A group divides it.
  bool is_divided(const Tensor& parameter) const;
  /// Errors: the slices are ranks' parts, which `op` (it begins the text) would mix.
  void check_whole(const char* op) const;

  /// Until open(), check_open() fails with this text: who owns the buffers, and what to call.
  void close(std::string why) { closed_ = std::move(why); }
  void open() { closed_.clear(); }
  void check_open(const char* op) const;

  /// Where other ranks hold other parameters of the model (Pipeline): this rank's norm [1] -> [stages]; and which of
  /// its parameters another stage holds too and counts.
  struct Stages {
    std::function<Tensor(const Tensor& own, const char* name)> gather;
    std::function<bool(const Tensor& parameter)> is_elsewhere;
    std::vector<int> others = {};         ///< the job's ranks of the other stages
    std::vector<std::string> names = {};  ///< names of the whole model's parameters and buffers, in its order
  };
  void set_stages(Stages stages);
  const Stages& stages() const { return stages_; }
  /// The job's ranks that hold other parts or stages of these parameters.
  std::vector<int> others() const;

  /// The slice's place in `buffer` (of numel() elements: weights, gradients, an optimizer's state), in the parameter's
  /// sizes.
  static Tensor place(const Tensor& buffer, const FlatSlice& slice);

  /// Errors: a parameter that no longer lies in the buffers (`op` begins the text).
  void check_bound(const char* op) const;

 private:
  /// The 2-norm of these parameters' gradients as this rank holds them, [1]; 0 where it holds none.
  Tensor own_norm(const std::vector<NamedTensor>& parameters);
  void move_in(const FlatSlice& slice);
  void mark_divided();

  std::vector<FlatSlice> slices_;
  Tensor master_, gradient_, compute_copy_;
  std::vector<std::function<void()>> on_add_;
  std::vector<Division> divisions_;  // the innermost first; none: the parameters are whole
  std::vector<Tensor> divided_;      // for each: bool [slices]
  Stages stages_;
  std::string closed_;
};

/// Scales all gradients so that their common 2-norm is at most `max_norm`; returns the norm before (a device scalar; no
/// synchronisation). The norm is that of the whole parameters, also where each rank holds a part of them (of FSDP and
/// TensorParallel: all ranks make the call). A tensor that is given twice counts once. Parameters that neither want nor
/// have a gradient are passed over. Errors: max_norm not positive; no parameter wants or has a gradient.
Tensor clip_grad_norm(const std::vector<NamedTensor>& parameters, double max_norm);

}  // namespace weft
