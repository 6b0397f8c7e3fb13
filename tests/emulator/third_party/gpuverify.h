// SPDX-License-Identifier: Apache-2.0
// gpuverify.py compiles GPUVerify's kernels with this. GPUVerify's annotations talk about all inputs and about pairs of
// threads; a running program can only test annotations about a single thread: __assert. The others are hints for the
// proof.
#pragma once
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <curand_mtgp32_host.h>
#include <curand_mtgp32dc_p_11213.h>

#include <cassert>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpuverify {

/// The cases of one program, by the path of the kernel.
inline std::map<std::string, void (*)()>& cases() {
  static std::map<std::string, void (*)()> all;
  return all;
}

struct Case {
  Case(const char* name, void (*run)()) { cases()[name] = run; }
};

/// The result of a function that a kernel declares and leaves undefined: some bit. A counter would be a race or an order
/// of its own.
__device__ inline int any_bit(const unsigned seed) {
  unsigned x = (static_cast<unsigned>(clock64()) + seed) * 2654435761u + threadIdx.x * 40503u;
  x ^= x >> 15;
  return static_cast<int>((x * 2246822519u) >> 31);
}

constexpr size_t kBuffer = 8u << 20;

/// Zeros, of which every kernel of the suite has enough.
inline void* buffer() {
  void* p = nullptr;
  cudaMalloc(&p, kBuffer);
  cudaMemset(p, 0, kBuffer);
  return p;
}

inline curandStateMtgp32* generators() {
  constexpr int kCount = 64;
  auto* const states = static_cast<curandStateMtgp32*>(buffer());
  mtgp32_kernel_params* params = nullptr;
  cudaMalloc(&params, sizeof *params);
  curandMakeMTGP32Constants(mtgp32dc_params_fast_11213, params);
  curandMakeMTGP32KernelState(states, mtgp32dc_params_fast_11213, params, kCount, 1);
  return states;
}

/// An argument of type T: a buffer, a structure whose 8-byte words are buffers, the address of a function, or the
/// number.
template <class T>
T argument(const long long value) {
  using Pointee = std::remove_pointer_t<T>;
  if constexpr (std::is_same_v<T, curandStateMtgp32*>) {
    return generators();
  } else if constexpr (std::is_pointer_v<T> && std::is_function_v<Pointee>) {
    return reinterpret_cast<T>(value);
  } else if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(buffer());
  } else if constexpr (std::is_class_v<T>) {
    T all;
    std::memset(static_cast<void*>(&all), 0, sizeof all);
    for (size_t at = 0; at + sizeof(void*) <= sizeof all; at += sizeof(void*)) {
      void* const p = buffer();
      std::memcpy(reinterpret_cast<char*>(&all) + at, &p, sizeof p);
    }
    return all;
  } else {
    return static_cast<T>(value);
  }
}

/// The address that a kernel knows a function by; `symbol` is a device variable which holds it.
template <class F>
long long address(F& symbol) {
  long long value = 0;
  cudaMemcpyFromSymbol(&value, symbol, sizeof value);
  return value;
}

template <class... P, size_t... I>
void launch_with(void (*kernel)(P...), const dim3 grid, const dim3 block, const bool cooperative,
                 const std::vector<long long>& values, std::index_sequence<I...>) {
  std::tuple<std::remove_const_t<P>...> arguments{argument<std::remove_const_t<P>>(values[I])...};
  void* pointers[sizeof...(P) + 1] = {static_cast<void*>(&std::get<I>(arguments))...};
  if (cooperative)
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), grid, block, pointers, 0, nullptr);
  else
    cudaLaunchKernel(reinterpret_cast<void*>(kernel), grid, block, pointers, 0, nullptr);
}

template <class... P>
void launch(void (*kernel)(P...), const dim3 grid, const dim3 block, const bool cooperative,
            const std::vector<long long>& values) {
  launch_with(kernel, grid, block, cooperative, values, std::index_sequence_for<P...>{});
}

/// Runs the case that argv[1] names. Exit code: 0, 1 after an error of CUDA.
inline int run(const int argc, char** argv) {
  const auto found = argc == 2 ? cases().find(argv[1]) : cases().end();
  if (found == cases().end()) return std::fprintf(stderr, "expected the path of a kernel\n"), 2;
  found->second();
  const cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
  const cudaError_t error = launched != cudaSuccess ? launched : ended;
  if (error != cudaSuccess) std::fprintf(stderr, "CUDA says: %s\n", cudaGetErrorName(error));
  return error == cudaSuccess ? 0 : 1;
}

}  // namespace gpuverify

// The suite knows an early name of sync().
namespace cooperative_groups {
template <class Group>
__device__ void synchronize(const Group& group) {
  group.sync();
}
}  // namespace cooperative_groups

#undef __assert
#undef __all
#define __assert(...) assert((__VA_ARGS__))
#define __implies(a, b) (!(a) || (b))
#define __enabled() true
#define __all(x) (x)
#define __no_read(p) true
#define __mod_pow2(a, b) ((a) % (b))
// Some value of another thread: one that this thread does not have.
#define __other_int(x) (~static_cast<int>(x))
#define __axiom(...) static_assert(true)
#define __assume(...) ((void)0)
#define __requires(...) ((void)0)
#define __ensures(...) ((void)0)
#define __invariant(...) ((void)0)
#define __global_invariant(...) ((void)0)
#define __requires_fresh_array(...) ((void)0)
