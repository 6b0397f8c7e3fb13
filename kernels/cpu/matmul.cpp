// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.h"

#include <vector>

#include "kernels/cpu/dnnl_matmul.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/gemm.h"

namespace weft::kernels::cpu {
namespace {

/// One factor as gemm takes it: a pointer, a leading dimension, and whether it is stored transposed.
template <class C>
struct Factor {
  const C* data = nullptr;
  int64_t ld = 1, batch_stride = 0;
  bool transposed = false;
  std::vector<C> packed;  // the converted copy, where the caller's memory cannot be used as it is

  explicit Factor(const View& view) {
    const int64_t rows = view.sizes[1], columns = view.sizes[2];
    const int64_t by_row = view.strides[1], by_column = view.strides[2];
    batch_stride = view.sizes[0] == 1 ? 0 : view.strides[0];
    if (view.dtype == dtype_of<C> && (by_column == 1 || columns == 1) && (rows == 1 || by_row >= columns)) {
      data = static_cast<const C*>(view.data);
      ld = rows == 1 ? columns : by_row;
    } else if (view.dtype == dtype_of<C> && (by_row == 1 || rows == 1) && (columns == 1 || by_column >= rows)) {
      data = static_cast<const C*>(view.data);
      ld = columns == 1 ? rows : by_column;
      transposed = true;
    } else {
      pack(view);
    }
    ld = std::max<int64_t>(ld, 1);
  }

 private:
  void pack(const View& view) {
    View source = view;
    if (batch_stride == 0) source.sizes[0] = 1;
    // The copy keeps the order of the source, so that its rows are read in the order of memory.
    transposed = source.strides[1] == 1 && source.strides[2] != 1;
    ld = transposed ? view.sizes[1] : view.sizes[2];
    packed.resize(static_cast<size_t>(source.numel()));
    const int64_t matrix = view.sizes[1] * view.sizes[2];
    View target{packed.data(), dtype_of<C>, 3, source.sizes, {matrix, ld, 1}};
    if (transposed) target.strides = {matrix, 1, ld};
    if (batch_stride != 0) batch_stride = matrix;
    map<C, C, 1>(target, {&source},
                 [](C* out, const std::array<const C*, 1>& in, int64_t n) { std::copy_n(in[0], n, out); });
    data = packed.data();
  }
};

/// Row-major y [B, M, N] of the computing type.
template <class C>
void multiply(C* y, int64_t y_batch, int64_t ldc, const View& a_view, const View& b_view, C alpha, C beta) {
  const Factor<C> a(a_view), b(b_view);
  int64_t batches = a_view.sizes[0] > b_view.sizes[0] ? a_view.sizes[0] : b_view.sizes[0];
  GemmShape shape{a_view.sizes[1], b_view.sizes[2], a_view.sizes[2], a.transposed, b.transposed, a.ld, b.ld, ldc};
  // One matrix b for a whole batch of row-major a: the batch is more rows.
  if (b.batch_stride == 0 && !a.transposed && a.batch_stride == shape.m * a.ld && y_batch == shape.m * ldc) {
    shape.m *= batches;
    batches = 1;
  }
  const int64_t work = shape.m * shape.n * shape.k;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      gemm(shape, alpha, a.data + i * a.batch_stride, b.data + i * b.batch_stride, beta, y + i * y_batch);
  };
  const bool small = work < int64_t{1} << 21;  // too small to share: whole matrices go to the threads instead
  if (small)
    parallel_for(batches, work, run);
  else
    run(0, batches);
}

/// y = bias, or what y holds plus bias: what the product is then added to.
template <class C>
void begin_with_bias(C* y, int64_t y_batch, int64_t ldc, const View& y_view, const View& bias, bool accumulate) {
  const int64_t rows = y_view.sizes[1], columns = y_view.sizes[2];
  std::vector<C> row(static_cast<size_t>(columns));
  load(row.data(), {bias.data, bias.dtype, bias.strides[0]}, columns);
  parallel_for(y_view.sizes[0] * rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C* out = y + i / rows * y_batch + i % rows * ldc;
      for (int64_t j = 0; j < columns; ++j) out[j] = accumulate ? out[j] + row[j] : row[j];
    }
  });
}

}  // namespace

void matmul(const Queue&, const View& y, const View& a, const View& b, const View& bias, MatmulArguments arguments) {
  const auto fits = [](const View& whole, const View& part) {
    return part.sizes[0] == whole.sizes[0] || part.sizes[0] == 1;
  };
  WEFT_CHECK(y.rank == 3 && a.rank == 3 && b.rank == 3 && a.sizes[1] == y.sizes[1] && b.sizes[2] == y.sizes[2] &&
                 a.sizes[2] == b.sizes[1] && fits(y, a) && fits(y, b) && a.dtype == b.dtype,
             "matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got ", y, " = ", a, " @ ", b);
  WEFT_CHECK(!bias || (bias.rank == 1 && bias.sizes[0] == y.sizes[2]), "matmul: expected bias [", y.sizes[2], "], got ",
             bias);
  if (y.numel() == 0) return;
  if (dnnl_matmul(y, a, b, bias, arguments)) return;
  const bool accumulate = arguments.grad == Grad::accumulate;
  with_compute_type(a.dtype, [&]<class C>() {
    if constexpr (!std::is_floating_point_v<C>) {
      fail("matmul: expected a floating dtype, got ", a);
    } else {
      const int64_t M = y.sizes[1], N = y.sizes[2];
      // y is written directly where it has the computing type, else through a dense copy.
      const bool direct = y.dtype == dtype_of<C>;
      std::vector<C> copy(direct ? 0 : static_cast<size_t>(y.numel()));
      C* out = direct ? static_cast<C*>(y.data) : copy.data();
      const int64_t ldc = direct && M > 1 ? y.strides[1] : N;
      const int64_t y_batch = direct ? y.strides[0] : M * N;
      const View dense = View::dense(out, dtype_of<C>, {y.sizes[0], M, N});
      const auto convert = [](C* to, const std::array<const C*, 1>& from, int64_t n) { std::copy_n(from[0], n, to); };
      if (!direct && accumulate) map<C, C, 1>(dense, {&y}, convert);
      if (bias) begin_with_bias(out, y_batch, ldc, y, bias, accumulate);
      const C beta = bias || accumulate ? C(1) : C(0);
      if (a.sizes[2] > 0) {
        multiply<C>(out, y_batch, ldc, a, b, static_cast<C>(arguments.alpha), beta);
      } else if (beta == C(0)) {
        for (int64_t i = 0; i < y.sizes[0] * M; ++i) std::fill_n(out + i / M * y_batch + i % M * ldc, N, C(0));
      }
      if (!direct) map<C, C, 1>(y, {&dense}, convert);
    }
  });
}

}  // namespace weft::kernels::cpu
