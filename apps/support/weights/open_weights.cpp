// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "apps/support/weights/open_parts.h"
#include "core/file_reader.h"

namespace weft::support {
namespace {

/// A header's length that fits the file, and JSON behind it.
bool looks_like_safetensors(const char* start, uint64_t size) {
  uint64_t length = 0;
  std::memcpy(&length, start, 8);
  return size >= 10 && length <= size - 8 && start[8] == '{';
}

}  // namespace

std::unique_ptr<WeightsFile> open_weights(const std::filesystem::path& path, const OpenWeightsOptions& options) {
  const FileReader file(path, "weights");
  char start[16] = {};
  file.read(0, start, std::min<uint64_t>(file.size(), sizeof start));
  const auto starts = [&](std::string_view text) { return std::string_view(start, text.size()) == text; };
  const auto without_key = [&] {
    if (!options.key.empty())
      file.bad("expected no key for this format, which holds one dict, got '", options.key, "'");
  };
  if (looks_like_safetensors(start, file.size()) || path.extension() == ".safetensors")
    return without_key(), open_safetensors(path);
  if (starts("PK\x03\x04") || starts("PK\x05\x06") || start[0] == '\x80') return open_torch(path, options.key);
  if (starts("\x89HDF")) return open_checkpoint_part(path, options.key);
  if (start[0] == '{' || path.extension() == ".json") return without_key(), open_weights_index(path);
  file.bad("expected safetensors, a safetensors index, a PyTorch file or a Weft checkpoint, got something else");
}

}  // namespace weft::support
