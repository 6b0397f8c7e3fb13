// SPDX-License-Identifier: Apache-2.0
// Input: PTX. Functions are parsed and kernels made ready to run, as at their first launch; a Fault of one line
// refuses.
#include "emulator/machine/fault.h"
#include "emulator/ptx/run/kernel.h"
#include "tests/fuzz/fuzz.h"

using namespace emulator;

namespace {

/// A launch's need of the GPU's memory: the emulator's own device gives it, or refuses.
bool is_small(const ptx::Text& module) {
  uint64_t bytes = 0;
  for (const ptx::Variable& variable : module.variables) bytes += std::min<uint64_t>(variable.bytes, 1 << 20);
  return bytes < 1 << 20;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::fuzz::quiet();
  const std::string text(data, data + size);
  try {
    if (!is_small(*ptx::parse_module(text))) return 0;
    ptx::Module module(text, 0, 90);
    for (const std::string_view name : module.kernel_names()) {
      try {
        const ptx::Kernel* const kernel = module.kernel(name);
        if (kernel == nullptr) std::abort();
        for (const ptx::Instruction& instruction : kernel->code)
          weft::fuzz::expect_one_line(kernel->where(&instruction));
      } catch (const Fault& fault) {
        weft::fuzz::expect_one_line(fault.text);
      }
    }
  } catch (const Fault& fault) {
    weft::fuzz::expect_one_line(fault.text);
  }
  return 0;
}
