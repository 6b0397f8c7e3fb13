// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "emulator/ptx/matrix_numbers.h"
#include "emulator/source/kernel_api.h"
#include "emulator/source/vector_types.h"

// The emulated side of kernels/cuda/ptx.cuh: the same functions, run by the host.

namespace emulator::source {

/// cp.async: the destination becomes 0xff at once and right at the wait, so that a kernel that forgets to wait, or that
/// overwrites what others still read, computes NaN.
void copy_async(void* shared, const void* global, int bytes, int source_bytes, SourceLine where);
void copy_async_commit(SourceLine where);
void copy_async_wait_group(int pending);
void copy_async_wait_all();

/// One lane's part of ldmatrix: the row that it names and the registers that it gets.
struct LdmatrixFrame {
  const void* row;
  uint32_t* registers;
};
extern const CollectiveOp kLdmatrixX1, kLdmatrixX2, kLdmatrixX4;
extern const CollectiveOp kLdmatrixX1Trans, kLdmatrixX2Trans, kLdmatrixX4Trans;
void ldmatrix(const CollectiveOp& op, int matrices, uint32_t* registers, const void* row, SourceLine where);

/// One lane's fragments of d += a b.
struct MmaFrame {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
};
extern const CollectiveOp kMmaK16Bf16, kMmaK16F16, kMmaK8Bf16, kMmaK8F16, kMmaK8Tf32;
/// f32 as tensor cores see it: the lower 13 bits are ignored.
inline float from_tf32(uint32_t bits) { return ptx::matrix::Tf32::number(bits); }
void mma(const CollectiveOp& op, float* d, const uint32_t* a, const uint32_t* b, SourceLine where);

}  // namespace emulator::source
