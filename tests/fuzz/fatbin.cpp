// SPDX-License-Identifier: Apache-2.0
// Input: whether a module's image (nvcc's container, PTX, a cubin) or a cubin, the bytes of a foreign file.
#include "emulator/cuda/fatbin.h"

#include "emulator/cuda/cubin.h"
#include "emulator/cuda/error.h"
#include "tests/fuzz/fuzz.h"

using namespace emulator::cuda;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::fuzz::quiet();  // every error is reported
  weft::fuzz::Input input(data, size);
  const bool is_cubin = (input.byte() & 1) != 0;
  const weft::fuzz::AtTheEdge bytes(input.rest());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    if (is_cubin) {
      registers_of_cubin(text);
      return 0;
    }
    const Fatbin image = read_image(bytes.data(), bytes.size());
    weft::fuzz::expect_one_line(image.describe());
    for (const int capability : {80, 90})
      registers_of_cubin(image.machine_code_for(capability)), image.ptx_for(capability);
  } catch (const Error&) {
  }
  return 0;
}
