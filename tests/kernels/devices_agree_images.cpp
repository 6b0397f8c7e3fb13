// SPDX-License-Identifier: Apache-2.0
#include "kernels/image.h"
#include "kernels/pool2d.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

TEST(DevicesAgree, Pool2d) {
  struct Pool {
    int64_t N, H, W, C;
    kernels::Pool2dArguments arguments;
  };
  const Pool cases[] = {{2, 8, 8, 16, {}},
                        {3, 9, 7, 5, {{3, 3}, {2, 2}, {1, 1}, true}},
                        {1, 12, 11, 8, {{3, 2}, {1, 3}, {1, 0}, false}},
                        {2, 7, 7, 24, {{7, 7}, {7, 7}, {0, 0}, true}}};
  for (const DType dtype : kFloating)
    for (const Pool& p : cases)
      expect_agreement(str("pool ", dtype, " of ", p.H, "x", p.W, "x", p.C), [&](Call& c) {
        const auto& a = p.arguments;
        const Sizes xs{p.N, p.H, p.W, p.C};
        const Sizes ys{p.N, (p.H + 2 * a.padding.h - a.kernel.h) / a.stride.h + 1,
                       (p.W + 2 * a.padding.w - a.kernel.w) / a.stride.w + 1, p.C};
        const int64_t window = a.kernel.h * a.kernel.w;
        const View x = c.integers(dtype, xs, -9, 9), dy = c.random(dtype, ys);  // with ties
        const View index = c.output(DType::i32, ys);
        kernels::max_pool2d_forward(c.queue, c.output(dtype, ys), index, x, a);
        kernels::max_pool2d_backward(c.queue, c.output(dtype, xs, window), dy, index, a);
        kernels::avg_pool2d_forward(c.queue, c.output(dtype, ys, window), x, a);
        kernels::avg_pool2d_backward(c.queue, c.output(dtype, xs, window), dy, a);
      });
  for (const DType dtype : kFloating)
    for (const Sizes& pq : {Sizes{1, 1}, Sizes{3, 2}, Sizes{11, 13}})
      for (const int64_t C : {3, 16})
        expect_agreement(str("adaptive pool ", dtype, " to ", pq[0], "x", pq[1]), [&](Call& c) {
          const Sizes xs{2, 10, 9, C}, ys{2, pq[0], pq[1], C};
          kernels::adaptive_avg_pool2d_forward(c.queue, c.output(dtype, ys, 90), c.random(dtype, xs, 0, 2));
          kernels::adaptive_avg_pool2d_backward(c.queue, c.output(dtype, xs, 90), c.random(dtype, ys, 0, 2));
        });
}

TEST(DevicesAgree, Image) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const int64_t C : {1, 3, 4})
      expect_agreement(str("image ", dtype, " ", C), [&](Call& c) {
        const View x = c.integers(DType::u8, {3, 10, 12, C}, 0, 255);
        kernels::ImageNormalizeArguments a;
        for (int k = 0; k < 4; ++k)
          a.mean[k] = 0.4f + 0.05f * static_cast<float>(k), a.std[k] = 0.2f + 0.01f * static_cast<float>(k);
        kernels::image_normalize(c.queue, c.output(dtype, {3, 8, 8, C}), x, View::none(), a);
        const View crop = c.given(DType::i32, {3, 3}, {0, 0, 0, -3, 5, 1, 6, -2, 1});
        kernels::image_normalize(c.queue, c.output(dtype, {3, 9, 8, C}), x, crop, a);
      });
}

TEST(DevicesAgree, ImageMix) {
  for (const DType dtype : kFloating)
    for (const int64_t C : {1, 3, 4})
      expect_agreement(str("mixed images ", dtype, " ", C), [&](Call& c) {
        const Sizes sizes{3, 10, 8, C};  // rows are whole units of 16 bytes; by 9 columns they are not
        kernels::image_mix(c.queue, c.output(dtype, sizes), c.random(dtype, sizes), {0, 10, 0, 8, 0.3});
        kernels::image_mix(c.queue, c.output(dtype, sizes), c.random(dtype, sizes), {2, 7, 3, 5, 0});
        const Sizes odd{4, 7, 9, C};
        kernels::image_mix(c.queue, c.output(dtype, odd), c.random(dtype, odd), {0, 7, 1, 9, 0.7});
      });
  expect_agreement("mixed targets", [&](Call& c) {
    kernels::mixed_targets(c.queue, c.output(DType::f32, {300, 7}), c.integers(DType::i64, {300}, 0, 6), 0.3);
  });
}

}  // namespace
}  // namespace weft::tests
