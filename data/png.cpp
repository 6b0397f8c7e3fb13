// SPDX-License-Identifier: Apache-2.0
#include <spng.h>

#include <memory>

#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {

namespace {

/// The fewest bytes that the rows of an image fill before compression.
uint64_t row_bytes(const spng_ihdr& header) {
  const uint64_t channels = header.color_type == SPNG_COLOR_TYPE_TRUECOLOR         ? 3
                            : header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ? 2
                            : header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ? 4
                                                                                   : 1;
  return uint64_t{header.width} * header.height * channels * header.bit_depth / 8;
}

}  // namespace

Image decode_png(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(0), spng_ctx_free);
  WEFT_CHECK(png, "png: no memory to read ", path);
  const auto check = [&](int code) { WEFT_CHECK(code == 0, "png: cannot read ", path, ": ", spng_strerror(code)); };
  constexpr size_t kChunkLimit = size_t{64} << 20;
  check(spng_set_chunk_limits(png.get(), kChunkLimit, kChunkLimit));
  check(spng_set_png_buffer(png.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(png.get(), &header));
  WEFT_CHECK(static_cast<uint64_t>(header.width) * header.height <= static_cast<uint64_t>(options.max_pixels),
             "png: expected at most ", options.max_pixels, " pixels in ", path, ", got ", header.width, "x",
             header.height);
  constexpr uint64_t kDeflateRatio = 1032;  // the most that a byte of deflate can stand for
  WEFT_CHECK(row_bytes(header) <= kDeflateRatio * bytes.size(), "png: expected ", path, " to hold ", header.width, "x",
             header.height, " pixels, got a file of ", bytes.size(), " bytes. Is it cut short?");
  Image image = black_image(header.height, header.width, 3);
  check(spng_decode_image(png.get(), image.pixels.data(), image.pixels.size(), SPNG_FMT_RGB8, 0));
  spng_exif exif{};
  const bool has_exif = spng_get_exif(png.get(), &exif) == 0;
  return has_exif
             ? upright(std::move(image), exif_orientation({reinterpret_cast<const uint8_t*>(exif.data), exif.length}))
             : image;
}

}  // namespace weft::data
