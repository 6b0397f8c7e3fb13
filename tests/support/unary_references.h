// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/contracts/unary.h"

namespace weft::tests {

/// The numbers for which a function is smooth, so that central differences are its derivative; between_halves: but for
/// multiples of 0.5.
enum class Domain { all, positive, but_zero, between_halves };

/// The reference of a row of kernels/contracts/unary_table.h is tested against: the function in f64, by other formulas
/// than the row's.
struct UnaryReference {
  kernels::Unary function;
  Domain domain;
  double (*value)(double x, double a, double b);
};

// clang-format off
inline constexpr UnaryReference kUnaryReferences[] = {
    {kernels::Unary::affine, Domain::all, [](double x, double a, double b) { return a * x + b; }},
    {kernels::Unary::neg, Domain::all, [](double x, double, double) { return -x; }},
    {kernels::Unary::abs, Domain::but_zero, [](double x, double, double) { return std::abs(x); }},
    {kernels::Unary::sign, Domain::but_zero, [](double x, double, double) { return x > 0 ? 1. : x < 0 ? -1. : 0.; }},
    {kernels::Unary::square, Domain::all, [](double x, double, double) { return x * x; }},
    {kernels::Unary::sqrt, Domain::positive, [](double x, double, double) { return std::sqrt(x); }},
    {kernels::Unary::rsqrt, Domain::positive, [](double x, double, double) { return 1 / std::sqrt(x); }},
    {kernels::Unary::reciprocal, Domain::positive, [](double x, double, double) { return 1 / x; }},
    {kernels::Unary::exp, Domain::all, [](double x, double, double) { return std::exp(x); }},
    {kernels::Unary::log, Domain::positive, [](double x, double, double) { return std::log(x); }},
    {kernels::Unary::sin, Domain::all, [](double x, double, double) { return std::sin(x); }},
    {kernels::Unary::cos, Domain::all, [](double x, double, double) { return std::cos(x); }},
    {kernels::Unary::pow, Domain::positive, [](double x, double a, double) { return std::pow(x, a); }},
    {kernels::Unary::clamp, Domain::but_zero, [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
    {kernels::Unary::relu, Domain::but_zero, [](double x, double, double) { return std::max(x, 0.0); }},
    {kernels::Unary::leaky_relu, Domain::but_zero, [](double x, double a, double) { return x > 0 ? x : a * x; }},
    {kernels::Unary::sigmoid, Domain::all, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {kernels::Unary::tanh, Domain::all, [](double x, double, double) { return std::tanh(x); }},
    {kernels::Unary::gelu, Domain::all, [](double x, double, double) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {kernels::Unary::gelu_tanh, Domain::all, [](double x, double, double) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }},
    {kernels::Unary::log1p, Domain::positive, [](double x, double, double) { return std::log(1 + x); }},
    {kernels::Unary::expm1, Domain::all, [](double x, double, double) { return 2 * std::exp(x / 2) * std::sinh(x / 2); }},
    {kernels::Unary::erf, Domain::all, [](double x, double, double) { return 1 - std::erfc(x); }},
    {kernels::Unary::floor, Domain::between_halves, [](double x, double, double) { return x - (x - std::floor(x)); }},
    {kernels::Unary::ceil, Domain::between_halves, [](double x, double, double) { return -std::floor(-x); }},
    {kernels::Unary::round, Domain::between_halves, [](double x, double, double) { return x - std::remainder(x, 1.0); }},
    {kernels::Unary::silu, Domain::all, [](double x, double, double) { return x * 0.5 * (1 + std::tanh(x / 2)); }},
    {kernels::Unary::softplus, Domain::all, [](double x, double, double) { return std::log(1 + std::exp(x)); }},
    {kernels::Unary::mish, Domain::all, [](double x, double, double) {
       const double square = (1 + std::exp(x)) * (1 + std::exp(x));
       return x * (square - 1) / (square + 1); }},
    {kernels::Unary::elu, Domain::but_zero, [](double x, double a, double) { return x > 0 ? x : a * (std::exp(x) - 1); }},
};
// clang-format on

/// Errors: the function has no row above.
inline const UnaryReference& reference_of(kernels::Unary function) {
  for (const UnaryReference& reference : kUnaryReferences)
    if (reference.function == function) return reference;
  fail("function ", static_cast<int>(function),
       " of kernels/contracts/unary_table.h has no row in tests/support/unary_references.h");
}

/// Its name in the table.
inline const char* name(kernels::Unary function) {
  static constexpr const char* kNames[] = {
#define WEFT_ROW(name, ...) #name,
      WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
  };
  return kNames[static_cast<int>(function)];
}

}  // namespace weft::tests
