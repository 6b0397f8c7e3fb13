// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cross_entropy.h"

#include <limits>

#include "kernels/runtime/wrong_index.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"
#include "tests/support/rows.h"

namespace weft::tests {
namespace {

/// Targets as probabilities [N, C] before smoothing; rows of zeros are ignored.
/// gap: elements between rows, which nothing may read or write. in_place: the gradient overwrites the logits.
void check(DeviceKind kind, DType dtype, int64_t N, int64_t C, bool classes, double smoothing, int64_t gap = 0,
           bool in_place = false) {
  SCOPED_TRACE(str(dtype, " [", N, ",", C, "] classes ", classes, " smoothing ", smoothing, " gap ", gap, " in place ",
                   in_place, " on ", name(kind)));
  add_row({"kernel", "cross_entropy_forward", std::string(name(kind)), std::string(name(dtype)), "CrossEntropy"});
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto x = uniform(N * C, dtype, -5, 5), dloss = uniform(N, wide);
  const int64_t ignored_class = classes && C > 10 ? 3 : -100;
  auto labels = integers(N, 0, C - 1);
  if (classes && N > 1) labels[0] = static_cast<double>(ignored_class);
  auto t = uniform(N * C, dtype, 0, 1);
  if (classes)
    for (int64_t i = 0; i < N * C; ++i) t[i] = labels[i / C] == static_cast<double>(i % C);
  std::vector<double> loss(static_cast<size_t>(N)), lse(2 * loss.size()), weight(loss.size(), 1), dx(x.size());
  for (int64_t n = 0; n < N; ++n) {
    double sum = 0, mass = 0;
    const double largest = lse[n] = *std::max_element(&x[n * C], &x[n * C] + C);
    for (int64_t c = 0; c < C; ++c) sum += std::exp(x[n * C + c] - largest);
    lse[N + n] = std::log(sum);
    const bool ignored = classes && labels[n] == static_cast<double>(ignored_class);
    if (ignored) weight[n] = 0;
    for (int64_t c = 0; c < C && !ignored; ++c) {
      double& target = t[n * C + c];
      target = (1 - smoothing) * target + smoothing / static_cast<double>(C);
      mass += target;
      loss[n] += target * (lse[N + n] - (x[n * C + c] - largest));
    }
    for (int64_t c = 0; c < C && !ignored; ++c)
      dx[n * C + c] = dloss[n] * (std::exp(x[n * C + c] - largest - lse[N + n]) * mass - t[n * C + c]);
  }
  auto given = t;
  if (!classes)
    for (double& v : given) v = (v - smoothing / static_cast<double>(C)) / (1 - smoothing);
  const int64_t pitch = C + gap;
  std::vector<double> spread(static_cast<size_t>(N * pitch), 77);
  for (int64_t i = 0; i < N * C; ++i) spread[i / C * pitch + i % C] = x[i];
  const auto rows_of = [&](const DeviceArray& array) {
    kernels::View view = array;
    view.sizes[1] = C;
    return view;
  };
  const DeviceArray logits_array(kind, dtype, {N, pitch}, spread);
  const kernels::View logits = rows_of(logits_array);
  const DeviceArray target =
      classes ? DeviceArray(kind, DType::i64, {N}, labels) : DeviceArray(kind, dtype, {N, C}, given);
  const DeviceArray loss_array(kind, wide, {N}), lse_array(kind, wide, {2, N}), weight_array(kind, wide, {N});
  const kernels::CrossEntropyArguments arguments{smoothing, ignored_class};
  kernels::cross_entropy_forward(queue_on(kind), loss_array, lse_array, weight_array, logits, target, arguments);
  EXPECT_TRUE(near(loss_array.host(), loss, tolerance(wide, C, 8)));
  EXPECT_TRUE(near(lse_array.host(), lse, tolerance(wide, C, 8)));
  EXPECT_TRUE(near(weight_array.host(), weight, {}));
  const DeviceArray apart(kind, dtype, {N, pitch}, std::vector<double>(spread.size(), 77));
  const DeviceArray& dx_array = in_place ? logits_array : apart;
  kernels::cross_entropy_backward(queue_on(kind), rows_of(dx_array), DeviceArray(kind, wide, {N}, dloss), logits,
                                  DeviceArray(kind, wide, {2, N}, lse), target, arguments);
  const auto all = dx_array.host();
  std::vector<double> got(dx.size());
  for (int64_t i = 0; i < N * C; ++i) got[i] = all[i / C * pitch + i % C];
  EXPECT_TRUE(near(got, dx, tolerance(dtype, C, 8)));
  for (int64_t i = 0; i < N * pitch; ++i)
    if (i % pitch >= C) {
      EXPECT_EQ(all[i], 77) << "in a gap";
    }
}

TEST(CrossEntropy, EqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool classes : {true, false})
        for (const double smoothing : {0.0, 0.1})
          for (const int64_t C : {2L, 10L, 64L, 100L, 1001L, 4104L})
            check(kind, dtype, C > 4096 ? 2 : pick(8, 40), C, classes, smoothing);
}

// Rows of whole 16-byte units that end within one, in registers and from memory; and rows that begin anywhere.
TEST(CrossEntropy, RowsWithAGap) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const bool classes : {true, false})
        for (const int64_t C : {61L, 1003L, 4105L, 4106L, 4111L})
          for (const int64_t gap : {8 - C % 8, int64_t{3}})
            check(kind, dtype, 3, C, classes, C == 4106 ? 0.1 : 0.0, gap, gap != 3);
}

TEST(CrossEntropy, OneGradientForAllRows) {
  for (const DeviceKind kind : test_devices()) {
    const int64_t N = 7, C = 10;
    const DeviceArray logits(kind, DType::f32, {N, C}, uniform(N * C, DType::f32));
    const DeviceArray target(kind, DType::i64, {N}, integers(N, 0, C - 1));
    const DeviceArray loss(kind, DType::f32, {N}), lse(kind, DType::f32, {2, N}), weight(kind, DType::f32, {N});
    kernels::cross_entropy_forward(queue_on(kind), loss, lse, weight, logits, target, {});
    const auto gradient = [&](const kernels::View& dloss) {
      const DeviceArray dlogits(kind, DType::f32, {N, C});
      kernels::cross_entropy_backward(queue_on(kind), dlogits, dloss, logits, lse, target, {});
      return dlogits.host();
    };
    const DeviceArray each(kind, DType::f32, {N}, std::vector<double>(static_cast<size_t>(N), 0.75));
    const DeviceArray one(kind, DType::f32, {1}, {0.75});
    kernels::View all = one;
    all.sizes[0] = N;
    all.strides[0] = 0;
    EXPECT_EQ(gradient(all), gradient(each));
  }
}

TEST(CrossEntropy, AnIgnoredRowMayHoldAnything) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray logits(kind, DType::f32, {3, 3}, {1, inf, 0, nan, 0, 0, 0, 0, 0});
    const DeviceArray target(kind, DType::i64, {3}, {-100, -100, 1});
    const DeviceArray loss(kind, DType::f32, {3}), lse(kind, DType::f32, {2, 3}), weight(kind, DType::f32, {3});
    const DeviceArray ones(kind, DType::f32, {3}, {1, 1, 1}), dlogits(kind, DType::f32, {3, 3});
    kernels::cross_entropy_forward(queue_on(kind), loss, lse, weight, logits, target, {});
    kernels::cross_entropy_backward(queue_on(kind), dlogits, ones, logits, lse, target, {});
    const double third = 1.0 / 3;
    EXPECT_TRUE(near(loss.host(), {0, 0, std::log(3.0)}, tolerance(DType::f32)));
    EXPECT_TRUE(near(dlogits.host(), {0, 0, 0, 0, 0, 0, third, third - 1, third}, tolerance(DType::f32)));
  }
}

TEST(CrossEntropy, AClassOutsideIsNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices()) {
    error_text([&] { kernels::check_wrong_index(queue_on(kind).device); });  // clears errors of earlier tests
    const DeviceArray logits(kind, DType::f32, {2, 3}, {0, 0, 0, 0, 0, 0});
    const DeviceArray loss(kind, DType::f32, {2}), lse(kind, DType::f32, {2, 2}), weight(kind, DType::f32, {2});
    kernels::cross_entropy_forward(queue_on(kind), loss, lse, weight, logits,
                                   DeviceArray(kind, DType::i64, {2}, {3, -1}), {});
    EXPECT_TRUE(near(loss.host(), {nan, nan}, {}));
    if (kind == DeviceKind::cpu) continue;  // there the op looks before
    EXPECT_THAT(error_text([&] { kernels::check_wrong_index(queue_on(kind).device); }),
                testing::AnyOf(testing::HasSubstr("cross_entropy: target 3 in row 0 is no class of logits f32[2,3]"),
                               testing::HasSubstr("cross_entropy: target -1 in row 1 is no class of logits f32[2,3]")));
    kernels::check_wrong_index(queue_on(kind).device);  // told once
  }
}

}  // namespace
}  // namespace weft::tests
