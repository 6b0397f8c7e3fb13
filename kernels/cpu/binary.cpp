// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/binary.h"

#include "kernels/contracts/binary_math.h"
#include "kernels/cpu/elements.h"
#include "kernels/with_bits.h"

namespace weft::kernels::cpu {
namespace {

// One dense run of a formula: the loop nest around it is compiled once, not once per formula.
template <class Y, class C>
using Formula = void (*)(Y* y, const std::array<const C*, 2>& x, int64_t n, C alpha);

template <Binary f, class C>
void binary_run(C* y, const std::array<const C*, 2>& x, int64_t n, C alpha) {
  const C *a = x[0], *b = x[1];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = binary_value<f>(a[i], b[i], alpha);
}

template <Compare f, class C>
void compare_run(bool* y, const std::array<const C*, 2>& x, int64_t n, C) {
  const C *a = x[0], *b = x[1];
  for (int64_t i = 0; i < n; ++i) y[i] = compare_value<f>(a[i], b[i]);
}

template <class Y, class C>
void map_formula(Formula<Y, C> formula, const View& y, const View& a, const View& b, C alpha) {
  map<Y, C, 2>(y, {&a, &b},
               [formula, alpha](Y* out, const std::array<const C*, 2>& in, int64_t n) { formula(out, in, n, alpha); });
}

}  // namespace

void binary_forward(const Queue&, Binary f, const View& y, const View& a, const View& b, Number alpha) {
  WEFT_CHECK(y.same_sizes(a) && y.same_sizes(b) && y.dtype == a.dtype && y.dtype == b.dtype,
             "binary_forward: expected a and b like y ", y, ", got ", a, " and ", b);
  with_compute_type(y.dtype, [&]<class C>() {
    Formula<C, C> formula = nullptr;
    with_binary(f, [&]<Binary kF>() { formula = binary_run<kF, C>; });
    map_formula<C, C>(formula, y, a, b, static_cast<C>(alpha));
  });
}

void compare(const Queue&, Compare f, const View& y, const View& a, const View& b) {
  WEFT_CHECK(y.same_sizes(a) && y.same_sizes(b) && y.dtype == DType::boolean && a.dtype == b.dtype,
             "compare: expected a bool y and one dtype of one size, got ", y, ", ", a, " and ", b);
  with_compute_type(a.dtype, [&]<class C>() {
    Formula<bool, C> formula = nullptr;
    with_compare(f, [&]<Compare kF>() { formula = compare_run<kF, C>; });
    map_formula<bool, C>(formula, y, a, b, C(0));
  });
}

namespace {

/// Both sides are read and masked: the loop has no branch and vectorises. A step is 0 where one element stands for all.
template <class Bits, int64_t kLeftStep, int64_t kRightStep>
void choose(Bits* out, const bool* chosen, const Bits* left, const Bits* right, int64_t n) {
  const auto* const ones = reinterpret_cast<const uint8_t*>(chosen);
  for (int64_t i = 0; i < n; ++i) {
    const Bits mask = static_cast<Bits>(-(ones[i] != 0));
    out[i] = static_cast<Bits>((left[i * kLeftStep] & mask) | (right[i * kRightStep] & ~mask));
  }
}

// Only the size of an element matters here: its bits are moved, not read.
template <class Bits>
void where_bits(const View& y, const View& condition, const View& a, const View& b) {
  const Nest<4> nest({&y, &condition, &a, &b});
  const auto [sy, sc, sa, sb] = nest.inner_strides();
  parallel_for(nest.total, 1, [&, sy = sy, sc = sc, sa = sa, sb = sb](int64_t begin, int64_t end) {
    nest.walk(begin, end, [&](const auto& offset, int64_t n) {
      Bits* out = static_cast<Bits*>(y.data) + offset[0];
      const bool* chosen = static_cast<const bool*>(condition.data) + offset[1];
      const Bits* left = static_cast<const Bits*>(a.data) + offset[2];
      const Bits* right = static_cast<const Bits*>(b.data) + offset[3];
      if (sy == 1 && sc == 1 && sa <= 1 && sb <= 1) {
        const auto run =
            sa ? (sb ? choose<Bits, 1, 1> : choose<Bits, 1, 0>) : (sb ? choose<Bits, 0, 1> : choose<Bits, 0, 0>);
        return run(out, chosen, left, right, n);
      }
      for (int64_t i = 0; i < n; ++i) out[i * sy] = chosen[i * sc] ? left[i * sa] : right[i * sb];
    });
  });
}

}  // namespace

void where(const Queue&, const View& y, const View& condition, const View& a, const View& b) {
  WEFT_CHECK(y.same_sizes(a) && y.same_sizes(b) && y.same_sizes(condition) && y.dtype == a.dtype &&
                 y.dtype == b.dtype && condition.dtype == DType::boolean,
             "where: expected a bool condition and one dtype of one size, got ", y, ", ", condition, ", ", a, ", ", b);
  with_bits(y.dtype, [&]<class Bits>() { where_bits<Bits>(y, condition, a, b); });
}

}  // namespace weft::kernels::cpu
