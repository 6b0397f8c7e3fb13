// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {

std::span<const char* const> image_suffixes() {
  static constexpr const char* kSuffixes[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
  return kSuffixes;
}

std::span<const char* const> unread_suffixes() {
  static constexpr const char* kSuffixes[] = {".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"};
  return kSuffixes;
}

Image decode_other(std::span<const uint8_t>, const std::string& path, DecodeOptions) {
  fail("decode: cannot read ", path, ", which is no JPEG or PNG: built without Leptonica. On Debian: apt-get install ",
       "libleptonica-dev, then configure again.");
}

}  // namespace weft::data
