// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <string_view>

#include "emulator/machine/tensor_map.h"
#include "emulator/source/census.h"
#include "emulator/source/include/cuda.h"
#include "emulator/source/runtime_api.h"
#include "emulator/source/simt.h"

namespace emulator::source {

namespace {
std::atomic<bool> overlapping_maps{true};
}

void set_overlapping_maps(bool taken) { overlapping_maps = taken; }

namespace api {

namespace {

/// Do elements of different coordinates share memory?
bool overlaps(const TensorMapDescription& t) {
  for (uint32_t d = 1; d < t.rank; ++d) {
    const uint64_t below = d == 1 ? static_cast<uint64_t>(bytes_of(static_cast<TensorType>(t.type))) : t.strides[d - 2];
    if (t.strides[d - 1] < t.sizes[d - 1] * below) return true;
  }
  return false;
}

template <class Encode>
CUresult encode(const TensorMapDescription& tensor, Encode&& encode_with) {
  if (device_capability() < 90) return CUDA_ERROR_NOT_SUPPORTED;
  const auto status = static_cast<CUresult>(encode_with(tensor));
  if (status == CUDA_SUCCESS && !overlapping_maps && overlaps(tensor)) return CUDA_ERROR_INVALID_VALUE;
  return status;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box_sizes,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return encode({map, type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill},
                [&](const auto& tensor) { return encode_tiled(tensor, box_sizes); });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower_corner,
                                 const int* upper_corner, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return encode(
      {map, type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill},
      [&](const auto& tensor) { return encode_im2col(tensor, lower_corner, upper_corner, channels, pixels); });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const std::string_view name = symbol;
  *function = name == "cuTensorMapEncodeTiled"    ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled)
              : name == "cuTensorMapEncodeIm2col" ? reinterpret_cast<void*>(&cuTensorMapEncodeIm2col)
                                                  : nullptr;
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace api
}  // namespace emulator::source
