// SPDX-License-Identifier: Apache-2.0
// Input: lines of weft-emulate's --time-table, as --time-of and --time-known read them.
#include "emulator/machine/time_table.h"

#include "tests/fuzz/fuzz.h"

using namespace emulator::time_model;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::fuzz::Input input(data, size);
  TableLine line;
  if (!from_text(input.text(), line)) return 0;
  const Chip* const chip = find_chip(line.gpu);
  const Prediction prediction = predict(chip ? *chip : *find_chip("h100"), line.work, {});
  TableLine again;
  if (!from_text(to_text(line, prediction), again) || again.kernel != line.kernel) std::abort();
  return 0;
}
