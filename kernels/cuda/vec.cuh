// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/cuda/ptx.cuh"

namespace weft::kernels::WEFT_DEVICE {

/// How many T fit into the widest access of a thread, 16 bytes.
template <class T>
inline constexpr int kVecSize = 16 / static_cast<int>(sizeof(T));

/// N values that are read and written in one access; the address must be a multiple of the size.
///   const auto x = Vec<T>::load(x_ptr + i);
template <class T, int N = kVecSize<T>>
struct alignas(sizeof(T) * N) Vec {
  static constexpr int kBytes = static_cast<int>(sizeof(T)) * N;
  static_assert(kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16, "a thread accesses 2, 4, 8 or 16 bytes");

  T data[N];

  __device__ __forceinline__ T& operator[](int i) { return data[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return data[i]; }

  static __device__ __forceinline__ Vec load(const T* address) {
    Word word;
    if constexpr (kBytes == 16)
      word = ptx::ld16(address);
    else
      word = *reinterpret_cast<const Word*>(address);
    Vec vec;
    memcpy(vec.data, &word, kBytes);
    return vec;
  }
  __device__ __forceinline__ void store(T* address) const {
    Word word;
    memcpy(&word, data, kBytes);
    if constexpr (kBytes == 16)
      ptx::st16(address, word);
    else
      *reinterpret_cast<Word*>(address) = word;
  }

 private:
  using Word = std::conditional_t<
      kBytes == 16, uint4,
      std::conditional_t<kBytes == 8, uint2, std::conditional_t<kBytes == 4, unsigned, unsigned short>>>;
};

/// For launchers: true when all of these addresses (or row lengths in bytes) are multiples of 16.
inline bool vectorizable(std::initializer_list<const void*> addresses, std::initializer_list<int64_t> row_bytes = {}) {
  for (const void* address : addresses)
    if (reinterpret_cast<uintptr_t>(address) % 16) return false;
  for (const int64_t bytes : row_bytes)
    if (bytes % 16) return false;
  return true;
}

}  // namespace weft::kernels::WEFT_DEVICE
