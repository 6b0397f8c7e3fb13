// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emulator/cuda/fatbin.h"
#include "emulator/machine/gpu.h"

namespace emulator {

/// A file in memory, aligned as on disk, until this goes.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  bool valid() const { return data_ != nullptr; }  ///< false: it cannot be read, or is empty
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// The fat binaries in a file, as nvcc stores them in the section .nv_fatbin: each begins at a multiple of 8 bytes.
std::vector<cuda::Fatbin> fat_binaries(const MappedFile& file);

/// The file that execvp would start; empty: there is none.
std::string found_on_path(const std::string& program);

/// Why the emulator cannot run the kernels of this program, with the cure; empty: nothing speaks against it.
std::string objection(const std::string& path, const Gpu& gpu);

/// Reads from symbol tables which version of CUDA's runtime the program has inside (nvcc's default). A program without
/// kernels may link a library that has one. 0: none.
int runtime_inside(const std::string& path);

/// True for a program that links NVRTC or names its library, to load it later.
bool names_nvrtc(const std::string& path);

/// True for a program that runs scripts, which may load CUDA at any time.
bool is_interpreter(const std::string& path);

/// Whether the program is a binary without kernels that links nothing of CUDA: it may still start programs that do.
bool uses_no_cuda(const std::string& path);

}  // namespace emulator
