// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/random_values.h"

// Tensor cores see f32 with 10 bits of significand. Both ways round to nearest; they differ where a number stands
// half way between two of tf32, which one random number in 8192 does.

namespace weft::tests {

namespace tf32 {

inline uint32_t bits_of(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }
inline double value_of(uint32_t bits) { return std::bit_cast<float>(bits); }

/// Ties away from zero: cvt.rna.tf32.f32 (PTX ISA 8.5, section 9.7.9.21), by which gemm_mma.cuh rounds.
inline double away(double value) {
  if (!std::isfinite(value)) return value;
  return value_of((bits_of(value) + 0x1000u) & 0xffffe000u);
}

/// Ties to even: a load by TMA from a map that says so (kernels/cuda/ptx/tensor_map.cuh), by which gemm_wgmma.cuh rounds.
inline double even(double value) {
  if (!std::isfinite(value)) return value;
  const uint32_t bits = bits_of(value);
  return value_of((bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);
}

/// n numbers of [-1, 1) that both round equally.
inline std::vector<double> without_ties(int64_t n) {
  std::vector<double> values = uniform(n, DType::f32);
  for (double& value : values)
    if ((bits_of(value) & 0x1fffu) == 0x1000u) value = value_of(bits_of(value) | 1u);
  return values;
}

/// n numbers of (-1, 1), of which every third is a tie.
inline std::vector<double> with_ties(int64_t n) {
  std::vector<double> values = uniform(n, DType::f32);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = value_of((bits_of(values[i]) & 0xffffe000u) | 0x1000u);
  return values;
}

/// n numbers of [-1, 1) that are tf32 already.
inline std::vector<double> exact(int64_t n) {
  std::vector<double> values = uniform(n, DType::f32);
  for (double& value : values) value = value_of(bits_of(value) & 0xffffe000u);
  return values;
}

}  // namespace tf32
}  // namespace weft::tests
