// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "kernels/contracts/unary_table.h"
#include "kernels/kernel.h"
#include "kernels/number.h"

namespace weft::kernels {

/// Elementwise functions of one tensor: the rows of kernels/contracts/unary_table.h, which gives the formulas.
enum class Unary : uint8_t {
#define WEFT_ROW(name, ...) name,
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
};

#define WEFT_ROW(...) +1
inline constexpr int kUnaryCount = WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW);
#undef WEFT_ROW

/// The scalars a and b of a formula.
struct UnaryArguments {
  Number a = 0, b = 0;
};

/// y = f(x). Same sizes, same dtype, any strides: floating, or i64 or i32 if unary_takes_integers(f). Computed
/// in f32 (f64 for f64).
WEFT_KERNEL(unary_forward, const Queue& queue, Unary f, const View& y, const View& x, UnaryArguments arguments);

/// dx = dy f'(x). `saved` is x, or y if unary_saves_output(f): the derivative is then computed from the output.
WEFT_KERNEL(unary_backward, const Queue& queue, Unary f, const View& dx, const View& dy, const View& saved,
            UnaryArguments arguments);

/// Whether unary_backward needs y rather than x.
constexpr bool unary_saves_output(Unary f) {
  enum class From { x, y };
#define WEFT_ROW(name, numbers, from, ...) (f == Unary::name && From::from == From::y) ||
  return WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW) false;
#undef WEFT_ROW
}

/// Whether the function also supports i64 and i32.
constexpr bool unary_takes_integers(Unary f) {
  enum class Numbers { floating, any };
#define WEFT_ROW(name, numbers, ...) (f == Unary::name && Numbers::numbers == Numbers::any) ||
  return WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW) false;
#undef WEFT_ROW
}

}  // namespace weft::kernels
