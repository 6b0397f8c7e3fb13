// SPDX-License-Identifier: Apache-2.0
#include "apps/support/checkpoint.h"
#include "apps/support/weights/open_parts.h"
#include "core/stored_dtype.h"

namespace weft::support {
namespace {

class CheckpointWeights : public WeightsFile {
 public:
  CheckpointWeights(const std::filesystem::path& path, const std::string& key) : checkpoint_(load_checkpoint(path)) {
    format_ = "weft checkpoint";
    state_ = checkpoint_.part(key.empty() ? "model" : key);
    for (const auto& [name, value] : checkpoint_.integers) metadata_[name] = str(value);
    for (const auto& [name, value] : checkpoint_.numbers) metadata_[name] = str(value);
    for (const auto& [name, value] : checkpoint_.texts) metadata_[name] = value;
    for (const NamedTensor& entry : state_.tensors)
      add({entry.name, entry.tensor.dtype(), entry.tensor.sizes(), std::string(stored_name(entry.tensor.dtype()))});
  }
  Tensor read(size_t index) const override { return state_.tensors.at(index).tensor; }

 private:
  Checkpoint checkpoint_;
  StateDict state_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_checkpoint_part(const std::filesystem::path& path, const std::string& key) {
  return std::make_unique<CheckpointWeights>(path, key);
}

}  // namespace weft::support
