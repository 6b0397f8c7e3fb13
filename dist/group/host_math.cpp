// SPDX-License-Identifier: Apache-2.0
#include "dist/group/host_math.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace weft::dist {
namespace {

// The type of a sum: integers wrap around as on a GPU.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, bf16> || std::is_same_v<T, f16>, float,
                               std::conditional_t<std::is_same_v<T, int64_t>, uint64_t,
                                                  std::conditional_t<std::is_same_v<T, int32_t>, uint32_t, T>>>;
template <class T>
using Max = std::conditional_t<std::is_same_v<T, bf16> || std::is_same_v<T, f16>, float, T>;

template <class A>
A larger(A a, A b) {
  return b > a || b != b ? b : a;
}

template <class A>
A smaller(A a, A b) {
  return b < a || b != b ? b : a;
}

// Elements that are reduced together, so that the partial results stay in the first-level cache.
constexpr size_t kBlock = 1024;

// output and inputs may be the same memory, element by element: nothing is carried from one iteration to the next.
template <class T, class A, class Combine, class Finish>
void reduce_blocks(T* output, std::span<const void* const> inputs, size_t count, Combine combine, Finish finish) {
  if (inputs.size() == 2) {
    const T* const a = static_cast<const T*>(inputs[0]);
    const T* const b = static_cast<const T*>(inputs[1]);
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) output[i] = finish(combine(static_cast<A>(a[i]), static_cast<A>(b[i])));
    return;
  }
  alignas(64) std::array<A, kBlock> partial;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    const auto at = [&](size_t k) { return static_cast<const T*>(inputs[k]) + begin; };
    const T* const first = at(0);
    for (size_t i = 0; i < n; ++i) partial[i] = static_cast<A>(first[i]);
    for (size_t k = 1; k < inputs.size(); ++k) {
      const T* const next = at(k);
      for (size_t i = 0; i < n; ++i) partial[i] = combine(partial[i], static_cast<A>(next[i]));
    }
    for (size_t i = 0; i < n; ++i) output[begin + i] = finish(partial[i]);
  }
}

template <class T>
void reduce_as(ReduceOp op, T* output, std::span<const void* const> inputs, size_t count) {
  if (op == ReduceOp::max || op == ReduceOp::min) {
    using A = Max<T>;
    const auto rounded = [](A a) { return static_cast<T>(a); };
    return op == ReduceOp::max ? reduce_blocks<T, A>(output, inputs, count, larger<A>, rounded)
                               : reduce_blocks<T, A>(output, inputs, count, smaller<A>, rounded);
  }
  using A = Sum<T>;
  const auto add = [](A a, A b) { return static_cast<A>(a + b); };
  if (op == ReduceOp::avg) {
    const A n = static_cast<A>(inputs.size());
    return reduce_blocks<T, A>(output, inputs, count, add, [n](A a) { return static_cast<T>(a / n); });
  }
  reduce_blocks<T, A>(output, inputs, count, add, [](A a) { return static_cast<T>(a); });
}

}  // namespace

void reduce(DType dtype, ReduceOp op, void* output, std::span<const void* const> inputs, size_t count) {
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t>(
      dtype, "reduce", [&]<class T>() { reduce_as(op, static_cast<T*>(output), inputs, count); });
}

void scale(DType dtype, void* output, const void* input, double factor, size_t count) {
  with_dtype<float, double, bf16, f16>(dtype, "scale", [&]<class T>() {
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* const from = static_cast<const T*>(input);
    T* const to = static_cast<T*>(output);
    const A f = static_cast<A>(factor);
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<T>(static_cast<A>(from[i]) * f);
  });
}

}  // namespace weft::dist
