// SPDX-License-Identifier: Apache-2.0
// Input: whether both checksums are made to fit (so that what is behind them is reached), a packed file.
#include "data/packed_images.h"

#include <cstring>

#include "io/crc32c.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

namespace {

void renew_checksums(std::vector<uint8_t>& file) {
  if (file.size() < data::kPackedHeaderBytes) return;
  uint64_t index = 0;
  std::memcpy(&index, &file[24], sizeof index);
  if (index > file.size()) return;
  const uint64_t bytes = file.size(), length = bytes - index;
  std::memcpy(&file[16], &bytes, sizeof bytes);
  std::memcpy(&file[32], &length, sizeof length);
  const uint32_t index_crc = crc32c(file.data() + index, length);
  std::memcpy(&file[40], &index_crc, sizeof index_crc);
  const uint32_t header_crc = crc32c(file.data(), 60);
  std::memcpy(&file[60], &header_crc, sizeof header_crc);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const bool renew = (input.byte() & 1) != 0;
  std::vector<uint8_t> file = input.rest();
  if (renew) renew_checksums(file);
  const std::filesystem::path path = folder.write("file.packed", file);
  std::vector<std::string> parts{"val"};
  fuzz::expect_value_or_error([&] { parts = data::packed_parts(path); });
  std::vector<uint8_t> buffer;
  int64_t decoded = 0;
  for (const std::string& part : parts)
    fuzz::expect_value_or_error([&] {
      const auto set = data::packed_images(path, part, {.max_pixels = 1 << 16});
      for (int64_t i = 0; i < set->size(); ++i) {
        static_cast<void>(set->classes().at(set->label(i)));
        if (set->encoded(i, buffer).empty()) std::abort();
        if (++decoded > 20) continue;  // many entries may share one image
        fuzz::expect_value_or_error([&] { static_cast<void>(set->get(i)); });
      }
    });
  return 0;
}
