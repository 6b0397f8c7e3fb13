// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {

Image decode_jpeg(std::span<const uint8_t>, const std::string& path, DecodeOptions) {
  fail("jpeg: cannot read ", path,
       ": built without libjpeg. On Debian: apt-get install libjpeg-dev, then configure again.");
}

}  // namespace weft::data
