// SPDX-License-Identifier: Apache-2.0
#include "apps/support/weights/open_parts.h"
#include "core/safetensors.h"

namespace weft::support {
namespace {

class SafetensorsWeights : public WeightsFile {
 public:
  explicit SafetensorsWeights(const std::filesystem::path& path) : file_(path) {
    format_ = "safetensors";
    metadata_ = file_.metadata();
    for (const SafetensorsEntry& entry : file_.entries())
      add({entry.name, entry.stored->dtype, entry.sizes, std::string(entry.stored->name)});
  }
  Tensor read(size_t index) const override { return file_.read(index); }

 private:
  SafetensorsReader file_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_safetensors(const std::filesystem::path& path) {
  return std::make_unique<SafetensorsWeights>(path);
}

}  // namespace weft::support
