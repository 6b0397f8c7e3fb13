// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fp8.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/gemm/fp8_call.cuh"
#include "kernels/cuda/gemm/matmul_call.cuh"
#include "kernels/cuda/ptx/ptx_fp8.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/runtime/allocator.h"

// fp8_quantize: one block of 256 threads per tile of 128 x 128 elements, read once and written twice: to y and
// transposed to y_t.
//
//   a thread, twice: 4 rows x 8 columns  --cvt-->  2 words a row, to y: 16 lanes write 128 bytes of a row
//                                        --prmt--> 8 words of 4 rows a column, to shared memory
//   then 16 lanes write the 128 bytes of a column to y_t
//
// Shared: uint32_t[128 columns][32 words of 4 rows]. Word g of column c is at g ^ 2 (c / 8): a warp's 32 stores, to 16
// columns 8 apart and 2 neighbouring words, hit 32 banks, and pairs of words stay adjacent for the loads. Bytes per
// element: 2 (bf16) or 4 (f32) read, 1 + 1 written. The largest magnitude is a maximum of bits: shuffles, 8 words of
// shared memory, one atomic per block; the result does not depend on the order. 85% of the bandwidth.
//
// fp8_update_scale: one warp per row of the history.

namespace weft::kernels::cuda {

namespace {

constexpr int kTile = 128, kThreads = 256, kRun = 8, kWords = kTile / 4;

struct QuantizeCall {
  int64_t rows, columns, x_pitch, y_pitch, t_pitch;
  int tiles_across;
  bool vector;  ///< whole segments of 8 elements on 16-byte boundaries (f32: two accesses of 16 bytes)
  uint8_t *y, *y_t;
  unsigned* amax;
  const float* scale;
};

/// Transposes 4 x 4 bytes: four rows of one word each become four columns.
__device__ __forceinline__ void turn(const uint32_t (&row)[4], uint32_t (&column)[4]) {
  const uint32_t left01 = __byte_perm(row[0], row[1], 0x5140), left23 = __byte_perm(row[2], row[3], 0x5140);
  const uint32_t right01 = __byte_perm(row[0], row[1], 0x7362), right23 = __byte_perm(row[2], row[3], 0x7362);
  column[0] = __byte_perm(left01, left23, 0x5410);
  column[1] = __byte_perm(left01, left23, 0x7632);
  column[2] = __byte_perm(right01, right23, 0x5410);
  column[3] = __byte_perm(right01, right23, 0x7632);
}

template <class T, Fp8 format>
__global__ void __launch_bounds__(kThreads) fp8_quantize_kernel(const QuantizeCall call, const T* x) {
  __shared__ uint2 turned[kTile][kWords / 2];
  __shared__ unsigned of_warps[kThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, run = lane % 16;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x / call.tiles_across) * kTile;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x % call.tiles_across) * kTile;
  const int64_t column = first_column + run * kRun;
  const int64_t left = call.columns - column;  // may be 0 or less
  const float scale = call.scale != nullptr ? *call.scale : 1.0f;
  unsigned most = 0;
  WEFT_UNROLL
  for (int pass = 0; pass < 2; ++pass) {
    const int word = (pass * (kThreads / 32) + warp) * 2 + lane / 16;
    Vec<T, kRun> lines[4];  // all loads before the first store
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t row = first_row + word * 4 + i;
      const T* const from_x = x + row * call.x_pitch + column;
      if (call.vector && row < call.rows && left > 0) {
        lines[i] = Vec<T, kRun>::load(from_x);
      } else {
        WEFT_UNROLL
        for (int e = 0; e < kRun; ++e) lines[i][e] = row < call.rows && e < left ? from_x[e] : to<T>(0.0f);
      }
    }
    uint32_t codes[kRun / 4][4];
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t row = first_row + word * 4 + i;
      float values[kRun];
      WEFT_UNROLL
      for (int e = 0; e < kRun; ++e) {
        values[e] = from<float>(lines[i][e]);
        most = max(most, __float_as_uint(values[e]) & 0x7fffffffu);
      }
      WEFT_UNROLL
      for (int half = 0; half < kRun / 4; ++half) {
        const float* const four = values + 4 * half;
        codes[half][i] = ptx::to_fp8_pair<format>(four[0] * scale, four[1] * scale) |
                         ptx::to_fp8_pair<format>(four[2] * scale, four[3] * scale) << 16;
      }
      if (call.y != nullptr && row < call.rows && left > 0) {
        Vec<uint32_t, 2> both;
        both[0] = codes[0][i];
        both[1] = codes[1][i];
        both.store(reinterpret_cast<uint32_t*>(call.y + row * call.y_pitch + column));
      }
    }
    WEFT_UNROLL
    for (int half = 0; half < kRun / 4; ++half) {
      uint32_t columns[4];
      turn(codes[half], columns);
      WEFT_UNROLL
      for (int j = 0; j < 4; ++j) {
        uint32_t* const line = reinterpret_cast<uint32_t*>(turned[run * kRun + half * 4 + j]);
        line[word ^ (2 * run)] = columns[j];
      }
    }
  }
  WEFT_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, distance));
  if (lane == 0) of_warps[warp] = most;
  __syncthreads();
  if (call.amax != nullptr && thread == 0) {
    for (int i = 1; i < kThreads / 32; ++i) most = max(most, of_warps[i]);
    atomicMax(call.amax, most);
  }
  if (call.y_t == nullptr) return;
  WEFT_UNROLL
  for (int i = 0; i < kTile * (kWords / 2) / kThreads; ++i) {
    const int c = i * (kThreads / 16) + thread / 16, pair = thread % 16;
    const int64_t row = first_row + pair * kRun;
    if (first_column + c >= call.columns || row >= call.rows) continue;
    const uint2 words = turned[c][pair ^ (c / kRun)];
    *reinterpret_cast<uint2*>(call.y_t + (first_column + c) * call.t_pitch + row) = words;
  }
}

__global__ void fp8_update_scale_kernel(float* scale, float* amaxes, float* latest, int history, int first_gradient,
                                        int margin) {
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(blockIdx.x);
  float* const entries = amaxes + static_cast<int64_t>(row) * history;
  float most = 0;
  if (latest == nullptr) {
    for (int i = lane; i < history; i += 32) most = fmaxf(most, entries[i]);
  } else {
    for (int first = (history - 1) / 32 * 32; first >= 0; first -= 32) {  // backwards: reads precede overwriting
      const int i = first + lane;
      const float entry = i + 1 < history ? entries[i] : 0;
      most = fmaxf(most, entry);
      __syncwarp();
      if (i + 1 < history) entries[i + 1] = entry;
      __syncwarp();
    }
    if (lane == 0) {
      const float newest = latest[row];
      const float kept = __float_as_uint(newest) < 0x7f800000u ? newest : 0.0f;
      entries[0] = kept;
      most = fmaxf(most, kept);
      latest[row] = 0;
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, distance));
  if (lane == 0) scale[row] = most > 0 ? fp8_scale(row < first_gradient ? Fp8::e4m3 : Fp8::e5m2, most, margin) : 1.0f;
}

/// For devices without wgmma: decodes to bf16 and divides by the scale; bf16 holds the results exactly. One thread per
/// element.
__global__ void fp8_numbers_kernel(bf16* numbers, const uint8_t* codes, int64_t pitch, int64_t rows, int64_t columns,
                                   const float* scale, Fp8 format) {
  const float unit = 1.0f / *scale;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * columns; i += stride) {
    const int64_t row = i / columns;
    numbers[i] = to<bf16>(from_fp8(format, codes[row * pitch + i - row * columns]) * unit);
  }
}

View numbers_of(const Queue& queue, const View& codes, Fp8 format, const View& scale, void* memory) {
  const int64_t rows = codes.sizes[0], columns = codes.sizes[1];
  launch(queue, "fp8_matmul (numbers)", dim3(blocks_for(rows * columns, kThreads)), dim3(kThreads), 0,
         &fp8_numbers_kernel, static_cast<bf16*>(memory), static_cast<const uint8_t*>(codes.data), codes.strides[0],
         rows, columns, static_cast<const float*>(scale.data), format);
  return View::dense(memory, DType::bf16, {1, rows, columns});
}

View as_batch(const View& matrix) {
  View view = matrix;
  view.rank = 3;
  view.sizes = {1, matrix.sizes[0], matrix.sizes[1]};
  view.strides = {matrix.sizes[0] * matrix.sizes[1], matrix.sizes[1], 1};
  return view;
}

}  // namespace

void fp8_quantize(const Queue& queue, const View& y, const View& y_t, const View& amax, const View& x,
                  const View& scale, Fp8 format) {
  check_fp8_quantize(y, y_t, amax, x, scale);
  const int64_t rows = x.sizes[0], columns = x.sizes[1], tiles_across = (columns + kTile - 1) / kTile;
  const int64_t tiles = (rows + kTile - 1) / kTile * tiles_across;
  WEFT_CHECK(tiles < int64_t{1} << 31, "fp8_quantize: expected less than 2^31 tiles of 128 x 128, got ", x);
  const int64_t pitch = rows == 1 ? columns : x.strides[0];
  with_dtype<float, bf16>(x.dtype, "fp8_quantize", [&]<class T>() {
    const bool vector = reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && columns % kRun == 0 && pitch % kRun == 0;
    const QuantizeCall call{rows,
                            columns,
                            pitch,
                            y.strides[0],
                            y_t.strides[0],
                            static_cast<int>(tiles_across),
                            vector,
                            static_cast<uint8_t*>(y.data),
                            static_cast<uint8_t*>(y_t.data),
                            static_cast<unsigned*>(amax.data),
                            static_cast<const float*>(scale.data)};
    launch(queue, "fp8_quantize", dim3(static_cast<unsigned>(tiles)), dim3(kThreads), 0,
           format == Fp8::e4m3 ? &fp8_quantize_kernel<T, Fp8::e4m3> : &fp8_quantize_kernel<T, Fp8::e5m2>, call,
           static_cast<const T*>(x.data));
  });
}

void fp8_update_scale(const Queue& queue, const View& scale, const View& amaxes, const View& latest,
                      Fp8ScaleArguments arguments) {
  check_fp8_update_scale(scale, amaxes, latest, arguments);
  const int64_t n = scale.sizes[0];
  launch(queue, "fp8_update_scale", dim3(static_cast<unsigned>(n)), dim3(32), 0, &fp8_update_scale_kernel,
         static_cast<float*>(scale.data), static_cast<float*>(amaxes.data), static_cast<float*>(latest.data),
         static_cast<int>(amaxes.sizes[1]), static_cast<int>(n - arguments.gradients), arguments.margin);
}

void fp8_matmul(const Queue& queue, const View& y, const View& pre, const View& a, const View& b, const View& bias,
                const View& a_scale, const View& b_scale, Fp8MatmulArguments arguments) {
  check_fp8_matmul(y, pre, a, b, bias, a_scale, b_scale);
  if (y.numel() == 0) return;
  if (fp8_matmul_wgmma(queue, {y, pre, a, b, bias, a_scale, b_scale, arguments})) return;
  const Workspace memory(queue, static_cast<size_t>(std::max<int64_t>(a.numel() + b.numel(), 1)) * sizeof(bf16),
                         "fp8_matmul");
  MatmulCall call{};
  call.y = as_batch(y);
  call.a = numbers_of(queue, a, arguments.a, a_scale, memory.data());
  call.bias = bias;
  call.b = numbers_of(queue, b, Fp8::e4m3, b_scale, memory.as<bf16>() + a.numel());
  std::swap(call.b.sizes[1], call.b.sizes[2]);
  std::swap(call.b.strides[1], call.b.strides[2]);
  if (pre) call.pre = as_batch(pre);
  call.activation = arguments.activation;
  own_matmul(queue, "fp8_matmul", call);
}

}  // namespace weft::kernels::cuda
