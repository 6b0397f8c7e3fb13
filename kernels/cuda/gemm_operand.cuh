// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"

// The operands of the two GEMM main loops: y[m, n] = sum over k of a(m, k) b(k, n). An operand is a table of *lines*;
// the elements of a line lie one after the other in memory, at least in runs of 16 bytes. Which index runs along the
// line is the operand's `kMajor`: with Major::depth a line is one m (or one n) and k runs along it; with Major::rows a
// line is one k. A convolution differs from a matmul in its operands and nowhere else, so there is no im2col buffer.
//
//   Line line(int i)          line i: decoded once and kept in registers where i is fixed
//   Column column(int j)      position j along a line
//   bool has(line, column)    whether the element is there: it is zero outside the matrix and in an image's padding
//   const T* at(line, column) the element, which must be there
//   bool vector               16-byte loads are allowed: memory is aligned, runs are whole, all or none of them is zero
//
// Whether an element is there travels as a bool of its own. As a null pointer it would cost a comparison of two
// registers in each use, and ptxas 13.0 let one of them read the registers before they were null
// (docs/first_gpu_run.md).

namespace weft::kernels::WEFT_DEVICE {

enum class Major { depth, rows };

/// A plain matrix: lines of `columns` elements, `pitch` apart.
template <class T, Major major>
struct MatrixOperand {
  using Element = T;
  static constexpr Major kMajor = major;
  struct Line {
    const T* data;
    bool there;
  };
  struct Column {
    int offset;
  };

  const T* data;
  int64_t pitch;
  int lines, columns;
  bool vector;

  __device__ Line line(int i) const {
    const bool there = i < lines;
    return {data + (there ? i : 0) * pitch, there};
  }
  __device__ Column column(int j) const { return {j < columns ? j : -1}; }
  __device__ bool has(const Line& line, const Column& column) const { return line.there && column.offset >= 0; }
  __device__ const T* at(const Line& line, const Column& column) const { return line.data + column.offset; }
};

/// The im2col matrix of an image, never stored. Line i = (n, y, x) is one position where the filter is applied; column
/// j = (r, s, c) one of its taps. The pixel is (origin + y step + r tap, and alike for the columns) of image n.
template <class T, Major major>
struct PixelOperand {
  using Element = T;
  static constexpr Major kMajor = major;
  static constexpr int kOutside = -(1 << 30);  // twice this still is an int
  struct Line {
    const T* image;
    int h, w;
  };
  struct Column {
    int h, w, c;
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

  __device__ Line line(int i) const {
    if (i >= lines) return {data, kOutside, kOutside};
    const int n = positions.split(i);
    const int y = positions_w.split(i);
    return {data + n * image_pitch, origin_h + y * step_h, origin_w + i * step_w};
  }
  __device__ Column column(int j) const {
    if (j >= columns) return {kOutside, kOutside, 0};
    const int tap = channels.split(j);
    const int r = tap / taps_w;
    return {r * tap_h, (tap - r * taps_w) * tap_w, j};
  }
  __device__ bool has(const Line& line, const Column& column) const {
    const int h = line.h + column.h, w = line.w + column.w;
    return static_cast<unsigned>(h) < static_cast<unsigned>(height) &&
           static_cast<unsigned>(w) < static_cast<unsigned>(width);
  }
  __device__ const T* at(const Line& line, const Column& column) const {
    return line.image + (((line.h + column.h) * width + line.w + column.w) * pitch + column.c);
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
    bool there;
  };
  struct Column {
    int offset;
  };

  const T* data;         ///< the group's first filter
  int64_t filter_pitch;  ///< elements from filter to filter
  int lines, columns;    ///< columns: input channels of the group
  Divider filters;       ///< of the group
  int taps_w;
  int first_r, first_s, step_r, step_s, width;  ///< width: S, columns of the whole filter
  bool vector;

  __device__ Line line(int i) const {
    if (i >= lines) return {data, false};
    const int tap = filters.split(i);
    const int r = tap / taps_w, s = tap - r * taps_w;
    return {data + (i * filter_pitch + ((first_r + r * step_r) * width + first_s + s * step_s) * columns), true};
  }
  __device__ Column column(int j) const { return {j < columns ? j : -1}; }
  __device__ bool has(const Line& line, const Column& column) const { return line.there && column.offset >= 0; }
  __device__ const T* at(const Line& line, const Column& column) const { return line.data + column.offset; }
};

/// One block's share of an operand, as its threads walk it along k: `rows` x `depth` elements per step, in runs of
/// `run` elements (16 bytes, or 32 for doubles). Thread t owns the runs t, t + threads, … of a tile, counted along
/// lines.
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

  __device__ TileWalk(const Operand& operand, int first_row, int thread)
      : operand_(operand), first_row_(first_row), line_(thread / kRunsPerLine), run_(thread % kRunsPerLine) {
    if constexpr (kAlongDepth) {
      for (int i = 0; i < kCount; ++i) lines_[i] = operand_.line(first_row + line(i));
    } else {
      column_ = operand_.column(first_row + run_ * kRun);
    }
  }

  __device__ bool vector() const { return operand_.vector; }
  /// A readable, aligned address, for copies that read nothing.
  __device__ const T* somewhere() const { return operand_.data; }
  /// The line, within the tile, of this thread's i-th run; and the number of its run in that line.
  __device__ int line(int i) const { return line_ + i * kLineStep; }
  __device__ int run() const { return run_; }

  /// Calls visit(i, whether run i is there, a function of its address) for each run of the step that begins at depth k.
  template <class Visit>
  __device__ void each_run(int k, Visit&& visit) const {
    if constexpr (kAlongDepth) {
      const auto column = operand_.column(k + run_ * kRun);
      WEFT_UNROLL
      for (int i = 0; i < kCount; ++i) visit_at(lines_[i], column, visit, i);
    } else {
      WEFT_UNROLL
      for (int i = 0; i < kCount; ++i) visit_at(operand_.line(k + line(i)), column_, visit, i);
    }
  }

  /// Calls visit(i, e, whether element e of run i is there, a function of its address): for operands that forbid
  /// 16-byte loads. kAtOnce: elements of a run that are unrolled together; all of them if `visit` keeps elements in
  /// registers.
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

  const Operand& operand_;
  int first_row_, line_, run_;
  typename Operand::Line lines_[kAlongDepth ? kCount : 1];
  typename Operand::Column column_;
};

}  // namespace weft::kernels::WEFT_DEVICE
