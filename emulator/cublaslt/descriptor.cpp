// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/descriptor.h"

#include <cstddef>
#include <cstring>

#include "emulator/machine/fault.h"

namespace emulator::lt {
namespace {

#define AT(number, type, member) \
  { number, offsetof(type, member), sizeof(type::member) }

constexpr Attribute kLayout[] = {
    AT(CUBLASLT_MATRIX_LAYOUT_TYPE, Layout, type),
    AT(CUBLASLT_MATRIX_LAYOUT_ORDER, Layout, order),
    AT(CUBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows),
    AT(CUBLASLT_MATRIX_LAYOUT_COLS, Layout, columns),
    AT(CUBLASLT_MATRIX_LAYOUT_LD, Layout, ld),
    AT(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batches),
    AT(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, batch_stride),
    AT(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, Layout, plane_offset),
    AT(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, Layout, batch_mode),
};

using Matmul = MatmulDescriptor;
constexpr Attribute scale_mode(int number, size_t index) {
  return {number, offsetof(Matmul, scale_modes) + index * sizeof(int32_t), sizeof(int32_t)};
}
constexpr Attribute kMatmul[] = {
    AT(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, Matmul, compute),
    AT(CUBLASLT_MATMUL_DESC_SCALE_TYPE, Matmul, scale),
    AT(CUBLASLT_MATMUL_DESC_POINTER_MODE, Matmul, pointer_mode),
    AT(CUBLASLT_MATMUL_DESC_TRANSA, Matmul, transpose_a),
    AT(CUBLASLT_MATMUL_DESC_TRANSB, Matmul, transpose_b),
    AT(CUBLASLT_MATMUL_DESC_TRANSC, Matmul, transpose_c),
    AT(CUBLASLT_MATMUL_DESC_FILL_MODE, Matmul, fill_mode),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE, Matmul, epilogue),
    AT(CUBLASLT_MATMUL_DESC_BIAS_POINTER, Matmul, bias),
    AT(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, Matmul, bias_stride),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, Matmul, aux),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, Matmul, aux_ld),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, Matmul, aux_stride),
    AT(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, Matmul, alpha_stride),
    AT(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, Matmul, processors),
    AT(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, Matmul, a_scale),
    AT(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, Matmul, b_scale),
    AT(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, Matmul, c_scale),
    AT(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, Matmul, d_scale),
    AT(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, Matmul, d_amax),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, Matmul, aux_type),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, Matmul, aux_scale),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, Matmul, aux_amax),
    AT(CUBLASLT_MATMUL_DESC_FAST_ACCUM, Matmul, fast_accumulation),
    AT(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, Matmul, bias_type),
    scale_mode(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 0),
    scale_mode(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 1),
    scale_mode(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, 2),
    scale_mode(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, 3),
    scale_mode(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, 4),
    scale_mode(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, 5),
    AT(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, Matmul, d_out_scale),
    AT(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, Matmul, emulation),
};

constexpr Attribute alignment(int number, size_t index) {
  return {number, offsetof(Preference, alignments) + index * sizeof(uint32_t), sizeof(uint32_t)};
}
constexpr Attribute kPreference[] = {
    AT(CUBLASLT_MATMUL_PREF_SEARCH_MODE, Preference, search),
    AT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Preference, workspace),
    AT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Preference, reductions),
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 0),
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 1),
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 2),
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 3),
    AT(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Preference, waves),
    AT(CUBLASLT_MATMUL_PREF_IMPL_MASK, Preference, implementations),
};

constexpr Attribute kTransform[] = {
    AT(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, TransformDescriptor, scale),
    AT(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, TransformDescriptor, pointer_mode),
    AT(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, TransformDescriptor, transpose_a),
    AT(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, TransformDescriptor, transpose_b),
};

constexpr Attribute kEmulation[] = {
    AT(CUBLASLT_EMULATION_DESC_STRATEGY, EmulationDescriptor, strategy),
    AT(CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT, EmulationDescriptor, special_values),
    AT(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL, EmulationDescriptor, mantissa_control),
    AT(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT, EmulationDescriptor, most_mantissa_bits),
    AT(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET, EmulationDescriptor, mantissa_offset),
    AT(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER, EmulationDescriptor, mantissa_bits),
};

constexpr Attribute kAlgorithm[] = {
    AT(CUBLASLT_ALGO_CONFIG_ID, Algorithm, id),
    AT(CUBLASLT_ALGO_CONFIG_TILE_ID, Algorithm, tile),
    AT(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, Algorithm, splits),
    AT(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, Algorithm, reduction),
    AT(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, Algorithm, swizzle),
    AT(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, Algorithm, custom),
    AT(CUBLASLT_ALGO_CONFIG_STAGES_ID, Algorithm, stages),
    AT(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, Algorithm, inner_shape),
    AT(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, Algorithm, cluster_shape),
};
#undef AT

const Attribute& find(std::span<const Attribute> attributes, int number) {
  for (const Attribute& one : attributes)
    if (one.number == number) return one;
  fail(CUBLAS_STATUS_INVALID_VALUE, cat("there is no attribute ", number));
}

void require_size(const Attribute& attribute, const void* value, size_t bytes) {
  if (!value) fail(CUBLAS_STATUS_INVALID_VALUE, cat("attribute ", attribute.number, ": the buffer is NULL"));
  if (bytes != attribute.bytes)
    fail(CUBLAS_STATUS_INVALID_VALUE,
         cat("attribute ", attribute.number, " has ", attribute.bytes, " bytes, and the buffer ", bytes));
}

}  // namespace

void fail(cublasStatus_t status, const std::string& text) { throw Failure{status, text}; }

template <>
std::span<const Attribute> attributes<Layout>() {
  return kLayout;
}
template <>
std::span<const Attribute> attributes<MatmulDescriptor>() {
  return kMatmul;
}
template <>
std::span<const Attribute> attributes<Preference>() {
  return kPreference;
}
template <>
std::span<const Attribute> attributes<TransformDescriptor>() {
  return kTransform;
}
template <>
std::span<const Attribute> attributes<EmulationDescriptor>() {
  return kEmulation;
}
template <>
std::span<const Attribute> attributes<Algorithm>() {
  return kAlgorithm;
}

void set_attribute(void* descriptor, std::span<const Attribute> attributes, int number, const void* value,
                   size_t bytes) {
  const Attribute& attribute = find(attributes, number);
  require_size(attribute, value, bytes);
  std::memcpy(static_cast<char*>(descriptor) + attribute.offset, value, bytes);
}

void get_attribute(const void* descriptor, std::span<const Attribute> attributes, int number, void* value, size_t bytes,
                   size_t* written) {
  const Attribute& attribute = find(attributes, number);
  if (bytes == 0 && !written) fail(CUBLAS_STATUS_INVALID_VALUE, "neither a buffer nor sizeWritten is given");
  if (bytes != 0) {
    require_size(attribute, value, bytes);
    std::memcpy(value, static_cast<const char*>(descriptor) + attribute.offset, bytes);
  }
  if (written) *written = attribute.bytes;
}

}  // namespace emulator::lt
