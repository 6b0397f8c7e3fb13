// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cumsum.h"

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

/// Sums of floating numbers are kept in f64. Rows go side by side, since each sum waits for the one before.
template <class Y, class T>
void scan(const View& y, const View& x, bool reverse) {
  using A = std::conditional_t<std::is_same_v<Y, int64_t>, int64_t, double>;
  constexpr int64_t kRows = 4;
  const int64_t n = x.sizes[x.rank - 1], rows = n == 0 ? 0 : x.numel() / n;
  const auto some = [&]<int64_t kCount>(int64_t row) {
    const int64_t first = row * n + (reverse ? n - 1 : 0), step = reverse ? -1 : 1;
    const T* in = x.as<T>() + first;
    Y* out = y.as<Y>() + first;
    A sums[kCount] = {};
    for (int64_t i = 0; i < n; ++i, in += step, out += step)
      for (int64_t r = 0; r < kCount; ++r) {
        sums[r] += static_cast<A>(in[r * n]);
        if constexpr (std::is_same_v<Y, A>)
          out[r * n] = sums[r];
        else
          out[r * n] = static_cast<Y>(static_cast<float>(sums[r]));
      }
  };
  parallel_for(rows, n, [&](int64_t begin, int64_t end) {
    for (; begin + kRows <= end; begin += kRows) some.template operator()<kRows>(begin);
    for (; begin < end; ++begin) some.template operator()<1>(begin);
  });
}

}  // namespace

void cumsum(const Queue&, const View& y, const View& x, bool reverse) {
  check_cumsum(y, x);
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(x.dtype, "cumsum", [&]<class T>() {
    if constexpr (!is_floating(dtype_of<T>))
      scan<int64_t, T>(y, x, reverse);
    else if (y.dtype == DType::f64)
      scan<double, T>(y, x, reverse);
    else
      scan<T, T>(y, x, reverse);
  });
}

}  // namespace weft::kernels::cpu
