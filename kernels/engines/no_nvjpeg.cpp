// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/nvjpeg.h"
#include "kernels/error.h"

namespace weft::kernels::vendor::nvjpeg {

const std::string& missing() {
  static const std::string text =
      "this build has no nvJPEG. Configure with CUDA and nvjpeg.h: the toolkit's, or -DWEFT_NVJPEG_ROOT";
  return text;
}

bool decode(int, std::span<const uint8_t>, int64_t, int64_t, uint8_t*) { fail("nvjpeg: ", missing()); }

}  // namespace weft::kernels::vendor::nvjpeg
