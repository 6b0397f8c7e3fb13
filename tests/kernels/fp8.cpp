// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fp8.h"

#include <array>
#include <cmath>
#include <numeric>

#include "kernels/cuda/gemm/wgmma_plan.h"
#include "tests/support/compare.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

// Numbers of 8 bits: conversions against tables made from the formats' definitions, products against f64 of the same
// codes, on every device, an A100's way too.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::Fp8;
using kernels::View;
using kernels::WgmmaPlan;
using kernels::WgmmaPlanScope;
using enum WgmmaPlan::Tile;

constexpr Fp8 kFormats[] = {Fp8::e4m3, Fp8::e5m2};
const char* word(Fp8 format) { return format == Fp8::e4m3 ? "e4m3" : "e5m2"; }

/// The number of a code by the definition: OCP 8-bit floating point specification 1.0, table 1.
double number(Fp8 format, int code) {
  const bool e4m3 = format == Fp8::e4m3;
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int exponent = (code & 0x7f) >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
  const double sign = code & 0x80 ? -1 : 1;
  if (e4m3 && exponent == 15 && mantissa == 7) return NAN;
  if (!e4m3 && exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  const double significand = std::ldexp(mantissa, -mantissa_bits) + (exponent == 0 ? 0 : 1);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias);
}

/// The code of a number by looking at all of them: nearest, of two the even one; the largest for what is beyond.
int code_of(Fp8 format, double value) {
  static const auto numbers = [] {
    std::array<std::vector<double>, 2> of;
    for (const Fp8 each : kFormats)
      for (int code = 0; std::isfinite(number(each, code)); ++code)
        of[static_cast<size_t>(each)].push_back(number(each, code));
    return of;
  }();
  if (std::isnan(value)) return 0x7f;
  const std::vector<double>& all = numbers[static_cast<size_t>(format)];
  const double magnitude = std::abs(value);
  size_t best = 0;
  for (size_t code = 1; code < all.size(); ++code) {
    const double nearer = std::abs(magnitude - all[code]) - std::abs(magnitude - all[best]);
    if (magnitude > all.back() || nearer < 0 || (nearer == 0 && code % 2 == 0)) best = code;
  }
  return (std::signbit(value) ? 0x80 : 0) | static_cast<int>(best);
}

/// Codes [rows, columns] on a device, each 0xff until they are written, with room up to the pitch.
struct Codes {
  DeviceArray array;
  View view;
  Codes(DeviceKind kind, int64_t rows, int64_t columns)
      : array(kind, DType::u8, {rows, kernels::fp8_pitch(columns)}), view(array.view()) {
    view.sizes[1] = columns;
  }
  std::vector<double> host() const {
    const std::vector<double> all = array.host();
    std::vector<double> codes;
    for (int64_t r = 0; r < view.sizes[0]; ++r)
      for (int64_t c = 0; c < view.sizes[1]; ++c) codes.push_back(all[r * view.strides[0] + c]);
    return codes;
  }
};

TEST(Fp8, EveryCodeAndEveryTie) {
  on_both_generations([](DeviceKind kind) {
    for (const Fp8 format : kFormats) {
      std::vector<double> values{NAN, INFINITY, -INFINITY, 1e30, -1e30, 0x1p-149, -0x1p-140};
      for (int code = 0; code < 256; ++code) {
        EXPECT_EQ(std::isnan(kernels::from_fp8(format, code)), std::isnan(number(format, code))) << code;
        if (std::isnan(number(format, code))) continue;
        EXPECT_EQ(kernels::from_fp8(format, code), number(format, code)) << word(format) << ' ' << code;
        EXPECT_EQ(std::signbit(kernels::from_fp8(format, code)), code >= 128) << code;
        if (std::isinf(number(format, code))) continue;
        // The number itself, half way to the next one, and the f32 numbers beside that.
        const double next = number(format, code + 1);
        const auto tie =
            static_cast<float>((number(format, code) + (std::isfinite(next) ? next : 2 * number(format, code))) / 2);
        for (const float value :
             {static_cast<float>(number(format, code)), tie, std::nextafter(tie, 1e9f), std::nextafter(tie, -1e9f)})
          values.push_back(value);
      }
      const auto n = static_cast<int64_t>(values.size());
      const DeviceArray x(kind, DType::f32, {1, n}, values), scale(kind, DType::f32, {1}, {1});
      const Codes y(kind, 1, n);
      kernels::fp8_quantize(queue_on(kind), y.view, View::none(), View::none(), x, scale, format);
      const std::vector<double> got = y.host();
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(got[i], code_of(format, values[i])) << word(format) << " of " << values[i] << " on " << name(kind);
    }
  });
}

TEST(Fp8, QuantizesAcrossAndDown) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const auto& [rows, columns] :
           {std::pair<int64_t, int64_t>{1, 1}, {pick(1, 300), pick(1, 300)}, {131, 264}, {128, 136}}) {
        const Fp8 format = kFormats[rows % 2];
        SCOPED_TRACE(str(dtype, " ", rows, " x ", columns, " ", word(format), " on ", name(kind)));
        const auto values = uniform(rows * columns, dtype, -3, 3);
        const DeviceArray x(kind, dtype, {rows, columns}, values), scale(kind, DType::f32, {1}, {256}),
            amax(kind, DType::f32, {1}, {0.5});
        const Codes y(kind, rows, columns), y_t(kind, columns, rows), alone(kind, columns, rows);
        kernels::fp8_quantize(queue_on(kind), y.view, y_t.view, amax, x, scale, format);
        kernels::fp8_quantize(queue_on(kind), View::none(), alone.view, View::none(), x, scale, format);
        std::vector<double> want, want_t(values.size());
        double largest = 0.5;
        for (size_t i = 0; i < values.size(); ++i) {
          want.push_back(code_of(format, values[i] * 256));
          want_t[i % columns * rows + i / columns] = want.back();
          largest = std::max(largest, std::abs(values[i]));
        }
        EXPECT_EQ(y.host(), want);
        EXPECT_EQ(y_t.host(), want_t);
        EXPECT_EQ(alone.host(), want_t);
        EXPECT_EQ(amax.host()[0], largest);
      }
  });
}

TEST(Fp8, RowsWithGapsAndTheLargestMagnitudeAlone) {
  on_both_generations([](DeviceKind kind) {
    auto values = uniform(40 * 72, DType::f32);
    for (int r = 0; r < 40; ++r) values[r * 72 + 70] = 9;  // between the rows
    values[39 * 72 + 69] = -4;
    const DeviceArray x(kind, DType::f32, {40, 72}, values), scale(kind, DType::f32, {1}, {1}),
        amax(kind, DType::f32, {1}, {0});
    View narrow = x;
    narrow.sizes[1] = 70;
    kernels::fp8_quantize(queue_on(kind), View::none(), View::none(), amax, narrow, View::none(), Fp8::e4m3);
    EXPECT_EQ(amax.host()[0], 4);
    const Codes y(kind, 40, 70);
    kernels::fp8_quantize(queue_on(kind), y.view, View::none(), View::none(), narrow, scale, Fp8::e4m3);
    const std::vector<double> got = y.host();
    for (int r = 0; r < 40; ++r)
      for (int c = 0; c < 70; ++c) EXPECT_EQ(got[r * 70 + c], code_of(Fp8::e4m3, values[r * 72 + c]));
    for (const double special : {double{INFINITY}, double{NAN}}) {
      const DeviceArray one(kind, DType::f32, {1, 3}, {1, special, 2});
      kernels::fp8_quantize(queue_on(kind), View::none(), View::none(), amax, one, scale, Fp8::e4m3);
      EXPECT_EQ(std::isnan(amax.host()[0]), std::isnan(special));
      EXPECT_FALSE(std::isfinite(amax.host()[0]));
    }
  });
}

TEST(Fp8, ScalesAreThePowersOfTwoThatFit) {
  for (const Fp8 format : kFormats)
    for (const int margin : {0, 1, 3})
      for (int i = 0; i < 300; ++i) {
        const auto amax = static_cast<float>(std::exp2(uniform(1, DType::f64, -40, 40)[0]) *
                                             (i % 3 == 0 ? 1 : kernels::largest_of(format)));
        const float scale = kernels::fp8_scale(format, amax, margin);
        EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale);
        EXPECT_LE(std::ldexp(double{amax} * scale, margin), kernels::largest_of(format)) << amax;
        EXPECT_GT(std::ldexp(double{amax} * scale, margin), kernels::largest_of(format) / 2) << amax;
      }
  EXPECT_EQ(kernels::fp8_scale(Fp8::e4m3, 448, 0), 1) << "the largest number itself fits";
  EXPECT_EQ(kernels::fp8_scale(Fp8::e5m2, std::nextafter(57344.0f, 1e9f), 0), 0.5f);
  EXPECT_EQ(kernels::fp8_scale(Fp8::e4m3, 0x1p-149f, 0), 0x1p63f);
  EXPECT_EQ(kernels::fp8_scale(Fp8::e4m3, 0x1p120f, 0), 0x1p-63f);
}

TEST(Fp8, ScalesFollowTheHistory) {
  on_both_generations([](DeviceKind kind) {
    for (const int64_t history : {1, 2, 16, 33, 70}) {
      SCOPED_TRACE(str(history, " on ", name(kind)));
      std::vector<double> rows(static_cast<size_t>(3 * history));
      std::iota(rows.begin(), rows.end() - history, 1.0);  // the last row: nothing was seen yet
      const DeviceArray amaxes(kind, DType::f32, {3, history}, rows), latest(kind, DType::f32, {3}, {500, NAN, 0}),
          scale(kind, DType::f32, {3});
      const auto update = [&](const View& newest) {
        kernels::fp8_update_scale(queue_on(kind), scale, amaxes, newest, {.margin = 1, .gradients = 1});
      };
      const auto scale_of = [](Fp8 format, double amax) {
        return kernels::fp8_scale(format, static_cast<float>(amax), 1);
      };
      update(latest);
      std::vector<double> want(rows);
      for (int64_t r = 0; r < 3; ++r) {
        std::copy(rows.begin() + r * history, rows.begin() + (r + 1) * history - 1, want.begin() + r * history + 1);
        want[r * history] = r == 0 ? 500 : 0;
      }
      EXPECT_EQ(amaxes.host(), want);
      EXPECT_EQ(latest.host(), (std::vector<double>{0, 0, 0}));
      const double second = history == 1 ? 0 : static_cast<double>(2 * history - 1);  // its last entry was forgotten
      EXPECT_EQ(scale.host(),
                (std::vector<double>{scale_of(Fp8::e4m3, 500), second == 0 ? 1 : scale_of(Fp8::e4m3, second), 1}));
      update(View::none());
      EXPECT_EQ(amaxes.host(), want) << "without a newest the rows stay";
      // 500 is forgotten after `history` more.
      for (int64_t i = 0; i < history; ++i) {
        EXPECT_EQ(scale.host()[0], scale_of(Fp8::e4m3, 500)) << i;
        const DeviceArray next(kind, DType::f32, {3}, {0.25, 0.25, 3});
        update(next);
      }
      EXPECT_EQ(scale.host(),
                (std::vector<double>{scale_of(Fp8::e4m3, 0.25), scale_of(Fp8::e4m3, 0.25), scale_of(Fp8::e5m2, 3)}));
    }
  });
}

struct Product {
  int64_t M, N, K;
  Fp8 a = Fp8::e4m3;
  DType out = DType::bf16;
  bool bias = false, pre = false;
  Activation activation = Activation::none;
};

/// Codes of finite numbers of a similar size, and what they are.
struct Factor {
  Codes codes;
  std::vector<double> values;
  Factor(DeviceKind kind, Fp8 format, int64_t rows, int64_t columns) : codes(kind, rows, columns) {
    const auto random = uniform(rows * columns, DType::f32, -4, 4);
    std::vector<double> all(static_cast<size_t>(codes.array.count()), 0x7f);  // NaN between the rows
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int code = code_of(format, random[i]);
      values.push_back(number(format, code));
      all[i / columns * codes.view.strides[0] + i % columns] = code;
    }
    codes.array.write(all);
  }
};

/// As tolerance(); on a GPU tensor cores keep FP8 sums to about 14 bits from one instruction to the next, 32 k. See
/// DeepSeek-AI 2024, "DeepSeek-V3 technical report", section 3.3.2; no emulator shows this.
Tolerance tolerance_of(DeviceKind kind, DType out, int64_t K) {
  Tolerance allowed = tolerance(out, K);
  const double hardware = kind == DeviceKind::cuda ? 0x1p-13 * std::sqrt(static_cast<double>((K + 31) / 32)) : 0;
  return {allowed.norm + hardware, allowed.largest + 4 * hardware};
}

void check(DeviceKind kind, const Product& c) {
  SCOPED_TRACE(str("M ", c.M, " N ", c.N, " K ", c.K, " ", word(c.a), " -> ", c.out, " bias ", c.bias, " pre ", c.pre,
                   " activation ", static_cast<int>(c.activation), " on ", name(kind)));
  const Factor a(kind, c.a, c.M, c.K), b(kind, Fp8::e4m3, c.N, c.K);
  const auto bias = uniform(c.N, DType::f32);
  const DeviceArray bias_array(kind, DType::f32, {c.N}, bias), a_scale(kind, DType::f32, {1}, {8}),
      b_scale(kind, DType::f32, {1}, {0.25}), y(kind, c.out, {c.M, c.N}), pre(kind, c.out, {c.M, c.N});
  kernels::fp8_matmul(queue_on(kind), y, c.pre ? pre.view() : View::none(), a.codes.view, b.codes.view,
                      c.bias ? bias_array.view() : View::none(), a_scale, b_scale, {c.a, c.activation});
  std::vector<double> sums(static_cast<size_t>(c.M * c.N)), want;
  for (int64_t i = 0; i < c.M; ++i)
    for (int64_t j = 0; j < c.N; ++j) {
      double& sum = sums[i * c.N + j];
      for (int64_t k = 0; k < c.K; ++k) sum += a.values[i * c.K + k] * b.values[j * c.K + k];
      sum = sum / 2 + (c.bias ? bias[j] : 0);
      want.push_back(c.activation == Activation::gelu ? 0.5 * sum * std::erfc(-sum / std::sqrt(2.0)) : sum);
    }
  EXPECT_TRUE(near(y.host(), want, tolerance_of(kind, c.out, c.K)));
  if (c.pre) {
    EXPECT_TRUE(near(pre.host(), sums, tolerance_of(kind, c.out, c.K)));
  }
}

/// As above on wgmma, with this plan, which must have been used.
void check(DeviceKind kind, const Product& c, const WgmmaPlan& plan) {
  SCOPED_TRACE(str("tile ", static_cast<int>(plan.tile), ", ", plan.splits, " shares, cluster ", plan.cluster));
  const WgmmaPlanScope scope(plan);
  check(kind, c);
  EXPECT_EQ(scope.uses(), 1);
}

TEST(Fp8, ProductsOfAwkwardSizes) {
  on_both_generations([](DeviceKind kind) {
    for (const Fp8 format : kFormats)
      for (const DType out : {DType::bf16, DType::f32}) {
        check(kind, {pick(1, 150), pick(1, 150), pick(1, 300), format, out, true});
        check(kind, {pick(1, 40), pick(1, 40), pick(1, 40), format, out});
      }
    check(kind, {3, 5, 0, Fp8::e4m3, DType::bf16, true});  // an empty sum
    check(kind, {70, 45, 130, Fp8::e4m3, DType::bf16, true, true, Activation::gelu});
    check(kind, {40, 48, 1300, Fp8::e5m2, DType::f32, true});  // few sums, long ones
  });
}

TEST(Fp8, ProductsInEveryTile) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] :
         {std::pair{small, 1}, {medium, 1}, {medium, 2}, {large, 1}, {large, 2}, {ping_pong, 1}, {ping_pong, 2}})
      for (const Fp8 format : kFormats) {
        check(kind, {pick(1, 300), pick(1, 300), pick(1, 500), format, DType::bf16, true},
              {.tile = tile, .cluster = cluster});
        check(kind, {pick(1, 300), 72, pick(1, 200), format, DType::f32, format == Fp8::e4m3},
              {.tile = tile, .cluster = cluster});
      }
    check(kind, {130, 72, 128 * 9 + 8}, {.tile = small});  // more steps than stages
    check(kind, {300, 264, 136, Fp8::e4m3, DType::bf16, true, true, Activation::gelu}, {.tile = medium, .cluster = 2});
    check(kind, {640, 600, 200}, {.tile = ping_pong, .cluster = 2});
    for (const int64_t n : {72, 69})
      check(kind, {100, n, 128 * 10 + 20, Fp8::e5m2, DType::bf16, true, true, Activation::gelu},
            {.tile = n == 72 ? small : medium, .splits = 3});
  });
}

TEST(Fp8, ProductsOfUnalignedRowsTakeTheOtherWay) {
  on_wgmma([](DeviceKind kind) {
    const std::vector<double> one(20 * 24, 0x38);  // e4m3's 1
    const DeviceArray a(kind, DType::u8, {20, 24}, one), scale(kind, DType::f32, {1}, {1}),
        y(kind, DType::f32, {20, 20});
    const WgmmaPlanScope scope({});
    kernels::fp8_matmul(queue_on(kind), y, View::none(), a, a, View::none(), scale, scale, {});
    EXPECT_EQ(scope.uses(), 1) << "of the same numbers as bf16, in rows of 48 bytes";
    EXPECT_EQ(y.host(), std::vector<double>(400, 24));
    View odd = a;  // rows of 23 begin anywhere
    odd.strides[0] = 23;
    odd.sizes = {20, 23};
    kernels::fp8_matmul(queue_on(kind), y, View::none(), odd, odd, View::none(), scale, scale, {});
    EXPECT_EQ(y.host(), std::vector<double>(400, 23));
  });
}

TEST(Fp8, NanReachesTheProductAndWhatIsTooLargeDoesNot) {
  on_both_generations([](DeviceKind kind) {
    const DeviceArray x(kind, DType::f32, {2, 16},
                        [] {
                          std::vector<double> values(32, 1);
                          values[3] = NAN;
                          values[20] = INFINITY;
                          return values;
                        }()),
        scale(kind, DType::f32, {1}, {1}), y(kind, DType::f32, {2, 2});
    const Codes codes(kind, 2, 16), ones(kind, 2, 16);
    const DeviceArray plain(kind, DType::f32, {2, 16}, std::vector<double>(32, 1));
    kernels::fp8_quantize(queue_on(kind), codes.view, View::none(), View::none(), x, scale, Fp8::e4m3);
    kernels::fp8_quantize(queue_on(kind), ones.view, View::none(), View::none(), plain, scale, Fp8::e4m3);
    kernels::fp8_matmul(queue_on(kind), y, View::none(), codes.view, ones.view, View::none(), scale, scale, {});
    EXPECT_TRUE(near(y.host(), {NAN, NAN, 15 + 448, 15 + 448}, {}));
  });
}

TEST(Fp8, TheSameBitsInEveryRun) {
  on_both_generations([](DeviceKind kind) {
    const Factor a(kind, Fp8::e5m2, 60, 1500), b(kind, Fp8::e4m3, 56, 1500);
    const DeviceArray scale(kind, DType::f32, {1}, {2});
    std::vector<double> first;
    in_orders(2, [&] {
      const DeviceArray y(kind, DType::f32, {60, 56});
      kernels::fp8_matmul(queue_on(kind), y, View::none(), a.codes.view, b.codes.view, View::none(), scale, scale,
                          {.a = Fp8::e5m2});
      if (first.empty()) first = y.host();
      EXPECT_EQ(y.host(), first);
    });
  });
}

TEST(Fp8, RefusesWhatDoesNotFit) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {4, 20}), scale(kind, DType::f32, {1}), dense(kind, DType::u8, {4, 20}),
        y(kind, DType::bf16, {4, 4}), wide(kind, DType::f64, {4, 4}), long_scale(kind, DType::f32, {2});
    const Codes codes(kind, 4, 20);
    const auto quantize = [&](const View& to, const View& from, const View& by) {
      return error_text(
          [&] { kernels::fp8_quantize(queue_on(kind), to, View::none(), View::none(), from, by, Fp8::e4m3); });
    };
    EXPECT_EQ(
        quantize(dense, x, scale),
        "fp8_quantize: expected codes u8[4,20] whose rows begin at multiples of 16 bytes, got u8[4,20] with pitch 20");
    EXPECT_EQ(quantize(codes.view, wide, scale),
              "fp8_quantize: expected f32 or bf16 [rows, columns] with dense rows, got f64[4,4]");
    EXPECT_EQ(quantize(codes.view, x, long_scale),
              "fp8_quantize: expected a scale f32[1], and amax f32[1] or none, got f32[2] and f32[]");
    const auto product = [&](const View& to, const View& right) {
      return error_text([&] {
        kernels::fp8_matmul(queue_on(kind), to, View::none(), codes.view, right, View::none(), scale, scale, {});
      });
    };
    EXPECT_EQ(product(wide, codes.view), "fp8_matmul: expected a dense result in bf16 or f32, got f64[4,4]");
    EXPECT_EQ(product(y, x),
              "fp8_matmul: expected [M,N] = u8[M,K] @ u8[N,K]^T with dense rows of codes, got bf16[4,4] = u8[4,20] @ "
              "f32[4,20]^T");
    EXPECT_EQ(error_text([&] { kernels::fp8_update_scale(queue_on(kind), scale, x, View::none(), {}); }),
              "fp8_update_scale: expected dense f32 scale [n], amaxes [n, history] and latest [n] or none, got f32[1], "
              "f32[4,20] and f32[]");
  }
}

}  // namespace
}  // namespace weft::tests
