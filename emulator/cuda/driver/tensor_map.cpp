// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/tensor_map.h"

#include "emulator/cuda/driver/call.h"

using namespace emulator;

// These ask nothing of a context, so a dead one does not matter.

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return CUresult(encode_tiled(
      {map, int(type), rank, data, sizes, strides, steps, int(interleave), int(swizzle), int(promotion), int(fill)},
      box));
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data,
                                 const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower, const int* upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return CUresult(encode_im2col(
      {map, int(type), rank, data, sizes, strides, steps, int(interleave), int(swizzle), int(promotion), int(fill)},
      lower, upper, channels, pixels));
}
CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* data) { return CUresult(replace_address(map, data)); }
