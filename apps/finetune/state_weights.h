// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "io/weights/name_map.h"

namespace weft::finetune {

/// A state dict as a file of weights, so that the tables of names apply to it. The state must outlive it.
class StateWeights final : public WeightsFile {
 public:
  explicit StateWeights(const StateDict& state) : state_(state) {
    format_ = "state dict";
    for (const NamedTensor& entry : state.tensors) add({entry.name, entry.tensor.dtype(), entry.tensor.sizes(), ""});
  }
  Tensor read(size_t index) const override { return state_.tensors[index].tensor.to(Device{}).contiguous(); }

 private:
  const StateDict& state_;
};

/// The state under the names of a table.
inline StateDict renamed(const StateDict& state, const char* map) {
  return renamed_weights(std::make_unique<StateWeights>(state), {.prefix = {}, .map = map, .add_prefix = {}})
      ->read_all();
}

}  // namespace weft::finetune
