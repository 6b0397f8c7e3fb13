// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx_offset.cuh"
#include "kernels/cuda/unroll.cuh"

// The operands of the two GEMM main loops: y[m, n] = sum over k of a(m, k) b(k, n). An operand is a table of *lines*;
// the elements of a line are contiguous in memory, at least in segments of 16 bytes. `kMajor` says which index runs
// along the line: with Major::depth a line is an m (or an n) and k runs along the line; with Major::rows a line is a k.
// A convolution differs from a matmul only in its operands, so there is no im2col buffer.
//
//   Line line(int i)          line i.
//   Column column(int j)      position j along a line.
//   Step step(int by)         a move by `by` lines, precomputed once; Major::rows only.
//   auto advance(x, by)       moves a column by `by` (Major::depth), or a line by a Step; returns how far at() moves,
//                             in elements. No division; branches only at the end of a tap's channels.
//   bool has(line, column)    whether the element exists; elements beyond K and in an image's padding are zero.
//   const T* at(line, column) address of the element; must not be read unless has() is true
//   bool vector               16-byte loads are allowed: aligned, whole segments, each all or nothing in bounds
//
// Rows (m or n) beyond the matrix may read any element, since they only affect results that are not stored. So with
// Major::depth all of a thread's segments share one condition.
//
// A separate bool says whether an element exists. A null pointer would need a comparison of two registers in each use,
// and ptxas 13.0 miscompiled such a comparison (benchmarks/results/hopper.md).

namespace weft::kernels::cuda {

enum class Major { depth, rows };

/// A plain matrix: lines of `columns` elements, `pitch` apart.
template <class T, Major major>
struct MatrixOperand {
  using Element = T;
  static constexpr Major kMajor = major;
  static constexpr bool kAlongDepth = major == Major::depth;
  struct Line {
    const T* data;
    int left;  ///< lines from here to the last; unused with Major::depth
  };
  struct Column {
    int j;
  };
  struct Step {
    int by;
    int64_t moved;
  };

  const T* data;
  int64_t pitch;
  int lines, columns;
  bool vector;

  __device__ Line line(int i) const { return {data + (kAlongDepth && i >= lines ? 0 : i) * pitch, lines - i}; }
  __device__ Column column(int j) const { return {!kAlongDepth && j >= columns ? 0 : j}; }
  __device__ Step step(int by) const { return {by, by * pitch}; }
  __device__ int64_t advance(Line& line, const Step& step) const {
    line.left -= step.by;
    return step.moved;
  }
  __device__ int advance(Column& column, int by) const {
    column.j += by;
    return by;
  }
  __device__ bool has(const Line& line, const Column& column) const {
    return kAlongDepth ? column.j < columns : line.left > 0;
  }
  __device__ const T* at(const Line& line, const Column& column) const { return line.data + column.j; }
};

/// The im2col matrix of images, never stored. Line i = (n, y, x) is one position of the filter; column j = (r, s, c)
/// one of its taps. The pixel's row in image n is origin + y step + r tap, the column likewise.
template <class T, Major major>
struct PixelOperand {
  using Element = T;
  static constexpr Major kMajor = major;
  static constexpr bool kAlongDepth = major == Major::depth;
  static constexpr int kOutside = -(1 << 30);  // twice this value still fits an int
  struct Line {
    const T* data;  ///< address of pixel (h, w) with Major::depth, where lines are kept; else of the image
    int h, w;       ///< pixel of the first tap
    int left;       ///< as in MatrixOperand
  };
  struct Column {
    int h, w, c;  ///< pixels from the first tap; channel
    int j, s;
  };
  /// A move by `by` lines as a number of three digits: image, row and column of the position.
  struct Step {
    int by, h, w, moved;
  };

  const T* data;             ///< the group's first channel
  int64_t image_pitch;       ///< elements from image to image
  int height, width, pitch;  ///< pitch: elements from pixel to pixel
  int lines, columns;
  Divider positions, positions_w;  ///< positions per image, and per row of it
  Divider channels;                ///< channels of the group
  int taps_w;
  int step_h, step_w, origin_h, origin_w, tap_h, tap_w;
  bool vector;
  // Major::rows only. span_h, span_w: pixels that an image's positions span. next_row: elements from a row's end to the
  // next row; next_image: from the last row's end to the next image.
  int span_h, span_w, next_row, next_image;

  __device__ Line line(int i) const {
    if (i >= lines) return {data, kOutside, kOutside, lines - i};
    int x = i;
    const int n = positions.split(x);
    const int h = origin_h + positions_w.split(x) * step_h, w = origin_w + x * step_w;
    return {data + n * image_pitch + (kAlongDepth ? (h * width + w) * pitch : 0), h, w, lines - i};
  }
  __device__ Column column(int j) const {
    if (j >= columns) return {kOutside, kOutside, 0, j, 0};
    int c = j;
    const int tap = channels.split(c);
    const int r = tap / taps_w, s = tap - r * taps_w;
    return {r * tap_h, s * tap_w, c, j, s};
  }
  __device__ Step step(int by) const {
    int x = by;
    const int n = positions.split(x), h = positions_w.split(x) * step_h, w = x * step_w;
    return {by, h, w, static_cast<int>(n * image_pitch) + (h * width + w) * pitch};
  }
  __device__ int advance(Line& line, const Step& step) const {
    int moved = step.moved;
    line.left -= step.by;
    line.w += step.w;
    line.h += step.h;
    if (line.w >= origin_w + span_w) {
      line.w -= span_w;
      line.h += step_h;
      moved += next_row;
    }
    if (line.h >= origin_h + span_h) {
      line.h -= span_h;
      moved += next_image;
    }
    return moved;
  }
  __device__ int advance(Column& column, int by) const {
    int moved = by;
    column.j += by;
    column.c += by;
    while (column.c >= channels.divisor()) {
      column.c -= channels.divisor();
      column.w += tap_w;
      moved += tap_w * pitch - channels.divisor();
      if (++column.s == taps_w) {
        column.s = 0;
        column.w -= taps_w * tap_w;
        column.h += tap_h;
        moved += (tap_h * width - taps_w * tap_w) * pitch;
      }
    }
    if (column.j >= columns) column.h = kOutside;
    return moved;
  }
  __device__ bool has(const Line& line, const Column& column) const {
    const int h = line.h + column.h, w = line.w + column.w;
    return (kAlongDepth || line.left > 0) && static_cast<unsigned>(h) < static_cast<unsigned>(height) &&
           static_cast<unsigned>(w) < static_cast<unsigned>(width);
  }
  __device__ const T* at(const Line& line, const Column& column) const {
    const int h = column.h + (kAlongDepth ? 0 : line.h), w = column.w + (kAlongDepth ? 0 : line.w);
    // If has() is false, kOutside times the width may wrap; the address is then never read.
    return line.data + static_cast<int>((static_cast<unsigned>(h) * width + w) * pitch + column.c);
  }
};

/// A convolution's filters as the operand of the input gradient: line (r, s, o) holds the group's input channels at one
/// tap of filter o. Only the taps first + i step are used (see conv2d_backward_input).
template <class T>
struct FilterOperand {
  using Element = T;
  static constexpr Major kMajor = Major::rows;
  struct Line {
    const T* data;
    int left, filter, s;  ///< left: as in MatrixOperand
  };
  struct Column {
    int j;
  };
  /// A move by `by` lines as a number of three digits (r, s, filter), and the offset of a carry of s.
  struct Step {
    int by, filter, s, moved, next_row;
  };

  const T* data;         ///< the group's first filter
  int64_t filter_pitch;  ///< elements from filter to filter
  int lines, columns;    ///< columns: input channels of the group
  Divider filters;       ///< filters of the group
  int taps_w;
  int first_r, first_s, step_r, step_s, width;  ///< width: S, columns of the whole filter
  int next_tap;                                 ///< elements from the end of one tap's lines to the next tap in its row
  bool vector;

  __device__ Line line(int i) const {
    if (i >= lines) return {data, lines - i, 0, 0};
    int filter = i;
    const int tap = filters.split(filter);
    const int r = tap / taps_w, s = tap - r * taps_w;
    return {data + (filter * filter_pitch + ((first_r + r * step_r) * width + first_s + s * step_s) * columns),
            lines - i, filter, s};
  }
  __device__ Column column(int j) const { return {j < columns ? j : 0}; }
  __device__ Step step(int by) const {
    if (lines == 0) return {by, 0, 0, 0, 0};  // no tap
    int filter = by;
    const int tap = filters.split(filter);
    const int r = tap / taps_w, s = tap - r * taps_w;
    return {by, filter, s, static_cast<int>(filter * filter_pitch) + (r * step_r * width + s * step_s) * columns,
            (step_r * width - taps_w * step_s) * columns};
  }
  __device__ int advance(Line& line, const Step& step) const {
    int moved = step.moved;
    line.left -= step.by;
    line.filter += step.filter;
    line.s += step.s;
    if (line.filter >= filters.divisor()) {
      line.filter -= filters.divisor();
      ++line.s;
      moved += next_tap;
    }
    if (line.s >= taps_w) {
      line.s -= taps_w;
      moved += step.next_row;
    }
    return moved;
  }
  __device__ bool has(const Line& line, const Column&) const { return line.left > 0; }
  __device__ const T* at(const Line& line, const Column& column) const { return line.data + column.j; }
};

/// One block's share of an operand, traversed along k: `rows` x `depth` elements per step, in segments of `run`
/// elements (16 bytes, or 32 for doubles). Thread t owns segments t, t + threads, … of a tile, counted along lines.
/// With Major::depth the thread keeps their lines and a column that advances with k; else a column, and a line that
/// advances from segment to segment.
template <class Operand, int kRows, int kDepth, int kRun, int kThreads>
class TileWalk {
 public:
  using T = typename Operand::Element;
  static constexpr bool kAlongDepth = Operand::kMajor == Major::depth;
  static constexpr int kLines = kAlongDepth ? kRows : kDepth;
  static constexpr int kRunsPerLine = (kAlongDepth ? kDepth : kRows) / kRun;
  static constexpr int kCount = kLines * kRunsPerLine / kThreads;  ///< segments per thread and step
  static constexpr int kLineStep = kThreads / kRunsPerLine;
  static_assert(kCount * kThreads == kLines * kRunsPerLine && kLineStep * kRunsPerLine == kThreads);

  /// k: start of the first step.
  __device__ TileWalk(const Operand& operand, int first_row, int k, int thread)
      : operand_(operand), first_row_(first_row), line_(thread / kRunsPerLine), run_(thread % kRunsPerLine) {
    if constexpr (kAlongDepth) {
      for (int i = 0; i < kCount; ++i) lines_[i] = operand_.line(first_row + line(i));
      column_ = operand_.column(k + run_ * kRun);
    } else {
      step_ = operand_.step(kLineStep);
      lines_[0] = operand_.line(k + line_);
      column_ = operand_.column(first_row + run_ * kRun);
    }
    for (int i = 0; i < kWays; ++i) from_[i] = operand_.at(lines_[i], column_);
  }

  __device__ bool vector() const { return operand_.vector; }
  /// The line, within the tile, of this thread's i-th segment; and the segment's index in the line.
  __device__ int line(int i) const { return line_ + i * kLineStep; }
  __device__ int run() const { return run_; }

  /// Calls visit(i, whether segment i exists, its address) for each segment of the next step; i is an
  /// integral_constant.
  template <class Visit>
  __device__ __forceinline__ void next_step(Visit&& visit) {
    unrolled<kCount>([&](auto i) {
      constexpr int kWay = kAlongDepth ? i.value : 0;
      visit(i, operand_.has(lines_[kWay], column_), from_[kWay]);
      if constexpr (!kAlongDepth) from_[0] += operand_.advance(lines_[0], step_);
    });
    if constexpr (kAlongDepth) {
      const auto moved = operand_.advance(column_, kDepth);
      WEFT_UNROLL
      for (int i = 0; i < kCount; ++i) from_[i] += moved;
    }
  }

  /// As above for any step, which begins at k, with a function that returns the address: for kernels that would spill
  /// the state of next_step.
  template <class Visit>
  __device__ void each_run(int k, Visit&& visit) const {
    const auto column = kAlongDepth ? operand_.column(k + run_ * kRun) : column_;
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kAlongDepth)
        visit_at(lines_[i], column, visit, i);
      else
        visit_at(operand_.line(k + line(i)), column, visit, i);
    }
  }

  /// Calls visit(i, e, whether element e of segment i exists, a function that returns its address) for any step, which
  /// begins at k: for operands that do not allow 16-byte loads. kAtOnce: elements of a segment that are unrolled
  /// together; must be all if `visit` keeps elements in registers.
  template <int kAtOnce, class Visit>
  __device__ void each_element(int k, Visit&& visit) const {
    WEFT_UNROLL_BY(kAtOnce)
    for (int e = 0; e < kRun; ++e) {
      const auto column = operand_.column((kAlongDepth ? k : first_row_) + run_ * kRun + e);
      WEFT_UNROLL
      for (int i = 0; i < kCount; ++i) {
        if constexpr (kAlongDepth)
          visit_at(lines_[i], column, visit, i, e);
        else
          visit_at(operand_.line(k + line(i)), column, visit, i, e);
      }
    }
  }

 private:
  template <class Visit, class... Index>
  __device__ void visit_at(const typename Operand::Line& line, const typename Operand::Column& column, Visit& visit,
                           Index... index) const {
    visit(index..., operand_.has(line, column), [&] { return operand_.at(line, column); });
  }

  static constexpr int kWays = kAlongDepth ? kCount : 1;

  const Operand& operand_;
  int first_row_, line_, run_;
  typename Operand::Line lines_[kWays];
  const T* from_[kWays];  ///< addresses of the next step's segments
  typename Operand::Column column_;
  typename Operand::Step step_;  ///< Major::rows only
};

}  // namespace weft::kernels::cuda
