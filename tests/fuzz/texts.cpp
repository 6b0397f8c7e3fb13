// SPDX-License-Identifier: Apache-2.0
// Input: which of the small texts of the command line, the text: numbers, lists, devices, names of data sets.
#include "apps/support/flags.h"
#include "core/choose_device.h"
#include "core/text.h"
#include "data/random_images.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const int kind = input.byte() % 7;
  const std::vector<uint8_t> bytes = input.rest();
  const std::string text(bytes.begin(), bytes.end());
  fuzz::expect_value_or_error([&] {
    if (kind == 0) support::parse_number("--lr", text);
    if (kind == 1) support::parse_integer("--epochs", text);
    if (kind == 2) support::parse_switch("--quick", text);
    if (kind == 3) support::parse_list("--mean", text, 0);
    if (kind == 4 && !text.starts_with("emulated")) weft::choose_device(text);  // that would start the fuzzer again
    if (kind == 5) data::parse_random_images(text);
    if (kind == 6) nearest(text, {"sgd", "adamw", "learning-rate", ""});
  });
  return 0;
}
