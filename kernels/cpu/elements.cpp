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

/// Dense binary16 to f32 and back by the processor's conversions, where it has them; else 0 of the n are done. The last
/// few pass through a buffer: what becomes of a NaN must not depend on its place.
#ifdef __F16C__
void convert_eight(float* out, const f16* in) {
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
}
void convert_eight(f16* out, const float* in) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
template <class To, class From>
int64_t convert_f16(To* out, const From* in, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) convert_eight(out + i, in + i);
  From rest[8] = {};
  To converted[8];
  std::copy(in + i, in + n, rest);
  convert_eight(converted, rest);
  std::copy_n(converted, n - i, out + i);
  return n;
}
#else
template <class To, class From>
int64_t convert_f16(To*, const From*, int64_t) {
  return 0;
}
#endif

template <class C>
void load_run(C* out, const Run& run, int64_t n) {
  with_any(run.dtype, [&]<class T>() {
    const T* in = static_cast<const T*>(run.data);
    if (run.stride == 1) {
      int64_t i = 0;
      if constexpr (std::is_same_v<T, f16> && std::is_same_v<C, float>) i = convert_f16(out, in, n);
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
      if constexpr (std::is_same_v<T, f16> && std::is_same_v<C, float>) i = convert_f16(out, in, n);
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
