// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fp8.h"

#include <algorithm>
#include <bit>

#include "kernels/contracts/matmul.h"
#include "kernels/cpu/elements.h"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::cpu {
namespace {

/// The codes' numbers over the scale, f32 [1, rows, columns].
View numbers_of(const View& codes, Fp8 format, float scale, void* memory) {
  const int64_t rows = codes.sizes[0], columns = codes.sizes[1];
  const View numbers = View::dense(memory, DType::f32, {1, rows, columns});
  float values[256];
  for (int code = 0; code < 256; ++code) values[code] = from_fp8(format, static_cast<uint8_t>(code)) / scale;
  parallel_for(rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const uint8_t* const from = static_cast<const uint8_t*>(element(codes, r * codes.strides[0]));
      float* const to = numbers.as<float>() + r * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] = values[from[c]];
    }
  });
  return numbers;
}

View as_batch(View matrix, bool transposed = false) {
  const int64_t rows = matrix.sizes[0], columns = matrix.sizes[1];
  matrix.rank = 3;
  matrix.sizes = {1, transposed ? columns : rows, transposed ? rows : columns};
  matrix.strides = {rows * columns, transposed ? 1 : columns, transposed ? columns : 1};
  return matrix;
}

}  // namespace

void fp8_quantize(const Queue&, const View& y, const View& y_t, const View& amax, const View& x, const View& scale,
                  Fp8 format) {
  check_fp8_quantize(y, y_t, amax, x, scale);
  const int64_t rows = x.sizes[0], columns = x.sizes[1];
  // A block of rows and its part of y_t stay in a core's cache.
  constexpr int64_t kRows = 32, kColumns = 256;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  uint32_t largest = 0;  // bits of magnitudes are ordered as these are, NaN last
  const float factor = scale ? *scale.as<float>() : 1;
  const auto block = [&](int64_t index) {
    uint32_t most = 0;
    float values[kColumns];
    for (int64_t first = 0; first < columns; first += kColumns) {
      const int64_t count = std::min(kColumns, columns - first);
      for (int64_t r = index * kRows; r < std::min(rows, (index + 1) * kRows); ++r) {
        load(values, {element(x, r * x.strides[0] + first), x.dtype, 1}, count);
        for (int64_t c = 0; c < count; ++c) {
          most = std::max(most, std::bit_cast<uint32_t>(values[c]) & 0x7fffffffu);
          if (!y && !y_t) continue;
          const uint8_t code = to_fp8(format, values[c] * factor);
          if (y) static_cast<uint8_t*>(y.data)[r * y.strides[0] + first + c] = code;
          if (y_t) static_cast<uint8_t*>(y_t.data)[(first + c) * y_t.strides[0] + r] = code;
        }
      }
    }
    return most;
  };
#pragma omp parallel for reduction(max : largest) num_threads(threads_for(blocks, kRows* columns))
  for (int64_t i = 0; i < blocks; ++i) largest = std::max(largest, block(i));
  if (!amax) return;
  float& kept = *amax.as<float>();
  kept = std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(kept), largest));
}

void fp8_update_scale(const Queue&, const View& scale, const View& amaxes, const View& latest,
                      Fp8ScaleArguments arguments) {
  check_fp8_update_scale(scale, amaxes, latest, arguments);
  const int64_t n = scale.sizes[0], history = amaxes.sizes[1];
  for (int64_t i = 0; i < n; ++i) {
    float* const row = amaxes.as<float>() + i * history;
    if (latest) {
      float& newest = latest.as<float>()[i];
      std::copy_backward(row, row + history - 1, row + history);
      row[0] = std::bit_cast<uint32_t>(newest) < 0x7f800000u ? newest : 0;
      newest = 0;
    }
    const float most = *std::max_element(row, row + history);
    scale.as<float>()[i] =
        most > 0 ? fp8_scale(i < n - arguments.gradients ? Fp8::e4m3 : Fp8::e5m2, most, arguments.margin) : 1;
  }
}

void fp8_matmul(const Queue& queue, const View& y, const View& pre, const View& a, const View& b, const View& bias,
                const View& a_scale, const View& b_scale, Fp8MatmulArguments arguments) {
  check_fp8_matmul(y, pre, a, b, bias, a_scale, b_scale);
  if (y.numel() == 0) return;
  const Workspace memory(queue, static_cast<size_t>(std::max<int64_t>(a.numel() + b.numel(), 1)) * sizeof(float),
                         "fp8_matmul");
  const View left = numbers_of(a, arguments.a, *a_scale.as<float>(), memory.data());
  const View right = numbers_of(b, Fp8::e4m3, *b_scale.as<float>(), memory.as<float>() + a.numel());
  matmul_fused(queue, as_batch(y), pre ? as_batch(pre) : pre, left,
               as_batch(View::dense(right.data, DType::f32, {b.sizes[0], b.sizes[1]}), true), bias, View::none(),
               {.activation = arguments.activation});
}

}  // namespace weft::kernels::cpu
