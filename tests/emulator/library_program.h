// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by programs of CUDA's libraries: a condition that does not hold ends the program with its line.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#define CHECK(condition, ...)                                                    \
  do {                                                                           \
    if (!(condition)) library_program::die(__LINE__, #condition, ##__VA_ARGS__); \
  } while (0)
#define CUDA(call) CHECK((call) == cudaSuccess)

namespace library_program {

/// Ends the program without waiting for its threads.
[[noreturn]] inline void die(int line, const char* condition, const std::string& why = {}) {
  std::fflush(stdout);
  std::fprintf(stderr, "line %d: %s failed %s\n", line, condition, why.c_str());
  _exit(1);
}

template <class T>
struct Memory {
  T* device = nullptr;
  size_t count;
  explicit Memory(size_t n) : count(n) { CUDA(cudaMalloc(&device, n * sizeof(T))); }
  explicit Memory(const std::vector<T>& all) : Memory(all.size()) {
    CUDA(cudaMemcpy(device, all.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(device); }
  Memory(const Memory&) = delete;
  std::vector<T> get() const {
    std::vector<T> all(count);
    CUDA(cudaMemcpy(all.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return all;
  }
};

}  // namespace library_program
