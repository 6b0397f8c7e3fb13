// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "dist/group/process_group.h"
#include "nn/module.h"

namespace weft::dist {

/// The buffers of a model (running statistics) as neighbours in one piece of memory per dtype, so that they travel in
/// one broadcast. Each buffer keeps a storage of its own in there: an in-place change of one does not count as a change
/// of the others.
class FlatBuffers {
 public:
  explicit FlatBuffers(nn::Module& model);

  bool empty() const { return slices_.empty(); }
  /// Gives all ranks the buffers of rank `root`; they must not be written before wait().
  std::vector<WorkPtr> broadcast(ProcessGroup& group, int root) const;
  /// Counts the broadcast as an in-place change, once it is done.
  void bump_versions() const;
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
};

}  // namespace weft::dist
