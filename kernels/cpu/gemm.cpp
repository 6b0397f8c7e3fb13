// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/panel_product.h"
#include "kernels/cpu/processor.h"
#include "kernels/cpu/row_loops.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/transpose_eight.h"

// Each thread computes one block of c by itself, so that no thread waits for another: it copies a slice of b (kDepth
// rows, kColumns columns) into panels in the second-level cache. Then it copies and multiplies rows of a, block by
// block. A copy converts to the computing type, transposes if needed, and puts data used together on few pages. Goto
// and van de Geijn (2008) explain why; the innermost loops are in panel_product_loops.h.

namespace weft::kernels::cpu {

const PanelKernel<float>& panel_f32_avx2();
const PanelKernel<double>& panel_f64_avx2();
const PanelKernel<float>& panel_f32_avx512();
const PanelKernel<double>& panel_f64_avx512();
const RowLoops<float>& rows_f32_avx2();
const RowLoops<double>& rows_f64_avx2();
const RowLoops<float>& rows_f32_avx512();
const RowLoops<double>& rows_f64_avx512();
const Bf16Loops* bf16_avx512();

template <>
const PanelKernel<float>& panel_kernel<float>() {
  static const PanelKernel<float>& best = has_avx512() ? panel_f32_avx512() : panel_f32_avx2();
  return best;
}
template <>
const PanelKernel<double>& panel_kernel<double>() {
  static const PanelKernel<double>& best = has_avx512() ? panel_f64_avx512() : panel_f64_avx2();
  return best;
}
template <>
const RowLoops<float>& row_loops<float>() {
  static const RowLoops<float>& best = has_avx512() ? rows_f32_avx512() : rows_f32_avx2();
  return best;
}
template <>
const RowLoops<double>& row_loops<double>() {
  static const RowLoops<double>& best = has_avx512() ? rows_f64_avx512() : rows_f64_avx2();
  return best;
}
const Bf16Loops* bf16_loops() {
#if defined(__x86_64__)
  return level() == Level::avx512_bf16 ? bf16_avx512() : nullptr;
#else
  return nullptr;
#endif
}

namespace {

constexpr int64_t kDepth = 384;      // rows of a slice: its panel fits into the first-level cache
constexpr int64_t kRows = 48;        // at a time: the pages of as many rows of c stay known to the processor
constexpr int64_t kColumns = 768;    // columns of a slice
constexpr int64_t kFewRows = 48;     // b is read where it lies
constexpr int64_t kFewPanels = 4;    // a is read where it lies
constexpr int64_t kFewVectors = 8;  // b, whose columns are runs, is not copied

const void* at(const GemmFactor& f, int64_t i, int64_t j) {
  return static_cast<const char*>(f.data) + (i * f.row + j * f.column) * static_cast<int64_t>(size_of(f.dtype));
}

/// n elements from [i, j] on, along the row or (`down`) the column, converted; `buffer` holds them where they are not
/// what is wanted already.
template <class C>
const C* run(const GemmFactor& f, int64_t i, int64_t j, int64_t n, bool down, C* buffer) {
  const void* from = at(f, i, j);
  const int64_t step = down ? f.row : f.column;
  if (f.dtype == dtype_of<C> && (step == 1 || n == 1)) return static_cast<const C*>(from);
  load(buffer, {const_cast<void*>(from), f.dtype, step}, n);
  return buffer;
}

/// Rows k … k + depth of b, columns j … j + columns, into panels: to[panel][depth][width], zeros beyond the last
/// column.
template <class C>
void copy_b(const GemmFactor& b, int64_t k, int64_t depth, int64_t j, int64_t columns, int64_t width, C* to) {
  alignas(64) C buffer[kEight * std::max(kDepth, kColumns)];
  const int64_t padded = (columns + width - 1) / width * width;
  const auto fill = [&](int64_t column, int64_t d) -> C& {
    return to[(column / width * depth + d) * width + column % width];
  };
  for (int64_t column = columns; column < padded; ++column)
    for (int64_t d = 0; d < depth; ++d) fill(column, d) = C(0);
  const C* runs[kEight];
  if (b.column == 1) {  // rows of b are runs: eight at a time, so that each page serves all panels
    for (int64_t d = 0; d < depth; d += kEight) {
      const int64_t some = std::min<int64_t>(kEight, depth - d);
      for (int64_t i = 0; i < some; ++i) runs[i] = run(b, k + d + i, j, columns, false, buffer + i * kColumns);
      for (int64_t column = 0; column < columns; column += width)
        for (int64_t i = 0; i < some; ++i)
          std::memcpy(&fill(column, d + i), runs[i] + column,
                      static_cast<size_t>(std::min(width, columns - column)) * sizeof(C));
    }
    return;
  }
  for (int64_t column = 0; column < columns; column += kEight) {
    const int64_t some = std::min<int64_t>(kEight, columns - column);
    for (int64_t i = 0; i < some; ++i) runs[i] = run(b, k, j + column + i, depth, true, buffer + i * kDepth);
    int64_t d = 0;
    for (; some == kEight && d + kEight <= depth; d += kEight) transpose_eight(runs, d, &fill(column, d), width);
    for (; d < depth; ++d)
      for (int64_t i = 0; i < some; ++i) fill(column + i, d) = runs[i][d];
  }
}

/// The operand of a panel product from `a`: `rows` rows from i on, `depth` columns from k on; copied into `to` where
/// they would lie on many pages.
template <class C>
void place_a(const GemmFactor& a, int64_t i, int64_t rows, int64_t k, int64_t depth, int64_t strip, bool copy, C* to,
             PanelProduct<C>& p) {
  if (!copy && a.dtype == dtype_of<C>) {
    p.a = static_cast<const C*>(at(a, i, k));
    p.a_row = a.row;
    p.a_depth = a.column;
    return;
  }
  p.a = to;
  if (a.column == 1 || depth == 1) {
    p.a_row = depth + 16;  // so that rows do not compete for one set of a cache
    p.a_depth = 1;
    for (int64_t r = 0; r < rows; ++r, to += p.a_row)
      if (const C* from = run(a, i + r, k, depth, false, to); from != to)
        std::memcpy(to, from, static_cast<size_t>(depth) * sizeof(C));
    return;
  }
  p.a_row = 1;
  p.a_depth = strip;
  p.a_strip = depth * strip;
  C buffer[kRows];
  for (int64_t d = 0; d < depth; ++d, to += strip) {
    const C* const from = run(a, i, k + d, rows, true, buffer);
    for (int64_t r = 0; r < rows; r += strip) std::copy_n(from + r, std::min(strip, rows - r), to + r * depth);
  }
}

/// Where sums go: straight into c, or through `finish`.
template <class C>
struct Target {
  C* c;
  int64_t row;
  bool add;
  const GemmFinish<C>* finish;
  int64_t first_row;  // in this matrix, for finish
};

/// Rows i0 … i1, columns j0 … j1 of one product.
template <class C>
void compute_block(const Gemm& g, const Target<C>& target, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  static thread_local Scratch memory_a, memory_b, memory_sums;
  const auto room = [](Scratch& memory, int64_t elements) {
    return static_cast<C*>(memory.at_least(static_cast<size_t>(elements) * sizeof(C)));
  };
  const PanelKernel<C>& kernel = panel_kernel<C>();
  const int64_t width = kernel.panel, slices = (g.k + kDepth - 1) / kDepth, deep = (g.k + slices - 1) / slices;
  const bool through = target.finish != nullptr;
  C* const a_copy = room(memory_a, (kRows + kernel.strip) * (deep + 16));
  for (int64_t j = j0; j < j1; j += kColumns) {
    const int64_t columns = std::min(kColumns, j1 - j), padded = (columns + width - 1) / width * width;
    C* const sums = room(memory_sums, through ? (slices > 1 ? i1 - i0 : kRows) * padded : kRows * width);
    C* const b_copy = room(memory_b, padded * deep);
    const bool b_in_place = g.b.dtype == dtype_of<C> && g.b.column == 1 && i1 - i0 <= kFewRows;
    const int64_t in_place = b_in_place ? columns / width * width : 0;  // the last, partial panel is always copied
    for (int64_t k = 0; k < g.k; k += deep) {
      const int64_t depth = std::min(deep, g.k - k);
      copy_b(g.b, k, depth, j + in_place, columns - in_place, width, b_copy);
      for (int64_t i = i0; i < i1; i += kRows) {
        const int64_t rows = std::min(kRows, i1 - i);
        C* const block = through && slices > 1 ? sums + (i - i0) * padded : sums;
        PanelProduct<C> p{};
        p.rows = rows;
        p.depth = depth;
        p.alpha = static_cast<C>(g.alpha);
        place_a(g.a, i, rows, k, depth, kernel.strip, columns > kFewPanels * width, a_copy, p);
        for (int64_t column = 0; column < columns; column += width) {
          const bool edge = column + width > columns, aside = edge && !through;
          p.b =
              column < in_place ? static_cast<const C*>(at(g.b, k, j + column)) : b_copy + (column - in_place) * depth;
          p.b_depth = column < in_place ? g.b.row : width;
          p.c = through ? block + column : edge ? sums : target.c + i * target.row + j + column;
          p.c_row = through ? padded : edge ? width : target.row;
          const bool add = k > 0 || (!through && target.add);
          p.add = add && !aside;
          p.only_half = columns - column <= width / 2;
          kernel.product(p);
          for (int64_t r = 0; aside && r < rows; ++r) {
            C* const to = target.c + (i + r) * target.row + j + column;
            for (int64_t x = 0; x < columns - column; ++x) to[x] = (add ? to[x] : C(0)) + sums[r * width + x];
          }
        }
        for (int64_t r = 0; through && k + depth == g.k && r < rows; ++r)
          (*target.finish)(block + r * padded, target.first_row + i + r, j, columns);
      }
    }
  }
}

/// How the threads share a product: numbers of parts of its rows and of its columns.
struct Grid {
  int64_t down = 1, across = 1;
};

Grid grid_of(int64_t strips, int64_t panels, int64_t strip, int64_t panel, int64_t threads) {
  constexpr int64_t kCopy = 24;  // copying an element takes as long as this number of multiplications
  Grid best;
  int64_t least = INT64_MAX;
  for (int64_t down = 1; down <= threads; ++down) {
    const int64_t across = threads / down;
    const int64_t rows = (strips + down - 1) / down * strip, columns = (panels + across - 1) / across * panel;
    if (const int64_t cost = rows * columns + kCopy * (rows + columns); cost < least)
      least = cost, best = {down, across};
  }
  return best;
}

/// A few vectors times a matrix, or a matrix times a vector: nothing is worth a copy that is read once.
template <class C>
void multiply_vectors(const Gemm& g, C* c, int64_t c_batch, int64_t c_row, bool add, const GemmFinish<C>* finish) {
  constexpr int kFew = RowLoops<C>::kRows;
  constexpr int64_t kSome = 256;  // most results of one task
  static thread_local Scratch memory_x, memory_rows;
  const RowLoops<C>& loops = row_loops<C>();
  const bool by_column = g.m == 1 || g.n > 1;  // rows of results: the matrix is b
  const GemmFactor matrix = by_column ? g.b.transposed() : g.a, vector = by_column ? g.a.transposed() : g.b;
  const bool by_dots = matrix.column == 1;
  const int64_t vectors = by_column ? g.m : 1, count = by_column ? g.n : g.m, step = by_column ? 1 : c_row;
  const int64_t share = (count / (4 * omp_get_max_threads()) + 15) / 16 * 16;
  const int64_t most = by_dots ? std::clamp<int64_t>(share, 16, kSome) : kSome, tasks = (count + most - 1) / most;
  const Bf16Loops* const native =
      by_dots && matrix.dtype == DType::bf16 && vector.dtype == DType::bf16 && (vector.row == 1 || g.k == 1)
          ? bf16_loops()
          : nullptr;
  const C alpha = static_cast<C>(g.alpha);
  parallel_for(g.batches * tasks, vectors * most * g.k / 4, [&](int64_t begin, int64_t end) {
    const int64_t row_size = std::max(g.k, kSome);
    auto* const x_copies = static_cast<C*>(memory_x.at_least(static_cast<size_t>(vectors * g.k) * sizeof(C)));
    auto* const copies = static_cast<C*>(memory_rows.at_least(static_cast<size_t>(kFew * row_size) * sizeof(C)));
    C sums[kFewVectors * kSome];
    const C* x[kFewVectors];
    int64_t batch = -1;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % tasks * most, some = std::min(most, count - first);
      const auto moved = [&](GemmFactor f) {
        f.data = static_cast<const char*>(f.data) + task / tasks * f.batch * static_cast<int64_t>(size_of(f.dtype));
        return f;
      };
      const GemmFactor from = moved(matrix);
      if (batch != task / tasks && !native)
        for (int64_t v = 0; v < vectors; ++v) x[v] = run(moved(vector), 0, v, g.k, true, x_copies + v * g.k);
      batch = task / tasks;
      if (!by_dots) std::fill_n(sums, vectors * kSome, C(0));
      const int64_t turns = by_dots ? some : g.k;
      for (int64_t at = 0; at < turns; at += kFew) {
        const int few = static_cast<int>(std::min<int64_t>(kFew, turns - at));
        if constexpr (std::is_same_v<C, float>)
          if (native) {
            const void *rows[kFew], *xs[kFewVectors];
            for (int i = 0; i < few; ++i) rows[i] = cpu::at(from, first + at + i, 0);
            for (int64_t v = 0; v < vectors; ++v) xs[v] = cpu::at(moved(vector), 0, v);
            native->dots(sums + at, kSome, rows, few, xs, static_cast<int>(vectors), g.k);
            continue;
          }
        const C* rows[kFew];
        for (int i = 0; i < few; ++i) {
          C* const copy = copies + i * row_size;
          rows[i] =
              by_dots ? run(from, first + at + i, 0, g.k, false, copy) : run(from, first, at + i, some, true, copy);
        }
        if (by_dots)
          loops.dots(sums + at, kSome, rows, few, x, static_cast<int>(vectors), g.k);
        else
          loops.add_rows(sums, rows, few, x[0] + at, some);
      }
      for (int64_t v = 0; v < vectors; ++v) {
        C* const result = sums + v * kSome;
        for (int64_t i = 0; i < some; ++i) result[i] *= alpha;
        if (finish && by_column) {
          (*finish)(result, batch * g.m + v, first, some);
          continue;
        }
        for (int64_t i = 0; i < some; ++i) {
          if (finish) {
            (*finish)(result + i, batch * g.m + first + i, 0, 1);
          } else {
            C& to = c[batch * c_batch + v * c_row + (first + i) * step];
            to = (add ? to : C(0)) + result[i];
          }
        }
      }
    }
  });
}

template <class C>
void multiply(Gemm g, C* c, int64_t c_batch, int64_t c_row, bool add, const GemmFinish<C>* finish) {
  if (g.batches == 0 || g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    const std::vector<C> zeros(static_cast<size_t>(g.n));
    for (int64_t r = 0; r < g.batches * g.m; ++r) {
      if (finish)
        (*finish)(zeros.data(), r, 0, g.n);
      else if (!add)
        std::fill_n(c + r / g.m * c_batch + r % g.m * c_row, g.n, C(0));
    }
    return;
  }
  // One b for a whole batch of row-major a: the batch is more rows.
  if (g.b.batch == 0 && g.a.column == 1 && g.a.batch == g.m * g.a.row && (finish || c_batch == g.m * c_row)) {
    g.m *= g.batches;
    g.batches = 1;
  }
  if (g.m == 1 || g.n == 1 || is_few_rows(g)) return multiply_vectors(g, c, c_batch, c_row, add, finish);
  const PanelKernel<C>& kernel = panel_kernel<C>();
  const int64_t strips = (g.m + kernel.strip - 1) / kernel.strip, panels = (g.n + kernel.panel - 1) / kernel.panel;
  constexpr int64_t kAtOnce = 64;  // multiplications in the time of one elementwise step
  const int64_t work = g.m * g.n * g.k / kAtOnce / (strips * panels) + 1;
  const int64_t threads = threads_for(g.batches * strips * panels, work);
  const Grid grid = grid_of(strips, panels, kernel.strip, kernel.panel, (threads + g.batches - 1) / g.batches);
  const int64_t blocks = grid.down * grid.across;
  const auto part = [](int64_t units, int64_t i, int64_t parts, int64_t size, int64_t end) {
    return std::min(end, units * i / parts * size);
  };
  parallel_for(g.batches * blocks, threads > 1 ? kParallelElements : 0, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t batch = task / blocks, down = task % blocks / grid.across, across = task % grid.across;
      Gemm one = g;
      const auto moved = [batch](const GemmFactor& f) {
        return static_cast<const char*>(f.data) + batch * f.batch * static_cast<int64_t>(size_of(f.dtype));
      };
      one.a.data = moved(g.a);
      one.b.data = moved(g.b);
      const Target<C> target{c + batch * c_batch, c_row, add, finish, batch * g.m};
      compute_block(one, target, part(strips, down, grid.down, kernel.strip, g.m),
                    part(strips, down + 1, grid.down, kernel.strip, g.m),
                    part(panels, across, grid.across, kernel.panel, g.n),
                    part(panels, across + 1, grid.across, kernel.panel, g.n));
    }
  });
}

}  // namespace

template <class C>
void gemm(const Gemm& g, const GemmFinish<C>& finish) {
  multiply<C>(g, nullptr, 0, 0, false, &finish);
}
template <class C>
void gemm(const Gemm& g, C* c, int64_t batch, int64_t row, bool add) {
  multiply<C>(g, c, batch, row, add, nullptr);
}
template void gemm(const Gemm&, const GemmFinish<float>&);
template void gemm(const Gemm&, const GemmFinish<double>&);
template void gemm(const Gemm&, float*, int64_t, int64_t, bool);
template void gemm(const Gemm&, double*, int64_t, int64_t, bool);

bool is_few_rows(const Gemm& g) { return g.m <= kFewVectors && g.b.row == 1 && g.b.column != 1; }

GemmFactor factor(const View& matrix) {
  const int rows = matrix.rank - 2, columns = matrix.rank - 1;
  const int64_t batch = matrix.rank == 3 && matrix.sizes[0] > 1 ? matrix.strides[0] : 0;
  return {matrix.data, matrix.dtype, batch, matrix.strides[rows],
          matrix.sizes[columns] == 1 ? 1 : matrix.strides[columns]};
}

}  // namespace weft::kernels::cpu
