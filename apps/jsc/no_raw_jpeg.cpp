// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/raw_jpeg.h"
#include "kernels/error.h"

namespace weft::jsc {

struct RawJpeg::State {};

RawJpeg::RawJpeg() {
  fail("--raw: built without libjpeg. On Debian: apt-get install libjpeg-dev, then configure again.");
}
RawJpeg::~RawJpeg() = default;
size_t RawJpeg::decode(std::span<const uint8_t>) { return 0; }

}  // namespace weft::jsc
