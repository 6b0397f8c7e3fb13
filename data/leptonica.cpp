// SPDX-License-Identifier: Apache-2.0
#include <leptonica/allheaders.h>

#include <algorithm>
#include <memory>

#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

struct Destroy {
  void operator()(PIX* pix) const { pixDestroy(&pix); }
};
using Pix = std::unique_ptr<PIX, Destroy>;

constexpr const char* kSuffixes[] = {".jpg", ".jpeg", ".jpe",  ".jfif", ".png", ".webp", ".bmp",
                                     ".gif", ".tif",  ".tiff", ".ppm",  ".pgm", ".pbm",  ".pnm"};

/// What Leptonica would read in wrong colours: BMP of 16 bits (as grey) and 32 bits (red and blue exchanged).
bool is_odd_bmp(std::span<const uint8_t> bytes) {
  constexpr size_t kBits = 28;
  return bytes[0] == 'B' && (bytes.size() <= kBits || bytes[kBits] == 16 || bytes[kBits] == 32);
}

/// libtiff multiplies colours by their alpha.
bool is_transparent_tiff(std::span<const uint8_t> bytes, PIX* pix) {
  if ((bytes[0] != 'I' && bytes[0] != 'M') || pixGetSpp(pix) != 4) return false;
  const l_uint32* const words = pixGetData(pix);
  const int64_t count = int64_t{pixGetWpl(pix)} * pixGetHeight(pix);
  return std::any_of(words, words + count, [](l_uint32 word) { return (word & 0xff) != 0xff; });
}

/// GIF states its size at once; Leptonica decodes all of it to say so.
int64_t pixels_of_gif(std::span<const uint8_t> bytes) {
  constexpr size_t kHeader = 10;
  if (bytes.size() < kHeader) return 0;
  return int64_t{bytes[6] | bytes[7] << 8} * int64_t{bytes[8] | bytes[9] << 8};
}

}  // namespace

std::span<const char* const> image_suffixes() { return kSuffixes; }
std::span<const char* const> unread_suffixes() { return {}; }

Image decode_other(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options) {
  [[maybe_unused]] static const bool silent = (leptSetStderrHandler([](const char*) {}), true);
  l_int32 format = 0, width = 0, height = 0;
  const bool is_gif = bytes[0] == 'G';
  const bool known =
      is_gif || pixReadHeaderMem(bytes.data(), bytes.size(), &format, &width, &height, nullptr, nullptr, nullptr) == 0;
  const int64_t pixels = is_gif ? pixels_of_gif(bytes) : int64_t{width} * height;
  WEFT_CHECK(!is_odd_bmp(bytes), "decode: cannot read ", path, ": expected a BMP of 1, 4, 8 or 24 bits a pixel");
  WEFT_CHECK(!known || pixels <= options.max_pixels, "decode: expected at most ", options.max_pixels, " pixels in ",
             path, ", got ", pixels);
  const Pix stored(known ? pixReadMem(bytes.data(), bytes.size()) : nullptr);
  const Pix rgb(stored ? pixConvertTo32(stored.get()) : nullptr);
  WEFT_CHECK(rgb, "decode: cannot read ", path,
             ": damaged, cut short, or of a kind that Leptonica does not read, such as ", "an animated WebP");
  WEFT_CHECK(!is_transparent_tiff(bytes, stored.get()), "decode: cannot read ", path,
             ": expected a TIFF without transparent pixels. Save it without its alpha channel");
  Image image = black_image(pixGetHeight(rgb.get()), pixGetWidth(rgb.get()), 3);
  const l_uint32* const words = pixGetData(rgb.get());
  for (int64_t y = 0; y < image.height; ++y) {
    const l_uint32* const from = words + y * pixGetWpl(rgb.get());
    uint8_t* to = image.row(y);
    for (int64_t x = 0; x < image.width; ++x)
      for (const int shift : {24, 16, 8}) *to++ = static_cast<uint8_t>(from[x] >> shift);
  }
  return image;
}

}  // namespace weft::data
