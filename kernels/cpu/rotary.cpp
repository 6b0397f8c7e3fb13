// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/rotary.h"

#include <cmath>

#include "kernels/cpu/elements.h"

namespace weft::kernels::cpu {

void rotary(const Queue&, const View& y, const View& x, const RotaryArguments& arguments) {
  check_rotary(y, x);
  const int64_t B = x.sizes[0], T = x.sizes[1], H = x.sizes[2], D = x.sizes[3], half = D / 2;
  with_compute_type(x.dtype, [&]<class C>() {
    if constexpr (std::is_same_v<C, int64_t>) {
      fail("rotary: expected a floating dtype, got ", x.dtype);
    } else {
      parallel_for(T, B * H * D, [&](int64_t begin, int64_t end) {
        C cosine[kMostRotaryPairs], sine[kMostRotaryPairs], in[2 * kMostRotaryPairs], out[2 * kMostRotaryPairs];
        for (int64_t t = begin; t < end; ++t) {
          for (int64_t i = 0; i < half; ++i) {
            const C angle = static_cast<C>(arguments.first + t) * static_cast<C>(arguments.frequencies[i]);
            cosine[i] = static_cast<C>(arguments.scale) * std::cos(angle);
            sine[i] = static_cast<C>(arguments.back ? -arguments.scale : arguments.scale) * std::sin(angle);
          }
          for (int64_t b = 0; b < B; ++b)
            for (int64_t h = 0; h < H; ++h) {
              const int64_t from = b * x.strides[0] + t * x.strides[1] + h * x.strides[2];
              const C* const row = elements<C>({element(x, from), x.dtype, 1}, D, in);
#pragma omp simd
              for (int64_t i = 0; i < half; ++i) {
                out[i] = row[i] * cosine[i] - row[i + half] * sine[i];
                out[i + half] = row[i + half] * cosine[i] + row[i] * sine[i];
              }
              store({element(y, ((b * T + t) * H + h) * D), y.dtype, 1}, out, D);
            }
        }
      });
    }
  });
}

}  // namespace weft::kernels::cpu
