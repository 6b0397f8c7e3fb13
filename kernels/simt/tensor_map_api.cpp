// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the emulated driver. What it refuses: CUDA driver API, "Tensor Map Object Management".
#include <atomic>
#include <cstring>
#include <string_view>

#include "kernels/simt/census.h"
#include "kernels/simt/include/cuda.h"
#include "kernels/simt/runtime_api.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tensor_box.h"

namespace weft::emulator {

namespace {
std::atomic<bool> overlapping_maps{true};
}

void set_overlapping_maps(bool taken) { overlapping_maps = taken; }

namespace api {

namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostStep = 8, kMostBox = 256, kMostPixels = 1024;

int element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
  }
  return 0;
}

bool is_float(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

SwizzleMode mode_of(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return SwizzleMode::bytes32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return SwizzleMode::bytes64;
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return SwizzleMode::bytes128;
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      break;
  }
  return SwizzleMode::none;
}

/// What tiled and im2col maps have in common. False for what the driver refuses.
bool describe(TensorBox& box, CUtensorMapDataType type, uint32_t rank, const void* address, const uint64_t* sizes,
              const uint64_t* strides, const uint32_t* steps, CUtensorMapInterleave interleave,
              CUtensorMapSwizzle swizzle, CUtensorMapFloatOOBfill fill) {
  const int bytes = element_bytes(type);
  if (!bytes || rank < 1 || rank > 5 || !address || !sizes || !steps || (rank > 1 && !strides)) return false;
  if (reinterpret_cast<uintptr_t>(address) % 16 || swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return false;
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !is_float(type)) return false;
  // Not modelled: interleaved layouts, and subnormals that become 0.
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ ||
      type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ)
    return false;
  box.magic = TensorBox::kMagic;
  box.data = reinterpret_cast<uint64_t>(address);
  box.rank = static_cast<uint8_t>(rank);
  box.element_bytes = static_cast<uint8_t>(bytes);
  box.swizzle = mode_of(swizzle);
  const bool dense = !overlapping_maps;
  box.nan_fill = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  box.tf32 = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0 || sizes[d] > kMostElements) return false;
    if (steps[d] == 0 || steps[d] > kMostStep) return false;
    box.last_index[d] = static_cast<uint32_t>(sizes[d] - 1);
    box.steps[d] = static_cast<uint8_t>(d == 0 ? 1 : steps[d]);
    if (d == 0) continue;
    if (strides[d - 1] % 16 || strides[d - 1] >= kMostStride) return false;
    if (dense && strides[d - 1] < sizes[d - 1] * (d == 1 ? static_cast<uint64_t>(bytes) : strides[d - 2])) return false;
    box.strides[d - 1] = strides[d - 1];
  }
  return true;
}

/// A line of the box fills whole runs of 16 bytes, and at most one line of the swizzle.
bool line_fits(const TensorBox& box) {
  if (box.line_bytes() % 16) return false;
  return box.swizzle == SwizzleMode::none || box.line_bytes() <= swizzle_bytes(box.swizzle);
}

CUresult finish(CUtensorMap* map, const TensorBox& box) {
  std::memset(map, 0, sizeof(*map));
  std::memcpy(map, &box, sizeof(box));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box_sizes,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  if (device_capability() < 90) return CUDA_ERROR_NOT_SUPPORTED;
  TensorBox box{};
  if (reinterpret_cast<uintptr_t>(map) % 64 || !box_sizes) return CUDA_ERROR_INVALID_VALUE;
  if (!describe(box, type, rank, address, sizes, strides, steps, interleave, swizzle, fill))
    return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t d = 0; d < rank; ++d) {
    if (box_sizes[d] == 0 || box_sizes[d] > kMostBox) return CUDA_ERROR_INVALID_VALUE;
    box.box[d] = static_cast<uint16_t>(box_sizes[d]);
  }
  return line_fits(box) ? finish(map, box) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower_corner,
                                 const int* upper_corner, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  if (device_capability() < 90) return CUDA_ERROR_NOT_SUPPORTED;
  TensorBox box{};
  if (reinterpret_cast<uintptr_t>(map) % 64 || rank < 3 || !lower_corner || !upper_corner)
    return CUDA_ERROR_INVALID_VALUE;
  if (!describe(box, type, rank, address, sizes, strides, steps, interleave, swizzle, fill))
    return CUDA_ERROR_INVALID_VALUE;
  if (channels == 0 || channels > kMostBox || pixels == 0 || pixels > kMostPixels) return CUDA_ERROR_INVALID_VALUE;
  const int limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
  box.im2col = true;
  for (uint32_t s = 0; s < rank - 2; ++s) {
    const int lower = lower_corner[s], upper = upper_corner[s];
    if (lower < -limit || lower >= limit || upper < -limit || upper >= limit) return CUDA_ERROR_INVALID_VALUE;
    if (static_cast<int64_t>(sizes[s + 1]) + upper - lower <= 0) return CUDA_ERROR_INVALID_VALUE;  // an empty box
    box.lower[s] = static_cast<int16_t>(lower);
    box.upper[s] = static_cast<int16_t>(upper);
  }
  box.box[0] = static_cast<uint16_t>(channels);
  box.box[1] = static_cast<uint16_t>(pixels);
  return line_fits(box) ? finish(map, box) : CUDA_ERROR_INVALID_VALUE;
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
}  // namespace weft::emulator
