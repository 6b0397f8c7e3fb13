// SPDX-License-Identifier: Apache-2.0
#include "io/weights/weights_file.h"

#include "core/printable.h"

namespace weft {

int64_t WeightsFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
}

void WeightsFile::add(WeightInfo info) {
  WEFT_CHECK(index_.emplace(info.name, tensors_.size()).second, "weights: expected each name once, got '",
             printable(info.name), "' twice");
  tensors_.push_back(std::move(info));
}

StateDict WeightsFile::read_all() const {
  StateDict state;
  for (size_t i = 0; i < tensors_.size(); ++i) state.tensors.push_back({tensors_[i].name, read(i)});
  return state;
}

}  // namespace weft
