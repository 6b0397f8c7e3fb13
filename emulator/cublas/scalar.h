// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <library_types.h>

#include <complex>
#include <type_traits>

#include "emulator/cublaslt/number.h"

namespace emulator::blas {

template <class S>
struct Parts {
  using Real = S;
  using Wide = double;  ///< sums over a vector are accumulated in this type
  static constexpr bool kComplex = false;
};
template <class R>
struct Parts<std::complex<R>> {
  using Real = R;
  using Wide = std::complex<double>;
  static constexpr bool kComplex = true;
};

constexpr bool is_complex(cudaDataType_t type) { return type == CUDA_C_32F || type == CUDA_C_64F; }
/// Bytes of an element; 0: a type that no call here takes.
constexpr size_t bytes_of(cudaDataType_t type) {
  return type == CUDA_C_32F ? 8 : type == CUDA_C_64F ? 16 : lt::size_of(type);
}
inline const char* name_of(cudaDataType_t type) {
  return type == CUDA_C_32F ? "c32" : type == CUDA_C_64F ? "c64" : lt::name_of(type);
}

template <class S>
S conjugate(S x) {
  if constexpr (Parts<S>::kComplex)
    return std::conj(x);
  else
    return x;
}

/// Calls f(S()) with the type that numbers of a type are computed in.
template <class F>
void with_scalar(cudaDataType_t type, F&& f) {
  switch (type) {
    case CUDA_C_32F:
      return f(std::complex<float>());
    case CUDA_C_64F:
      return f(std::complex<double>());
    case CUDA_R_64F:
      return f(double());
    default:
      return f(float());
  }
}

template <class S>
S load(cudaDataType_t type, const std::byte* at) {
  using R = typename Parts<S>::Real;
  if constexpr (Parts<S>::kComplex) {
    if (type == CUDA_C_32F) return static_cast<S>(lt::load<std::complex<float>>(at));
    if (type == CUDA_C_64F) return static_cast<S>(lt::load<std::complex<double>>(at));
  }
  R value{};
  lt::with_type(type, [&]<class T>(T) { value = lt::widen<R>(lt::load<T>(at)); });
  return S(value);
}

template <class S>
void store(cudaDataType_t type, std::byte* at, S x) {
  if constexpr (Parts<S>::kComplex) {
    if (type == CUDA_C_32F) return lt::store(at, static_cast<std::complex<float>>(x));
    if (type == CUDA_C_64F) return lt::store(at, static_cast<std::complex<double>>(x));
    lt::with_type(type, [&]<class T>(T) { lt::store(at, lt::narrow<T>(x.real())); });
  } else {
    lt::with_type(type, [&]<class T>(T) { lt::store(at, lt::narrow<T>(x)); });
  }
}

}  // namespace emulator::blas
