// SPDX-License-Identifier: Apache-2.0
// Input: a PNG file. Mutations get their chunks' checksums right again, most of the time: otherwise each would end at
// the first chunk.
#include <zlib.h>

#include "data/decode.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

#ifdef WEFT_LIBFUZZER
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

uint32_t big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

void mend_checksums(uint8_t* data, size_t size) {
  constexpr size_t kSignature = 8, kFrame = 12;  // length, name and checksum of a chunk
  for (size_t at = kSignature; at + kFrame <= size;) {
    const size_t length = big_endian(data + at);
    if (length > size - at - kFrame) return;
    const uint32_t sum = static_cast<uint32_t>(::crc32(0, data + at + 4, static_cast<uInt>(length + 4)));
    for (int i = 0; i < 4; ++i) data[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kFrame + length;
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 0) mend_checksums(data, size);
  return size;
}
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_value_or_error([&] {
    const data::Image image = data::decode_png({data, data + size}, "input.png", {.max_pixels = 1 << 20});
    if (static_cast<int64_t>(image.pixels.size()) != image.height * image.width * 3) std::abort();
  });
  return 0;
}
