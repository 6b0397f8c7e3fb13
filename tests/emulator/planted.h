// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <string>
#include <string_view>

// Shared by the programs of planted faults. Each has kernels in a second source, for Hopper alone.

/// An enum of faults, and their names.
#define PLANTED(Enum, ...)         \
  enum class Enum { __VA_ARGS__ }; \
  constexpr char kPlanted[] = #__VA_ARGS__
/// The fault's number among `planted`, names with commas between; -1: it has no such name.
inline int planted_number(std::string_view planted, std::string_view name) {
  for (int i = 0;; ++i) {
    const size_t end = planted.find(", ");
    if (planted.substr(0, end) == name) return i;
    if (end == std::string_view::npos) return -1;
    planted.remove_prefix(end + 2);
  }
}

/// Launches a kernel of the second source; false: none has this name.
bool launch_hopper(const char* name, bool right, int* data);

constexpr size_t kDataBytes = 1 << 16;  ///< bytes of the kernels' data, which are 0 at first

/// main() of such a program: `launch(fault, right, data)` launches the fault that the argument names, or with `_right`
/// after the name the repaired twin.
template <class Fault>
int run_planted(int argc, char** argv, const char* what, std::string_view planted,
                void (*launch)(Fault fault, bool right, int* data)) {
  std::string name = argc > 1 ? argv[1] : "";
  const bool right = name.ends_with("_right");
  if (right) name.resize(name.size() - 6);
  int* data = nullptr;
  if (cudaMalloc(&data, kDataBytes) != cudaSuccess) return 1;
  cudaMemset(data, 0, kDataBytes);
  const int number = planted_number(planted, name);
  if (number >= 0) launch(static_cast<Fault>(number), right, data);
  if (number < 0 && !launch_hopper(name.c_str(), right, data)) {
    std::printf("no %s of this name\n", what);
    return 2;
  }
  const cudaError_t launched = cudaGetLastError(), status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(launched != cudaSuccess ? launched : status));
  return launched == cudaSuccess && status == cudaSuccess ? 0 : 1;
}
