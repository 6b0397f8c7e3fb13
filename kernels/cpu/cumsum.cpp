// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cumsum.h"

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

/// Sums of floating numbers are kept in f64, one row after another.
template <class Y, class T>
void scan(const View& y, const View& x, bool reverse) {
  using A = std::conditional_t<std::is_same_v<Y, int64_t>, int64_t, double>;
  const int64_t n = x.sizes[x.rank - 1], rows = n == 0 ? 0 : x.numel() / n;
  parallel_for(rows, n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row * n + (reverse ? n - 1 : 0), step = reverse ? -1 : 1;
      const T* in = x.as<T>() + first;
      Y* out = y.as<Y>() + first;
      A sum = 0;
      for (int64_t i = 0; i < n; ++i, in += step, out += step) {
        sum += static_cast<A>(*in);
        if constexpr (std::is_same_v<Y, int64_t> || std::is_same_v<Y, double>)
          *out = sum;
        else
          *out = static_cast<Y>(static_cast<float>(sum));
      }
    }
  });
}

}  // namespace

void cumsum(const Queue&, const View& y, const View& x, bool reverse) {
  WEFT_CHECK(x.rank >= 1 && y.same_sizes(x) && y.is_contiguous() && x.is_contiguous() &&
                 y.dtype == (is_floating(x.dtype) ? x.dtype : DType::i64),
             "cumsum: expected dense tensors of equal sizes, the sums of integers in i64, got ", y, " and ", x);
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(x.dtype, "cumsum", [&]<class T>() {
    scan<std::conditional_t<is_floating(dtype_of<T>), T, int64_t>, T>(y, x, reverse);
  });
}

}  // namespace weft::kernels::cpu
