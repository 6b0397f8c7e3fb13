// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "core/autograd.h"

namespace weft {

/// The state for autograd of `impl`, made now if there is none.
inline AutogradMeta& meta_of(TensorImpl* impl) {
  if (!impl->autograd) impl->autograd = std::make_unique<AutogradMeta>();
  return *impl->autograd;
}

/// While it lives, Saved::get() gives tensors their history in the backward of `node`; null: it gives none.
class RecordedBackward {
 public:
  explicit RecordedBackward(Node* node);
  ~RecordedBackward();
  RecordedBackward(const RecordedBackward&) = delete;
  RecordedBackward& operator=(const RecordedBackward&) = delete;

 private:
  Node* outer_;
};

/// The sequence of the latest node of this thread.
uint64_t latest_sequence();

/// `value`, which nobody else has, with the history of the input at the edge, whose elements it holds.
Tensor attached(Tensor value, const Node::Edge& from);

}  // namespace weft
