// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <vector>

// Shared by programs of promises: `ok NAME` or `FAILED NAME` for each.

inline void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("FAILED %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
#define MUST(call) must(call, #call)

template <class T>
struct Array {
  explicit Array(int n, T value = T{}) : count(n) {
    MUST(cudaMalloc(&data, sizeof(T) * static_cast<size_t>(n)));
    set(std::vector<T>(static_cast<size_t>(n), value));
  }
  explicit Array(const std::vector<T>& values) : Array(static_cast<int>(values.size())) { set(values); }
  ~Array() { cudaFree(data); }
  /// A copy from pageable memory returns when its source may be changed, which can be before it has arrived.
  void set(const std::vector<T>& v) {
    MUST(cudaMemcpy(data, v.data(), sizeof(T) * v.size(), cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
  }
  std::vector<T> get() const {
    std::vector<T> v(static_cast<size_t>(count));
    MUST(cudaMemcpy(v.data(), data, sizeof(T) * v.size(), cudaMemcpyDeviceToHost));
    return v;
  }
  T* data = nullptr;
  int count;
};

struct Promise {
  const char* name;
  std::function<bool()> passes;
  int capability = 80;  ///< capability of the least GPU that has the instruction
};

/// 1 when a promise is not kept.
inline int keep_promises(std::initializer_list<Promise> promises) {
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  int failed = 0;
  for (const Promise& promise : promises) {
    if (device.major * 10 + device.minor < promise.capability) {
      std::printf("skipped %s: needs compute capability %d\n", promise.name, promise.capability);
      continue;
    }
    const bool passed = promise.passes();
    must(cudaDeviceSynchronize(), promise.name);
    std::printf("%s %s\n", passed ? "ok" : "FAILED", promise.name);
    failed += passed ? 0 : 1;
  }
  return failed ? 1 : 0;
}
