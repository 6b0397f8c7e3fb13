// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/random.h"

#include <cmath>

namespace weft::kernels {
namespace {

/// The number of T after or before x.
template <class T>
T next(T x, bool up) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::nextafter(x, static_cast<T>(up ? INFINITY : -INFINITY));
  } else {
    if ((x.bits & 0x7fff) == 0)
      x.bits = up ? 0x0001 : 0x8001;
    else
      x.bits = static_cast<uint16_t>(x.bits + (up == (x.bits < 0x8000) ? 1 : -1));
    return x;
  }
}

template <class T>
double wide(T x) {
  return static_cast<double>(static_cast<Accumulate<T>>(x));
}

/// The least number of T that is not below x.
template <class T>
T first_from(double x) {
  T y(static_cast<Accumulate<T>>(x));
  while (wide(y) < x) y = next(y, true);
  while (wide(next(y, false)) >= x) y = next(y, false);
  return y;
}

}  // namespace

UniformRange uniform_range(DType dtype, double low, double high) {
  WEFT_CHECK(low <= high && std::isfinite(low) && std::isfinite(high), "uniform: expected finite low <= high, got ",
             low, " and ", high);
  UniformRange range{low, high, low, high};
  with_dtype<float, double, bf16, f16>(dtype, "uniform", [&]<class T>() {
    using A = Accumulate<T>;
    WEFT_CHECK(std::isfinite(wide(T(static_cast<A>(low)))) && std::isfinite(wide(T(static_cast<A>(high)))) &&
                   std::isfinite(static_cast<A>(high - low)),
               "uniform: ", dtype, " does not hold the range from ", low, " to ", high);
    if (low == high) {
      range.least = range.most = wide(T(static_cast<A>(low)));
      return;
    }
    range.least = wide(first_from<T>(low));
    range.most = wide(next(first_from<T>(high), false));
    WEFT_CHECK(range.least <= range.most, "uniform: no ", dtype, " lies in [", low, ", ", high, ")");
  });
  return range;
}

}  // namespace weft::kernels
