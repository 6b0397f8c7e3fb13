// SPDX-License-Identifier: Apache-2.0
// The file of the tuner's winners. Input: a machine, a problem and a winner, each after its length, and the file's
// content before. A line of the input may have the right checksum by chance alone, so a winner is added, too: the next
// process must find it in any file.
#include "kernels/engines/tune_cache.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::quiet();  // bad lines are warned of
  fuzz::Input input(data, size);
  const std::string machine = input.text(input.byte()), problem = input.text(input.byte()),
                    winner = input.text(input.byte());
  const std::string path = folder.write("tune.tsv", input.rest()).string();
  const auto find = [&] { return kernels::vendor::TuneCache(path).find(machine, problem); };
  fuzz::expect_value_or_error([&] {
    const auto known = find();
    kernels::vendor::TuneCache(path).add(machine, problem, winner, "1 2");
    const auto found = find();
    if (!found || (known && found != known)) std::abort();
  });
  return 0;
}
