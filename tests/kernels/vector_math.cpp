// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include "kernels/contracts/unary.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"

namespace weft::tests {
namespace {

using kernels::Unary;
using kernels::cpu::VectorMath;

/// The distance of an f32 result from the exact one in units of its last place (of 2^-149 among subnormals).
double distance_in_ulp(float got, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(rounded)) {
    const bool same = std::isnan(exact) ? std::isnan(got) : got == rounded;
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::isfinite(got) ? std::abs(got - exact) / ulp : std::numeric_limits<double>::infinity();
}

/// Every 4099th bit pattern: both signs, subnormals, infinities and a thousand NaN; and the neighbours of the
/// polynomials' seams.
std::vector<float> all_over_f32() {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float seam :
       {0.0f, 1.0f, 18.0f, 0.34657359f, 0.625f, 0.945f, 4.0f, 88.72284f, 87.33655f, 103.97208f, 104.0f, 89.0f,
        0.70710677f, std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min(),
        std::numeric_limits<float>::max(), infinity, std::numeric_limits<float>::quiet_NaN()})
    for (const float sign : {1.0f, -1.0f}) {
      values.push_back(sign * seam);
      values.push_back(std::nextafter(sign * seam, infinity));
      values.push_back(std::nextafter(sign * seam, -infinity));
    }
  return values;
}

struct Function {
  const char* name;
  Unary unary;
  float (*single)(float);
  double (*exact)(double);
};

const Function kFunctions[] = {
    {"exp", Unary::exp, [](float x) { return VectorMath::exp(x); }, [](double x) { return std::exp(x); }},
    {"log", Unary::log, [](float x) { return VectorMath::log(x); }, [](double x) { return std::log(x); }},
    {"expm1", Unary::expm1, [](float x) { return VectorMath::expm1(x); }, [](double x) { return std::expm1(x); }},
    {"log1p", Unary::log1p, [](float x) { return VectorMath::log1p(x); }, [](double x) { return std::log1p(x); }},
    {"tanh", Unary::tanh, [](float x) { return VectorMath::tanh(x); }, [](double x) { return std::tanh(x); }},
    {"erf", Unary::gelu, [](float x) { return VectorMath::erf(x); }, [](double x) { return std::erf(x); }}};

// As this file is compiled: without fused multiply-add on the oldest processors.
TEST(VectorMath, WithinTwoUlpOverAllOfF32) {
  for (const Function& f : kFunctions) {
    double worst = 0;
    float at = 0;
    for (const float x : all_over_f32()) {
      const double distance = distance_in_ulp(f.single(x), f.exact(x));
      if (distance > worst) worst = distance, at = x;
    }
    EXPECT_LE(worst, 2) << f.name << " at " << at;
  }
}

// As the kernels are compiled: vectorised for this processor.
TEST(VectorMath, WithinTwoUlpInTheKernels) {
  const std::vector<float> x = all_over_f32();
  std::vector<float> y(x.size());
  const auto view = [](const std::vector<float>& values) {
    return kernels::View::dense(const_cast<float*>(values.data()), DType::f32, {static_cast<int64_t>(values.size())});
  };
  for (const Function& f : kFunctions) {
    if (f.unary == Unary::gelu) continue;  // erf has no kernel of its own
    kernels::unary_forward(queue_on(DeviceKind::cpu), f.unary, view(y), view(x), {});
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double distance = distance_in_ulp(y[i], f.exact(x[i]));
      if (distance > worst) worst = distance, at = x[i];
    }
    EXPECT_LE(worst, 2) << f.name << " at " << at;
  }
}

// GELU of bf16 is a formula of its own. Every bf16 there is: half a unit in the last place, of 2^-8 at most, for the
// rounding, and what vector_math.h states for the formula.
TEST(VectorMath, GeluForBf16) {
  std::vector<bf16> x(1 << 16), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i);
  const auto view = [](std::vector<bf16>& values) {
    return kernels::View::dense(values.data(), DType::bf16, {static_cast<int64_t>(values.size())});
  };
  kernels::unary_forward(queue_on(DeviceKind::cpu), Unary::gelu, view(y), view(x), {});
  for (size_t i = 0; i < x.size(); ++i) {
    const double in = x[i], exact = 0.5 * in * std::erfc(-in * std::sqrt(0.5));
    const double formula =
        std::abs(in) <= 5 ? std::ldexp(std::abs(exact), -13) : 4e-9 + std::ldexp(std::abs(exact), -22);
    const double smallest = std::numeric_limits<float>::min() / 256;  // half a unit among subnormals
    const double bound = std::ldexp(std::abs(exact) + formula, -8) + formula + smallest;
    const float got = y[i], single = VectorMath::gelu_for_bf16(x[i]);
    if (std::isfinite(exact)) {
      ASSERT_LE(std::abs(got - exact), bound) << "gelu of " << in;
      ASSERT_LE(std::abs(single - exact), formula + smallest) << "gelu_for_bf16 of " << in;
    } else {
      ASSERT_TRUE(std::isnan(exact) ? std::isnan(got) : got == exact) << "gelu of " << in << ": " << got;
    }
    if (exact != 0 && std::abs(in) < 5) {
      ASSERT_EQ(std::signbit(got), std::signbit(exact)) << in;
    }
  }
}

TEST(VectorMath, SignOfZeroStays) {
  for (const Function& f : kFunctions) {
    if (f.exact(0) != 0) continue;
    EXPECT_TRUE(std::signbit(f.single(-0.0f))) << f.name;
    EXPECT_FALSE(std::signbit(f.single(0.0f))) << f.name;
  }
}

}  // namespace
}  // namespace weft::tests
