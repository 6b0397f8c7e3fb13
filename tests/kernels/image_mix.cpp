// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/image.h"

#include <cmath>

#include "kernels/runtime/wrong_index.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

/// In the precision that the contract names; nothing but bits will do.
double mixed(DType dtype, double own, double x, double before) {
  if (dtype == DType::f64) return std::fma(1 - own, before, own * x);
  const float product = static_cast<float>(own) * static_cast<float>(x);
  return rounded(std::fma(static_cast<float>(1 - own), static_cast<float>(before), product), dtype);
}

/// The mixed part of an image. Rows of 16 numbers are whole units of 16 bytes in every dtype; columns 3 to 12
/// begin and end inside of one.
enum class Box { whole, any, inside_units };

TEST(ImageMix, BlendsABoxWithTheImageBefore) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const double share : {-1.0, 0.0, 1.0})
        for (const Box box : {Box::whole, Box::any, Box::inside_units}) {
          const bool units = box == Box::inside_units;
          const int64_t N = pick(units ? 2 : 1, 5), H = pick(units ? 3 : 1, 7),
                        W = units        ? 16
                            : pick(0, 1) ? 8
                                         : pick(1, 9),
                        C = units ? 1 : pick(1, 4);
          const double own = share < 0 ? uniform(1, DType::f64, 0, 1)[0] : share;
          kernels::ImageMixArguments a{0, H, 0, W, own};
          if (box == Box::any) {
            a.top = pick(0, H), a.bottom = pick(a.top, H);
            a.left = pick(0, W), a.right = pick(a.left, W);
          } else if (units) {
            a = {1, H - 1, 3, 13, own};
          }
          SCOPED_TRACE(str(dtype, " ", N, "x", H, "x", W, "x", C, " rows ", a.top, " to ", a.bottom, " columns ",
                           a.left, " to ", a.right, " own ", own, " on ", name(kind)));
          const auto x = uniform(N * H * W * C, dtype);
          std::vector<double> want = x;
          for (int64_t n = 0; n < N; ++n)
            for (int64_t p = a.top; p < a.bottom; ++p)
              for (int64_t q = a.left; q < a.right; ++q)
                for (int64_t c = 0; c < C; ++c) {
                  const auto at = [&](int64_t m) { return ((m * H + p) * W + q) * C + c; };
                  const double before = x[at(n == 0 ? N - 1 : n - 1)];
                  want[at(n)] = own == 0 ? before : mixed(dtype, own, x[at(n)], before);
                }
          const DeviceArray y(kind, dtype, {N, H, W, C});
          kernels::image_mix(queue_on(kind), y, DeviceArray(kind, dtype, {N, H, W, C}, x), a);
          EXPECT_TRUE(near(y.host(), want, {}));
        }
}

TEST(ImageMix, CopiesWhatIsNoNumber) {
  for (const DeviceKind kind : test_devices()) {
    const double infinity = INFINITY;
    const DeviceArray y(kind, DType::f32, {2, 1, 2, 1});
    kernels::image_mix(queue_on(kind), y, DeviceArray(kind, DType::f32, {2, 1, 2, 1}, {infinity, 1, 2, 3}),
                       {0, 1, 0, 2, 0});
    EXPECT_TRUE(near(y.host(), {2, 3, infinity, 1}, {})) << name(kind);
  }
}

TEST(ImageMix, RefusesABoxThatReachesOutside) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {2, 3, 4, 1}, std::vector<double>(24)), y(kind, DType::f32, {2, 3, 4, 1});
    for (const kernels::ImageMixArguments& a : {kernels::ImageMixArguments{0, 4, 0, 4, 0},
                                                {0, 3, 0, 5, 0},
                                                {-1, 3, 0, 4, 0},
                                                {0, 3, -1, 4, 0},
                                                {2, 1, 0, 4, 0},
                                                {0, 3, 3, 2, 0}})
      EXPECT_THROW(kernels::image_mix(queue_on(kind), y, x, a), Error) << a.top << ' ' << a.bottom << ' ' << a.left;
  }
}

TEST(ImageMix, SaysWhatDoesNotFit) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {2, 3, 4, 1}, std::vector<double>(24)), y(kind, DType::f32, {2, 3, 4, 1}),
        smaller(kind, DType::f32, {2, 3, 3, 1}), bf16s(kind, DType::bf16, {2, 3, 4, 1}),
        f16s(kind, DType::f16, {2, 3, 4, 1});
    const auto error = [&](const kernels::View& to, const kernels::View& from,
                           const kernels::ImageMixArguments& a = {}) {
      return error_text([&] { kernels::image_mix(queue_on(kind), to, from, a); });
    };
    EXPECT_EQ(error(y, x), "");
    EXPECT_EQ(error(y, x, {1, 4, 0, 2}),
              str("image_mix: expected a box inside of ", x.view(), ", got rows 1 to 4, columns 0 to 2"));
    kernels::View pixels = x, gaps = y;
    pixels.rank = 3;
    gaps.strides[0] *= 2;
    for (const auto& [to, from] : {std::pair<kernels::View, kernels::View>{smaller, x},
                                   {bf16s, x},
                                   {bf16s, f16s},
                                   {y, gaps},
                                   {gaps, x},
                                   {pixels, pixels}})
      EXPECT_EQ(error(to, from),
                str("image_mix: expected contiguous x and y [N, H, W, C] of one dtype, got x ", from, ", y ", to));
  }
}

TEST(MixedTargets, AreSharesOfTwoLabels) {
  for (const DeviceKind kind : test_devices())
    for (const int unknown : {0, 1, 2}) {  // rows of an unknown label, and those after them
      const int64_t N = unknown == 0 ? 300 : pick(3, 300), C = pick(1, 40);
      const double own = uniform(1, DType::f64, 0, 1)[0];
      auto labels = integers(N, 0, C - 1);
      labels[1] = labels[0];  // both shares fall on one class
      if (unknown > 0) labels[static_cast<size_t>(N - 1)] = unknown == 1 ? -1 : static_cast<double>(C);
      std::vector<double> want;
      for (int64_t n = 0; n < N; ++n)
        for (int64_t c = 0; c < C; ++c) {
          const double label = labels[static_cast<size_t>(n)], before = labels[static_cast<size_t>((n + N - 1) % N)];
          const float share = (label == static_cast<double>(c) ? static_cast<float>(own) : 0.0f) +
                              (before == static_cast<double>(c) ? static_cast<float>(1 - own) : 0.0f);
          want.push_back(unknown > 0 && (n == 0 || n == N - 1) ? NAN : static_cast<double>(share));
        }
      const DeviceArray targets(kind, DType::f32, {N, C});
      kernels::mixed_targets(queue_on(kind), targets, DeviceArray(kind, DType::i64, {N}, labels), own);
      EXPECT_TRUE(near(targets.host(), want, {})) << name(kind) << ' ' << N << 'x' << C << ' ' << unknown;
      if (unknown > 0 && kind == DeviceKind::cuda) {  // else the report would reach a later test
        const std::string said = error_text([&] { kernels::check_wrong_index({kind, 0}); });
        EXPECT_EQ(said, str("mixed_targets: expected labels 0 to ", C - 1, ", got ", labels.back(), " in row ", N - 1));
      }
    }
}

}  // namespace
}  // namespace weft::tests
