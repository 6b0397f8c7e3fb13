// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/cuda/ptx/ptx.cuh"

namespace weft::kernels::cuda {

/// The number of T in a thread's widest access, 16 bytes.
template <class T>
inline constexpr int kVecSize = 16 / static_cast<int>(sizeof(T));

/// N values that are loaded and stored in one access (32 bytes: in two); the address must be a multiple of the size, at
/// most of 16.
///   const auto x = Vec<T>::load(x_ptr + i);
template <class T, int N = kVecSize<T>>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec {
  static constexpr int kBytes = static_cast<int>(sizeof(T)) * N;
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16 || kBytes == 32,
                "a thread accesses 1, 2, 4, 8, 16 or 32 bytes");

  T data[N];

  __device__ __forceinline__ T& operator[](int i) { return data[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return data[i]; }

  static __device__ __forceinline__ Vec load(const T* address) {
    Vec vec;
    for (int k = 0; k < kWords; ++k) {
      Word word;
      if constexpr (kBytes >= 16)
        word = ptx::ld16(reinterpret_cast<const Word*>(address) + k);
      else
        word = *reinterpret_cast<const Word*>(address);
      memcpy(reinterpret_cast<char*>(vec.data) + k * sizeof(Word), &word, sizeof(Word));
    }
    return vec;
  }
  __device__ __forceinline__ void store(T* address) const {
    for (int k = 0; k < kWords; ++k) {
      Word word;
      memcpy(&word, reinterpret_cast<const char*>(data) + k * sizeof(Word), sizeof(Word));
      if constexpr (kBytes >= 16)
        ptx::st16(reinterpret_cast<Word*>(address) + k, word);
      else
        *reinterpret_cast<Word*>(address) = word;
    }
  }

 private:
  using Word = std::conditional_t<
      kBytes >= 16, uint4,
      std::conditional_t<
          kBytes == 8, uint2,
          std::conditional_t<kBytes == 4, unsigned, std::conditional_t<kBytes == 2, unsigned short, unsigned char>>>>;
  static constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
};

/// For launchers: whether all of these addresses and row lengths in bytes are multiples of 16.
inline bool vectorizable(std::initializer_list<const void*> addresses, std::initializer_list<int64_t> row_bytes = {}) {
  for (const void* address : addresses)
    if (reinterpret_cast<uintptr_t>(address) % 16) return false;
  for (const int64_t bytes : row_bytes)
    if (bytes % 16) return false;
  return true;
}

}  // namespace weft::kernels::cuda
