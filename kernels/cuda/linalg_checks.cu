// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/linalg_checks.h"

#include "kernels/cuda/launch.cuh"

// Two kernels visit each element once, in a grid-stride loop: 80% of the bandwidth. The others have a block per matrix,
// which reads n numbers.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

/// The place of element `at` of dense matrices.
struct Element {
  int64_t matrix, row, column;
  __device__ Element(int64_t at, int64_t rows, int64_t columns) : matrix(at / (rows * columns)) {
    const int64_t within = at - matrix * rows * columns;
    row = within / columns;
    column = within - row * columns;
  }
  __device__ bool is_in(MatrixPart part) const {
    return part == MatrixPart::all || (part == MatrixPart::lower ? column <= row : column >= row);
  }
};

template <class T>
__global__ void find_not_finite_kernel(int32_t* wrong, const T* x, const int64_t n, const int64_t rows,
                                       const int64_t columns, const MatrixPart part) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    if (isfinite(x[i])) continue;
    const Element element(i, rows, columns);
    if (element.is_in(part)) atomicExch(wrong + element.matrix, 1);
  }
}

template <class T>
__global__ void keep_part_kernel(T* x, const int64_t n, const int64_t rows, const int64_t columns,
                                 const MatrixPart part) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    if (!Element(i, rows, columns).is_in(part)) x[i] = T(0);
}

/// Grid: a block per matrix. The largest n - i is the first i.
template <class T>
__global__ void find_zero_on_diagonal_kernel(int32_t* zero, const T* x, const int64_t n) {
  __shared__ int32_t after;
  if (threadIdx.x == 0) after = 0;
  __syncthreads();
  const T* const matrix = x + blockIdx.x * n * n;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    if (matrix[i * n + i] == T(0)) atomicMax(&after, static_cast<int32_t>(n - i));
  __syncthreads();
  if (threadIdx.x == 0 && after > 0) zero[blockIdx.x] = static_cast<int32_t>(n - after + 1);
}

/// Grid: a block per matrix.
template <class T>
__global__ void parity_kernel(T* parity, const int64_t* pivots, const int64_t n) {
  int exchanges = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) exchanges += pivots[blockIdx.x * n + i] != i + 1;
  const int odd = __syncthreads_count(exchanges % 2);
  if (threadIdx.x == 0) parity[blockIdx.x] = odd % 2 == 0 ? T(1) : T(-1);
}

unsigned block_per_matrix(const View& x) {
  WEFT_CHECK(x.sizes[0] <= INT32_MAX, "linalg: expected at most 2^31 - 1 matrices, got ", x);
  return static_cast<unsigned>(x.sizes[0]);
}

}  // namespace

void find_not_finite(const Queue& queue, int32_t* wrong, const View& x, MatrixPart part) {
  with_dtype<float, double>(x.dtype, "linalg", [&]<class T>() {
    launch(queue, "linalg (finite?)", dim3(blocks_for(x.numel(), kThreads)), dim3(kThreads), 0,
           &find_not_finite_kernel<T>, wrong, static_cast<const T*>(x.data), x.numel(), x.sizes[1], x.sizes[2], part);
  });
}

void keep_part(const Queue& queue, const View& x, MatrixPart part) {
  with_dtype<float, double>(x.dtype, "linalg", [&]<class T>() {
    launch(queue, "linalg (triangle)", dim3(blocks_for(x.numel(), kThreads)), dim3(kThreads), 0, &keep_part_kernel<T>,
           static_cast<T*>(x.data), x.numel(), x.sizes[1], x.sizes[2], part);
  });
}

void find_zero_on_diagonal(const Queue& queue, int32_t* zero, const View& x) {
  with_dtype<float, double>(x.dtype, "linalg", [&]<class T>() {
    launch(queue, "linalg (diagonal)", dim3(block_per_matrix(x)), dim3(kThreads), 0, &find_zero_on_diagonal_kernel<T>,
           zero, static_cast<const T*>(x.data), x.sizes[1]);
  });
}

void parity_of_pivots(const Queue& queue, const View& parity, const int64_t* pivots, int64_t n) {
  with_dtype<float, double>(parity.dtype, "linalg", [&]<class T>() {
    launch(queue, "linalg (parity)", dim3(block_per_matrix(parity)), dim3(kThreads), 0, &parity_kernel<T>,
           static_cast<T*>(parity.data), pivots, n);
  });
}

}  // namespace weft::kernels::cuda
