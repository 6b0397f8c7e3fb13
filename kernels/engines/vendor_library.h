// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "kernels/runtime/shared_library.h"

namespace weft::kernels::vendor {

/// Why a library of NVIDIA's cannot compute on a GPU in software (docs/cuda_without_a_gpu.md); empty elsewhere, and if
/// the emulator has its own library, such as cuBLASLt, which precedes NVIDIA's.
inline std::string why_not_under_emulator(const std::string& file, const char* cure = "Use WEFT_ENGINE=own there") {
  if (!std::getenv("WEFT_EMULATE_GPU")) return "";
  const char* const paths = std::getenv("LD_LIBRARY_PATH");
  std::istringstream folders(paths ? paths : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::filesystem::path path = folder; std::filesystem::exists(path / "libweft_gpu.so"))
      if (std::filesystem::exists(path / file)) return "";
  return file + " holds machine code, and weft-emulate executes PTX. " + cure;
}

/// The search for one of NVIDIA's libraries and its functions, when the first is needed.
struct VendorLibrary {
  std::string file, release;  ///< `release`: the version that has all functions, for an error
  std::string missing;        ///< why the library cannot be used, with the cure; empty where it can
  void* handle = nullptr;

  VendorLibrary(const std::string& name, const char* folder, const char* release_with_all, std::string obstacle)
      : file(name), release(release_with_all), missing(std::move(obstacle)) {
    if (!missing.empty()) return;
    const SharedLibrary shared(file, folder);
    handle = shared.handle;
    if (!handle) missing = "cannot load " + file + " (" + shared.error + "). Put its folder into LD_LIBRARY_PATH";
  }

  template <class Function>
  void find(Function*& function, const char* name) {
    if (!handle) return;
    function = reinterpret_cast<Function*>(dlsym(handle, name));
    if (!function && missing.empty()) missing = file + " has no " + name + ". Take " + release;
  }
};

}  // namespace weft::kernels::vendor
