// SPDX-License-Identifier: Apache-2.0
// A driver for CUDA 12.4 on a node without it: as much of libcuda.so.1 as CUDA's runtime asks before it gives up.
#include <cstring>

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}

int cuInit(unsigned) { return 0; }

int cuGetProcAddress_v2(const char* symbol, void** function, int, unsigned long long, int*) {
  *function = nullptr;
  if (std::strcmp(symbol, "cuDriverGetVersion") == 0) *function = reinterpret_cast<void*>(cuDriverGetVersion);
  if (std::strcmp(symbol, "cuInit") == 0) *function = reinterpret_cast<void*>(cuInit);
  if (std::strcmp(symbol, "cuGetProcAddress") == 0) *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  constexpr int kNotFound = 500;
  return *function ? 0 : kNotFound;
}

int cuGetProcAddress(const char* symbol, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // extern "C"
