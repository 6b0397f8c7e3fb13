// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/image.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void mixed_targets(const Queue&, const View& targets, const View& labels, double own) {
  WEFT_CHECK(targets.rank == 2 && labels.rank == 1 && targets.sizes[0] == labels.sizes[0] &&
                 targets.dtype == DType::f32 && targets.is_contiguous() && labels.is_contiguous(),
             "mixed_targets: expected contiguous targets f32 [N, C] and labels [N], got ", targets, " and ", labels);
  const int64_t N = targets.sizes[0], C = targets.sizes[1];
  const int64_t* label = labels.as<int64_t>();
  const auto is_class = [&](int64_t c) { return c >= 0 && c < C; };
  for (int64_t n = 0; n < N; ++n) {
    const int64_t before = label[n == 0 ? N - 1 : n - 1];
    float* row = targets.as<float>() + n * C;
    const bool known = is_class(label[n]) && is_class(before);
    std::fill(row, row + C, known ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    if (!known) continue;
    row[label[n]] += static_cast<float>(own);
    row[before] += static_cast<float>(1 - own);
  }
}

}  // namespace weft::kernels::cpu
