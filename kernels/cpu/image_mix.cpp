// SPDX-License-Identifier: Apache-2.0
#include "kernels/image_mix.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {

void image_mix(const Queue&, const View& y, const View& x, ImageMixArguments a) {
  check_image_mix(y, x, a);
  const int64_t N = x.sizes[0], H = x.sizes[1], row_size = x.sizes[2] * x.sizes[3];
  const int64_t begin_of_box = a.left * x.sizes[3], end_of_box = a.right * x.sizes[3];
  with_dtype<float, double, bf16, f16>(x.dtype, "image_mix", [&]<class T>() {
    using S = Accumulate<T>;
    const S own = static_cast<S>(a.own), other = static_cast<S>(1 - a.own);
    const T* in = x.as<T>();
    T* out = y.as<T>();
    parallel_for(N * H, 2 * row_size, [&](int64_t begin, int64_t end) {
      for (int64_t np = begin; np < end; ++np) {
        const int64_t n = np / H, p = np % H;
        const T* row = in + np * row_size;
        const T* before = in + ((n == 0 ? N - 1 : n - 1) * H + p) * row_size;
        T* to = out + np * row_size;
        if (p < a.top || p >= a.bottom) {
          std::copy(row, row + row_size, to);
          continue;
        }
        std::copy(row, row + begin_of_box, to);
        if (a.own == 0)
          std::copy(before + begin_of_box, before + end_of_box, to + begin_of_box);
        else
          for (int64_t e = begin_of_box; e < end_of_box; ++e)
            to[e] = static_cast<T>(std::fma(other, static_cast<S>(before[e]), own * static_cast<S>(row[e])));
        std::copy(row + end_of_box, row + row_size, to + end_of_box);
      }
    });
  });
}

}  // namespace weft::kernels::cpu
