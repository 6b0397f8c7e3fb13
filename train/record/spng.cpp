// SPDX-License-Identifier: Apache-2.0
#include <spng.h>

#include <cstdlib>
#include <memory>

#include "kernels/error.h"
#include "train/record/canvas.h"

namespace weft::train {

bool have_png() { return true; }

std::string encode_png(const Canvas& canvas) {
  WEFT_CHECK(canvas.width > 0 && canvas.height > 0, "png: expected a canvas with pixels, got ", canvas.width, " x ",
             canvas.height);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  WEFT_CHECK(context != nullptr, "png: the encoder did not start");
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(canvas.width);
  header.height = static_cast<uint32_t>(canvas.height);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  spng_set_ihdr(context.get(), &header);
  int error =
      spng_encode_image(context.get(), canvas.pixels.data(), canvas.pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  const std::unique_ptr<void, void (*)(void*)> bytes(
      error ? nullptr : spng_get_png_buffer(context.get(), &size, &error), std::free);
  WEFT_CHECK(error == 0 && bytes != nullptr, "png: encoding failed: ", spng_strerror(error));
  return {static_cast<const char*>(bytes.get()), size};
}

}  // namespace weft::train
