// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/tensor_map.h"

#include <algorithm>
#include <cstring>

namespace emulator {

namespace {

constexpr int kSuccess = 0, kInvalid = 1, kNotSupported = 801;
constexpr uint64_t kMostElements = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostStep = 8, kMostBox = 256, kMostPixels = 1024, kMostRank = 5;
constexpr int kTypesOfDriver = 16, kSwizzlesOfDriver = 7;  // with those of later GPUs
constexpr int kSwizzles = 4;

SwizzleMode mode_of(uint64_t swizzle) {
  constexpr SwizzleMode kModes[kSwizzles] = {SwizzleMode::none, SwizzleMode::bytes32, SwizzleMode::bytes64,
                                             SwizzleMode::bytes128};
  return kModes[swizzle];
}

/// Shared by tiled and im2col maps.
int describe(TensorBox& box, const TensorMapDescription& t) {
  if (!t.map || reinterpret_cast<uintptr_t>(t.map) % 64) return kInvalid;
  if (t.type < 0 || t.type >= kTypesOfDriver || t.swizzle < 0 || t.swizzle >= kSwizzlesOfDriver) return kInvalid;
  if (t.interleave < 0 || t.interleave > 2 || t.l2_promotion < 0 || t.l2_promotion > 3) return kInvalid;
  if (t.rank < 1 || t.rank > kMostRank || !t.data || !t.sizes || !t.steps || (t.rank > 1 && !t.strides))
    return kInvalid;
  if (reinterpret_cast<uintptr_t>(t.data) % 16 || t.fill < 0 || t.fill > 1) return kInvalid;
  if (t.type >= kTensorTypes || t.swizzle >= kSwizzles || t.interleave != 0) return kNotSupported;
  box.type = static_cast<TensorType>(t.type);
  if (t.fill && !is_float(box.type)) return kInvalid;
  box.magic = TensorBox::kMagic;
  box.data = reinterpret_cast<uint64_t>(t.data);
  box.rank = static_cast<uint8_t>(t.rank);
  box.swizzle = mode_of(static_cast<uint64_t>(t.swizzle));
  box.nan_fill = t.fill != 0;
  for (uint32_t d = 0; d < t.rank; ++d) {
    if (t.sizes[d] == 0 || t.sizes[d] > kMostElements) return kInvalid;
    if (t.steps[d] == 0 || t.steps[d] > kMostStep) return kInvalid;
    box.last_index[d] = static_cast<uint32_t>(t.sizes[d] - 1);
    box.steps[d] = static_cast<uint8_t>(d == 0 ? 1 : t.steps[d]);  // the driver ignores the innermost one
    if (d == 0) continue;
    if (t.strides[d - 1] % 16 || t.strides[d - 1] >= kMostStride) return kInvalid;
    box.strides[d - 1] = t.strides[d - 1];
  }
  return kSuccess;
}

int finish(void* map, const TensorBox& box) {
  if (why_unusable(box)) return kInvalid;
  std::memset(map, 0, 128);
  std::memcpy(map, &box, sizeof(box));
  return kSuccess;
}

/// PTX ISA, "tensormap.replace": its numbers of element types are not those of the driver.
bool type_of_ptx(uint64_t number, TensorType& type) {
  constexpr TensorType kTypes[kTensorTypes] = {TensorType::u8,      TensorType::u16, TensorType::u32,  TensorType::s32,
                                               TensorType::u64,     TensorType::s64, TensorType::f16,  TensorType::f32,
                                               TensorType::f32_ftz, TensorType::f64, TensorType::bf16, TensorType::tf32,
                                               TensorType::tf32_ftz};
  if (number >= kTensorTypes) return false;
  type = kTypes[number];
  return true;
}

}  // namespace

int encode_tiled(const TensorMapDescription& tensor, const uint32_t* box_sizes) {
  TensorBox box{};
  if (!box_sizes) return kInvalid;
  if (const int error = describe(box, tensor)) return error;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (box_sizes[d] == 0 || box_sizes[d] > kMostBox) return kInvalid;
    box.box[d] = static_cast<uint16_t>(box_sizes[d]);
  }
  return finish(tensor.map, box);
}

int encode_im2col(const TensorMapDescription& tensor, const int* lower_corner, const int* upper_corner,
                  uint32_t channels, uint32_t pixels) {
  TensorBox box{};
  if (tensor.rank < 3 || !lower_corner || !upper_corner) return kInvalid;
  if (const int error = describe(box, tensor)) return error;
  if (channels == 0 || channels > kMostBox || pixels == 0 || pixels > kMostPixels) return kInvalid;
  const int limit = tensor.rank == 3 ? 32768 : tensor.rank == 4 ? 128 : 16;
  box.im2col = true;
  for (uint32_t s = 0; s < tensor.rank - 2; ++s) {
    const int lower = lower_corner[s], upper = upper_corner[s];
    if (lower < -limit || lower >= limit || upper < -limit || upper >= limit) return kInvalid;
    if (static_cast<int64_t>(tensor.sizes[s + 1]) + upper - lower <= 0) return kInvalid;  // an empty box
    box.lower[s] = static_cast<int16_t>(lower);
    box.upper[s] = static_cast<int16_t>(upper);
  }
  box.box[0] = static_cast<uint16_t>(channels);
  box.box[1] = static_cast<uint16_t>(pixels);
  return finish(tensor.map, box);
}

int replace_address(void* map, const void* data) {
  TensorBox box;
  if (!map || reinterpret_cast<uintptr_t>(map) % 64 || reinterpret_cast<uintptr_t>(data) % 16 || !data) return kInvalid;
  std::memcpy(&box, map, sizeof(box));
  if (box.magic != TensorBox::kMagic) return kInvalid;
  box.data = reinterpret_cast<uint64_t>(data);
  std::memcpy(map, &box, sizeof(box));
  return kSuccess;
}

const char* replace_field(TensorBox& box, TensorField field, uint32_t number, uint64_t value) {
  const bool has_number = field == TensorField::box_dim || field == TensorField::global_dim ||
                          field == TensorField::global_stride || field == TensorField::element_stride;
  if (has_number && number >= (field == TensorField::global_stride ? kMostRank - 1 : kMostRank))
    return "there is no such dimension";
  switch (field) {
    case TensorField::global_address:
      box.data = value;
      return nullptr;
    case TensorField::rank:
      if (value >= kMostRank) return "the rank less 1 is 0 to 4";
      box.rank = static_cast<uint8_t>(value + 1);
      return nullptr;
    case TensorField::box_dim:
      if (value == 0 || value > kMostBox) return "a box has 1 to 256 elements along a dimension";
      box.box[number] = static_cast<uint16_t>(value);
      return nullptr;
    case TensorField::global_dim:
      box.last_index[number] = static_cast<uint32_t>(value) - 1;
      return nullptr;
    case TensorField::global_stride:
      box.strides[number] = value;
      return nullptr;
    case TensorField::element_stride:
      if (value == 0 || value > kMostStep) return "element strides are 1 to 8";
      box.steps[number] = static_cast<uint8_t>(number == 0 ? 1 : value);
      return nullptr;
    case TensorField::elemtype:
      return type_of_ptx(value, box.type) ? nullptr : "this element type is not emulated";
    case TensorField::interleave_layout:
      return value == 0 ? nullptr : "interleaved layouts are not emulated";
    case TensorField::swizzle_mode:
      if (value >= kSwizzles) return "this swizzle is not emulated";
      box.swizzle = mode_of(value);
      return nullptr;
    case TensorField::swizzle_atomicity:
      return value == 0 ? nullptr : "this swizzle atomicity is not emulated";
    case TensorField::fill_mode:
      if (value > 1) return "fill modes are 0 and 1";
      box.nan_fill = value != 0;
      return nullptr;
  }
  return "there is no such field";
}

const char* why_unusable(const TensorBox& box) {
  if (box.magic != TensorBox::kMagic) return "it is no tensor map";
  if (box.rank < 1 || box.rank > kMostRank) return "its rank is not 1 to 5";
  if (box.data == 0 || box.data % 16) return "its address is not a multiple of 16";
  const int boxes = box.im2col ? 2 : box.rank;
  for (int d = 0; d < box.rank; ++d) {
    if (d < boxes && box.box[d] == 0) return "its box is empty";
    if (d > 0 && box.steps[d] == 0) return "an element stride is 0";
    if (d > 0 && (box.strides[d - 1] % 16 || box.strides[d - 1] >= kMostStride))
      return "a stride is not a multiple of 16 below 2^40";
  }
  if (box.line_bytes() % 16) return "a line of its box is not a multiple of 16 bytes";
  if (box.swizzle != SwizzleMode::none && box.line_bytes() > swizzle_bytes(box.swizzle))
    return "a line of its box is longer than its swizzle";
  if (box.nan_fill && !is_float(box.type)) return "only elements that are floats can be filled with NaN";
  return nullptr;
}

const char* why_no_copy(const TensorBox& box, const BoxPlace& place, bool store) {
  if (store && std::any_of(place.at.begin(), place.at.begin() + box.rank, [](int32_t at) { return at < 0; }))
    return "a coordinate is negative, from which a box can be loaded and not stored";
  if (!box.im2col && int64_t{place.at[0]} * box.element_bytes() % 16 != 0)
    return "the first coordinate is not at a multiple of 16 bytes";
  return nullptr;
}

}  // namespace emulator
