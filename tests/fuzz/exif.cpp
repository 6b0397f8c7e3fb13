// SPDX-License-Identifier: Apache-2.0
// Input: the TIFF block of an Exif marker.
#include "data/decode.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> exact(data, data + size);  // on the heap, without a byte to spare
  const int orientation = data::exif_orientation(exact);
  if (orientation < 1 || orientation > 8) std::abort();
  return 0;
}
