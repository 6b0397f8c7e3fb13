// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/cublaslt/descriptor.h"

namespace emulator::lt {

/// A matrix as the loops see it: element (i, j) of batch b lies `b * batch + i * row + j * column` elements from its
/// begin. Transposes and memory orders are already applied.
struct Matrix {
  cudaDataType_t type = CUDA_R_32F;
  int64_t rows = 0, columns = 0, row = 1, column = 0, batch = 0;
  bool operator==(const Matrix&) const = default;
};

struct Types {
  cublasComputeType_t compute;
  cudaDataType_t scale, a, b, c, d;
};
/// Whether cuBLASLt documents these types for cublasLtMatmul, as far as this library has them.
bool is_offered(const Types& types);

/// The epilogue in its parts: D = f(alpha op(A) op(B) + beta C + bias).
struct Epilogue {
  bool bias = false;  ///< added
  bool relu = false, gelu = false;
  bool relu_slope = false, gelu_slope = false;  ///< backward: the product times f' at the values in aux
  bool aux = false;
  bool sums_d = false, sums_a = false, sums_b = false;  ///< bias gradients
  bool has_vector() const { return bias || writes_vector(); }
  bool writes_vector() const { return sums_d || sums_a || sums_b; }
  bool writes_aux() const { return aux && !relu_slope && !gelu_slope; }
  bool aux_is_bits() const { return aux && (relu || relu_slope); }
};
/// None: no value of cublasLtEpilogue_t.
std::optional<Epilogue> epilogue_of(uint32_t value);

/// D [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C, a whole batch of them, checked as far as descriptors tell.
struct Problem {
  Types types{};
  int64_t m = 0, n = 0, k = 0, batches = 1;
  Matrix a, b, c, d;
  int64_t lds[4] = {};  ///< for A, B, C, D
  bool is_tn = false;   ///< A transposed and B not, both column-major, or the same in row-major order
  Epilogue epilogue;
  cudaDataType_t vector_type = CUDA_R_32F, aux_type = CUDA_R_32F;
  MatmulDescriptor what;  ///< pointers and strides

  bool alpha_is_vector() const { return what.pointer_mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST; }
  bool scalars_on_host() const { return what.pointer_mode == CUBLASLT_POINTER_MODE_HOST; }
  int64_t vector_length() const { return epilogue.sums_b ? n : m; }
  /// `64x32x16 bf16`, `3 of 64x32x16 e4m3 e5m2 -> f16`.
  std::string text() const;
};

/// Failure, with its reason: a documented error, or a feature that this library does not offer.
Problem make_problem(const MatmulDescriptor& what, const Layout& a, const Layout& b, const Layout& c, const Layout& d);

/// Failure: no matrix of cuBLASLt's, or of a kind that is not offered. `may_broadcast`: a leading dimension of 0.
void require_layout(const Layout& layout, const char* name, bool may_broadcast);
/// The layout without its memory order, transposed as `operation` says. `name`: of the operand, for errors.
Matrix matrix_of(const Layout& layout, int operation, const char* name);

}  // namespace emulator::lt
