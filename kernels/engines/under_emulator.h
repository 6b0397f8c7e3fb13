// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <string>

namespace weft::kernels::vendor {

/// Why a library of NVIDIA's cannot compute on a GPU in software (docs/cuda_without_a_gpu.md); empty elsewhere.
inline std::string why_not_under_emulator(const std::string& file) {
  if (!std::getenv("WEFT_EMULATE_GPU")) return "";
  return file + " holds machine code, and weft-emulate executes PTX. Use WEFT_ENGINE=own there";
}

}  // namespace weft::kernels::vendor
