// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>

#include "kernels/cpu/nest.h"
#include "kernels/cpu/parallel.h"
#include "kernels/view.h"

namespace weft::kernels::cpu {

// Elementwise kernels compute in float, double or int64_t on short dense runs. Other dtypes and strides pass through a
// buffer in the first-level cache, so that each formula is compiled once per computing type and always vectorised.

/// Where a run of elements lies: element i is at data + i * stride.
struct Run {
  void* data;
  DType dtype;
  int64_t stride;
};

/// out[i] = element i of the run, converted.
void load(float* out, const Run& run, int64_t n);
void load(double* out, const Run& run, int64_t n);
void load(int64_t* out, const Run& run, int64_t n);

/// Element i of the run = in[i], converted (floating to integer truncates; bool is `!= 0`).
void store(const Run& run, const float* in, int64_t n);
void store(const Run& run, const double* in, int64_t n);
void store(const Run& run, const int64_t* in, int64_t n);
void store(const Run& run, const bool* in, int64_t n);

/// The n elements of a run as C, through `buffer` unless they lie there already.
template <class C>
const C* elements(const Run& run, int64_t n, C* buffer) {
  if (run.dtype == dtype_of<C> && run.stride == 1) return static_cast<const C*>(run.data);
  load(buffer, run, n);
  return buffer;
}

inline void* element(const View& view, int64_t offset) {
  return static_cast<char*>(view.data) + offset * static_cast<int64_t>(size_of(view.dtype));
}

/// Calls body.operator()<C>() with the type in which elements of this dtype are computed.
template <class Body>
void with_compute_type(DType dtype, Body&& body) {
  if (dtype == DType::f64) return body.template operator()<double>();
  if (is_floating(dtype)) return body.template operator()<float>();
  return body.template operator()<int64_t>();
}

/// value(0) + … + value(n - 1), each a number of type S. 32 partial sums, also without vector instructions, take
/// at most eight numbers each and are then added in Wide. Long sums of equal numbers would all round in one
/// direction.
template <class S, class Wide, class Value>
Wide sum_in_lanes(int64_t n, const Value& value) {
  constexpr int64_t kLanes = 32, kTerms = 8, kTotals = 8;
  Wide totals[kTotals] = {};
  int64_t i = 0;
  while (i + kLanes <= n) {
    S lanes[kLanes] = {};
    for (const int64_t end = std::min(i + kLanes * kTerms, n); i + kLanes <= end; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += value(i + l);
    for (int64_t l = 0; l < kTotals; ++l)
      totals[l] += (static_cast<Wide>(lanes[l]) + static_cast<Wide>(lanes[l + 8])) +
                   (static_cast<Wide>(lanes[l + 16]) + static_cast<Wide>(lanes[l + 24]));
  }
  Wide result = 0;
  for (; i < n; ++i) result += static_cast<Wide>(value(i));
  for (const Wide total : totals) result += total;
  return result;
}

/// y = f(x0, x1, …) elementwise over views of equal sizes: `inner(Y* y, const std::array<const C*, N>& x, int64_t n)`
/// computes n dense elements and is called from several threads. y may be the same memory as an x of the same strides.
template <class Y, class C, size_t N, class Inner>
void map(const View& y, const std::array<const View*, N>& x, const Inner& inner) {
  bool direct = y.dtype == dtype_of<Y> && y.is_contiguous();
  for (const View* view : x) direct = direct && view->dtype == dtype_of<C> && view->is_contiguous();
  if (direct) {
    parallel_for(y.numel(), 1, [&](int64_t begin, int64_t end) {
      std::array<const C*, N> inputs;
      for (size_t v = 0; v < N; ++v) inputs[v] = static_cast<const C*>(x[v]->data) + begin;
      inner(static_cast<Y*>(y.data) + begin, inputs, end - begin);
    });
    return;
  }

  std::array<const View*, N + 1> views{&y};
  for (size_t v = 0; v < N; ++v) views[v + 1] = x[v];
  const Nest<static_cast<int>(N) + 1> nest(views);
  const auto& strides = nest.inner_strides();
  parallel_for(nest.total, 1, [&](int64_t range_begin, int64_t range_end) {
    constexpr int64_t kBuffer = 512;
    alignas(64) C buffers[N][kBuffer];
    alignas(64) Y result[kBuffer];
    nest.walk(range_begin, range_end, [&](const auto& offsets, int64_t run_length) {
      for (int64_t at = 0; at < run_length; at += kBuffer) {
        const int64_t n = std::min(kBuffer, run_length - at);
        std::array<const C*, N> inputs;
        for (size_t v = 0; v < N; ++v) {
          void* const from = element(*x[v], offsets[v + 1] + at * strides[v + 1]);
          inputs[v] = elements({from, x[v]->dtype, strides[v + 1]}, n, buffers[v]);
        }
        const Run run{element(y, offsets[0] + at * strides[0]), y.dtype, strides[0]};
        const bool dense = run.dtype == dtype_of<Y> && run.stride == 1;
        inner(dense ? static_cast<Y*>(run.data) : result, inputs, n);
        if (!dense) store(run, result, n);
      }
    });
  });
}

}  // namespace weft::kernels::cpu
