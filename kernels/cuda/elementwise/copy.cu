// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/copy.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/with_bits.h"

// copy has four paths, each with a read and a write per element:
// 1. Same dtype: elementwise.cuh on raw bits (four kernels for all dtypes). 90% of the bandwidth when contiguous.
// 2. Same dtype, y contiguous along one dimension and x along another: a tiled transpose.
//      grid: x = tiles of 32 columns times outer dimensions, y = tiles of 32 rows; block: 32 x 8 threads
//      shared: T[32][33], one tile; padding to 33 puts the elements of a column into different banks
//      thread (i, j) reads x at tile (row i, columns j, j + 8, …), writes y at (row j, …, column i). 80% of the
//      bandwidth.
// 3. The pairs of dtypes that training uses (f32 with bf16 and f16; u8, bool, i64 to f32; f64 with f32):
//      elementwise.cuh with the conversion as functor. 90% of the bandwidth.
// 4. Any other pair: one thread per element, both dtypes selected at run time.

namespace weft::kernels::cuda {

namespace {

template <class To, class T>
struct Convert {
  __device__ To operator()(T x) const {
    if constexpr (std::is_same_v<To, T>)
      return x;
    else
      return to<To>(from<Compute<T>>(x));
  }
};

constexpr int kTile = 32, kTileRows = 8;

/// A tile dimension pair (x dense along `a`, y along `b`) and the outer dimensions around them.
struct Transpose {
  int64_t a_size, b_size, x_stride_b, y_stride_a;
  int64_t a_tiles;
  int rank;
  int64_t size[kMaxRank], x_stride[kMaxRank], y_stride[kMaxRank];
};

template <class T>
__global__ void transpose_kernel(T* y, const T* x, const Transpose shape) {
  __shared__ T tile[kTile][kTile + 1];
  int64_t outer = blockIdx.x / shape.a_tiles;
  const int64_t a0 = (blockIdx.x - outer * shape.a_tiles) * kTile;
  int64_t x_at = 0, y_at = 0;
  for (int d = 0; d < shape.rank; ++d) {
    const int64_t next = outer / shape.size[d], at = outer - next * shape.size[d];
    x_at += at * shape.x_stride[d];
    y_at += at * shape.y_stride[d];
    outer = next;
  }
  const int lane = threadIdx.x, first = threadIdx.y;
  const int64_t b_tiles = (shape.b_size + kTile - 1) / kTile;
  for (int64_t b_tile = blockIdx.y; b_tile < b_tiles; b_tile += gridDim.y) {
    const int64_t b0 = b_tile * kTile;
    for (int j = first; j < kTile; j += kTileRows)
      if (a0 + lane < shape.a_size && b0 + j < shape.b_size)
        tile[j][lane] = x[x_at + a0 + lane + (b0 + j) * shape.x_stride_b];
    __syncthreads();
    for (int j = first; j < kTile; j += kTileRows)
      if (a0 + j < shape.a_size && b0 + lane < shape.b_size)
        y[y_at + b0 + lane + (a0 + j) * shape.y_stride_a] = tile[lane][j];
    __syncthreads();
  }
}

/// Whether x is dense along an outer dimension that is large enough for tiles; fills `shape`.
bool is_transpose(const Layout<2>& layout, Transpose& shape) {
  if (layout.inner_stride[0] != 1 || layout.inner_stride[1] == 1 || layout.inner < 8) return false;
  int a = 0;
  while (a < layout.rank && layout.stride[1][a] != 1) ++a;
  if (a == layout.rank || layout.size[a] < 8) return false;
  shape.b_size = layout.inner;
  shape.x_stride_b = layout.inner_stride[1];
  shape.a_size = layout.size[a];
  shape.y_stride_a = layout.stride[0][a];
  shape.a_tiles = (shape.a_size + kTile - 1) / kTile;
  shape.rank = 0;
  for (int d = 0; d < layout.rank; ++d) {
    if (d == a) continue;
    shape.size[shape.rank] = layout.size[d];
    shape.x_stride[shape.rank] = layout.stride[1][d];
    shape.y_stride[shape.rank++] = layout.stride[0][d];
  }
  return shape.a_tiles * (layout.outer / shape.a_size) < (int64_t{1} << 31);
}

template <class Bits>
void copy_bits(const Queue& queue, const View& y, const View& x) {
  const Layout<2> layout = collapse<2>("copy", {&y, &x});
  Transpose shape;
  if (layout.outer * layout.inner > 0 && is_transpose(layout, shape)) {
    const int64_t b_tiles = (shape.b_size + kTile - 1) / kTile;
    const dim3 grid(static_cast<unsigned>(shape.a_tiles * (layout.outer / shape.a_size)),
                    static_cast<unsigned>(std::min<int64_t>(b_tiles, 65535)));
    return launch(queue, "copy (transpose)", grid, dim3(kTile, kTileRows), 0, &transpose_kernel<Bits>,
                  static_cast<Bits*>(y.data), static_cast<const Bits*>(x.data), shape);
  }
  elementwise<Bits, Bits>(queue, "copy", Convert<Bits, Bits>{}, y, x);
}

template <class To, class T>
bool convert(const Queue& queue, const View& y, const View& x) {
  if (y.dtype != dtype_of<To> || x.dtype != dtype_of<T>) return false;
  elementwise<To, T>(queue, "copy", Convert<To, T>{}, y, x);
  return true;
}

template <class To, class From>
__device__ void store_element(void* y, int64_t at, From value) {
  static_cast<To*>(y)[at] = to<To>(value);
}

template <class From>
__device__ void store_any(void* y, DType dtype, int64_t at, From value) {
  switch (dtype) {
    case DType::f32:
      return store_element<float>(y, at, value);
    case DType::f64:
      return store_element<double>(y, at, value);
    case DType::bf16:
      return store_element<bf16>(y, at, value);
    case DType::f16:
      return store_element<f16>(y, at, value);
    case DType::i64:
      return store_element<int64_t>(y, at, value);
    case DType::i32:
      return store_element<int32_t>(y, at, value);
    case DType::u8:
      return store_element<uint8_t>(y, at, value);
    case DType::boolean:
      return store_element<bool>(y, at, value);
  }
}

template <class T>
__device__ void convert_element(void* y, DType to_dtype, int64_t y_at, const void* x, int64_t x_at) {
  store_any(y, to_dtype, y_at, from<Compute<T>>(static_cast<const T*>(x)[x_at]));
}

__global__ void convert_any_kernel(void* y, const DType to_dtype, const void* x, const DType from_dtype,
                                   const Layout<2> layout) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, n = layout.inner * layout.outer;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    int64_t row = i / layout.inner;
    const int64_t column = i - row * layout.inner;
    int64_t y_at = column * layout.inner_stride[0], x_at = column * layout.inner_stride[1];
    for (int d = 0; d < layout.rank; ++d) {
      const int64_t next = row / layout.size[d], at = row - next * layout.size[d];
      y_at += at * layout.stride[0][d];
      x_at += at * layout.stride[1][d];
      row = next;
    }
    switch (from_dtype) {
      case DType::f32:
        convert_element<float>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::f64:
        convert_element<double>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::bf16:
        convert_element<bf16>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::f16:
        convert_element<f16>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::i64:
        convert_element<int64_t>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::i32:
        convert_element<int32_t>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::u8:
        convert_element<uint8_t>(y, to_dtype, y_at, x, x_at);
        break;
      case DType::boolean:
        convert_element<bool>(y, to_dtype, y_at, x, x_at);
        break;
    }
  }
}

void convert_any(const Queue& queue, const View& y, const View& x) {
  const Layout<2> layout = collapse<2>("copy", {&y, &x});
  const int64_t n = layout.inner * layout.outer;
  launch(queue, "copy", dim3(blocks_for(n, kElementwiseThreads)), dim3(kElementwiseThreads), 0, &convert_any_kernel,
         y.data, y.dtype, static_cast<const void*>(x.data), x.dtype, layout);
}

}  // namespace

void copy(const Queue& queue, const View& y, const View& x) {
  if (y.dtype == x.dtype) return with_bits(y.dtype, [&]<class Bits>() { copy_bits<Bits>(queue, y, x); });
  const bool done =
      convert<bf16, float>(queue, y, x) || convert<float, bf16>(queue, y, x) || convert<f16, float>(queue, y, x) ||
      convert<float, f16>(queue, y, x) || convert<float, double>(queue, y, x) || convert<double, float>(queue, y, x) ||
      convert<float, uint8_t>(queue, y, x) || convert<float, bool>(queue, y, x) || convert<float, int64_t>(queue, y, x);
  if (!done) convert_any(queue, y, x);
}

}  // namespace weft::kernels::cuda
