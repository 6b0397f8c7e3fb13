// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/ptx/tensor_map.cuh"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>
#include <type_traits>

#include "kernels/error.h"

// The driver's functions are looked up at run time: the program does not link libcuda, and also runs without it.

namespace weft::kernels::cuda {

namespace {

// CUDA 13 dropped the call without a version argument; toolkits before 12.5 lack the call with one.
#if defined(CUDART_VERSION) && CUDART_VERSION < 13000
cudaError_t entry_point(const char* symbol, void** function, cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPoint(symbol, function, cudaEnableDefault, found);
}
#else
cudaError_t entry_point(const char* symbol, void** function, cudaDriverEntryPointQueryResult* found) {
  constexpr unsigned kSince = 12000;  // tensor maps came with CUDA 12.0
  return cudaGetDriverEntryPointByVersion(symbol, function, kSince, cudaEnableDefault, found);
}
#endif

template <class Function>
Function* driver_function(const char* kernel, const char* symbol) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status = entry_point(symbol, &function, &found);
  if (status != cudaSuccess) cudaGetLastError();
  WEFT_CHECK(status == cudaSuccess && found == cudaDriverEntryPointSuccess && function, kernel,
             ": the CUDA driver has no ", symbol, ": it is older than 12.0");
  return reinterpret_cast<Function*>(function);
}

CUtensorMapDataType data_type(const char* kernel, DType dtype, bool rounds_to_tf32) {
  WEFT_CHECK(!rounds_to_tf32 || dtype == DType::f32, kernel, ": a tensor map that rounds to tf32: expected f32, got ",
             dtype);
  switch (dtype) {
    case DType::f32:
      return rounds_to_tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::i64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::u8:
    case DType::boolean:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
  fail(kernel, ": no tensor map for ", dtype);
}

CUtensorMapSwizzle driver_swizzle(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::bytes128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    case Swizzle::bytes64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::bytes32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::none:
      break;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

int64_t swizzle_bytes(Swizzle swizzle) {
  constexpr int64_t bytes[] = {0, 128, 64, 32};
  return bytes[static_cast<int>(swizzle)];
}

void check_line(const char* kernel, int64_t elements, DType dtype, Swizzle swizzle) {
  const int64_t bytes = elements * static_cast<int64_t>(size_of(dtype));
  WEFT_CHECK(elements >= 1 && elements <= 256 && bytes % 16 == 0, kernel, ": a line of ", elements, " ", dtype,
             " in a tensor map's box: expected 1 to 256 elements, a multiple of 16 bytes");
  if (swizzle != Swizzle::none)
    WEFT_CHECK(bytes == swizzle_bytes(swizzle), kernel, ": a line of ", bytes,
               " bytes in a tensor map's box: expected the ", swizzle_bytes(swizzle), " of its swizzle");
}

void check_address(const char* kernel, const void* data) {
  WEFT_CHECK(data && reinterpret_cast<uintptr_t>(data) % 16 == 0, kernel,
             ": a tensor map wants an address that is a multiple of 16, got ", data);
}

void check_size(const char* kernel, int64_t size) {
  WEFT_CHECK(size >= 1 && size <= int64_t{1} << 32, kernel, ": a tensor map wants sizes from 1 to 2^32 elements, got ",
             size);
}

TensorMap take(const char* kernel, CUresult status, const CUtensorMap& map) {
  WEFT_CHECK(status == CUDA_SUCCESS, kernel, ": the CUDA driver refuses the tensor map (error ",
             static_cast<int>(status), ")");
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
  static_assert(alignof(TensorMap) >= alignof(CUtensorMap));
  TensorMap result;
  std::memcpy(&result, &map, sizeof(result));
  return result;
}

}  // namespace

TensorMap tiled_map(const char* kernel, const TiledTensor& tensor) {
  WEFT_CHECK(tensor.rank >= 1 && tensor.rank <= 5, kernel, ": a tensor map has 1 to 5 dimensions, got ", tensor.rank);
  check_address(kernel, tensor.data);
  check_line(kernel, tensor.box[0], tensor.dtype, tensor.swizzle);
  cuuint64_t sizes[5] = {}, pitches[4] = {};
  cuuint32_t box[5] = {}, steps[5] = {1, 1, 1, 1, 1};
  for (int d = 0; d < tensor.rank; ++d) {
    const size_t i = static_cast<size_t>(d);
    check_size(kernel, tensor.sizes[i]);
    WEFT_CHECK(tensor.box[i] >= 1 && tensor.box[i] <= 256, kernel,
               ": a tensor map's box has 1 to 256 elements in each dimension, got ", tensor.box[i]);
    sizes[i] = static_cast<cuuint64_t>(tensor.sizes[i]);
    box[i] = static_cast<cuuint32_t>(tensor.box[i]);
    if (d == 0) continue;
    const int64_t pitch = tensor.pitches[i - 1];
    WEFT_CHECK(pitch >= 0 && pitch % 16 == 0 && pitch < int64_t{1} << 40, kernel,
               ": a tensor map wants pitches that are multiples of 16 bytes below 2^40, got ", pitch);
    pitches[i - 1] = static_cast<cuuint64_t>(pitch);
  }
  static auto* const encode =
      driver_function<std::remove_pointer_t<decltype(&cuTensorMapEncodeTiled)>>(kernel, "cuTensorMapEncodeTiled");
  CUtensorMap map;
  const CUresult status =
      encode(&map, data_type(kernel, tensor.dtype, tensor.rounds_to_tf32), static_cast<cuuint32_t>(tensor.rank),
             const_cast<void*>(tensor.data), sizes, pitches, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             driver_swizzle(tensor.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return take(kernel, status, map);
}

TensorMap im2col_map(const char* kernel, const Im2colTensor& tensor) {
  check_address(kernel, tensor.data);
  check_line(kernel, tensor.channels, tensor.dtype, tensor.swizzle);
  for (const int64_t size : {tensor.n, tensor.h, tensor.w, tensor.c}) check_size(kernel, size);
  std::array<int64_t, 3> pitches = tensor.pitches;
  if (pitches[0] == 0) {
    const int64_t pixel = tensor.c * static_cast<int64_t>(size_of(tensor.dtype));
    pitches = {pixel, pixel * tensor.w, pixel * tensor.w * tensor.h};
  }
  for (const int64_t pitch : pitches)
    WEFT_CHECK(pitch > 0 && pitch % 16 == 0 && pitch < int64_t{1} << 40, kernel,
               ": an im2col tensor map wants pitches that are multiples of 16 bytes below 2^40, got ", pitch);
  WEFT_CHECK(tensor.pixels >= 1 && tensor.pixels <= 1024, kernel, ": an im2col tensor map loads 1 to 1024 pixels, got ",
             tensor.pixels);
  for (const int corner : {tensor.lower_w, tensor.lower_h, tensor.upper_w, tensor.upper_h})
    WEFT_CHECK(corner >= -128 && corner <= 127, kernel, ": an im2col tensor map's corners are from -128 to 127, got ",
               corner);
  for (const int stride : {tensor.stride_w, tensor.stride_h})
    WEFT_CHECK(stride >= 1 && stride <= 8, kernel, ": an im2col tensor map's strides are from 1 to 8, got ", stride);
  WEFT_CHECK(tensor.w + tensor.upper_w > tensor.lower_w && tensor.h + tensor.upper_h > tensor.lower_h, kernel,
             ": an im2col tensor map has no window in images of ", tensor.h, "x", tensor.w);
  const cuuint64_t sizes[4] = {static_cast<cuuint64_t>(tensor.c), static_cast<cuuint64_t>(tensor.w),
                               static_cast<cuuint64_t>(tensor.h), static_cast<cuuint64_t>(tensor.n)};
  const cuuint64_t bytes[3] = {static_cast<cuuint64_t>(pitches[0]), static_cast<cuuint64_t>(pitches[1]),
                               static_cast<cuuint64_t>(pitches[2])};
  const cuuint32_t steps[4] = {1, static_cast<cuuint32_t>(tensor.stride_w), static_cast<cuuint32_t>(tensor.stride_h),
                               1};
  const int lower[2] = {tensor.lower_w, tensor.lower_h}, upper[2] = {tensor.upper_w, tensor.upper_h};
  static auto* const encode =
      driver_function<std::remove_pointer_t<decltype(&cuTensorMapEncodeIm2col)>>(kernel, "cuTensorMapEncodeIm2col");
  CUtensorMap map;
  const CUresult status =
      encode(&map, data_type(kernel, tensor.dtype, tensor.rounds_to_tf32), 4, const_cast<void*>(tensor.data), sizes,
             bytes, lower, upper, static_cast<cuuint32_t>(tensor.channels), static_cast<cuuint32_t>(tensor.pixels),
             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, driver_swizzle(tensor.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return take(kernel, status, map);
}

}  // namespace weft::kernels::cuda
