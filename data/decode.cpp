// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// The format that decode_other() reads and `bytes` begin as; null for another.
const char* other_format(std::string_view bytes) {
  if (bytes.starts_with("RIFF") && bytes.substr(std::min<size_t>(bytes.size(), 8)).starts_with("WEBP")) return "WebP";
  if (bytes.starts_with("GIF8")) return "GIF";
  if (bytes.starts_with("BM")) return "BMP";
  if (bytes.starts_with(std::string_view("II*\0", 4)) || bytes.starts_with(std::string_view("MM\0*", 4))) return "TIFF";
  return bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' && std::isspace(bytes[2]) ? "PNM"
                                                                                                             : nullptr;
}

}  // namespace

Image decode(std::span<const uint8_t> bytes, const std::string& file, DecodeOptions options) {
  const std::string path = printable(file);
  constexpr uint8_t kPng[] = {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a};
  WEFT_CHECK(!bytes.empty(), "decode: ", path, " is empty");
  if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
    return decode_jpeg(bytes, path, options);
  if (bytes.size() >= sizeof(kPng) && std::memcmp(bytes.data(), kPng, sizeof(kPng)) == 0)
    return decode_png(bytes, path, options);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 16));
  if (other_format(text) != nullptr) return decode_other(bytes, path, options);
  fail("decode: expected a JPEG, PNG, WebP, BMP, GIF, TIFF or PNM image, got something else in ", path,
       ", which begins with '", printable(text), "'");
}

size_t exif_orientation_at(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8) return 0;
  const bool little = tiff[0] == 'I' && tiff[1] == 'I';
  const bool big = tiff[0] == 'M' && tiff[1] == 'M';
  if (!little && !big) return 0;
  const auto u16 = [&](size_t at) -> uint32_t {
    return little ? tiff[at] | tiff[at + 1] << 8 : tiff[at] << 8 | tiff[at + 1];
  };
  const auto u32 = [&](size_t at) -> size_t {
    return little ? u16(at) | static_cast<size_t>(u16(at + 2)) << 16 : static_cast<size_t>(u16(at)) << 16 | u16(at + 2);
  };
  const size_t directory = u32(4);
  if (directory > tiff.size() - 2 || u16(2) != 42) return 0;
  const size_t entries = u16(directory);
  constexpr size_t kEntryBytes = 12;
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 0;
    if (u16(entry) == 0x0112) return entry + 8;
  }
  return 0;
}

int exif_orientation(std::span<const uint8_t> tiff) {
  const size_t at = exif_orientation_at(tiff);
  if (at == 0) return 1;
  const int orientation = tiff[0] == 'I' ? tiff[at] | tiff[at + 1] << 8 : tiff[at] << 8 | tiff[at + 1];
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // The stored pixel for (y, x) of the upright image: transpose, then mirror rows / columns.
  const bool transpose = orientation >= 5;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  Image out = black_image(image.height, image.width, image.channels, image.label);
  if (transpose) std::swap(out.height, out.width);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t v = mirror_y ? out.height - 1 - y : y;
      const int64_t u = mirror_x ? out.width - 1 - x : x;
      const uint8_t* from = transpose ? image.row(u) + v * image.channels : image.row(v) + u * image.channels;
      std::memcpy(out.row(y) + x * image.channels, from, static_cast<size_t>(image.channels));
    }
  return out;
}

}  // namespace weft::data
