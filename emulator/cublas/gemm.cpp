// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublas/gemm.h"

#include <memory>

#include "emulator/cublas/dense.h"
#include "emulator/cublaslt/multiply.h"

namespace emulator::blas {
namespace {

/// The type of alpha and beta.
cudaDataType_t scale_of(const Gemm& g) {
  switch (g.compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return g.c_type == CUDA_R_32I ? CUDA_R_32I : CUDA_R_32F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return is_complex(g.c_type) ? CUDA_C_64F : CUDA_R_64F;
    default:
      return is_complex(g.c_type) ? CUDA_C_32F : CUDA_R_32F;
  }
}

/// f32 products may round their factors to tf32 in this mode.
cublasComputeType_t compute_of(const Gemm& g, int math_mode) {
  const bool tf32 = (math_mode & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH;
  return tf32 && g.compute == CUBLAS_COMPUTE_32F && g.a_type == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : g.compute;
}

void require_types(const Gemm& g, cudaDataType_t scale) {
  const bool fits =
      is_complex(g.c_type)
          ? g.a_type == g.c_type && g.b_type == g.c_type && (bytes_of(scale) == bytes_of(g.c_type))
          : !lt::is_fp8(g.a_type) && lt::is_offered({g.compute, scale, g.a_type, g.b_type, g.c_type, g.c_type});
  offer(fits, "compute type ", g.compute, " with A ", name_of(g.a_type), ", B ", name_of(g.b_type), " and C ",
        name_of(g.c_type), " is not offered");
  if (scale == CUDA_R_32I)
    offer(g.a.step % 4 == 0 && g.b.step % 4 == 0, "integer matrices: leading dimensions ", g.a.step, " and ", g.b.step,
          " must be multiples of 4");
}

/// The loops' view of a matrix.
lt::Matrix seen(const Matrix& m, cublasOperation_t op) {
  lt::Matrix x{m.type, m.rows, m.columns, 1, m.ld, 0};
  if (op != CUBLAS_OP_N) std::swap(x.rows, x.columns), std::swap(x.row, x.column);
  return x;
}

void multiply(const Gemm& g, const Matrix& a, const Matrix& b, const Matrix& c, const Factor& alpha,
              const Factor& beta) {
  if (is_complex(g.c_type) || g.k == 0) {
    with_scalar(g.c_type, [&]<class S>(S) {
      finish(c, alpha.get<S>(), product(load<S>(a).with(g.op_a), load<S>(b).with(g.op_b)), beta.get<S>());
    });
    return;
  }
  lt::Call call;
  lt::Problem& p = call.problem;
  p.types = {g.compute, alpha.type, g.a_type, g.b_type, g.c_type, g.c_type};
  p.m = g.m, p.n = g.n, p.k = g.k;
  p.a = seen(a, g.op_a), p.b = seen(b, g.op_b), p.c = p.d = seen(c, CUBLAS_OP_N);
  const auto scalar = [](const Factor& factor) { return lt::Scalar{nullptr, factor.get<double>()}; };
  call.alpha = scalar(alpha), call.beta = scalar(beta);
  call.a = static_cast<const std::byte*>(a.at), call.b = static_cast<const std::byte*>(b.at);
  call.d = static_cast<std::byte*>(const_cast<void*>(c.at)), call.c = call.d;
  lt::multiply(call);
}

}  // namespace

void gemm(const char* name, cublasHandle_t handle, const Gemm& given, const void* alpha, const void* beta) {
  Gemm g = given;
  const auto is_op = [](cublasOperation_t op) { return op >= CUBLAS_OP_N && op <= CUBLAS_OP_C; };
  require(is_op(g.op_a) && is_op(g.op_b), "operations ", g.op_a, " and ", g.op_b, ": no such value");
  require(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batches >= 0, "a size is negative: ", g.m, 'x', g.n, 'x', g.k);
  const cudaDataType_t scale = scale_of(g);
  require_types(g, scale);
  std::string types = name_of(g.a_type);
  if (g.c_type != g.a_type) types += cat(" -> ", name_of(g.c_type));
  const std::string size = cat(g.m, 'x', g.n, 'x', g.k, ' ', types);
  Request request(handle, g.batches == 1 ? cat(name, " of ", size) : cat(name, " of ", g.batches, " of ", size));
  g.compute = compute_of(g, request.context().math_mode);
  const auto matrix = [](const char* operand_name, const Argument& x, cudaDataType_t type, int64_t rows,
                         int64_t columns, cublasOperation_t op) {
    if (op != CUBLAS_OP_N) std::swap(rows, columns);
    require(x.step >= std::max<int64_t>(rows, 1), "the leading dimension of ", operand_name, " is ", x.step,
            ", and a column has ", rows, " elements");
    return Matrix{x.at, type, rows, columns, x.step};
  };
  const Matrix a = matrix("A", g.a, g.a_type, g.m, g.k, g.op_a), b = matrix("B", g.b, g.b_type, g.k, g.n, g.op_b),
               c = matrix("C", g.c, g.c_type, g.m, g.n, CUBLAS_OP_N);
  if (g.m == 0 || g.n == 0 || g.batches == 0) return;
  const Factor alpha1 = request.factor("alpha", alpha, scale), beta1 = request.factor("beta", beta, scale);
  if (g.by_pointers) {
    const size_t bytes = static_cast<size_t>(g.batches) * sizeof(void*);
    request.memory("the array of A", g.a.at, Use::read, bytes);
    request.memory("the array of B", g.b.at, Use::read, bytes);
    request.memory("the array of C", g.c.at, Use::read, bytes);
  } else {
    if (g.k > 0) {
      request.matrix("A", a, Use::read, g.batches, g.a.batch);
      request.matrix("B", b, Use::read, g.batches, g.b.batch);
    }
    request.output("C", c, beta1, g.batches, g.c.batch);
  }
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < g.batches; ++i) {
      if (!g.by_pointers) {
        multiply(g, a.shifted(i * g.a.batch), b.shifted(i * g.b.batch), c.shifted(i * g.c.batch), alpha1, beta1);
        continue;
      }
      const auto at = [&](Matrix m, const Argument& array) {
        m.at = static_cast<const void* const*>(array.at)[i];
        return m;
      };
      const Matrix ai = at(a, g.a), bi = at(b, g.b), ci = at(c, g.c);
      cuda::examine_late(call, {operand("A", ai, Use::read), operand("B", bi, Use::read),
                                operand("C", ci, beta1.is_zero() ? Use::write : Use::update)});
      multiply(g, ai, bi, ci, alpha1, beta1);
    }
  });
}

}  // namespace emulator::blas
