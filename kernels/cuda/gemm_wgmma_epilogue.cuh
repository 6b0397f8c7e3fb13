// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/gemm_epilogue.cuh"
#include "kernels/cuda/ptx_hopper.cuh"
#include "kernels/cuda/short_gelu.cuh"
#include "kernels/cuda/tile_moments.cuh"

// From wgmma's registers to memory. A warp owns 16 rows of its warpgroup's 64, all columns of the tile; in each group
// of 8 columns lane l holds row l / 4, columns 2 (l mod 4) and the next, and the same 8 rows below. It walks over the
// columns in chunks: 64 columns of 16-bit results, or 32 of f32, are 16 lines of 128 bytes, a box that stmatrix (f32:
// 8-byte stores) writes to shared memory under the 128-byte swizzle and TMA takes to y. Two boxes take turns. No warp
// waits for another one, unless statistics are wanted (`moments`): then the four warps of a group meet after each box,
// and each reads a quarter of the columns of all four, 64 rows of what y will hold, before TMA's second turn on from
// there.
// Rows that do not lie side by side (the phases of a strided convolution) leave the box 16 bytes a lane. Where y
// forbids both (lines not a multiple of 16 bytes), lanes store their pairs themselves.

// Registers have no address, so on a GPU all of this is inlined into the kernel. On the emulator it is compiled once
// for all.
#ifdef WEFT_SIMT
#define WEFT_INLINE_ON_GPU
#else
#define WEFT_INLINE_ON_GPU __forceinline__
#endif

namespace weft::kernels::WEFT_DEVICE {

constexpr int kStagingBoxBytes = 16 * 128;

/// The two boxes of one warp, number `index` of warpgroup `group`; the boxes of the group's four warps lie side by
/// side.
class EpilogueWarp {
 public:
  __device__ EpilogueWarp(unsigned char* boxes, int lane, int index, int group)
      : boxes_(boxes), lane_(lane), index_(index), group_(group) {}
  __device__ int lane() const { return lane_; }
  __device__ int index() const { return index_; }

  /// The box that warp `i` of the group sent last, once all four have come here.
  __device__ __forceinline__ const unsigned char* sent(int i) const {
    return boxes_ + (2 * (i - index_) + (turn_ ^ 1)) * kStagingBoxBytes;
  }
  __device__ __forceinline__ void meet() const {
    __syncwarp();
    if (group_ == 0)  // numbers that the compiler sees: else the block would own all 16
      ptx::named_barrier_sync(1, 128);
    else
      ptx::named_barrier_sync(2, 128);
  }

  /// Writes one box with `fill(box)`, by all lanes, and sends it to column n, row m, slice z of the map.
  template <class Fill>
  __device__ __forceinline__ void send(const TensorMap& map, int n, int m, int z, Fill&& fill) {
    if (lane_ == 0) ptx::tma_store_wait_read<1>();  // the box was sent two turns ago
    __syncwarp();
    unsigned char* const box = boxes_ + turn_ * kStagingBoxBytes;
    fill(box);
    ptx::fence_proxy_async();
    __syncwarp();
    if (lane_ == 0) {
      ptx::tma_store(map, box, n, m, z);
      ptx::tma_store_commit();
    }
    turn_ ^= 1;
  }
  /// Writes one box with `fill(box)` and gives its lines of 8 runs of 16 bytes to take(line, run, value). Not together
  /// with send().
  template <class Fill, class Take>
  __device__ __forceinline__ void hand_out(Fill&& fill, Take&& take) {
    unsigned char* const box = boxes_ + turn_ * kStagingBoxBytes;
    fill(box);
    __syncwarp();
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int line = i * 4 + lane_ / 8, run = lane_ % 8;
      take(line, run, ptx::ld16(box + line * 128 + (run ^ (line & 7)) * 16));
    }
    turn_ ^= 1;  // the box is written again two turns later, after the next turn's __syncwarp
  }
  /// Before the block ends: TMA has read all boxes.
  __device__ void finish() const {
    if (lane_ == 0) ptx::tma_store_wait_read<0>();
  }

 private:
  unsigned char* boxes_;
  int lane_, index_, group_, turn_ = 0;
};

/// Rows of y that are pixels of images: row (n, y, x) of slice z is pixel (y stride_h + rows[z], x stride_w +
/// columns[z]) of image n, if it has that one.
struct ScatteredRows {
  static constexpr int kMostSlices = 4;
  Divider per_image, per_row;
  int stride_h, stride_w, height, width;
  int rows[kMostSlices], columns[kMostSlices];

  /// Its number among all pixels, or -1.
  __device__ int64_t pixel(int row, int z) const {
    const int n = per_image.split(row), y = per_row.split(row) * stride_h + rows[z], x = row * stride_w + columns[z];
    return y < height && x < width ? (static_cast<int64_t>(n) * height + y) * width + x : -1;
  }
};

struct NoScatteredRows {};

/// As Epilogue, for y [slices, inner, m, n] of any pitches; slice z of the launch is (z / inner, z mod inner).
template <class T, bool kScattered = false, bool kChannels = false>
struct WgmmaEpilogue {
  TensorMap y_map, pre_map;  ///< boxes of 16 rows x 128 bytes; only where `by_tma`
  Epilogue<T> to;
  int64_t pitch_z, pitch_inner, pitch_row;  ///< elements
  int inner;                                ///< 1 where by_tma
  int m, n;
  bool by_tma;
  bool pairs;  ///< every row begins at an even element, of memory aligned to two elements
  /// kScattered: where rows lie, each at a multiple of 16 bytes; pitch_z and pitch_inner do not count.
  std::conditional_t<kScattered, ScatteredRows, NoScatteredRows> scatter;

  /// Finds y's moments, if they are wanted and boxes hold it; then no share of the depth is left to add.
  void take(TileMoments* moments) {
    if (moments != nullptr && by_tma && !to.wide_y) moments->take(to, kMomentRows);
  }

  /// The constants of a lane's two of 64 columns.
  struct Columns {
    typename Epilogue<T>::Column own[2];
  };
  /// Of the columns from first_n: their loads take as long as a chunk's arithmetic, so they come a chunk ahead.
  __device__ __forceinline__ Columns columns(int lane, int first_n) const {
    Columns columns;
    to.template columns<kChannels>(first_n + 2 * lane, n - first_n - 2 * lane, columns.own);
    return columns;
  }

  /// Stores a warp's 16 rows from first_m, kN columns from first_n, of slice z. `at`: columns(lane, first_n). kDerives:
  /// `saved` may be given.
  template <int kN, bool kDerives>
  __device__ __forceinline__ void store(EpilogueWarp& warp, int first_m, int first_n, int z, Columns at,
                                        float (&sums)[kN / 2]) const {
    if (first_m >= m && (!kChannels || to.moments == nullptr)) return;
    // Not unrolled, so that this code exists once; the sums move up instead, since registers have no index.
    WEFT_UNROLL_BY(1)
    for (int column = 0; column < kN && first_n + column < n; column += 64) {
      float values[32];
      WEFT_UNROLL
      for (int i = 0; i < 32; ++i) values[i] = sums[i];
      apply(warp.lane(), at, values);
      at = columns(warp.lane(), first_n + column + 64);
      if (std::is_same_v<T, float> || to.wide_y)
        store_chunk<float, kDerives>(warp, first_m, first_n + column, z, values);
      else
        store_chunk<T, kDerives>(warp, first_m, first_n + column, z, values);
      if constexpr (kN > 64) {
        WEFT_UNROLL_BY(kN / 2)
        for (int i = 0; i < kN / 2 - 32; ++i) sums[i] = sums[i + 32];
      }
    }
  }

 private:
  template <class Y, bool kDerives>
  __device__ WEFT_INLINE_ON_GPU void store_chunk(EpilogueWarp& warp, int first_m, int first_n, int z,
                                                 float (&values)[32]) const {
    const int row = first_m + warp.lane() / 4, column = first_n + warp.lane() % 4 * 2;
    if (to.pre != nullptr) write(warp, pre_map, static_cast<Y*>(to.pre), first_m, first_n, z, values);
    if (kDerives && to.saved != nullptr)
      activate_backward(static_cast<const Y*>(to.saved), row, column, z, values);
    else
      activate_for<Y>(to.activation, values);
    if (to.residual != nullptr) add(static_cast<const Y*>(to.residual), row, column, z, values);
    if (to.accumulate) add(static_cast<const Y*>(to.y), row, column, z, values);
    if constexpr (kChannels) to.clip(values);
    write(warp, y_map, static_cast<Y*>(to.y), first_m, first_n, z, values, [&](int column_of_box) {
      if constexpr (kChannels && std::is_same_v<Y, T>)
        if (to.moments != nullptr) find_moments<Y>(warp, first_m, column_of_box);
    });
  }

  static constexpr int kMomentRows = 64;  ///< of four warps

  /// alpha, the bias and, where there is one, the norm. Each lane hands its columns' constants to those that hold their
  /// sums; all columns have one scale unless there is a norm.
  __device__ WEFT_INLINE_ON_GPU void apply(int lane, const Columns& columns, float (&values)[32]) const {
    bool by_norm = false;
    if constexpr (kChannels) by_norm = to.norm.var != nullptr;
    if (to.bias == nullptr && !by_norm) {
      WEFT_UNROLL
      for (float& value : values) value *= to.alpha;
      return;
    }
    WEFT_UNROLL
    for (int j = 0; j < 8; ++j) WEFT_UNROLL
    for (int side = 0; side < 2; ++side) {
      typename Epilogue<T>::Column of{to.alpha,
                                      __shfl_sync(0xffffffffu, columns.own[side].shift, 4 * j + lane % 4)};
      if (by_norm) of.scale = __shfl_sync(0xffffffffu, columns.own[side].scale, 4 * j + lane % 4);
      values[4 * j + side] = of(values[4 * j + side]);
      values[4 * j + 2 + side] = of(values[4 * j + 2 + side]);
    }
  }

  /// Of the boxes just sent, whose first column is first_n. A lane takes 4 bytes, two neighbouring columns (f32: one)
  /// of this warp's 8 lanes' worth, and the rows of one of the four boxes. Boxes begin at different lines, so that a
  /// warp's 32 reads meet 32 banks.
  template <class Y>
  __device__ WEFT_INLINE_ON_GPU void find_moments(const EpilogueWarp& warp, int first_m, int first_n) const {
    constexpr int kColumns = 4 / static_cast<int>(sizeof(Y));
    warp.meet();
    const int quarter = warp.lane() / 8, part = warp.lane() % 8, run = 2 * warp.index() + part / 4;
    const int chunk = first_m / kMomentRows, rows = min(m - chunk * kMomentRows, kMomentRows);
    const unsigned char* const box = warp.sent(quarter);
    // Read twice, since there are no registers left for 16 pairs beside a large tile's sums.
    const auto each = [&](auto&& visit) {
      WEFT_UNROLL_BY(2)
      for (int i = 0; i < 16; ++i) {
        const int line = (i + 2 * quarter) % 16;
        if (quarter * 16 + line >= rows) continue;
        const auto values = Vec<Y, kColumns>::load(
            reinterpret_cast<const Y*>(box + line * 128 + (run ^ (line & 7)) * 16 + part % 4 * 4));
        WEFT_UNROLL
        for (int c = 0; c < kColumns; ++c) visit(c, static_cast<float>(values[c]));
      }
    };
    const auto of_quarters = [](float value) {
      value += __shfl_xor_sync(0xffffffffu, value, 8);
      return value + __shfl_xor_sync(0xffffffffu, value, 16);
    };
    float mean[kColumns] = {}, m2[kColumns] = {};
    each([&](int c, float value) { mean[c] += value; });
    WEFT_UNROLL
    for (float& value : mean) value = of_quarters(value) / static_cast<float>(max(rows, 1));
    each([&](int c, float value) { m2[c] += (value - mean[c]) * (value - mean[c]); });
    WEFT_UNROLL
    for (float& value : m2) value = of_quarters(value);
    const int column = first_n + (8 * warp.index() + part) * kColumns;
    if (quarter != 0 || rows <= 0 || column >= n) return;
    float* const at = to.moments + static_cast<int64_t>(2 * chunk) * to.channels + column;
    WEFT_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      at[c] = mean[c];
      at[to.channels + c] = m2[c];
    }
  }

  /// Calls visit(pointer, columns left, index of the first value) for each of a lane's pairs of neighbours inside y.
  template <class Y, class Visit>
  __device__ __forceinline__ void each_pair(Y* base, int row, int column, int z, Visit&& visit) const {
    Y* const slice = kScattered ? base : base + (z / inner * pitch_z + z % inner * pitch_inner);
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      int64_t at_row = row + 8 * half;
      if (at_row >= m) continue;
      if constexpr (kScattered) {
        at_row = scatter.pixel(row + 8 * half, z);
        if (at_row < 0) continue;
      }
      Y* const line = slice + at_row * pitch_row;
      WEFT_UNROLL
      for (int j = 0; j < 8; ++j) {
        const int at = column + 8 * j;
        if (at < n) visit(line + at, n - at, 4 * j + 2 * half);
      }
    }
  }

  /// Calls visit(index of the value, element) for a lane's elements of a tensor that lies as y.
  template <class Y, class Visit>
  __device__ __forceinline__ void read(const Y* from, int row, int column, int z, Visit&& visit) const {
    each_pair(from, row, column, z, [&](const Y* pair, int left, int i) {
      if (pairs) {
        const auto both = Vec<Y, 2>::load(pair);
        visit(i, static_cast<float>(both[0]));
        visit(i + 1, static_cast<float>(both[1]));
      } else {
        visit(i, static_cast<float>(pair[0]));
        if (left > 1) visit(i + 1, static_cast<float>(pair[1]));
      }
    });
  }

  /// values *= f'(saved), each as soon as it is read: 32 more registers would spill.
  template <class Y>
  __device__ WEFT_INLINE_ON_GPU void activate_backward(const Y* saved, int row, int column, int z,
                                                       float (&values)[32]) const {
    const auto multiply = [&]<Unary f>() {
      read(saved, row, column, z, [&](int i, float at) {
        if constexpr (sizeof(Y) == 2 && f == Unary::gelu)
          values[i] *= short_gelu_slope(at);
        else
          values[i] = unary_gradient<f>(values[i], at, 0.0f, 0.0f);
      });
    };
    if (to.activation == Activation::relu)
      multiply.template operator()<Unary::relu>();
    else if (to.activation == Activation::gelu)
      multiply.template operator()<Unary::gelu>();
    else if (to.activation == Activation::gelu_tanh)
      multiply.template operator()<Unary::gelu_tanh>();
  }

  template <class Y>
  __device__ WEFT_INLINE_ON_GPU void add(const Y* from, int row, int column, int z, float (&values)[32]) const {
    read(from, row, column, z, [&](int i, float value) { values[i] += value; });
  }

  struct Nothing {
    __device__ void operator()(int) const {}
  };

  /// sent(column): after each box that goes to TMA; column is its first.
  template <class Y, class Sent = Nothing>
  __device__ WEFT_INLINE_ON_GPU void write(EpilogueWarp& warp, const TensorMap& map, Y* base, int first_m, int first_n,
                                           int z, const float (&values)[32], Sent&& sent = {}) const {
    const int lane = warp.lane();
    if constexpr (sizeof(Y) == 2) {
      const auto fill = [&](unsigned char* box) {
        const int line = lane % 16;  // lanes 0..15 name the rows of 8 columns, 16..31 those of the next 8
        WEFT_UNROLL
        for (int j = 0; j < 8; j += 2) {
          const uint32_t squares[4] = {
              ptx::pack<Y>(values[4 * j], values[4 * j + 1]), ptx::pack<Y>(values[4 * j + 2], values[4 * j + 3]),
              ptx::pack<Y>(values[4 * j + 4], values[4 * j + 5]), ptx::pack<Y>(values[4 * j + 6], values[4 * j + 7])};
          ptx::stmatrix_x4(box + line * 128 + ((j + lane / 16) ^ (line & 7)) * 16, squares);
        }
      };
      if constexpr (kScattered) {
        return warp.hand_out(fill, [&](int line, int run, uint4 eight) {
          const int64_t pixel = first_m + line < m && first_n + run * 8 < n ? scatter.pixel(first_m + line, z) : -1;
          if (pixel >= 0) ptx::st16(base + pixel * pitch_row + first_n + run * 8, eight);
        });
      }
      if (by_tma) {
        warp.send(map, first_n, first_m, z, fill);
        return sent(first_n);
      }
    }
    if (!by_tma) {
      each_pair(base, first_m + lane / 4, first_n + lane % 4 * 2, z, [&](Y* pair, int left, int i) {
        if (pairs) {
          Vec<Y, 2> both;
          both[0] = static_cast<Y>(values[i]);
          both[1] = static_cast<Y>(values[i + 1]);
          both.store(pair);
        } else {
          pair[0] = static_cast<Y>(values[i]);
          if (left > 1) pair[1] = static_cast<Y>(values[i + 1]);
        }
      });
    } else if constexpr (sizeof(Y) == 4) {
      WEFT_UNROLL
      for (int side = 0; side < 2; ++side) {
        if (first_n + 32 * side >= n) break;
        warp.send(map, first_n + 32 * side, first_m, z, [&](unsigned char* box) {
          WEFT_UNROLL
          for (int j = 0; j < 4; ++j) WEFT_UNROLL
          for (int half = 0; half < 2; ++half) {
            const int line = lane / 4 + 8 * half, run = 2 * j + lane % 4 / 2, i = 16 * side + 4 * j + 2 * half;
            Vec<float, 2> both;
            both[0] = values[i];
            both[1] = values[i + 1];
            both.store(reinterpret_cast<float*>(box + line * 128 + (run ^ (line & 7)) * 16 + lane % 2 * 8));
          }
        });
        sent(first_n + 32 * side);
      }
    }
  }
};

}  // namespace weft::kernels::WEFT_DEVICE

#undef WEFT_INLINE_ON_GPU
