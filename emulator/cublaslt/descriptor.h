// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <span>
#include <string>

namespace emulator::lt {

/// Ends a call of the API early, with this status.
struct Failure {
  cublasStatus_t status;
  std::string text;
};

[[noreturn]] void fail(cublasStatus_t status, const std::string& text);

// The content of the opaque structs of cublasLt.h, which programs may copy byte by byte.

struct Layout {
  static constexpr uint32_t kMagic = 0x4c747961;
  uint32_t magic = kMagic;
  uint32_t type = 0;
  int32_t order = CUBLASLT_ORDER_COL, batches = 1;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, batch_stride = 0, plane_offset = 0;
  uint32_t batch_mode = CUBLASLT_BATCH_MODE_STRIDED;
  bool operator==(const Layout&) const = default;
};

struct MatmulDescriptor {
  static constexpr uint32_t kMagic = 0x4d6d756c;
  uint32_t magic = kMagic;
  int32_t compute = 0, scale = 0, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, transpose_c = CUBLAS_OP_N;
  int32_t fill_mode = CUBLAS_FILL_MODE_FULL;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int32_t processors = 0, aux_type = -1, bias_type = -1;
  void* bias = nullptr;  ///< or where the bias gradient goes
  int64_t bias_stride = 0;
  void* aux = nullptr;
  int64_t aux_ld = 0, aux_stride = 0, alpha_stride = 0;
  const void *a_scale = nullptr, *b_scale = nullptr, *c_scale = nullptr, *d_scale = nullptr;
  void* d_amax = nullptr;
  const void* aux_scale = nullptr;
  void *aux_amax = nullptr, *d_out_scale = nullptr, *emulation = nullptr;
  int32_t scale_modes[6] = {};  ///< for A, B, C, D, aux, D's out scale
  int8_t fast_accumulation = 0;
};

struct Preference {
  static constexpr uint32_t kMagic = 0x50726566;
  uint32_t magic = kMagic;
  uint32_t search = CUBLASLT_SEARCH_BEST_FIT;
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};  ///< bytes, for A, B, C, D
  float waves = 0;
  uint64_t implementations = ~uint64_t{0};
};

struct TransformDescriptor {
  static constexpr uint32_t kMagic = 0x54726e73;
  uint32_t magic = kMagic;
  int32_t scale = 0, pointer_mode = CUBLASLT_POINTER_MODE_HOST, transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
};

struct EmulationDescriptor {
  static constexpr uint32_t kMagic = 0x456d756c;
  uint32_t magic = kMagic;
  int32_t strategy = 0, special_values = 0xffff, mantissa_control = 0, most_mantissa_bits = 0, mantissa_offset = 0;
  void* mantissa_bits = nullptr;
};

/// The content of a cublasLtMatmulAlgo_t: its configuration, and the types that it is for.
struct Algorithm {
  static constexpr uint32_t kMagic = 0x416c676f;
  uint32_t magic = kMagic;
  int32_t id = 0;
  uint32_t tile = CUBLASLT_MATMUL_TILE_UNDEFINED;
  int32_t splits = 1;
  uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE, swizzle = 0, custom = 0,
           stages = CUBLASLT_MATMUL_STAGES_UNDEFINED;
  uint16_t inner_shape = 0, cluster_shape = 0;
  int32_t compute = 0;
  uint16_t types[5] = {};  ///< scale, A, B, C, D
};

/// An attribute's position in its descriptor.
struct Attribute {
  int number;
  size_t offset, bytes;
};
template <class D>
std::span<const Attribute> attributes();

/// `what` names it: `a matrix layout`. Failure: nullptr, or memory that holds none.
template <class D, class Opaque>
D& descriptor(Opaque* opaque, const char* what) {
  static_assert(sizeof(D) <= sizeof(Opaque));
  if (!opaque) fail(CUBLAS_STATUS_INVALID_VALUE, std::string(what) + " is NULL");
  auto& d = *reinterpret_cast<D*>(opaque);
  if (d.magic != D::kMagic)
    fail(CUBLAS_STATUS_INVALID_VALUE, std::string(what) + " was not initialised, or was destroyed");
  return d;
}
template <class D, class Opaque>
const D& descriptor(const Opaque* opaque, const char* what) {
  return descriptor<D>(const_cast<Opaque*>(opaque), what);
}

void set_attribute(void* descriptor, std::span<const Attribute> attributes, int number, const void* value,
                   size_t bytes);
/// With no bytes: returns the size that is needed.
void get_attribute(const void* descriptor, std::span<const Attribute> attributes, int number, void* value, size_t bytes,
                   size_t* written);

}  // namespace emulator::lt
