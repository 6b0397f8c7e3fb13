// SPDX-License-Identifier: Apache-2.0
#include <spng.h>

#include <memory>

#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {

Picture decode_png(const std::vector<uint8_t>& bytes, const std::string& path) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(0), spng_ctx_free);
  WEFT_CHECK(png, "png: no memory to read ", path);
  const auto check = [&](int code) { WEFT_CHECK(code == 0, "png: cannot read ", path, ": ", spng_strerror(code)); };
  constexpr size_t kChunkLimit = size_t{64} << 20;
  check(spng_set_chunk_limits(png.get(), kChunkLimit, kChunkLimit));
  check(spng_set_png_buffer(png.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(png.get(), &header));
  WEFT_CHECK(static_cast<uint64_t>(header.width) * header.height <= uint64_t{1} << 28,
             "png: expected at most 2^28 pixels in ", path, ", got ", header.width, "x", header.height);
  Picture picture = black_picture(header.height, header.width, 3);
  check(spng_decode_image(png.get(), picture.pixels.data(), picture.pixels.size(), SPNG_FMT_RGB8, 0));
  spng_exif exif{};
  const bool has_exif = spng_get_exif(png.get(), &exif) == 0;
  return has_exif
             ? upright(std::move(picture), exif_orientation(reinterpret_cast<const uint8_t*>(exif.data), exif.length))
             : picture;
}

}  // namespace weft::data
