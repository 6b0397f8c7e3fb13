// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fill.h"

#include "kernels/cpu/elements.h"

namespace weft::kernels::cpu {

void fill(const Queue&, const View& y, Number value) {
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(y.dtype, "fill", [&]<class T>() {
    T filling;
    if constexpr (std::is_same_v<T, bool>)
      filling = static_cast<bool>(value);
    else if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      filling = T(static_cast<float>(value));
    else
      filling = static_cast<T>(value);
    const Nest<1> nest({&y});
    const int64_t stride = nest.inner_strides()[0];
    parallel_for(nest.total, 1, [&](int64_t begin, int64_t end) {
      nest.walk(begin, end, [&](const auto& offset, int64_t n) {
        T* out = static_cast<T*>(y.data) + offset[0];
        if (stride == 1) {
          std::fill_n(out, n, filling);
        } else {
          for (int64_t i = 0; i < n; ++i) out[i * stride] = filling;
        }
      });
    });
  });
}

void arange(const Queue&, const View& y, Number start, Number step) {
  WEFT_CHECK(y.is_contiguous(), "arange: expected a contiguous y");
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t>(y.dtype, "arange", [&]<class T>() {
    T* out = static_cast<T*>(y.data);
    using Value = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const auto first = static_cast<Value>(start), by = static_cast<Value>(step);
    parallel_for(y.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Value value = first + static_cast<Value>(i) * by;
        if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
          out[i] = static_cast<T>(value);
        else
          out[i] = T(static_cast<float>(value));
      }
    });
  });
}

}  // namespace weft::kernels::cpu
