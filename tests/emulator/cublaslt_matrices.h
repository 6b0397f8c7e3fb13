// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrices on the device and on the host, and one product with its expected results: for cublaslt_program.cpp.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/library_program.h"

namespace cublaslt_program {

using library_program::die;

#define LT(call) CHECK(is_success(call))

inline bool is_success(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) std::fprintf(stderr, "%s\n", cublasLtGetStatusName(status));
  return status == CUBLAS_STATUS_SUCCESS;
}

inline size_t size_of(cudaDataType type) {
  return type == CUDA_R_64F                          ? 8
         : type == CUDA_R_32F || type == CUDA_R_32I  ? 4
         : type == CUDA_R_16F || type == CUDA_R_16BF ? 2
                                                     : 1;
}
inline bool is_fp8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
inline bool is_integer(cudaDataType type) { return type == CUDA_R_8I || type == CUDA_R_32I; }

// NVIDIA's own conversions read the value.
inline double read(cudaDataType type, const char* at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case CUDA_R_64F:
      return as(double());
    case CUDA_R_32F:
      return as(float());
    case CUDA_R_32I:
      return as(int32_t());
    case CUDA_R_8I:
      return as(int8_t());
    case CUDA_R_16F:
      return __half2float(as(__half()));
    case CUDA_R_16BF:
      return __bfloat162float(as(__nv_bfloat16()));
    case CUDA_R_8F_E4M3:
      return static_cast<float>(as(__nv_fp8_e4m3()));
    default:
      return static_cast<float>(as(__nv_fp8_e5m2()));
  }
}
inline void write(cudaDataType type, char* at, double value) {
  const auto put = [&](auto stored) { std::memcpy(at, &stored, sizeof stored); };
  switch (type) {
    case CUDA_R_64F:
      return put(value);
    case CUDA_R_32F:
      return put(static_cast<float>(value));
    case CUDA_R_32I:
      return put(static_cast<int32_t>(value));
    case CUDA_R_8I:
      return put(static_cast<int8_t>(value));
    case CUDA_R_16F:
      return put(__float2half(static_cast<float>(value)));
    case CUDA_R_16BF:
      return put(__float2bfloat16(static_cast<float>(value)));
    case CUDA_R_8F_E4M3:
      return put(__nv_fp8_e4m3(static_cast<float>(value)));
    default:
      return put(__nv_fp8_e5m2(static_cast<float>(value)));
  }
}
/// A value as it is stored.
inline double stored(cudaDataType type, double value) {
  char bytes[8];
  write(type, bytes, value);
  return read(type, bytes);
}
/// Half the distance between two numbers of the type around a value of this size; 0 for integers.
inline double rounding(cudaDataType type, double value) {
  const auto half_step = [&](int bits, int least) {
    return std::ldexp(1.0, std::max(value == 0 ? least : std::ilogb(value), least) - bits - 1);
  };
  switch (type) {
    case CUDA_R_64F:
      return half_step(52, -1022);
    case CUDA_R_32F:
      return half_step(23, -126);
    case CUDA_R_16F:
      return half_step(10, -14);
    case CUDA_R_16BF:
      return half_step(7, -126);
    case CUDA_R_8F_E4M3:
      return half_step(3, -6);
    case CUDA_R_8F_E5M2:
      return half_step(2, -14);
    default:
      return 0;
  }
}

/// Device memory of exactly these bytes, and their copy on the host. It begins as 0x55 all over.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : host(bytes, 0x55) {
    CUDA(cudaMalloc(&data_, bytes));
    put();
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* at(size_t offset = 0) const { return static_cast<char*>(data_) + offset; }
  void put() const {
    CUDA(cudaMemcpy(data_, host.data(), host.size(), cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
  }
  void get() { CUDA(cudaMemcpy(host.data(), data_, host.size(), cudaMemcpyDeviceToHost)); }

  std::vector<char> host;

 private:
  void* data_ = nullptr;
};

inline std::mt19937& generator() {
  static std::mt19937 random(11);
  return random;
}

/// A batch of matrices in memory, with its layout.
struct Matrix {
  cudaDataType type;
  int64_t rows, columns, batches, ld, stride;
  bool by_rows;
  Buffer memory;
  cublasLtMatrixLayout_t layout = nullptr;

  /// `pad` elements more than needed between columns (or rows), and after each matrix.
  Matrix(cudaDataType t, int64_t m, int64_t n, int64_t batch, int64_t pad = 0, bool row_major = false)
      : type(t),
        rows(m),
        columns(n),
        batches(batch),
        ld((row_major ? n : m) + pad),
        stride(ld * (row_major ? m : n) + pad),
        by_rows(row_major),
        memory(static_cast<size_t>(stride * batch) * size_of(t)) {
    LT(cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
    set(CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL});
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batches));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  ~Matrix() { cublasLtMatrixLayoutDestroy(layout); }
  template <class Value>
  void set(cublasLtMatrixLayoutAttribute_t attribute, Value value) const {
    LT(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
  }
  size_t offset(int64_t b, int64_t i, int64_t j) const {
    return static_cast<size_t>(b * stride + (by_rows ? i * ld + j : j * ld + i)) * size_of(type);
  }
  double operator()(int64_t b, int64_t i, int64_t j) const { return read(type, memory.host.data() + offset(b, i, j)); }
  /// Fresh values; those of integers are whole. The padding keeps its pattern.
  void fill() {
    std::uniform_real_distribution<double> real(-1, 1);
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          write(type, memory.host.data() + offset(b, i, j),
                is_integer(type) ? std::round(real(generator()) * 9) : real(generator()));
    memory.put();
  }
};

/// A call and everything for the call.
struct Case {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F, a = CUDA_R_32F, b = CUDA_R_32F, c = CUDA_R_32F, d = CUDA_R_32F;
  bool transpose_a = false, transpose_b = false;
  int64_t m = 24, n = 20, k = 28, batches = 1, pad = 0;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  double alpha = 1, beta = 0;
  cublasLtPointerMode_t mode = CUBLASLT_POINTER_MODE_HOST;
  bool rows_a = false, rows_b = false, rows_d = false;  ///< row-major
  bool in_place = false, scaled = false;                ///< FP8's factors
  size_t workspace = 0;                                 ///< limit of workspace for the heuristic
  int splits = 0;                                       ///< not 0: an algorithm with this number of slices of K

  std::string text() const {
    char line[300];
    std::snprintf(line, sizeof line,
                  "compute %d scale %d a %d b %d c %d d %d ta %d tb %d %ldx%ldx%ld batches %ld pad %ld epilogue %u "
                  "alpha %g beta %g "
                  "mode %d rows %d%d%d in place %d scaled %d splits %d",
                  compute, scale, a, b, c, d, transpose_a, transpose_b, m, n, k, batches, pad, epilogue, alpha, beta,
                  mode, rows_a, rows_b, rows_d, in_place, scaled, splits);
    return line;
  }
};

/// The bytes of a scalar in the scale type.
inline std::vector<char> scalar(cudaDataType type, double value) {
  std::vector<char> bytes(size_of(type));
  write(type, bytes.data(), value);
  return bytes;
}
inline void fill(Buffer& memory, const std::vector<char>& bytes) {
  memory.host = bytes;
  memory.put();
}

cublasLtHandle_t handle();

class Product {
 public:
  explicit Product(const Case& what);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// The heuristic's answer; `algorithms` holds it.
  cublasStatus_t find(size_t workspace);
  /// With the first offer, or that of Case::splits.
  cublasStatus_t run(cudaStream_t stream = nullptr);
  /// All outputs match f64, and nothing else was written.
  void check();

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, Value value) const {
    LT(cublasLtMatmulDescSetAttribute(descriptor, attribute, &value, sizeof value));
  }

  const Case what;
  Matrix a, b, c, d;
  cublasLtMatmulDesc_t descriptor = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;
  const void *a_pointer, *b_pointer, *c_pointer, *alpha_pointer, *beta_pointer;
  void *d_pointer, *workspace_pointer = nullptr;
  size_t workspace_bytes = 0;
  const cublasLtMatmulAlgo_t* algorithm = nullptr;

 private:
  double factor(int64_t i) const;
  double rounded(double value) const;
  void check_aux(int64_t batch, int64_t i, int64_t j, double before, double tolerance);

  bool has(unsigned bit) const { return (what.epilogue & bit) != 0; }
  bool by_bits() const { return has(128) && has(2 | 8); }
  int64_t aux_ld() const { return by_bits() ? (what.m + 127) / 128 * 128 : (what.m + 7) / 8 * 8; }
  int64_t aux_stride() const { return aux_ld() * what.n; }
  int64_t vector_length() const { return what.epilogue == CUBLASLT_EPILOGUE_BGRADB ? what.n : what.m; }

  cudaDataType vector_type_;
  std::vector<char> alpha_, beta_;
  Buffer device_alpha_, device_beta_, vector_, aux_, factors_, amax_, workspace_;
  std::vector<char> old_;
};

}  // namespace cublaslt_program
