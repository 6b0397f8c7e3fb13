// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "emulator/machine/tensor_box.h"

// Tensor maps as the driver makes them, without CUDA's headers: enumerations are their numbers in cuda.h, results those
// of CUresult (0: success, 1: invalid value, 801: a form that is not emulated). The driver's refusals: CUDA driver
// API, "Tensor Map Object Management". L2 promotion changes no result; only its range is checked.

namespace emulator {

struct TensorMapDescription {
  void* map;  ///< 128 bytes, aligned to 64
  int type;
  uint32_t rank;
  const void* data;
  const uint64_t* sizes;
  const uint64_t* strides;
  const uint32_t* steps;
  int interleave, swizzle, l2_promotion, fill;
};

int encode_tiled(const TensorMapDescription& tensor, const uint32_t* box);
int encode_im2col(const TensorMapDescription& tensor, const int* lower_corner, const int* upper_corner,
                  uint32_t channels, uint32_t pixels);
/// cuTensorMapReplaceAddress.
int replace_address(void* map, const void* data);

/// The fields that tensormap.replace knows.
enum class TensorField {
  global_address,
  rank,  ///< the value is the rank less 1
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,  ///< numbered as PTX does
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode,
};
/// nullptr, or what is wrong with the value.
const char* replace_field(TensorBox& box, TensorField field, uint32_t number, uint64_t value);
/// nullptr, or why TMA cannot use this map. Fields that tensormap.replace wrote are only seen together here.
const char* why_unusable(const TensorBox& box);
/// nullptr, or why a copy cannot begin there, at which an H200 raises an illegal instruction: a store at a negative
/// coordinate (the CUDA C++ Programming Guide allows only reads); a tiled box whose lines do not begin at multiples of
/// 16 bytes (measured; not in the guide).
const char* why_no_copy(const TensorBox& box, const BoxPlace& place, bool store);

}  // namespace emulator
