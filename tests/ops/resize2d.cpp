// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/resize2d.h"

#include <gtest/gtest.h>

#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases resize2d_cases{
    {"resize2d", {{{2, 5, 4, 3}}}, CALL(resize2d(x[0], {7, 9})), "resized(x[0], (7, 9))", 4},
    {"resize2d_nearest", {{{2, 5, 4, 3}}}, CALL(resize2d(x[0], {7, 3}, {.interpolation = Interpolation::nearest})),
     "resized(x[0], (7, 3), 'nearest')", 4},
    {"resize2d_corners", {{{2, 5, 4, 3}}}, CALL(resize2d(x[0], {7, 1}, {.align_corners = true})),
     "resized(x[0], (7, 1), align_corners=True)", 4},
    {"resize2d_smaller", {{{2, 9, 8, 3}}}, CALL(resize2d(x[0], {3, 4}, {.antialias = true})),
     "resized(x[0], (3, 4), antialias=True)", 36},
    {"resize2d_bicubic", {{{1, 6, 5, 4}}}, CALL(resize2d(x[0], {4, 11}, {.interpolation = Interpolation::bicubic})),
     "resized(x[0], (4, 11), 'bicubic')", 16},
    {"resize2d_bicubic_scaled", {{{1, 6, 6, 2}, Values::normal, Layout::transposed}},
     CALL(resize2d(x[0], {4, 4}, {.interpolation = Interpolation::bicubic, .antialias = true, .scale = 4.1 / 6})),
     "resized(x[0], None, 'bicubic', antialias=True, scale_factor=4.1 / 6)", 36}};
// clang-format on

TEST(Resize2d, WeightsOfANewPixelSumToOne) {
  for (const Interpolation interpolation : {Interpolation::bilinear, Interpolation::bicubic})
    for (const bool antialias : {false, true})
      for (const int64_t to : {1, 3, 10, 37}) {
        const Resize2dWeights weights =
            resize2d_weights({10, 4}, {to, to}, {.interpolation = interpolation, .antialias = antialias}, DType::f64);
        for (const Tensor& matrix : {weights.rows, weights.columns}) {
          const std::vector<double> values = matrix.to_vector<double>();
          const auto columns = static_cast<size_t>(matrix.size(1));
          for (size_t i = 0; i < values.size(); i += columns) {
            double sum = 0;
            for (size_t j = 0; j < columns; ++j) sum += values[i + j];
            EXPECT_NEAR(sum, 1, 1e-12);
          }
        }
      }
}

TEST(Resize2d, TheSameSizeIsTheSameImage) {
  const Tensor x = Tensor::arange(24, DType::f32).reshape({1, 3, 4, 2});
  for (const Interpolation interpolation : {Interpolation::bilinear, Interpolation::bicubic})
    for (const bool antialias : {false, true})
      EXPECT_EQ(resize2d(x, {3, 4}, {.interpolation = interpolation, .antialias = antialias}).to_vector<float>(),
                x.to_vector<float>());
}

}  // namespace
}  // namespace weft::test
