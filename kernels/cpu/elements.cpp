// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elements.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace weft::kernels::cpu {
namespace {

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>)
    return To(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

template <class Body>
void with_any(DType dtype, Body&& body) {
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(dtype, "elements", body);
}

/// Dense binary16 to f32 and back, eight at a time by the processor's conversions; returns how many were converted.
int64_t convert_eights([[maybe_unused]] float* out, [[maybe_unused]] const f16* in, [[maybe_unused]] int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
#endif
  return i;
}
int64_t convert_eights([[maybe_unused]] f16* out, [[maybe_unused]] const float* in, [[maybe_unused]] int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  return i;
}

template <class C>
void load_run(C* out, const Run& run, int64_t n) {
  with_any(run.dtype, [&]<class T>() {
    const T* in = static_cast<const T*>(run.data);
    if (run.stride == 1) {
      int64_t i = 0;
      if constexpr (std::is_same_v<T, f16> && std::is_same_v<C, float>) i = convert_eights(out, in, n);
      for (; i < n; ++i) out[i] = static_cast<C>(in[i]);
    } else if (run.stride == 0) {
      std::fill_n(out, n, static_cast<C>(in[0]));
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(in[i * run.stride]);
    }
  });
}

template <class C>
void store_run(const Run& run, const C* in, int64_t n) {
  with_any(run.dtype, [&]<class T>() {
    T* out = static_cast<T*>(run.data);
    if (run.stride == 1) {
      int64_t i = 0;
      if constexpr (std::is_same_v<T, f16> && std::is_same_v<C, float>) i = convert_eights(out, in, n);
      for (; i < n; ++i) out[i] = convert<T>(in[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * run.stride] = convert<T>(in[i]);
    }
  });
}

}  // namespace

void load(float* out, const Run& run, int64_t n) { load_run(out, run, n); }
void load(double* out, const Run& run, int64_t n) { load_run(out, run, n); }
void load(int64_t* out, const Run& run, int64_t n) { load_run(out, run, n); }
void store(const Run& run, const float* in, int64_t n) { store_run(run, in, n); }
void store(const Run& run, const double* in, int64_t n) { store_run(run, in, n); }
void store(const Run& run, const int64_t* in, int64_t n) { store_run(run, in, n); }
void store(const Run& run, const bool* in, int64_t n) { store_run(run, in, n); }

}  // namespace weft::kernels::cpu
