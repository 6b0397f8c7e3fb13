// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/gemm/epilogue_boxes.cuh"
#include "kernels/cuda/gemm/epilogue_chunk.cuh"
#include "kernels/cuda/gemm/epilogue_moments.cuh"
#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/gemm/tile_moments.cuh"
#include "kernels/runtime/variants.h"

// The epilogue: from wgmma's accumulators to memory. A warp owns 16 rows of its warpgroup's 64, all columns of the
// tile; in each group of 8 columns lane l holds columns 2 (l mod 4) and the next, in rows l / 4 and l / 4 + 8. The warp
// walks over the columns in chunks: 64 columns of 16-bit results, or 32 of f32, are 16 lines of
// 128 bytes. Such a box is written to shared memory by stmatrix (f32: 8-byte stores) under the 128-byte swizzle, and
// stored to y by TMA. Each warp double-buffers its boxes and waits for no other warp. With batch statistics (`moments`)
// the warpgroup synchronises after each box; each warp then reads a quarter of the columns over all 64 rows, as y will
// hold them, before the buffer is reused.
//
// The auxiliary operand (`saved`, else the residual) is loaded by TMA through the main loop's pipeline stages
// (gemm_wgmma.cuh). Boxes of 64 rows x 128 bytes then go by ldmatrix to the lanes that hold the matching accumulators.
// If TMA cannot read the operand, lanes load it themselves, in pairs, 8 rows at a time.
//
// For a plain result (alpha, bias, norm, a residual by TMA, a last ReLU) the loop over chunks is unrolled: accumulators
// stay in registers. The general code is 30 times as long and exists once: accumulators move up to
// its registers before each iteration. If the rows of y are not contiguous (the phases of a strided convolution), each
// lane stores 16 bytes of a box at a time: a lane computes the offsets of its four lines of a band once, and chunks
// without a residual have their own loop. If the lines of y are not a multiple of 16 bytes, lanes store their pairs
// directly.

// Registers have no address, so all of this is inlined into the kernel.

namespace weft::kernels::cuda {

/// Rows of y that are pixels of images: row (n, y, x) of slice z is pixel (y stride_h + rows[z], x stride_w +
/// columns[z]) of image n, if inside the image.
struct ScatteredRows {
  static constexpr int kMostSlices = 4;
  Divider per_image, per_row;
  int stride_h, stride_w, height, width;
  int rows[kMostSlices], columns[kMostSlices];

  /// The index of a row's pixel among all images' pixels, or -1.
  __device__ int64_t pixel(int row, int z) const {
    const int n = per_image.split(row), y = per_row.split(row) * stride_h + rows[z], x = row * stride_w + columns[z];
    return y < height && x < width ? (static_cast<int64_t>(n) * height + y) * width + x : -1;
  }
};

struct NoScatteredRows {};

/// Like Epilogue, for y [slices, inner, m, n] of any pitches; slice z of the launch is (z / inner, z mod inner).
template <class T, bool kScattered = false, bool kChannels = false>
struct WgmmaEpilogue {
  TensorMap y_map, pre_map;  ///< boxes of 16 rows x 128 bytes; only if `by_tma`
  TensorMap auxiliary_map;   ///< the auxiliary operand, boxes of 64 rows x 128 bytes; only if `loads_auxiliary`
  Epilogue<T> to;
  int64_t pitch_z, pitch_inner, pitch_row;  ///< elements
  Divider inner;                            ///< 1 if by_tma
  int m, n;
  bool by_tma;
  bool loads_auxiliary;  ///< the producer loads `saved`, else the residual; nothing else is read, and y has type T
  bool pairs;            ///< every row begins at an even element, in memory aligned to two elements
  bool moments_by_loop;  ///< batch statistics without tensor cores
  /// kScattered: addresses of rows, multiples of 16 bytes; pitch_z and pitch_inner are unused.
  std::conditional_t<kScattered, ScatteredRows, NoScatteredRows> scatter;

  /// Requests y's batch statistics, if wanted and if y is stored by boxes of type T; the launch must then not be split
  /// along K.
  void take(TileMoments* moments) {
    if (moments == nullptr || !by_tma || to.wide_y) return;
    moments->take(to, kMomentRows);
    moments_by_loop = takes(Variant::looped_moments);
  }

  /// The per-column constants of a lane's two of 64 columns.
  struct Columns {
    typename Epilogue<T>::Column own[2];
  };
  /// Loads the constants of the columns from first_n. A load takes as long as a chunk's arithmetic, so callers load one
  /// chunk ahead.
  __device__ __forceinline__ Columns columns(int lane, int first_n) const {
    Columns columns;
    to.template columns<kChannels>(first_n + 2 * lane, n - first_n - 2 * lane, columns.own);
    return columns;
  }

  /// Prefetches into L2 the rows and columns that store() will read, two lanes per row. Called before the main loop,
  /// since store() issues its loads late.
  template <int kN>
  __device__ __forceinline__ void prefetch(int lane, int first_m, int first_n, int z) const {
    const int64_t size = to.wide_y ? 4 : static_cast<int64_t>(sizeof(T)), bytes = min(kN, n - first_n) * size;
    const auto ask = [&](const void* tensor) {
      const int64_t offset = tensor == nullptr ? -1 : offset_of(first_m + lane / 2, z);
      if (offset < 0) return;
      const char* const line = static_cast<const char*>(tensor) + (offset + first_n) * size;
      WEFT_UNROLL_BY(1)
      for (int64_t at = lane % 2 * 128; at < bytes; at += 256) ptx::prefetch_l2(line + at);
    };
    if (loads_auxiliary) return;
    ask(to.saved);
    ask(to.residual);
    ask(to.accumulate ? to.y : nullptr);
  }

  /// Combines the accumulators with the auxiliary operand that the producer loaded; they become y's values. Arguments
  /// as in store(). leave() releases the operand's stages. kEarly (ping-pong): leave() runs after half of the chunks,
  /// because the other consumer's loads wait for these stages; the remaining chunks are first copied to the warp's
  /// boxes.
  template <bool kDerives, bool kEarly, int kBands, int kHalf, class Leave>
  __device__ __forceinline__ void apply_auxiliary(EpilogueWarp& warp, int first_n, Columns at,
                                                  float (&sums)[kBands][kHalf], const AuxiliaryChunks& auxiliary,
                                                  Leave&& leave) const {
    constexpr int kAcross = kHalf / 32, kChunks = kBands * kAcross;
    const auto next = [&](int i) { return columns(warp.lane(), first_n + (i + 1) % kAcross * 64); };
    const auto lines = [&](int i) { return auxiliary.chunk(i) + warp.index() * kStagingBoxBytes; };
    constexpr int kFromStages = kEarly ? kChunks - 2 : kChunks;
    if constexpr (kEarly) {
      warp.wait_for_boxes();
      WEFT_UNROLL
      for (int i = 0; i < 2 * kStagingBoxBytes; i += 32 * 16) {
        const int at_lane = i % kStagingBoxBytes + warp.lane() * 16;
        ptx::st16(warp.boxes() + i / kStagingBoxBytes * kStagingBoxBytes + at_lane,
                  ptx::ld16(lines(kFromStages + i / kStagingBoxBytes) + at_lane));
      }
      __syncwarp();
    }
    const auto of_chunk = [&](int i) {
      return kEarly && i >= kFromStages ? warp.boxes() + (i - kFromStages) * kStagingBoxBytes : lines(i);
    };
    const auto after = [&](int i) {
      if (i == kFromStages - 1) leave();
    };
    if (kDerives && to.saved != nullptr) {
      WEFT_UNROLL_BY(1)  // not unrolled, as in store()
      for (int i = 0; i < kChunks; ++i) {
        float values[32];
        WEFT_UNROLL_BY(32)
        for (int j = 0; j < 32; ++j) values[j] = sums[0][j];
        move_up(sums);
        apply(warp.lane(), at, values);
        at = next(i);
        with_slope<T>(to.activation, [&](auto&& slope) { combine_loaded<T>(warp, of_chunk(i), values, slope); });
        after(i);
        WEFT_UNROLL_BY(32)
        for (int j = 0; j < 32; ++j) sums[kBands - 1][kHalf - 32 + j] = values[j];
      }
      return;
    }
    WEFT_UNROLL_BY(kChunks)
    for (int i = 0; i < kChunks; ++i) {
      auto& values = part<32>(sums[i / kAcross], i % kAcross * 32);
      apply(warp.lane(), at, values);
      at = next(i);
      combine_loaded<T>(warp, of_chunk(i), values, Plus{});
      after(i);
    }
  }

  /// Stores a warp's accumulators to slice z: kBands bands 64 rows apart, each 16 rows from first_m by 2 kHalf columns
  /// from first_n. `at`: columns(lane, first_n). kDerives: `saved` may be given. met: meet() has already computed y's
  /// values.
  template <bool kDerives, int kBands, int kHalf>
  __device__ __forceinline__ void store(EpilogueWarp& warp, int first_m, int first_n, int z, Columns at,
                                        float (&sums)[kBands][kHalf], bool met = false) const {
    constexpr int kAcross = kHalf / 32, kChunks = kBands * kAcross;
    const bool counts = kChannels && to.moments != nullptr;  // rows outside y still take part in the barrier
    if (first_m >= m && !counts) return;
    if constexpr (kScattered) {
      if (to.residual == nullptr) return scatter_sums(warp, first_m, first_n, z, sums);
    } else {
      if (met || is_plain()) {
        [[maybe_unused]] ColumnMoments<T> kept{};
        WEFT_UNROLL_BY(kChunks)
        for (int i = 0; i < kChunks; ++i) {
          const int row = first_m + i / kAcross * 64, column = first_n + i % kAcross * 64;
          if (row >= m && !counts) break;
          if (column >= n) {
            if (kBands == 1) break;
            at = columns(warp.lane(), first_n);
            continue;
          }
          float values[32];
          WEFT_UNROLL_BY(32)
          for (int j = 0; j < 32; ++j) values[j] = sums[i / kAcross][i % kAcross * 32 + j];
          if (!met) {
            apply(warp.lane(), at, values);
            at = columns(warp.lane(), first_n + (i + 1) % kAcross * 64);
          }
          if constexpr (kChannels) to.clip(values);
          if constexpr (kKeepsMoments) {
            send<T>(warp, y_map, row, column, z, values, Nothing{});
            if (counts) {
              const auto found = find_moments<T>(warp, rows_of_chunk(row), moments_by_loop);
              if (warp.lane() / 8 == i) kept = found;
            }
          } else {
            send<T>(warp, y_map, row, column, z, values, moments_of<T>(warp, row));
          }
        }
        if constexpr (kKeepsMoments) {
          static_assert(kChunks <= 4);
          if (const int i = warp.lane() / 8; counts && i < kChunks)
            store_moments<T>(warp, first_m + i / kAcross * 64, first_n + i % kAcross * 64, kept);
        }
        return;
      }
    }
    // Not unrolled, so that this code exists once. Registers have no index, so the accumulators move up instead.
    WEFT_UNROLL_BY(1)
    for (int i = 0; i < kChunks; ++i) {
      const int row = first_m + i / kAcross * 64, column = first_n + i % kAcross * 64;
      if (row >= m && !counts) break;
      if (column >= n) {
        if (kBands == 1) break;
        at = columns(warp.lane(), first_n);
        move_up(sums);
        continue;
      }
      float values[32];
      WEFT_UNROLL_BY(32)
      for (int j = 0; j < 32; ++j) values[j] = sums[0][j];
      move_up(sums);
      apply(warp.lane(), at, values);
      at = columns(warp.lane(), first_n + (i + 1) % kAcross * 64);
      if (std::is_same_v<T, float> || to.wide_y)
        store_chunk<float, kDerives>(warp, row, column, z, values);
      else
        store_chunk<T, kDerives>(warp, row, column, z, values);
    }
  }

 private:
  /// Moves the accumulators of each chunk to the registers of the chunk before.
  template <int kBands, int kHalf>
  static __device__ __forceinline__ void move_up(float (&sums)[kBands][kHalf]) {
    if constexpr (kBands * kHalf > 32) {
      WEFT_UNROLL
      for (int band = 0; band < kBands; ++band) {
        WEFT_UNROLL_BY(kHalf)
        for (int j = 0; j < kHalf - 32; ++j) sums[band][j] = sums[band][j + 32];
        if (band + 1 < kBands) {
          WEFT_UNROLL_BY(32)
          for (int j = 0; j < 32; ++j) sums[band][kHalf - 32 + j] = sums[band + 1 < kBands ? band + 1 : 0][j];
        }
      }
    }
  }

  /// store() to scattered rows, for accumulators that need no epilogue arithmetic.
  template <int kBands, int kHalf>
  __device__ __forceinline__ void scatter_sums(EpilogueWarp& warp, int first_m, int first_n, int z,
                                               const float (&sums)[kBands][kHalf]) const {
    WEFT_UNROLL_BY(kBands)
    for (int band = 0; band < kBands; ++band) {
      if (first_m + band * 64 >= m) return;
      int64_t offsets[4];
      WEFT_UNROLL
      for (int i = 0; i < 4; ++i) offsets[i] = offset_of(first_m + band * 64 + warp.line(i), z);
      WEFT_UNROLL_BY(kHalf / 32)
      for (int across = 0; across < kHalf / 32; ++across) {
        const int column = first_n + across * 64;
        if (column >= n) break;
        float values[32];
        WEFT_UNROLL_BY(32)
        for (int j = 0; j < 32; ++j) values[j] = sums[band][across * 32 + j];
        warp.hand_out([&](unsigned char* box) { fill_box<T>(box, warp.lane(), values); },
                      [&](int i, int run, uint4 eight) {
                        if (offsets[i] >= 0 && column + run * 8 < n)
                          ptx::st16(static_cast<T*>(to.y) + offsets[i] + column + run * 8, eight);
                      });
      }
    }
  }

  /// Whether TMA stores y as T after `apply` and at most a last ReLU.
  __device__ __forceinline__ bool is_plain() const {
    return by_tma && (std::is_same_v<T, float> || !to.wide_y) && to.activation == Activation::none &&
           to.pre == nullptr && to.saved == nullptr && to.residual == nullptr && !to.accumulate;
  }

  template <class Y, bool kDerives>
  __device__ __forceinline__ void store_chunk(EpilogueWarp& warp, int first_m, int first_n, int z,
                                              float (&values)[32]) const {
    if (to.pre != nullptr) write(warp, pre_map, static_cast<Y*>(to.pre), first_m, first_n, z, values);
    if (kDerives && to.saved != nullptr)
      with_slope<Y>(to.activation, [&](auto&& slope) {
        combine_read(warp, static_cast<const Y*>(to.saved), first_m, first_n, z, values, slope);
      });
    else
      activate_for<Y>(to.activation, values);
    const auto add = [&](const void* tensor) {
      combine_read(warp, static_cast<const Y*>(tensor), first_m, first_n, z, values, Plus{});
    };
    if (to.residual != nullptr) add(to.residual);
    if (to.accumulate) add(to.y);
    if constexpr (kChannels) to.clip(values);
    write(warp, y_map, static_cast<Y*>(to.y), first_m, first_n, z, values, moments_of<Y>(warp, first_m));
  }

  /// The callback after each box of y: computes and stores the batch statistics, if wanted.
  template <class Y>
  __device__ __forceinline__ auto moments_of(const EpilogueWarp& warp, int first_m) const {
    return [&warp, first_m, this](int column) {
      if constexpr (kChannels && std::is_same_v<Y, T>)
        if (to.moments != nullptr) {
          const auto found = find_moments<Y>(warp, rows_of_chunk(first_m), moments_by_loop);
          if (warp.lane() < 8) store_moments<Y>(warp, first_m, column, found);
        }
    };
  }
  /// Groups of eight lanes hold equal statistics of a box of 64 columns. So the plain path keeps the statistics of up
  /// to four boxes in registers and stores them after the last box: the fence before each TMA store (MEMBAR) would wait
  /// for earlier global stores.
  static constexpr bool kKeepsMoments = kChannels && sizeof(T) == 2;

  /// Applies alpha, the bias and the norm, if any. Shuffles pass each column's constants to the lanes that hold its
  /// accumulators; without a norm all columns have the same scale.
  __device__ __forceinline__ void apply(int lane, const Columns& columns, float (&values)[32]) const {
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
      typename Epilogue<T>::Column of{to.alpha, __shfl_sync(0xffffffffu, columns.own[side].shift, 4 * j + lane % 4)};
      if (by_norm) of.scale = __shfl_sync(0xffffffffu, columns.own[side].scale, 4 * j + lane % 4);
      values[4 * j + side] = of(values[4 * j + side]);
      values[4 * j + 2 + side] = of(values[4 * j + 2 + side]);
    }
  }

  __device__ __forceinline__ int rows_of_chunk(int first_m) const {
    return min(m - first_m / kMomentRows * kMomentRows, kMomentRows);
  }

  /// Stores a lane's statistics of the box whose first column is first_n.
  template <class Y>
  __device__ __forceinline__ void store_moments(const EpilogueWarp& warp, int first_m, int first_n,
                                                const ColumnMoments<Y>& moments) const {
    const int column = first_n + moment_column<Y>(warp);
    if (rows_of_chunk(first_m) <= 0 || column >= n) return;
    float* const at = to.moments + static_cast<int64_t>(2 * (first_m / kMomentRows)) * to.channels + column;
    WEFT_UNROLL
    for (int c = 0; c < ColumnMoments<Y>::kColumns; ++c) {
      at[c] = moments.mean[c];
      at[to.channels + c] = moments.m2[c];
    }
  }

  /// The offset in elements of row `row` of slice z in y; -1 if y has no such row.
  __device__ __forceinline__ int64_t offset_of(int row, int z) const {
    if (row >= m) return -1;
    if constexpr (kScattered) {
      const int64_t pixel = scatter.pixel(row, z);
      return pixel < 0 ? -1 : pixel * pitch_row;
    } else {
      const int outer = inner.split(z);
      return outer * pitch_z + z * pitch_inner + row * pitch_row;
    }
  }

  /// Calls visit(pointer, columns left, index of the first value) for each of a lane's pairs of neighbours inside y.
  template <class Y, class Visit>
  __device__ __forceinline__ void each_pair(Y* base, int row, int column, int z, Visit&& visit) const {
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t offset = offset_of(row + 8 * half, z);
      if (offset < 0) continue;
      Y* const line = base + offset;
      WEFT_UNROLL
      for (int j = 0; j < 8; ++j) {
        const int at = column + 8 * j;
        if (at < n) visit(line + at, n - at, 4 * j + 2 * half);
      }
    }
  }

  /// Calls f(values, elements) for a lane's elements of a tensor with y's layout, read from global memory in pairs or
  /// single elements. Each is used as soon as it is loaded: 32 more registers would spill.
  template <class Y, class F>
  __device__ __forceinline__ void combine_read(const EpilogueWarp& warp, const Y* tensor, int first_m, int first_n,
                                               int z, float (&values)[32], F&& f) const {
    const int lane = warp.lane();
    each_pair(tensor, first_m + lane / 4, first_n + lane % 4 * 2, z, [&](const Y* pair, int left, int i) {
      if (pairs) {
        const auto both = Vec<Y, 2>::load(pair);
        const float elements[2] = {from<float>(both[0]), from<float>(both[1])};
        f(part<2>(values, i), elements);
      } else {
        const float first[1] = {from<float>(pair[0])};
        f(part<1>(values, i), first);
        if (left < 2) return;
        const float second[1] = {from<float>(pair[1])};
        f(part<1>(values, i + 1), second);
      }
    });
  }
  struct Nothing {
    __device__ void operator()(int) const {}
  };

  /// Stores one chunk. sent(column) is called after each box that TMA stores; column is its first.
  template <class Y, class Sent = Nothing>
  __device__ __forceinline__ void write(EpilogueWarp& warp, const TensorMap& map, Y* base, int first_m, int first_n,
                                        int z, const float (&values)[32], Sent&& sent = {}) const {
    const int lane = warp.lane();
    if constexpr (kScattered && sizeof(Y) == 2) {
      const auto take = [&](int i, int run, uint4 eight) {
        const int64_t offset = first_n + run * 8 < n ? offset_of(first_m + warp.line(i), z) : -1;
        if (offset >= 0) ptx::st16(base + offset + first_n + run * 8, eight);
      };
      return warp.hand_out([&](unsigned char* box) { fill_box<Y>(box, lane, values); }, take);
    }
    if (by_tma) return send<Y>(warp, map, first_m, first_n, z, values, sent);
    const auto store_pair = [&](Y* pair, int left, int i) {
      Vec<Y, 2> both;
      both[0] = cuda::to<Y>(values[i]);
      both[1] = cuda::to<Y>(values[i + 1]);
      if (pairs) {
        both.store(pair);
      } else {
        pair[0] = both[0];
        if (left > 1) pair[1] = both[1];
      }
    };
    each_pair(base, first_m + lane / 4, first_n + lane % 4 * 2, z, store_pair);
  }

  /// As above if TMA stores y.
  template <class Y, class Sent>
  __device__ __forceinline__ void send(EpilogueWarp& warp, const TensorMap& map, int first_m, int first_n, int z,
                                       const float (&values)[32], Sent&& sent) const {
    if constexpr (sizeof(Y) == 2) {
      warp.send(map, first_n, first_m, z, [&](unsigned char* box) { fill_box<Y>(box, warp.lane(), values); });
      sent(first_n);
    } else {
      WEFT_UNROLL
      for (int side = 0; side < 2; ++side) {
        if (first_n + 32 * side >= n) break;
        warp.send(map, first_n + 32 * side, first_m, z,
                  [&](unsigned char* box) { fill_wide_box(box, warp.lane(), side, values); });
        sent(first_n + 32 * side);
      }
    }
  }
};

}  // namespace weft::kernels::cuda
