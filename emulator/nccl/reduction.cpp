// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "emulator/nccl/number.h"

namespace emulator::nccl {
namespace {

constexpr size_t kBlock = 1024;  // elements; accumulators stay in the first cache

template <class T, class = void>
struct Wide {
  using Type = T;
  static T widen(T x) { return x; }
  static T narrow(T x) { return x; }
};
template <class T>
struct Wide<T, std::void_t<typename T::Wide>> {
  using Type = typename T::Wide;
  static Type widen(T x) { return x.widen(); }
  static T narrow(Type x) { return T::narrow(x); }
};

/// In unsigned arithmetic, where overflow is defined.
template <class W, class F>
W wrapping(W a, W b, F f) {
  if constexpr (std::is_integral_v<W>) {
    using U = std::common_type_t<std::make_unsigned_t<W>, unsigned>;
    return static_cast<W>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

struct Add {
  template <class W>
  static W apply(W a, W b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Multiply {
  template <class W>
  static W apply(W a, W b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Maximum {
  template <class W>
  static W apply(W a, W b) {
    if constexpr (std::is_floating_point_v<W>)
      return b > a || a != a ? b : a;
    else
      return std::max(a, b);
  }
};
struct Minimum {
  template <class W>
  static W apply(W a, W b) {
    if constexpr (std::is_floating_point_v<W>)
      return b < a || a != a ? b : a;
    else
      return std::min(a, b);
  }
};

template <class T>
T element(const std::byte* data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
typename Wide<T>::Type factor_of(const Part& part) {
  T value;
  std::memcpy(&value, &part.factor, sizeof(T));
  return Wide<T>::widen(value);
}

template <class T, class Operator>
void run(const Descriptor& what, std::span<const Part> parts, std::byte* out, size_t count) {
  using W = typename Wide<T>::Type;
  const bool scaled = what.op == Descriptor::kScaledSum, mean = what.op == ncclAvg;
  const W n = static_cast<W>(parts.size());
  W sums[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    for (size_t p = 0; p < parts.size(); ++p) {
      const std::byte* const data = parts[p].data + begin * sizeof(T);
      const W factor = scaled ? factor_of<T>(parts[p]) : W{1};
      if (p == 0)
        for (size_t i = 0; i < size; ++i) sums[i] = Wide<T>::widen(element<T>(data, i));
      if (p == 0 && scaled)
        for (size_t i = 0; i < size; ++i) sums[i] = Multiply::apply(sums[i], factor);
      if (p == 0) continue;
      if (scaled)
        for (size_t i = 0; i < size; ++i)
          sums[i] = Add::apply(sums[i], Multiply::apply(Wide<T>::widen(element<T>(data, i)), factor));
      else
        for (size_t i = 0; i < size; ++i) sums[i] = Operator::apply(sums[i], Wide<T>::widen(element<T>(data, i)));
    }
    if (mean)
      for (size_t i = 0; i < size; ++i) sums[i] = static_cast<W>(sums[i] / n);
    for (size_t i = 0; i < size; ++i) {
      const T value = Wide<T>::narrow(sums[i]);
      std::memcpy(out + (begin + i) * sizeof(T), &value, sizeof(T));
    }
  }
}

template <class T>
void run(const Descriptor& what, std::span<const Part> parts, std::byte* out, size_t count) {
  switch (what.op) {
    case ncclProd:
      return run<T, Multiply>(what, parts, out, count);
    case ncclMax:
      return run<T, Maximum>(what, parts, out, count);
    case ncclMin:
      return run<T, Minimum>(what, parts, out, count);
    default:
      return run<T, Add>(what, parts, out, count);
  }
}

}  // namespace

void reduce(const Descriptor& what, std::span<const Part> parts, std::byte* out, size_t count) {
  switch (what.dtype()) {
    case ncclInt8:
      return run<int8_t>(what, parts, out, count);
    case ncclUint8:
      return run<uint8_t>(what, parts, out, count);
    case ncclInt32:
      return run<int32_t>(what, parts, out, count);
    case ncclUint32:
      return run<uint32_t>(what, parts, out, count);
    case ncclInt64:
      return run<int64_t>(what, parts, out, count);
    case ncclUint64:
      return run<uint64_t>(what, parts, out, count);
    case ncclFloat16:
      return run<Half>(what, parts, out, count);
    case ncclFloat32:
      return run<float>(what, parts, out, count);
    case ncclFloat64:
      return run<double>(what, parts, out, count);
    case ncclBfloat16:
      return run<Bfloat16>(what, parts, out, count);
    case ncclFloat8e4m3:
      return run<Float8E4m3>(what, parts, out, count);
    case ncclFloat8e5m2:
      return run<Float8E5m2>(what, parts, out, count);
    default:
      return;
  }
}

}  // namespace emulator::nccl
