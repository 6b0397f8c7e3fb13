// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "dist/group/process_group.h"
#include "nn/module.h"

namespace weft::dist {

/// The buffers of a model (running statistics) as neighbours in one piece of memory per dtype, for a single broadcast.
/// Each buffer keeps a storage of its own in there: an in-place change of one does not count as a change
/// of the others. The magnitudes that layers in 8 bits record (Fp8Scaling::latest), which backward writes, are not
/// broadcast: at its end all ranks have the largest of all, so that their scales agree.
class FlatBuffers {
 public:
  explicit FlatBuffers(nn::Module& model);

  bool empty() const { return slices_.empty(); }
  /// Gives all ranks the buffers of rank `root`; they must not be written before wait().
  std::vector<WorkPtr> broadcast(ProcessGroup& group, int root) const;
  /// Once broadcast and backward are done: reduces the magnitudes, and counts an in-place change.
  void finish(ProcessGroup& group) const;
  /// Errors: a buffer that lies elsewhere by now; `who` begins the text.
  void check_bound(const char* who) const;

 private:
  struct Slice {
    std::string name;
    Tensor buffer;
    void* data;
  };
  std::vector<Slice> slices_;
  std::vector<Tensor> memory_;  // one per dtype
  Tensor magnitudes_;
};

}  // namespace weft::dist
