// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/recurrent.h"

#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

constexpr DType kFloating[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct Sizes2 {
  int64_t B, H;
};
/// One unit (of sequences enough that a value near 0 does not stand alone), less than a vector, and more than a block
/// of threads.
const Sizes2 kSizes[] = {{9, 1}, {3, 5}, {3, 70}, {4, 130}};

/// Where gate `gate` of `gates` of unit (b, j) lies.
size_t at(int64_t b, int64_t j, int64_t gate, int64_t gates, int64_t H) {
  return static_cast<size_t>((b * gates + gate) * H + j);
}

TEST(Recurrent, LstmForward) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kFloating)
      for (const auto& [B, H] : kSizes) {
        SCOPED_TRACE(str(dtype, " ", B, "x", H, " on ", name(kind)));
        const auto sums = uniform(B * 4 * H, dtype), before = uniform(B * H, dtype);
        const DeviceArray gates(kind, dtype, {B, 4 * H}, sums), h(kind, dtype, {B, H}), c(kind, dtype, {B, H});
        kernels::lstm_cell_forward(queue_on(kind), h, c, gates, DeviceArray(kind, dtype, {B, H}, before));
        std::vector<double> want_gates(sums.size()), want_c(before.size()), want_h(before.size());
        for (int64_t b = 0; b < B; ++b)
          for (int64_t j = 0; j < H; ++j) {
            const auto unit = static_cast<size_t>(b * H + j);
            double v[4];
            for (int g = 0; g < 4; ++g) {
              const double s = sums[at(b, j, g, 4, H)];
              v[g] = want_gates[at(b, j, g, 4, H)] = g == 2 ? std::tanh(s) : logistic(s);
            }
            want_c[unit] = v[1] * before[unit] + v[0] * v[2];
            want_h[unit] = v[3] * std::tanh(want_c[unit]);
          }
        EXPECT_TRUE(near(gates.host(), want_gates, tolerance(dtype)));
        EXPECT_TRUE(near(c.host(), want_c, tolerance(dtype, 2)));
        EXPECT_TRUE(near(h.host(), want_h, tolerance(dtype, 2)));
      }
}

TEST(Recurrent, LstmBackward) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kFloating)
      for (const auto& [B, H] : kSizes)
        for (const bool has_later : {false, true}) {
          SCOPED_TRACE(str(dtype, " ", B, "x", H, " on ", name(kind)));
          const auto gates = uniform(B * 4 * H, dtype), c = uniform(B * H, dtype), before = uniform(B * H, dtype),
                     dy = uniform(B * H, dtype), later = uniform(B * H, dtype), dc_after = uniform(B * H, dtype);
          const DeviceArray dgates(kind, dtype, {B, 4 * H}), dc(kind, dtype, {B, H}, dc_after),
              later_array(kind, dtype, {B, H}, later);
          kernels::lstm_cell_backward(queue_on(kind), dgates, dc, DeviceArray(kind, dtype, {B, H}, dy),
                                      has_later ? later_array.view() : View::none(),
                                      DeviceArray(kind, dtype, {B, 4 * H}, gates), DeviceArray(kind, dtype, {B, H}, c),
                                      DeviceArray(kind, dtype, {B, H}, before));
          std::vector<double> want(gates.size()), want_dc(c.size());
          for (int64_t b = 0; b < B; ++b)
            for (int64_t j = 0; j < H; ++j) {
              const auto unit = static_cast<size_t>(b * H + j);
              const auto gate = [&](int g) { return gates[at(b, j, g, 4, H)]; };
              const double i = gate(0), f = gate(1), g = gate(2), o = gate(3), y = std::tanh(c[unit]);
              const double dh = dy[unit] + (has_later ? later[unit] : 0), d = dc_after[unit] + dh * o * (1 - y * y);
              want[at(b, j, 0, 4, H)] = d * g * i * (1 - i);
              want[at(b, j, 1, 4, H)] = d * before[unit] * f * (1 - f);
              want[at(b, j, 2, 4, H)] = d * i * (1 - g * g);
              want[at(b, j, 3, 4, H)] = dh * y * o * (1 - o);
              want_dc[unit] = d * f;
            }
          EXPECT_TRUE(near(dgates.host(), want, tolerance(dtype, 4)));
          EXPECT_TRUE(near(dc.host(), want_dc, tolerance(dtype, 4)));
        }
}

TEST(Recurrent, GruForward) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kFloating)
      for (const auto& [B, H] : kSizes) {
        SCOPED_TRACE(str(dtype, " ", B, "x", H, " on ", name(kind)));
        const auto x = uniform(B * 3 * H, dtype), s = uniform(B * 3 * H, dtype), before = uniform(B * H, dtype);
        const DeviceArray saved(kind, dtype, {B, 4 * H}), h(kind, dtype, {B, H});
        kernels::gru_cell_forward(queue_on(kind), h, saved, DeviceArray(kind, dtype, {B, 3 * H}, x),
                                  DeviceArray(kind, dtype, {B, 3 * H}, s), DeviceArray(kind, dtype, {B, H}, before));
        std::vector<double> want(static_cast<size_t>(B * 4 * H)), want_h(before.size());
        for (int64_t b = 0; b < B; ++b)
          for (int64_t j = 0; j < H; ++j) {
            const auto unit = static_cast<size_t>(b * H + j);
            const auto part = [&](const std::vector<double>& of, int g) { return of[at(b, j, g, 3, H)]; };
            const double r = logistic(part(x, 0) + part(s, 0)), z = logistic(part(x, 1) + part(s, 1)),
                         n = std::tanh(part(x, 2) + r * part(s, 2));
            want[at(b, j, 0, 4, H)] = r;
            want[at(b, j, 1, 4, H)] = z;
            want[at(b, j, 2, 4, H)] = n;
            want[at(b, j, 3, 4, H)] = part(s, 2);
            want_h[unit] = (1 - z) * n + z * before[unit];
          }
        EXPECT_TRUE(near(saved.host(), want, tolerance(dtype, 2)));
        EXPECT_TRUE(near(h.host(), want_h, tolerance(dtype, 16)));
      }
}

TEST(Recurrent, GruBackward) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kFloating)
      for (const auto& [B, H] : kSizes)
        for (const bool has_later : {false, true}) {
          SCOPED_TRACE(str(dtype, " ", B, "x", H, " on ", name(kind)));
          const auto saved = uniform(B * 4 * H, dtype), before = uniform(B * H, dtype), dy = uniform(B * H, dtype),
                     later = uniform(B * H, dtype);
          // In place, as the op calls it: the gradient that comes is the one that goes.
          const DeviceArray dh(kind, dtype, {B, H}, later), dx(kind, dtype, {B, 3 * H}), ds(kind, dtype, {B, 3 * H});
          kernels::gru_cell_backward(queue_on(kind), dx, ds, dh, DeviceArray(kind, dtype, {B, H}, dy),
                                     has_later ? dh.view() : View::none(), DeviceArray(kind, dtype, {B, 4 * H}, saved),
                                     DeviceArray(kind, dtype, {B, H}, before));
          std::vector<double> want_x(static_cast<size_t>(B * 3 * H)), want_h(before.size());
          for (int64_t b = 0; b < B; ++b)
            for (int64_t j = 0; j < H; ++j) {
              const auto unit = static_cast<size_t>(b * H + j);
              const auto value = [&](int g) { return saved[at(b, j, g, 4, H)]; };
              const double r = value(0), z = value(1), n = value(2), s = value(3);
              const double d = dy[unit] + (has_later ? later[unit] : 0), dn = d * (1 - z) * (1 - n * n);
              want_x[at(b, j, 0, 3, H)] = dn * s * r * (1 - r);
              want_x[at(b, j, 1, 3, H)] = d * (before[unit] - n) * z * (1 - z);
              want_x[at(b, j, 2, 3, H)] = dn;
              want_h[unit] = d * z;
            }
          EXPECT_TRUE(near(dx.host(), want_x, tolerance(dtype, 4)));
          EXPECT_TRUE(near(dh.host(), want_h, tolerance(dtype, 2)));
          for (int64_t b = 0; b < B; ++b)
            for (int64_t j = 0; j < H; ++j) want_x[at(b, j, 2, 3, H)] *= saved[at(b, j, 0, 4, H)];
          EXPECT_TRUE(near(ds.host(), want_x, tolerance(dtype, 4)));
        }
}

}  // namespace
}  // namespace weft::tests
