// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {

Image decode_png(std::span<const uint8_t>, const std::string& path, DecodeOptions) {
  fail("png: cannot read ", path,
       ": built without libspng. On Debian: apt-get install libspng-dev, then configure again.");
}

}  // namespace weft::data
