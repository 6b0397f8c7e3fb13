// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>

namespace emulator {

/// A GPU's properties, as programs can query them, and its limits.
/// Source: CUDA C++ Programming Guide, "Compute Capabilities"; NVIDIA's data sheets and white papers.
struct Gpu {
  std::string_view key;   ///< value of `weft-emulate --gpu`
  std::string_view name;  ///< name in cudaGetDeviceProperties
  int major, minor;
  int processors;       ///< SMs
  size_t memory_bytes;  ///< reported bytes; the machine may have less, see machine/memory.h
  size_t l2_bytes;
  int shared_per_processor;    ///< bytes
  int shared_per_block_optin;  ///< bytes
  int threads_per_processor, blocks_per_processor;
  int clock_khz, memory_clock_khz, memory_bus_bits;

  int capability() const { return major * 10 + minor; }
  bool coherent_host() const { return key == "gh200"; }  ///< whether kernels may read pageable host memory
};

/// Returns nullptr if there is no such GPU.
const Gpu* find_gpu(std::string_view key);
/// `h100 a100 h200 …`
std::string_view gpu_keys();

}  // namespace emulator
