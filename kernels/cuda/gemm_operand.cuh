// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx_offset.cuh"
#include "kernels/cuda/unroll.cuh"

// The operands of the two GEMM main loops: y[m, n] = sum over k of a(m, k) b(k, n). An operand is a table of *lines*;
// the elements of a line lie one after the other in memory, at least in runs of 16 bytes. Which index runs along the
// line is the operand's `kMajor`: with Major::depth a line is one m (or one n) and k runs along it; with Major::rows a
// line is one k. A convolution differs from a matmul in its operands and nowhere else, so there is no im2col buffer.
//
//   Line line(int i)          line i
//   Column column(int j)      position j along a line
//   Step step(int by)         what a move by `by` lines consists of, which is found once; Major::rows only
//   auto advance(x, by)       with Major::depth moves a column, an int `by` on, else a line by a Step; how far that
//                             moves at(), in elements. Neither divides nor branches, but where a tap's channels end
//   bool has(line, column)    whether the element is there: it is zero beyond the depth and in an image's padding
//   const T* at(line, column) the element, or what would be one
//   bool vector               16-byte loads are allowed: memory is aligned, runs are whole, all or none of them is zero
//
// What lies beyond the rows (m or n) of a matrix is any element of it, since it can change no sum but those that are
// not stored. So all of a thread's runs with Major::depth share one condition.
//
// Whether an element is there travels as a bool of its own. As a null pointer it would cost a comparison of two
// registers in each use, and ptxas 13.0 let one of them read the registers before they were null
// (docs/first_gpu_run.md).

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
    int left;  ///< lines from here to the last; with Major::depth of no use
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

/// The im2col matrix of an image, never stored. Line i = (n, y, x) is one position where the filter is applied; column
/// j = (r, s, c) one of its taps. The pixel is (origin + y step + r tap, and alike for the columns) of image n.
template <class T, Major major>
struct PixelOperand {
  using Element = T;
  static constexpr Major kMajor = major;
  static constexpr bool kAlongDepth = major == Major::depth;
  static constexpr int kOutside = -(1 << 30);  // twice this still is an int
  struct Line {
    const T* data;  ///< of the pixel (h, w) with Major::depth, where lines are kept; else of the image
    int h, w;       ///< pixel of the first tap
    int left;       ///< as MatrixOperand's
  };
  struct Column {
    int h, w, c;  ///< pixels from the first tap; channel
    int j, s;
  };
  /// What a move by `by` lines adds to a line, a number of three digits: image, row and column of the position.
  struct Step {
    int by, h, w, moved;
  };

  const T* data;             ///< the group's first channel
  int64_t image_pitch;       ///< elements from image to image
  int height, width, pitch;  ///< pitch: elements from pixel to pixel
  int lines, columns;
  Divider positions, positions_w;  ///< positions per image, and per row of it
  Divider channels;                ///< of the group
  int taps_w;
  int step_h, step_w, origin_h, origin_w, tap_h, tap_w;
  bool vector;
  // Of Major::rows alone: pixels of all the positions' rows and columns, and how far it is in elements from a row's end
  // to the next row, and from the last row's to the next image.
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
    // Of a place that has() denies: kOutside times a width may wrap, and nothing reads there.
    return line.data + static_cast<int>((static_cast<unsigned>(h) * width + w) * pitch + column.c);
  }
};

/// The filters of a convolution as its input gradient reads them: line (r, s, o) holds the group's input channels at
/// one tap of filter o. Only the taps first + i step take part (see conv2d_backward_input).
template <class T>
struct FilterOperand {
  using Element = T;
  static constexpr Major kMajor = Major::rows;
  struct Line {
    const T* data;
    int left, filter, s;  ///< left: as MatrixOperand's
  };
  struct Column {
    int j;
  };
  /// What a move by `by` lines adds to a line, a number of three digits (r, s, filter), and what the second one's carry
  /// moves.
  struct Step {
    int by, filter, s, moved, next_row;
  };

  const T* data;         ///< the group's first filter
  int64_t filter_pitch;  ///< elements from filter to filter
  int lines, columns;    ///< columns: input channels of the group
  Divider filters;       ///< of the group
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

/// One block's share of an operand, as its threads walk it along k: `rows` x `depth` elements per step, in runs of
/// `run` elements (16 bytes, or 32 for doubles). Thread t owns the runs t, t + threads, … of a tile, counted along
/// lines; with Major::depth it keeps their lines and one column that moves on with k, else one column and one line that
/// moves from run to run.
template <class Operand, int kRows, int kDepth, int kRun, int kThreads>
class TileWalk {
 public:
  using T = typename Operand::Element;
  static constexpr bool kAlongDepth = Operand::kMajor == Major::depth;
  static constexpr int kLines = kAlongDepth ? kRows : kDepth;
  static constexpr int kRunsPerLine = (kAlongDepth ? kDepth : kRows) / kRun;
  static constexpr int kCount = kLines * kRunsPerLine / kThreads;  ///< runs per thread and step
  static constexpr int kLineStep = kThreads / kRunsPerLine;
  static_assert(kCount * kThreads == kLines * kRunsPerLine && kLineStep * kRunsPerLine == kThreads);

  /// k: where the first step begins.
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
  /// The line, within the tile, of this thread's i-th run; and the number of its run in that line.
  __device__ int line(int i) const { return line_ + i * kLineStep; }
  __device__ int run() const { return run_; }

  /// Calls visit(i, whether run i is there, its address) for each run of the next step; i is an integral_constant.
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

  /// The same for the step that begins at k, any one, with a function of the address: for kernels that would spill what
  /// next_step keeps.
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

  /// Calls visit(i, e, whether element e of run i is there, a function of its address) in the step that begins at k,
  /// any one: for operands that forbid 16-byte loads. kAtOnce: elements of a run that are unrolled together; all of
  /// them if `visit` keeps elements in registers.
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
  const T* from_[kWays];  ///< the next step's runs
  typename Operand::Column column_;
  typename Operand::Step step_;  ///< of Major::rows alone
};

}  // namespace weft::kernels::cuda
