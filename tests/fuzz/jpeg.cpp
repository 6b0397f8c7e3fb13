// SPDX-License-Identifier: Apache-2.0
// Input: the shortest edge to decode for, a JPEG file.
#include "data/decode.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const int64_t edge = input.byte();
  const std::vector<uint8_t> bytes = input.rest();
  fuzz::expect_value_or_error([&] {
    const data::Image image = data::decode_jpeg(bytes, "input.jpg", {.shortest_edge = edge, .max_pixels = 1 << 20});
    if (static_cast<int64_t>(image.pixels.size()) != image.height * image.width * 3) std::abort();
  });
  return 0;
}
