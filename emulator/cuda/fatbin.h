// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulator::cuda {

/// The code in a fat binary, or in another form of module.
struct Fatbin {
  struct Entry {
    bool is_ptx = false;
    int arch = 0;                ///< 90: of PTX the oldest GPU that it is for, of machine code the GPU
    bool arch_specific = false;  ///< sm_90a: for this very GPU
    const char* payload = nullptr;
    size_t bytes = 0, raw_bytes = 0;
    bool compressed = false;
    std::string text;  ///< source of a module that is given as PTX
  };
  std::vector<Entry> entries;
  std::string name;  ///< for reports
  /// Of relocatable device code (nvcc -rdc=true): the objects that are linked at the first use.
  std::vector<Fatbin> parts;

  /// The text of the newest PTX that a GPU of this capability can run. Where there is only machine code for it, the oldest
  /// PTX for later GPUs takes its place: both have one source. `target`: becomes that PTX's. Empty: there is none.
  /// Errors: Error (a damaged or unknown form).
  std::string ptx_for(int capability, int* target = nullptr) const;
  /// The cubin that a GPU of this capability would run instead of PTX; empty: there is none, or it cannot be unpacked.
  std::string machine_code_for(int capability) const;
  /// False: the binary has no kernel. nvcc links such a binary into a program of C++.
  bool may_have_kernels() const;
  /// `machine code for sm_90, PTX for compute_80`, or `no code`.
  std::string describe() const;
};

/// PTX with the numbers of its files raised by `before`, for a text of several; `files`: the largest number so far.
std::string renumbered(const std::string& ptx, int before, int& files);

/// From __cudaRegisterFatBinary's wrapper, a bare container, or PTX text. `bytes`: of a file, whose wrapper would hold no
/// address; of what a program passes, nobody says. Errors: Error.
Fatbin read_image(const void* image, size_t bytes = SIZE_MAX);

}  // namespace emulator::cuda
