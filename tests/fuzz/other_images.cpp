// SPDX-License-Identifier: Apache-2.0
// Input: a file of WebP, BMP, GIF, TIFF, PNM, or of no image.
#include "data/decode.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_value_or_error([&] {
    const data::Image image = data::decode({data, data + size}, "input", {.max_pixels = 1 << 20});
    if (static_cast<int64_t>(image.pixels.size()) != image.height * image.width * 3) std::abort();
  });
  return 0;
}
