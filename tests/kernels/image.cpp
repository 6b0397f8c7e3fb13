// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/image.h"

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

TEST(Image, NormalizeCropsFlipsAndPads) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const int64_t C : {1L, 3L, 4L})
        for (const bool placed : {true, false}) {
          // Rows of 8 pixels are whole units of 16 bytes.
          const int64_t N = 5, H = pick(6, 12), W = pick(6, 12), P = pick(1, 9), Q = pick(0, 1) ? 8 : pick(1, 9);
          SCOPED_TRACE(str(dtype, " C ", C, " ", H, "x", W, " to ", P, "x", Q, " placed ", placed, " on ", name(kind)));
          const auto x = integers(N * H * W * C, 0, 255);
          auto crop = integers(N * 3, -4, 6);  // windows that reach outside the image too
          for (int64_t n = 0; n < N; ++n) crop[n * 3 + 2] = static_cast<double>(n % 2);
          const kernels::ImageNormalizeArguments a{{0.5f, 0.4f, 0.3f, 0.2f}, {0.25f, 0.5f, 1, 2}};
          std::vector<double> want;
          for (int64_t n = 0; n < N; ++n)
            for (int64_t p = 0; p < P; ++p)
              for (int64_t q = 0; q < Q; ++q)
                for (int64_t c = 0; c < C; ++c) {
                  const auto at = [&](int64_t k) { return static_cast<int64_t>(crop[n * 3 + k]); };
                  const int64_t h = (placed ? at(0) : (H - P) / 2) + p;
                  const int64_t w = (placed ? at(1) : (W - Q) / 2) + (placed && at(2) ? Q - 1 - q : q);
                  const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                  const double level = inside ? x[((n * H + h) * W + w) * C + c] / 255 : 0;
                  want.push_back((level - static_cast<double>(a.mean[c])) / static_cast<double>(a.std[c]));
                }
          const DeviceArray y(kind, dtype, {N, P, Q, C}), crops(kind, DType::i32, {N, 3}, crop);
          kernels::image_normalize(queue_on(kind), y, DeviceArray(kind, DType::u8, {N, H, W, C}, x),
                                   placed ? crops.view() : kernels::View::none(), a);
          EXPECT_TRUE(near(y.host(), want, tolerance(dtype, 1, 8)));
        }
}

}  // namespace
}  // namespace weft::tests
