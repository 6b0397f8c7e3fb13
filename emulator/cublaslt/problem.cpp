// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/problem.h"

#include <climits>

#include "emulator/cublaslt/number.h"
#include "emulator/machine/fault.h"

namespace emulator::lt {
namespace {

template <class... T>
void require(bool right, const T&... text) {
  if (!right) fail(CUBLAS_STATUS_INVALID_VALUE, cat(text...));
}
template <class... T>
void offer(bool offered, const T&... text) {
  if (!offered) fail(CUBLAS_STATUS_NOT_SUPPORTED, cat(text...));
}

bool is_integer(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC;
}

/// The rows of the documentation's table of FP8 kernels.
bool is_offered_fp8(const Types& t) {
  if (t.compute != CUBLAS_COMPUTE_32F || t.scale != CUDA_R_32F || !is_fp8(t.a) || !is_fp8(t.b)) return false;
  const bool has_e5m2 = t.a == CUDA_R_8F_E5M2 || t.b == CUDA_R_8F_E5M2;
  if (t.a == CUDA_R_8F_E5M2 && t.b == CUDA_R_8F_E5M2) return false;
  if (t.c != CUDA_R_16BF && t.c != CUDA_R_16F && t.c != CUDA_R_32F) return false;
  if (t.d == t.c) return true;
  return t.c != CUDA_R_32F && (t.d == CUDA_R_8F_E4M3 || (t.d == CUDA_R_8F_E5M2 && has_e5m2));
}

/// For the bias, and for bias gradients.
cudaDataType_t vector_type_of(const Types& t) {
  if (is_fp8(t.d)) return t.c;
  return is_fp8(t.a) && t.d == CUDA_R_32F ? CUDA_R_16BF : t.d;
}

void require_attributes(const MatmulDescriptor& what) {
  const auto within = [](const char* name, int64_t value, int64_t least, int64_t most) {
    require(value >= least && value <= most, name, ' ', value, ": no such value");
  };
  within("TRANSA", what.transpose_a, CUBLAS_OP_N, CUBLAS_OP_C);
  within("TRANSB", what.transpose_b, CUBLAS_OP_N, CUBLAS_OP_C);
  within("TRANSC", what.transpose_c, CUBLAS_OP_N, CUBLAS_OP_C);
  within("FILL_MODE", what.fill_mode, CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_FULL);
  within("POINTER_MODE", what.pointer_mode, CUBLASLT_POINTER_MODE_HOST,
         CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST);
  within("SM_COUNT_TARGET", what.processors, 0, INT_MAX);
  within("FAST_ACCUM", what.fast_accumulation, 0, 1);
  for (const int32_t mode : what.scale_modes) within("a scale mode", mode, 0, CUBLASLT_MATMUL_MATRIX_SCALE_END - 1);
  offer(what.transpose_c == CUBLAS_OP_N, "TRANSC ", what.transpose_c, ": cuBLASLt supports CUBLAS_OP_N alone");
  offer(what.fill_mode == CUBLAS_FILL_MODE_FULL, "FILL_MODE ", what.fill_mode,
        " is not offered: use CUBLAS_FILL_MODE_FULL");
  for (const int32_t mode : what.scale_modes)
    offer(mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, "scale mode ", mode,
          " is not offered: use CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F");
  offer(!what.emulation, "floating point emulation is not offered");
  require(!what.d_out_scale, "D_OUT_SCALE_POINTER goes with a block scale mode");
}

/// The documentation's rules for 8-bit integers on tensor cores.
void require_imma(const Problem& p) {
  offer(p.is_tn, "integer matrices: only the TN format (A transposed, B not) is supported");
  offer(p.m % 4 == 0 && p.k % 4 == 0, "integer matrices: m ", p.m, " and k ", p.k, " must be multiples of 4");
  for (const int64_t ld : p.lds)
    offer(ld % 4 == 0, "integer matrices: leading dimension ", ld, " must be a multiple of 4");
}

void require_fp8(const Problem& p) {
  offer(p.is_tn, "FP8 matrices: only the TN format (A transposed, B not) is supported on Ada and Hopper");
  offer(p.k % 16 == 0, "FP8 matrices: k ", p.k, " must be a multiple of 16");
  const auto bytes = [](int64_t elements, cudaDataType_t type) {
    return elements * static_cast<int64_t>(size_of(type));
  };
  offer(bytes(p.m, p.types.d) % 16 == 0 && bytes(p.m, p.types.c) % 16 == 0, "FP8 matrices: a column of D, ", p.m,
        " elements, must be a multiple of 16 bytes");
  const cudaDataType_t types[] = {p.types.a, p.types.b, p.types.c, p.types.d};
  for (int i = 0; i < 4; ++i)
    offer(bytes(p.lds[i], types[i]) % 16 == 0, "FP8 matrices: leading dimension ", p.lds[i], " of ", "ABCD"[i],
          " must be a multiple of 16 bytes");
  const Epilogue& e = p.epilogue;
  offer(!e.writes_vector() && !e.relu_slope && !e.gelu_slope, "FP8 matrices: the backward epilogue ", p.what.epilogue,
        " is not offered");
}

void require_scales(const Problem& p) {
  const Types& t = p.types;
  const MatmulDescriptor& w = p.what;
  require(!w.a_scale || is_fp8(t.a), "A_SCALE_POINTER is for FP8, and A is ", name_of(t.a));
  require(!w.b_scale || is_fp8(t.b), "B_SCALE_POINTER is for FP8, and B is ", name_of(t.b));
  require(!w.c_scale || is_fp8(t.a), "C_SCALE_POINTER is for FP8, and A is ", name_of(t.a));
  require(!w.d_scale || is_fp8(t.d), "D_SCALE_POINTER is for FP8, and D is ", name_of(t.d));
  require(!w.d_amax || is_fp8(t.d), "AMAX_D_POINTER is for FP8, and D is ", name_of(t.d));
  const bool fp8_aux = p.epilogue.aux && !p.epilogue.aux_is_bits() && is_fp8(p.aux_type);
  require(!w.aux_scale || fp8_aux, "EPILOGUE_AUX_SCALE_POINTER is for an FP8 aux buffer");
  require(!w.aux_amax || fp8_aux, "EPILOGUE_AUX_AMAX_POINTER is for an FP8 aux buffer");
}

void require_pointer_mode(const Problem& p) {
  const int mode = p.what.pointer_mode;
  offer(mode != CUBLASLT_POINTER_MODE_DEVICE_VECTOR && mode != CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO,
        "pointer mode ", mode, " is for memory order COL32, which is not offered");
  offer(!p.alpha_is_vector() || (is_integer(p.types.compute) && p.types.scale == CUDA_R_32F),
        "pointer mode ALPHA_DEVICE_VECTOR_BETA_HOST is for 8-bit integers with an f32 scale type");
  require(p.alpha_is_vector() || p.what.alpha_stride == 0, "ALPHA_VECTOR_BATCH_STRIDE ", p.what.alpha_stride,
          ", and alpha is no vector");
}

void require_epilogue(Problem& p, const Layout& d) {
  const MatmulDescriptor& w = p.what;
  const auto epilogue = epilogue_of(w.epilogue);
  require(epilogue.has_value(), "EPILOGUE ", w.epilogue, ": no such value");
  p.epilogue = *epilogue;
  const bool plain = w.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  offer(plain || (p.types.a != CUDA_R_8I), "epilogue ", w.epilogue, " is not supported for 8-bit integers");
  offer(plain || epilogue->sums_a || epilogue->sums_b || d.order == CUBLASLT_ORDER_COL, "epilogue ", w.epilogue,
        " is not supported when D is in row-major order");
  p.vector_type = vector_type_of(p.types);
  if (epilogue->has_vector())
    offer(w.bias_type == -1 || w.bias_type == p.vector_type, "BIAS_DATA_TYPE ", w.bias_type,
          ": for these matrices it is ", name_of(p.vector_type));
  p.aux_type = p.types.d;
  if (!epilogue->aux) return;
  require(w.aux_type == -1 || w.aux_type == p.aux_type || epilogue->aux_is_bits(), "EPILOGUE_AUX_DATA_TYPE ",
          w.aux_type, ": only D's, ", name_of(p.aux_type), ", is offered");
  const int unit = epilogue->aux_is_bits() ? 128 : 8;
  require(w.aux_ld % unit == 0 && w.aux_ld >= p.m, "EPILOGUE_AUX_LD ", w.aux_ld, " must be a multiple of ", unit,
          " and no less than the ", p.m, " rows of D");
  require(w.aux_stride % unit == 0, "EPILOGUE_AUX_BATCH_STRIDE ", w.aux_stride, " must be a multiple of ", unit);
}

}  // namespace

const char* name_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_8I:
      return "i8";
    case CUDA_R_8F_E4M3:
      return "e4m3";
    case CUDA_R_8F_E5M2:
      return "e5m2";
    case CUDA_R_16F:
      return "f16";
    case CUDA_R_16BF:
      return "bf16";
    case CUDA_R_32F:
      return "f32";
    case CUDA_R_32I:
      return "i32";
    case CUDA_R_64F:
      return "f64";
    default:
      return "another type";
  }
}

bool is_offered(const Types& t) {
  if (is_fp8(t.a) || is_fp8(t.b)) return is_offered_fp8(t);
  if (t.a != t.b || t.c != t.d) return false;
  switch (t.compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return t.scale == CUDA_R_16F && t.a == CUDA_R_16F && t.d == CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return t.a == CUDA_R_8I &&
             ((t.scale == CUDA_R_32I && t.d == CUDA_R_32I) || (t.scale == CUDA_R_32F && t.d == CUDA_R_8I));
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC: {
      const bool half = t.a == CUDA_R_16F || t.a == CUDA_R_16BF;
      const bool wide = half || t.a == CUDA_R_32F || t.a == CUDA_R_8I;
      return t.scale == CUDA_R_32F && ((half && t.d == t.a) || (wide && t.d == CUDA_R_32F));
    }
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return t.scale == CUDA_R_32F && t.a == CUDA_R_32F && t.d == CUDA_R_32F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return t.scale == CUDA_R_64F && t.a == CUDA_R_64F && t.d == CUDA_R_64F;
    default:
      return false;
  }
}

std::optional<Epilogue> epilogue_of(uint32_t value) {
  Epilogue e;
  switch (value) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return e;
    case CUBLASLT_EPILOGUE_BGRADA:
      e.sums_a = true;
      return e;
    case CUBLASLT_EPILOGUE_BGRADB:
      e.sums_b = true;
      return e;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      e.relu = value & 2;
      e.bias = value & 4;
      e.relu_slope = value & 8;
      e.sums_d = value & 16;
      e.gelu = value & 32;
      e.gelu_slope = value & 64;
      e.aux = value & 128;
      return e;
    default:
      return std::nullopt;
  }
}

void require_layout(const Layout& layout, const char* name, bool may_broadcast) {
  require(layout.order >= CUBLASLT_ORDER_COL && layout.order <= CUBLASLT_ORDER_COL32_2R_4R4, name, ": memory order ",
          layout.order, ": no such value");
  offer(layout.order <= CUBLASLT_ORDER_ROW, name, ": memory order ", layout.order, " is not offered: use COL or ROW");
  require(layout.batch_mode <= CUBLASLT_BATCH_MODE_POINTER_ARRAY, name, ": batch mode ", layout.batch_mode,
          ": no such value");
  offer(layout.batch_mode == CUBLASLT_BATCH_MODE_STRIDED, name, ": batches by arrays of pointers are not offered");
  offer(layout.plane_offset == 0, name, ": planar complex matrices are not offered");
  require(layout.rows > 0 && layout.columns > 0, name, ": ", layout.rows, " rows and ", layout.columns, " columns");
  offer(layout.rows <= INT_MAX && layout.columns <= INT_MAX, name, ": ", layout.rows, " rows and ", layout.columns,
        " columns: cuBLASLt's numbers have 32 bits");
  require(layout.batches > 0, name, ": a batch of ", layout.batches);
  const auto line = static_cast<int64_t>(layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns);
  require(layout.ld >= line || (may_broadcast && layout.ld == 0), name, ": leading dimension ", layout.ld, ", and a ",
          layout.order == CUBLASLT_ORDER_COL ? "column" : "row", " has ", line, " elements");
}

Matrix matrix_of(const Layout& layout, int operation, const char* name) {
  const auto type = static_cast<cudaDataType_t>(layout.type);
  offer(size_of(type) != 0, name, ": data type ", layout.type, " is not offered");
  Matrix matrix{
      type, static_cast<int64_t>(layout.rows), static_cast<int64_t>(layout.columns), 1, layout.ld, layout.batch_stride};
  if (layout.order == CUBLASLT_ORDER_ROW) std::swap(matrix.row, matrix.column);
  if (operation != CUBLAS_OP_N) {
    std::swap(matrix.rows, matrix.columns);
    std::swap(matrix.row, matrix.column);
  }
  return matrix;
}

Problem make_problem(const MatmulDescriptor& what, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  require_attributes(what);
  require_layout(a, "A", false);
  require_layout(b, "B", false);
  require_layout(c, "C", true);
  require_layout(d, "D", false);
  Problem p;
  p.what = what;
  p.a = matrix_of(a, what.transpose_a, "A");
  p.b = matrix_of(b, what.transpose_b, "B");
  p.c = matrix_of(c, CUBLAS_OP_N, "C");
  p.d = matrix_of(d, CUBLAS_OP_N, "D");
  p.types = {static_cast<cublasComputeType_t>(what.compute),
             static_cast<cudaDataType_t>(what.scale),
             p.a.type,
             p.b.type,
             p.c.type,
             p.d.type};
  p.m = p.d.rows, p.n = p.d.columns, p.k = p.a.columns, p.batches = d.batches;
  const auto shape = [](const Matrix& x) { return cat('[', x.rows, ", ", x.columns, ']'); };
  require(p.a.rows == p.m && p.b.columns == p.n && p.b.rows == p.k, "op(A) ", shape(p.a), " op(B) ", shape(p.b),
          " is no D ", shape(p.d));
  require(p.c.rows == p.m && p.c.columns == p.n, "C is ", shape(p.c), " and D ", shape(p.d));
  require(a.batches == d.batches && b.batches == d.batches && c.batches == d.batches, "batches of ", a.batches, ", ",
          b.batches, ", ", c.batches, " and ", d.batches, " matrices");
  require(c.order == d.order, "C and D differ in memory order");
  p.lds[0] = a.ld, p.lds[1] = b.ld, p.lds[2] = c.ld, p.lds[3] = d.ld;
  p.is_tn = p.a.column == 1 && p.b.row == 1;
  offer(is_offered(p.types), "compute type ", what.compute, " and scale type ", what.scale, " with A ",
        name_of(p.a.type), ", B ", name_of(p.b.type), ", C ", name_of(p.c.type), " and D ", name_of(p.d.type),
        " are no row of cublasLtMatmul's table of types");
  require_epilogue(p, d);
  require_pointer_mode(p);
  require_scales(p);
  if (is_integer(p.types.compute)) require_imma(p);
  if (is_fp8(p.types.a)) require_fp8(p);
  return p;
}

std::string Problem::text() const {
  std::string text = batches == 1 ? "" : cat(batches, " of ");
  text += cat(m, 'x', n, 'x', k, ' ', name_of(types.a));
  if (types.b != types.a) text += cat(' ', name_of(types.b));
  if (types.d != types.a) text += cat(" -> ", name_of(types.d));
  return text;
}

}  // namespace emulator::lt
