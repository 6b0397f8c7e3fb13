// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublas/matrices.h"

#include "emulator/cublas/dense.h"

namespace emulator::blas {
namespace {

void require_op(cublasOperation_t op) {
  require(op >= CUBLAS_OP_N && op <= CUBLAS_OP_C, "operation ", op, ": no such value");
}
void require_fill(cublasFillMode_t fill) {
  require(fill == CUBLAS_FILL_MODE_LOWER || fill == CUBLAS_FILL_MODE_UPPER, "fill mode ", fill,
          ": expected LOWER or UPPER");
}
void require_sizes(int64_t m, int64_t n, int64_t k = 0) {
  require(m >= 0 && n >= 0 && k >= 0, "a size is negative: ", m, ", ", n, ", ", k);
}
void require_step(const char* name, const Argument& v) { require(v.step != 0, "the step of ", name, " is 0"); }

Matrix matrix(const char* name, const Argument& a, cudaDataType_t type, int64_t rows, int64_t columns,
              cublasFillMode_t fill = CUBLAS_FILL_MODE_FULL) {
  require(a.step >= std::max<int64_t>(rows, 1), "the leading dimension of ", name, " is ", a.step,
          ", and a column has ", rows, " elements");
  return {a.at, type, rows, columns, a.step, fill};
}
Matrix matrix(const char* name, const Argument& a, cudaDataType_t type, int64_t rows, int64_t columns,
              cublasOperation_t op) {
  return op == CUBLAS_OP_N ? matrix(name, a, type, rows, columns) : matrix(name, a, type, columns, rows);
}
Vector vector(const char* name, const Argument& v, cudaDataType_t type, int64_t n) {
  require_step(name, v);
  return {v.at, type, n, v.step};
}

template <class... T>
std::string text(const char* name, cudaDataType_t type, int64_t first, const T&... others) {
  return cat(name, " of ", first, cat('x', others)..., ' ', name_of(type));
}

/// Pointer `i` of an array on the device.
const void* pointer(const Argument& array, int64_t i) { return static_cast<const void* const*>(array.at)[i]; }

void pointers(Request& request, const char* name, const Argument& array, int64_t batches) {
  request.memory(name, array.at, Use::read, static_cast<size_t>(batches) * sizeof(void*));
}

template <class S>
void add_product(const Gemv& g, const Matrix& a, const Vector& x, const Vector& y, S alpha, S beta) {
  finish(y, alpha, product(load<S>(a).with(g.op), column<S>(x)), beta);
}

}  // namespace

void gemv(const char* name, cublasHandle_t handle, const Gemv& g, const void* alpha, const void* beta) {
  require_op(g.op), require_sizes(g.m, g.n, g.batches);
  Request request(
      handle, g.batches == 1 ? text(name, g.a_type, g.m, g.n) : cat(g.batches, " of ", text(name, g.a_type, g.m, g.n)));
  const bool transposed = g.op != CUBLAS_OP_N;
  const int64_t from = transposed ? g.m : g.n, to = transposed ? g.n : g.m;
  const Matrix a = matrix("A", g.a, g.a_type, g.m, g.n);
  const Vector x = vector("x", g.x, g.a_type, from), y = vector("y", g.y, g.y_type, to);
  if (g.m == 0 || g.n == 0 || g.batches == 0) return;
  const Factor a1 = request.factor("alpha", alpha, g.scale), b1 = request.factor("beta", beta, g.scale);
  if (g.by_pointers) {
    pointers(request, "the array of A", g.a, g.batches), pointers(request, "the array of x", g.x, g.batches),
        pointers(request, "the array of y", g.y, g.batches);
  } else {
    request.matrix("A", a, Use::read, g.batches, g.a.batch);
    request.vector("x", x, Use::read, g.batches, g.x.batch);
    request.output("y", y, b1, g.batches, g.y.batch);
  }
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < g.batches; ++i) {
      Matrix ai = a;
      Vector xi = x, yi = y;
      if (g.by_pointers) {
        ai.at = pointer(g.a, i), xi.at = pointer(g.x, i), yi.at = pointer(g.y, i);
        cuda::examine_late(call, {operand("A", ai, Use::read), operand("x", xi, Use::read),
                                  operand("y", yi, b1.is_zero() ? Use::write : Use::update)});
      } else {
        ai = a.shifted(i * g.a.batch);
        xi.at = static_cast<const std::byte*>(x.at) + i * g.x.batch * static_cast<int64_t>(bytes_of(x.type));
        yi.at = static_cast<const std::byte*>(y.at) + i * g.y.batch * static_cast<int64_t>(bytes_of(y.type));
      }
      with_scalar(g.scale, [&]<class S>(S) { add_product<S>(g, ai, xi, yi, a1.get<S>(), b1.get<S>()); });
    }
  });
}

void ger(const char* name, cublasHandle_t handle, int64_t m, int64_t n, const void* alpha, Argument x, Argument y,
         Argument a, cudaDataType_t type, bool conjugates) {
  require_sizes(m, n);
  Request request(handle, text(name, type, m, n));
  const Vector xs = vector("x", x, type, m), ys = vector("y", y, type, n);
  const Matrix as = matrix("A", a, type, m, n);
  if (m == 0 || n == 0) return;
  const Factor factor = request.factor("alpha", alpha, type);
  request.vector("x", xs, Use::read);
  request.vector("y", ys, Use::read);
  request.matrix("A", as, Use::update);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      finish(as, factor.get<S>(), product(column<S>(xs), column<S>(ys).transposed(conjugates)), S(1));
    });
  });
}

void symv(const char* name, cublasHandle_t handle, cublasFillMode_t fill, int64_t n, const void* alpha, Argument a,
          Argument x, const void* beta, Argument y, cudaDataType_t type, bool hermitian) {
  require_fill(fill), require_sizes(n, n);
  Request request(handle, text(name, type, n, n));
  const Vector xs = vector("x", x, type, n), ys = vector("y", y, type, n);
  const Matrix as = matrix("A", a, type, n, n, fill);
  if (n == 0) return;
  const Factor a1 = request.factor("alpha", alpha, type), b1 = request.factor("beta", beta, type);
  request.matrix("A", as, Use::read);
  request.vector("x", xs, Use::read);
  request.output("y", ys, b1);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      finish(ys, a1.get<S>(), product(load_symmetric<S>(as, hermitian), column<S>(xs)), b1.get<S>());
    });
  });
}

void syr(const char* name, cublasHandle_t handle, cublasFillMode_t fill, int64_t n, const void* alpha, Argument x,
         Argument a, cudaDataType_t type, cudaDataType_t scale, bool hermitian) {
  require_fill(fill), require_sizes(n, n);
  Request request(handle, text(name, type, n, n));
  const Vector xs = vector("x", x, type, n);
  const Matrix as = matrix("A", a, type, n, n, fill);
  if (n == 0) return;
  const Factor factor = request.factor("alpha", alpha, scale);
  request.vector("x", xs, Use::read);
  request.matrix("A", as, Use::update);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      const Dense<S> from = column<S>(xs);
      finish(as, factor.get<S>(), product(from, from.transposed(hermitian)), S(1));
      if (hermitian) make_diagonal_real<S>(as);
    });
  });
}

void syr2(const char* name, cublasHandle_t handle, cublasFillMode_t fill, int64_t n, const void* alpha, Argument x,
          Argument y, Argument a, cudaDataType_t type, bool hermitian) {
  require_fill(fill), require_sizes(n, n);
  Request request(handle, text(name, type, n, n));
  const Vector xs = vector("x", x, type, n), ys = vector("y", y, type, n);
  const Matrix as = matrix("A", a, type, n, n, fill);
  if (n == 0) return;
  const Factor factor = request.factor("alpha", alpha, type);
  request.vector("x", xs, Use::read);
  request.vector("y", ys, Use::read);
  request.matrix("A", as, Use::update);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      const Dense<S> x1 = column<S>(xs), y1 = column<S>(ys);
      const S a1 = factor.get<S>();
      finish(as, a1, product(x1, y1.transposed(hermitian)), S(1));
      finish(as, hermitian ? conjugate(a1) : a1, product(y1, x1.transposed(hermitian)), S(1));
      if (hermitian) make_diagonal_real<S>(as);
    });
  });
}

void trmv(const char* name, cublasHandle_t handle, Triangle t, int64_t n, Argument a, Argument x, cudaDataType_t type,
          bool solves) {
  require_fill(t.fill), require_op(t.op), require_sizes(n, n);
  Request request(handle, text(name, type, n, n));
  const Vector xs = vector("x", x, type, n);
  Matrix as = matrix("A", a, type, n, n, t.fill);
  as.unit = t.diagonal == CUBLAS_DIAG_UNIT;
  if (n == 0) return;
  request.matrix("A", as, Use::read);
  request.vector("x", xs, Use::update);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      const Dense<S> factor = load_triangle<S>(as).with(t.op);
      Dense<S> values = column<S>(xs);
      if (solves)
        solve(factor, (t.fill == CUBLAS_FILL_MODE_UPPER) == (t.op == CUBLAS_OP_N), values);
      else
        values = product(factor, values);
      xs.store(values.values);
    });
  });
}

void symm(const char* name, cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, int64_t m, int64_t n,
          const void* alpha, Argument a, Argument b, const void* beta, Argument c, cudaDataType_t type,
          bool hermitian) {
  require_fill(fill), require_sizes(m, n);
  Request request(handle, text(name, type, m, n));
  const int64_t order = side == CUBLAS_SIDE_LEFT ? m : n;
  const Matrix as = matrix("A", a, type, order, order, fill), bs = matrix("B", b, type, m, n),
               cs = matrix("C", c, type, m, n);
  if (m == 0 || n == 0) return;
  const Factor a1 = request.factor("alpha", alpha, type), b1 = request.factor("beta", beta, type);
  request.matrix("A", as, Use::read);
  request.matrix("B", bs, Use::read);
  request.output("C", cs, b1);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      const Dense<S> whole = load_symmetric<S>(as, hermitian), other = load<S>(bs);
      finish(cs, a1.get<S>(), side == CUBLAS_SIDE_LEFT ? product(whole, other) : product(other, whole), b1.get<S>());
    });
  });
}

void rank_k(const char* name, cublasHandle_t handle, const RankK& w, const void* alpha, const void* beta) {
  require_fill(w.fill), require_op(w.op), require_sizes(w.n, w.k);
  require(!w.hermitian || w.op != CUBLAS_OP_T, "operation T is not one of this call's");
  Request request(handle, text(name, w.type, w.n, w.n, w.k));
  const Matrix a = matrix("A", w.a, w.type, w.n, w.k, w.op);
  const Matrix b = w.rank == Rank::one ? a : matrix("B", w.b, w.type, w.n, w.k, w.op);
  const Matrix c = matrix("C", w.c, w.type, w.n, w.n, w.fill);
  if (w.n == 0) return;
  const Factor a1 = request.factor("alpha", alpha, w.alpha_type), b1 = request.factor("beta", beta, w.beta_type);
  if (w.k > 0) {
    request.matrix("A", a, Use::read);
    if (w.rank != Rank::one) request.matrix("B", b, Use::read);
  }
  request.output("C", c, b1);
  request.run([=] {
    with_scalar(w.type, [&]<class S>(S) {
      // op(A) is [n, k]. For op T or C the product is op(A) op(B)^T with the conjugate on the other side.
      const cublasOperation_t op = w.op == CUBLAS_OP_N ? CUBLAS_OP_N : w.hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
      const Dense<S> x = load<S>(a).with(op), y = w.rank == Rank::one ? x : load<S>(b).with(op);
      const S factor = a1.get<S>();
      finish(c, factor, product(x, y.transposed(w.hermitian)), b1.get<S>());
      if (w.rank == Rank::both)
        finish(c, w.hermitian ? conjugate(factor) : factor, product(y, x.transposed(w.hermitian)), S(1));
      if (w.hermitian && w.rank != Rank::with_b) make_diagonal_real<S>(c);
    });
  });
}

void trsm(const char* name, cublasHandle_t handle, const Trsm& w, const void* alpha) {
  const Triangle& t = w.triangle;
  require_fill(t.fill), require_op(t.op), require_sizes(w.m, w.n, w.batches);
  Request request(handle,
                  w.batches == 1 ? text(name, w.type, w.m, w.n) : cat(w.batches, " of ", text(name, w.type, w.m, w.n)));
  const bool left = w.side == CUBLAS_SIDE_LEFT;
  const int64_t order = left ? w.m : w.n;
  Matrix a = matrix("A", w.a, w.type, order, order, t.fill);
  a.unit = t.diagonal == CUBLAS_DIAG_UNIT;
  const Matrix b = matrix("B", w.b, w.type, w.m, w.n);
  const Matrix c = w.solves ? b : matrix("C", w.c, w.type, w.m, w.n);
  if (w.m == 0 || w.n == 0 || w.batches == 0) return;
  const Factor factor = request.factor("alpha", alpha, w.type);
  const bool zero = !factor.device && factor.is_zero();  // then neither A nor B is read
  if (w.by_pointers) {
    pointers(request, "the array of A", w.a, w.batches), pointers(request, "the array of B", w.b, w.batches);
  } else {
    if (!zero) request.matrix("A", a, Use::read);
    if (w.solves || !zero) request.matrix("B", b, !w.solves ? Use::read : zero ? Use::write : Use::update);
    if (!w.solves) {
      request.matrix("C", c, Use::write);
      if (w.c.at == w.b.at && w.c.step == w.b.step) request.may_be("B");
    }
  }
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < w.batches; ++i) {
      Matrix ai = a, bi = b, ci = c;
      if (w.by_pointers) {
        ai.at = pointer(w.a, i), bi.at = pointer(w.b, i), ci.at = bi.at;
        if (!factor.is_zero())
          cuda::examine_late(call, {operand("A", ai, Use::read), operand("B", bi, Use::update)});
        else
          cuda::examine_late(call, {operand("B", bi, Use::write)});
      }
      with_scalar(w.type, [&]<class S>(S) {
        const S scale = factor.get<S>();
        if (scale == S(0)) return store(ci, Dense<S>(w.m, w.n));
        Dense<S> triangle = load_triangle<S>(ai).with(t.op), x = load<S>(bi);
        if (!w.solves) {
          finish(ci, scale, left ? product(triangle, x) : product(x, triangle), S(0));
          return;
        }
        for (S& value : x.values) value *= scale;
        const bool upper = (t.fill == CUBLAS_FILL_MODE_UPPER) == (t.op == CUBLAS_OP_N);
        if (left) {
          solve(triangle, upper, x);
        } else {  // X T = B is T^T X^T = B^T
          Dense<S> turned = x.transposed();
          solve(triangle.transposed(), !upper, turned);
          x = turned.transposed();
        }
        store(ci, x);
      });
    }
  });
}

void geam(const char* name, cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
          const void* alpha, Argument a, const void* beta, Argument b, Argument c, cudaDataType_t type) {
  require_op(op_a), require_op(op_b), require_sizes(m, n);
  Request request(handle, text(name, type, m, n));
  if (m == 0 || n == 0) return;
  const Factor a1 = request.factor("alpha", alpha, type), b1 = request.factor("beta", beta, type);
  // A matrix whose factor is 0 on the host may be NULL.
  const bool uses_a = a1.device || !a1.is_zero(), uses_b = b1.device || !b1.is_zero();
  const Matrix as = uses_a ? matrix("A", a, type, m, n, op_a) : Matrix{},
               bs = uses_b ? matrix("B", b, type, m, n, op_b) : Matrix{};
  const Matrix cs = matrix("C", c, type, m, n);
  if (uses_a) request.matrix("A", as, Use::read);
  if (uses_b) request.matrix("B", bs, Use::read);
  request.matrix("C", cs, Use::write);
  if (op_a == CUBLAS_OP_N && a.at == c.at && a.step == c.step) request.may_be("A");
  if (op_b == CUBLAS_OP_N && b.at == c.at && b.step == c.step) request.may_be("B");
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      Dense<S> sum(m, n);
      const auto add = [&](const Matrix& from, cublasOperation_t op, S factor) {
        if (factor == S(0)) return;
        const Dense<S> all = load<S>(from).with(op);
        for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += factor * all.values[i];
      };
      if (uses_a) add(as, op_a, a1.get<S>());
      if (uses_b) add(bs, op_b, b1.get<S>());
      store(cs, sum);
    });
  });
}

void dgmm(const char* name, cublasHandle_t handle, cublasSideMode_t side, int64_t m, int64_t n, Argument a, Argument x,
          Argument c, cudaDataType_t type) {
  require_sizes(m, n);
  Request request(handle, text(name, type, m, n));
  const Matrix as = matrix("A", a, type, m, n), cs = matrix("C", c, type, m, n);
  const Vector xs{x.at, type, side == CUBLAS_SIDE_LEFT ? m : n, x.step};
  if (m == 0 || n == 0) return;
  request.matrix("A", as, Use::read);
  request.vector("x", xs, Use::read);
  request.matrix("C", cs, Use::write);
  if (a.at == c.at && a.step == c.step) request.may_be("A");
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      const auto diagonal = xs.load<S>();
      Dense<S> all = load<S>(as);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) all(i, j) *= diagonal[static_cast<size_t>(side == CUBLAS_SIDE_LEFT ? i : j)];
      store(cs, all);
    });
  });
}

}  // namespace emulator::blas
