// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

namespace weft::kernels::vendor {

/// Why a library of NVIDIA's cannot compute on a GPU in software (docs/cuda_without_a_gpu.md); empty elsewhere, and
/// where the emulator has one of its own, as it has of cuBLASLt: that lies beside its GPU, in front of NVIDIA's.
inline std::string why_not_under_emulator(const std::string& file, const char* cure = "Use WEFT_ENGINE=own there") {
  if (!std::getenv("WEFT_EMULATE_GPU")) return "";
  const char* const paths = std::getenv("LD_LIBRARY_PATH");
  std::istringstream folders(paths ? paths : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::filesystem::path path = folder; std::filesystem::exists(path / "libweft_gpu.so"))
      if (std::filesystem::exists(path / file)) return "";
  return file + " holds machine code, and weft-emulate executes PTX. " + cure;
}

}  // namespace weft::kernels::vendor
