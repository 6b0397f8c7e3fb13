// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include "kernels/contracts/fp8.h"
#include "kernels/cuda/ptx/tensor_map.cuh"
#include "kernels/dtype.h"
#include "kernels/half.h"
#include "kernels/runtime/queue.h"

namespace weft::kernels::cuda {

struct Place {
  std::array<int, 4> at;
  std::array<int, 2> offset;  ///< offset of an im2col load: w, h
};

/// One TMA load of `bytes` bytes; the shared memory as it is then goes to `image`. rank: 2 to 4; 0 for im2col.
void load_box(const Queue& queue, uint8_t* image, const TensorMap& map, int rank, const Place& place, int bytes);
/// One TMA store of the shared memory in `image`. rank: 2 or 3.
void store_box(const Queue& queue, const TensorMap& map, int rank, const Place& place, const uint8_t* image, int bytes);

/// An operand as the bytes of shared memory that hold it, and its descriptor.
struct WgmmaOperand {
  const uint8_t* image;
  int bytes;
  Swizzle swizzle;
  uint32_t leading, stride;
  std::array<uint32_t, 4> steps;  ///< bytes from the image's begin to where 32 i bytes of depth begin
};
/// d[64xN] = a[64xK] b[KxN], by one warpgroup; K is 64, of f32 (as tf32) 32, of 8 bits 128.
struct WgmmaProblem {
  float* d;  ///< [64,n], row-major
  int n;
  bool along_rows_a, along_rows_b;
  DType dtype;     ///< bf16, f16, f32 or u8; f32 and u8 neither along the rows nor from registers
  Fp8 format;      ///< format of a's u8; b is e4m3
  bool registers;  ///< a comes from registers: `a_values` is [64,64], row-major
  const uint16_t* a_values;
  bool accumulate;  ///< onto d instead of 0
  WgmmaOperand a, b;
};
void wgmma_problem(const Queue& queue, const WgmmaProblem& problem);

/// Four 8x8 matrices through stmatrix: register m of lane l is registers[32 m + l], out is shared memory after it.
void store_matrices(const Queue& queue, uint16_t* out, const uint32_t* registers, bool transposed);
/// Three warpgroups exchange numbers through named barriers and change their registers; out[t] for t < 384.
void warpgroups_talk(const Queue& queue, int* out);

}  // namespace weft::kernels::cuda
