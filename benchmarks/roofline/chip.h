// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "kernels/runtime/kernel_cost.h"

namespace weft::benchmarks {

/// One GPU: figures of its data sheet, and published measurements.
struct Chip {
  std::string_view name;
  double bandwidth;           ///< bytes/s of device memory, data sheet
  double bf16, f32;           ///< dense flop/s (f32: fused multiply-adds of the CUDA cores), data sheet
  double measured_bandwidth;  ///< bytes/s that a copy kernel reaches
  double measured_bf16;       ///< flop/s of the fastest cuBLAS product
};

// Data sheets: NVIDIA A100 (June 2021: A100 80GB SXM), H100 (SXM5), H200 (SXM), GH200 (96 GB HBM3); tensor core rates
// without sparsity.
// Measured products: the best matrix product found with cuBLAS, stas00/ml-engineering compute/accelerator/README.md
// (MAMF): A100 271.2, H100 794.5 TFLOP/s, "H200 is the same" (790 here), GH200 828.6.
// Measured copies: H100 about 3.1 of 3.35 TB/s, 92%. No such figure was found for the other three: theirs is the same
// share of their data sheet, an assumption until one is measured (85% is the least that other kernels' reports name).
inline constexpr double kCopyShare = 0.92;
inline constexpr Chip kChips[] = {
    {"A100-80", 2.039e12, 312e12, 19.5e12, kCopyShare * 2.039e12, 271.2e12},
    {"H100", 3.35e12, 989.4e12, 66.9e12, kCopyShare * 3.35e12, 794.5e12},
    {"H200", 4.8e12, 989.4e12, 66.9e12, kCopyShare * 4.8e12, 790e12},
    {"GH200", 4.0e12, 989.4e12, 66.9e12, kCopyShare * 4.0e12, 828.6e12},
};

enum class Ceiling { data_sheet, measured };
enum class Bound { memory, product, arithmetic };

/// The least time of a call, and its limit.
struct Floor {
  double seconds = 0;
  Bound bound = Bound::memory;
};

/// max(bytes / bandwidth, flop / rate of the tensor cores for the dtype, arithmetic / rate of the CUDA cores). Products
/// of f32 count as fused multiply-adds, since Weft's are f32 throughout. The measured ceilings scale the bf16 rate; f32
/// products and arithmetic have the data sheet's rate under both.
Floor floor_of(const kernels::KernelCost& cost, const Chip& chip, Ceiling ceiling);

std::string_view name(Bound bound);

}  // namespace weft::benchmarks
