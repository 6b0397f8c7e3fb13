// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/bf16_planes.cuh"

#include <optional>
#include <utility>

#include "kernels/contracts/reduce.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/gemm/matmul_problem.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/f32_products.h"

// f32 products on tensor cores (Henry, Tang and Heinecke 2019, "Leveraging the bfloat16 artificial intelligence
// datatype for higher-precision computations"). The planes are written once, and the bf16 GEMM reads them as one long
// k. Small terms come first, while the accumulators are small.
//
// Grid: one dimension, 256 threads per block. A thread owns runs of 8 neighbours of a line: two loads of 16 bytes where
//   lines begin at multiples of that, and a store of 16 bytes per term.
// Cost: 4 bytes read and 2 bytes per term written for each element. Roofline: the memory bandwidth.

namespace weft::kernels::cuda {

template <>
void matmul_of<bf16>(const Queue&, const MatmulCall&);

namespace {

constexpr int kThreads = 256, kRun = 8, kMostTerms = 6;

/// Which plane of a (or b) is in each term, the smallest terms first.
template <int terms, bool is_b>
__host__ __device__ constexpr int plane_of(int term) {
  static_assert(terms == 3 || terms == 6);
  constexpr int kThree[2][3] = {{1, 0, 0}, {0, 1, 0}}, kSix[2][6] = {{2, 0, 1, 1, 0, 0}, {0, 2, 1, 0, 1, 0}};
  if constexpr (terms == 3)
    return kThree[is_b][term];
  else
    return kSix[is_b][term];
}

/// Lines of `along` dense elements. Term t of element i of line l is element l to_pitch + t step + i. Lines and elements
/// beyond the matrix are zeros, so that all terms are as long.
struct PlanesCopy {
  const float* from;
  bf16* to;
  int64_t from_batch, from_pitch, to_batch, to_pitch, step;
  int64_t lines, along, to_lines, runs;  ///< runs of a line
  bool aligned;
};

template <int terms, bool is_b>
__global__ void planes_kernel(const PlanesCopy copy, int64_t count) {
  constexpr int kPlanes = terms == 3 ? 2 : 3;
  constexpr float kLargest[] = {0x1.fep127f, 0x1.fep119f, 0x1.fep111f};  // planes whose sum is the largest f32
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < count; unit += stride) {
    const int64_t row = unit / copy.runs, first = (unit - row * copy.runs) * kRun;
    const int64_t batch = row / copy.to_lines, line = row - batch * copy.to_lines;
    const float* const from = copy.from + batch * copy.from_batch + line * copy.from_pitch + first;
    Vec<float, kRun> values{};
    if (line < copy.lines && copy.aligned && first + kRun <= copy.along) {
      values = Vec<float, kRun>::load(from);
    } else if (line < copy.lines) {
#pragma unroll
      for (int i = 0; i < kRun; ++i)
        if (first + i < copy.along) values[i] = from[i];
    }
    Vec<bf16, kRun> planes[kPlanes];
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const bool finite = isfinite(values[i]);
      float rest = values[i];
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        const float limited = finite ? fminf(fmaxf(rest, -kLargest[p]), kLargest[p]) : rest;
        planes[p][i] = to<bf16>(limited);
        rest = finite ? rest - weft::kernels::cuda::from<float>(planes[p][i]) : 0;
      }
    }
    bf16* const line_out = copy.to + batch * copy.to_batch + line * copy.to_pitch + first;
#pragma unroll
    for (int t = 0; t < terms; ++t) planes[plane_of<terms, is_b>(t)].store(line_out + t * copy.step);
  }
}

int64_t padded(int64_t size) { return (size + kRun - 1) / kRun * kRun; }

/// The planes of an operand: a [B, M, K] or b [B, K, N].
template <int terms, bool is_b>
class Planes {
 public:
  Planes(const Queue& queue, const View& matrix) : view_(matrix) {
    constexpr int kDepth = is_b ? 1 : 2;  // the dimension of k
    // A single k may have any stride; there are more rows and columns than one.
    const bool along_k = matrix.strides[kDepth] == 1 || matrix.sizes[kDepth] == 1;
    const int along_dim = along_k ? kDepth : 3 - kDepth, line_dim = 3 - along_dim;
    const int64_t batch = matrix.strides[0] == 0 ? 1 : matrix.sizes[0];
    const int64_t lines = matrix.sizes[line_dim], to_lines = along_k ? lines : padded(lines);
    const int64_t along = matrix.sizes[along_dim], width = padded(along);
    const int64_t pitch = along_k ? width * terms : width, numel = to_lines * width * terms;
    memory_.emplace(queue, static_cast<size_t>(batch * numel) * sizeof(bf16), "bf16 planes");
    view_.data = memory_->data();
    view_.dtype = DType::bf16;
    view_.sizes[kDepth] = padded(matrix.sizes[kDepth]) * terms;
    view_.strides[along_dim] = 1;
    view_.strides[line_dim] = pitch;
    view_.strides[0] = matrix.strides[0] == 0 ? 0 : numel;
    const auto* const from = static_cast<const float*>(matrix.data);
    const bool aligned = reinterpret_cast<uintptr_t>(from) % 16 == 0 && matrix.strides[line_dim] % 4 == 0 &&
                         matrix.strides[0] % 4 == 0;
    const PlanesCopy copy{.from = from,
                          .to = memory_->as<bf16>(),
                          .from_batch = matrix.strides[0],
                          .from_pitch = matrix.strides[line_dim],
                          .to_batch = numel,
                          .to_pitch = pitch,
                          .step = along_k ? width : to_lines * width,
                          .lines = lines,
                          .along = along,
                          .to_lines = to_lines,
                          .runs = width / kRun,
                          .aligned = aligned};
    const int64_t count = batch * to_lines * copy.runs;
    launch(queue, "bf16_planes", blocks_for(count, kThreads), kThreads, 0, &planes_kernel<terms, is_b>, copy, count);
  }
  const View& view() const { return view_; }

 private:
  View view_;
  std::optional<Workspace> memory_;
};

template <int terms>
void run_terms(const Queue& queue, MatmulCall call) {
  const Planes<terms, false> a(queue, call.a);
  const Planes<terms, true> b(queue, call.b);
  call.a = a.view();
  call.b = b.view();
  matmul_of<bf16>(queue, call);
}

}  // namespace

bool runs_by_planes(const MatmulCall& call) {
  if (call.a.dtype != DType::f32 || call.channels) return false;
  const F32Products how = f32_products();
  return (how == F32Products::split3 || how == F32Products::split6) && call.y.sizes[1] >= kPlanesLeast &&
         call.y.sizes[2] >= kPlanesLeast && call.a.sizes[2] > 0 &&
         padded(call.a.sizes[2]) < (int64_t{1} << 31) / kMostTerms;
}

void matmul_by_planes(const Queue& queue, MatmulCall call) {
  if (const View sums = std::exchange(call.row_sums, View{}); sums) {
    View dy = call.a;  // its rows are a's columns
    dy.rank = 2;
    dy.sizes = {call.a.sizes[2], call.a.sizes[1]};
    dy.strides = {call.a.strides[2], call.a.strides[1]};
    reduce(queue, Reduce::sum, View::dense(sums.data, sums.dtype, {1, sums.sizes[0]}), dy);
  }
  f32_products() == F32Products::split3 ? run_terms<3>(queue, call) : run_terms<6>(queue, call);
}

}  // namespace weft::kernels::cuda
