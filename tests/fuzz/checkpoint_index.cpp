// SPDX-License-Identifier: Apache-2.0
// Input: whether a sharded checkpoint's index or the note of one rank, the text. An understood text is written and read
// again to the same text.
#include "io/checkpoint_index.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool is_note = (input.byte() & 1) != 0;
  const std::string text = input.text();
  fuzz::expect_value_or_error([&] {
    const auto rewritten = [&](const std::string& from) {
      return is_note ? note_text(read_note(from)) : index_text(parse_index(from, "checkpoint", "index.json"));
    };
    const std::string once = rewritten(text);
    if (rewritten(once) != once) std::abort();
  });
  return 0;
}
