// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/linear.h"

#include <algorithm>

#include "kernels/contracts/matmul.h"
#include "kernels/contracts/reduce.h"
#include "kernels/cpu/dnnl_matmul.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/unary_loops.h"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kSlabElements = int64_t{1} << 18;  // 1 MiB of f32: half of a core's L2

/// The matrix as a batch of one.
View lifted(const View& matrix) {
  View view = matrix;
  view.rank = 3;
  view.sizes = {1, matrix.sizes[0], matrix.sizes[1]};
  view.strides = {matrix.sizes[0] * matrix.sizes[1], matrix.strides[0], matrix.strides[1]};
  return view;
}

View transposed(View view) {
  std::swap(view.sizes[1], view.sizes[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

/// Rows first … first + count of a matrix.
View rows_of(View matrix, int64_t first, int64_t count) {
  matrix.data = element(matrix, first * matrix.strides[0]);
  matrix.sizes[0] = count;
  return matrix;
}

/// dx = sums f'(saved) for a run of elements.
template <class C>
void finish(UnaryGradientLoop<C> f, const View& dx, const View& saved, const C* sums, int64_t row, int64_t column,
            int64_t count) {
  const auto run = [&](const View& view, int64_t at) {
    return Run{element(view, row * view.strides[0] + (column + at) * view.strides[1]), view.dtype, view.strides[1]};
  };
  constexpr int64_t kAtOnce = 256;
  C values[kAtOnce], x[kAtOnce];
  for (int64_t at = 0; at < count; at += kAtOnce) {
    const int64_t n = std::min(kAtOnce, count - at);
    load(x, run(saved, at), n);
    f(values, sums + at, x, n, C(0), C(0));
    store(run(dx, at), values, n);
  }
}

}  // namespace

void linear_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w, const View& saved,
                           Activation f) {
  check_linear_backward_input(dx, dy, w, saved, f);
  if (dx.numel() == 0) return;
  const int64_t rows = dx.sizes[0], columns = dx.sizes[1];
  with_compute_type(dx.dtype, [&]<class C>() {
    if constexpr (std::is_floating_point_v<C>) {
      const UnaryGradientLoop<C> loop = unary_gradient_loop<C>(unary_of(f));
      const auto to_dx = [&](const C* sums, int64_t row, int64_t column, int64_t count) {
        finish(loop, dx, saved, sums, row, column, count);
      };
      if (dy.dtype == DType::bf16) {  // oneDNN rounds its output: f32 sums, to which f' is applied
        const int64_t slab = std::clamp<int64_t>(kSlabElements / columns, 1, rows);
        const Workspace memory(queue, static_cast<size_t>(slab * columns) * sizeof(float), "linear");
        int64_t first = 0;
        for (int64_t count; first < rows; first += count) {
          count = std::min(slab, rows - first);
          const View sums = View::dense(memory.data(), DType::f32, {1, count, columns});
          if (!dnnl_matmul(sums, lifted(rows_of(dy, first, count)), lifted(w), View::none(), {})) break;
          parallel_for(count, columns, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to_dx(sums.as<C>() + i * columns, first + i, 0, columns);
          });
        }
        if (first >= rows) return;
      }
      gemm<C>({1, rows, columns, dy.sizes[1], factor(dy), factor(w)}, to_dx);
    }
  });
}

void linear_backward_weight(const Queue& queue, const View& dw, const View& db, const View& dy, const View& x) {
  check_linear_backward_weight(dw, db, dy, x);
  if (dw.numel() > 0) matmul(queue, lifted(dw), transposed(lifted(dy)), lifted(x), View::none(), {});
  reduce(queue, Reduce::sum, View::dense(db.data, db.dtype, {1, db.sizes[0]}), dy);
}

}  // namespace weft::kernels::cpu
