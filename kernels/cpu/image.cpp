// SPDX-License-Identifier: Apache-2.0
#include "kernels/image.h"

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {

void image_normalize(const Queue&, const View& y, const View& x, const View& crop, ImageNormalizeArguments arguments) {
  WEFT_CHECK(y.rank == 4 && x.rank == 4 && y.sizes[0] == x.sizes[0] && y.sizes[3] == x.sizes[3] && x.sizes[3] <= 4 &&
                 x.is_contiguous() && y.is_contiguous(),
             "image_normalize: expected dense x [N, H, W, C] with C <= 4 and y [N, P, Q, C], got x ", x, ", y ", y);
  const int64_t H = x.sizes[1], W = x.sizes[2], C = x.sizes[3], P = y.sizes[1], Q = y.sizes[2];
  with_dtype<float, double, bf16>(y.dtype, "image_normalize", [&]<class T>() {
    using S = Accumulate<T>;
    // The value of each of the 256 levels, per channel.
    S level[4][256];
    for (int64_t c = 0; c < C; ++c)
      for (int v = 0; v < 256; ++v)
        level[c][v] =
            (static_cast<S>(v) / S(255) - static_cast<S>(arguments.mean[c])) / static_cast<S>(arguments.std[c]);
    T* out = y.as<T>();
    const uint8_t* in = x.as<uint8_t>();
    const int32_t* crops = crop ? crop.as<int32_t>() : nullptr;
    parallel_for(y.sizes[0] * P, Q * C, [&](int64_t begin, int64_t end) {
      for (int64_t np = begin; np < end; ++np) {
        const int64_t n = np / P;
        const int64_t top = crops ? crops[3 * n] : (H - P) / 2, left = crops ? crops[3 * n + 1] : (W - Q) / 2;
        const bool flip = crops && crops[3 * n + 2] != 0;
        const int64_t h = top + np % P;
        const bool row_inside = h >= 0 && h < H;
        const uint8_t* row = in + (n * H + (row_inside ? h : 0)) * W * C;
        for (int64_t q = 0; q < Q; ++q) {
          const int64_t w = left + (flip ? Q - 1 - q : q);
          const bool inside = row_inside && w >= 0 && w < W;
          for (int64_t c = 0; c < C; ++c)
            out[(np * Q + q) * C + c] = static_cast<T>(level[c][inside ? row[w * C + c] : 0]);
        }
      }
    });
  });
}

}  // namespace weft::kernels::cpu
