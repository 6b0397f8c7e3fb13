// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm/gemm_wgmma_launch.cuh"
#include "kernels/cuda/gemm/matmul_problem.cuh"

namespace weft::kernels::cuda {

/// a and b of a matmul as a source of gemm_wgmma.cuh. Slice z is a batch element or, with split-K, a slice of the only
/// batch element.
template <class T, ptx::Along along_a, ptx::Along along_b>
struct MatmulSource {
  static constexpr bool kScattered = false;
  static constexpr bool kChannels = along_a == ptx::Along::depth && along_b == ptx::Along::depth;  // a 1x1 convolution
  static constexpr bool kDerives = true;  // linear_backward_input
  static constexpr bool kAuxiliary = sizeof(T) == 2 && along_a == ptx::Along::depth;
  /// Weight gradients of 1x1 convolutions may have few filters or channels.
  static constexpr bool kTall = along_a == ptx::Along::rows && along_b == ptx::Along::rows, kBroad = kTall;
  static constexpr ptx::Along kAlongA = along_a, kAlongB = along_b;

  TensorMap a, b;        ///< [batch, lines, along], boxes of WgmmaBoxRows x 128 bytes
  int batch_a, batch_b;  ///< 1, or 0 if one matrix serves all slices
  int steps, share;      ///< steps of kWgmmaDepth<T> k: in total, and per slice

  struct Range {
    int begin, end;
  };
  __device__ Range range(int z) const {
    if (share == steps) return {0, steps};
    return {z * share, min(steps, (z + 1) * share)};
  }

  struct Tile {
    const MatmulSource& source;
    int first_m, first_n, z_a, z_b;

    __device__ __forceinline__ void load_a(void* chunk, ptx::Barrier* full, int i, int step) const {
      const int row = first_m + i * kChunkRows, k = step * kWgmmaDepth<T>;
      if constexpr (along_a == ptx::Along::depth)
        ptx::tma_load(chunk, source.a, full, k, row, z_a);
      else
        ptx::tma_load(chunk, source.a, full, row, k, z_a);
    }
    __device__ __forceinline__ void load_b(void* chunk, ptx::Barrier* full, int i, int step, uint16_t blocks) const {
      const int row = first_n + i * kChunkRows, k = step * kWgmmaDepth<T>;
      const int x = along_b == ptx::Along::depth ? k : row, y = along_b == ptx::Along::depth ? row : k;
      if (blocks == 0)
        ptx::tma_load(chunk, source.b, full, x, y, z_b);
      else
        ptx::tma_load_multicast(chunk, source.b, full, blocks, x, y, z_b);
    }
  };
  __device__ Tile tile(int first_m, int first_n, int z) const {
    return {*this, first_m, first_n, z * batch_a, z * batch_b};
  }

  __device__ void prefetch() const {
    ptx::prefetch_tensor_map(a);
    ptx::prefetch_tensor_map(b);
  }
};

/// A source for ping-pong tiles, whose epilogue only has registers for the plain paths, and for cluster split-K tiles.
template <class T, ptx::Along along_a, ptx::Along along_b>
struct PlainSource : MatmulSource<T, along_a, along_b> {
  static constexpr bool kChannels = false, kPlain = true;
};

/// A source with sums of a's rows: see RowSumsProblem.
template <class T>
struct RowSumsSource : MatmulSource<T, ptx::Along::rows, ptx::Along::rows> {
  static constexpr bool kTall = false, kBroad = false;
  Epilogue<T> row_sums;
  int m;
};

/// Whether TMA can read the view's matrices: lines along `along_dim` that begin at multiples of 16 bytes.
inline bool fits_tma(const View& view, int along_dim) {
  const int line_dim = 3 - along_dim;
  const auto whole = [&](int64_t stride) {
    return stride > 0 && stride * static_cast<int64_t>(size_of(view.dtype)) % 16 == 0;
  };
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.strides[along_dim] == 1 &&
         (view.sizes[line_dim] == 1 || whole(view.strides[line_dim])) &&
         (view.sizes[0] == 1 || view.strides[0] == 0 || whole(view.strides[0]));
}

inline TensorMap operand_map(const View& view, int along_dim, int box_lines) {
  const int line_dim = 3 - along_dim;
  const int64_t along = view.sizes[along_dim], lines = view.sizes[line_dim];
  const int64_t size = static_cast<int64_t>(size_of(view.dtype)), run = 16 / size;
  const int64_t pitch = lines == 1 ? (along + run - 1) / run * run : view.strides[line_dim];
  const bool one = view.sizes[0] == 1 || view.strides[0] == 0;
  return tiled_map("matmul", {view.data,
                              view.dtype,
                              3,
                              {along, lines, one ? 1 : view.sizes[0]},
                              {size * pitch, size * (one ? pitch * lines : view.strides[0])},
                              {wgmma_depth(view.dtype), box_lines, 1},
                              Swizzle::bytes128,
                              view.dtype == DType::f32});
}

template <class T, ptx::Along along_a, ptx::Along along_b, class Source>
void matmul_wgmma_from(const Queue& queue, const MatmulCall& call, const WgmmaPlan& plan) {
  const View &y = call.y, &a = call.a, &b = call.b;
  const int64_t batch = y.sizes[0], m = y.sizes[1], n = y.sizes[2], k = a.sizes[2];
  const int64_t steps = (k + kWgmmaDepth<T> - 1) / kWgmmaDepth<T>;
  WgmmaGemm<T, Source> gemm{};
  const WgmmaBoxRows box(plan, along_a, along_b);
  gemm.source.a = operand_map(a, along_a == ptx::Along::depth ? 2 : 1, box.a);
  gemm.source.b = operand_map(b, along_b == ptx::Along::depth ? 1 : 2, box.b);
  gemm.source.batch_a = batch > 1 && a.strides[0] != 0;
  gemm.source.batch_b = batch > 1 && b.strides[0] != 0;
  gemm.source.steps = static_cast<int>(steps);
  gemm.source.share = plan.share;
  const Epilogue<T> epilogue = matmul_epilogue<T>(call);
  if constexpr (kSumsRows<Source>) {
    gemm.source.row_sums = row_sums_epilogue<T>(call);
    gemm.source.m = static_cast<int>(m);
  }
  if (plan.splits == 1) {
    gemm.epilogue = wgmma_epilogue<T, Source::kChannels>("matmul", epilogue, m, n, batch, y.strides[0], y_pitch(y));
    if (call.channels) gemm.epilogue.take(call.channels->moments);
    launch_wgmma(queue, "matmul_sm90", plan, gemm, m, n, batch);
    return;
  }
  const int64_t rows = kSumsRows<Source> ? m : 0;
  const Workspace partial(queue, plan.splits * (m * n + rows) * sizeof(float), "matmul");
  SplitVector<T> beside;
  if constexpr (kSumsRows<Source>) {
    float* const sums = partial.as<float>() + plan.splits * m * n;
    gemm.source.row_sums = {sums, nullptr, 1, true, false, false, false};
    beside = {row_sums_epilogue<T>(call), sums, static_cast<int>(m)};
  }
  gemm.epilogue = wgmma_epilogue<T, Source::kChannels>("matmul", partial_sums_epilogue<T>(partial.data(), n), m, n,
                                                       plan.splits, m * n);
  launch_wgmma(queue, "matmul_sm90", plan, gemm, m, n, plan.splits);
  split_sum<T>(queue, "matmul_split_sum", epilogue, partial.as<float>(), m * n, n, plan.splits, beside, y_pitch(y));
}

template <class T>
WgmmaPlan plan_of(const MatmulCall& call, WgmmaMay may = {}) {
  const int64_t batch = call.y.sizes[0], steps = (call.a.sizes[2] + kWgmmaDepth<T> - 1) / kWgmmaDepth<T>;
  may.split = batch == 1;
  return wgmma_plan(call.y.sizes[1], call.y.sizes[2], steps, batch, may);
}

template <class T, ptx::Along along_a, ptx::Along along_b>
void matmul_wgmma_as(const Queue& queue, const MatmulCall& call) {
  using Source = MatmulSource<T, along_a, along_b>;
  const bool plain = !call.channels;
  const WgmmaMay may{
      .be_tall = Source::kTall, .be_broad = Source::kBroad, .ping_pong = plain, .cluster_split_k = plain};
  const WgmmaPlan plan = plan_of<T>(call, may);
  if (plan.tile == WgmmaPlan::Tile::ping_pong || plan.tile == WgmmaPlan::Tile::cluster_split_k)
    matmul_wgmma_from<T, along_a, along_b, PlainSource<T, along_a, along_b>>(queue, call, plan);
  else
    matmul_wgmma_from<T, along_a, along_b, Source>(queue, call, plan);
}

/// The body of row_sums_matmul_wgmma.
template <class T>
bool row_sums_matmul_wgmma_by_tma(const Queue& queue, const MatmulCall& call) {
  if (!has_wgmma(queue) || call.a.sizes[2] == 0 || !fits_tma(call.a, 1) || !fits_tma(call.b, 2)) return false;
  matmul_wgmma_from<T, ptx::Along::rows, ptx::Along::rows, RowSumsSource<T>>(queue, call, plan_of<T>(call));
  return true;
}

/// The body of matmul_wgmma.
template <class T>
bool matmul_wgmma_by_layout(const Queue& queue, const MatmulCall& call) {
  const View &a = call.a, &b = call.b;
  const bool a_along_k = a.strides[2] == 1, b_along_k = b.strides[1] == 1 && b.strides[2] != 1;
  if (!has_wgmma(queue) || a.sizes[2] == 0 || !fits_tma(a, a_along_k ? 2 : 1) || !fits_tma(b, b_along_k ? 1 : 2))
    return false;
  using ptx::Along;
  if (a_along_k && b_along_k)
    matmul_wgmma_as<T, Along::depth, Along::depth>(queue, call);
  else if constexpr (sizeof(T) == 4)
    return false;  // wgmma cannot read tf32 along its rows
  else if (a_along_k)
    matmul_wgmma_as<T, Along::depth, Along::rows>(queue, call);
  else if (b_along_k)
    matmul_wgmma_as<T, Along::rows, Along::depth>(queue, call);
  else
    matmul_wgmma_as<T, Along::rows, Along::rows>(queue, call);
  return true;
}

}  // namespace weft::kernels::cuda
