// SPDX-License-Identifier: Apache-2.0
// Input: a YAML file, of which sections and values of every kind are read, also as accelerate's.
#include "apps/support/yaml.h"

#include "apps/support/accelerate.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

namespace {

void read(support::YamlSection section) {
  int64_t integer = 0;
  double number = 0;
  bool flag = false;
  std::string text;
  std::vector<int64_t> integers;
  section.read("batch_size", integer, {.min = 1});
  section.read("lr", number, {.min = 0, .above = true});
  section.read("log_to_screen", flag);
  section.read("model", text);
  section.read("sizes", integers);
  section.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("input.yaml", {data, data + size});
  fuzz::expect_value_or_error([&] { read(support::YamlSection(file, "default")); });
  fuzz::expect_value_or_error([&] { read(support::YamlSection(file, "test")); });
  fuzz::expect_value_or_error([&] { read(support::YamlSection(file)); });
  fuzz::expect_value_or_error([&] { support::read_accelerate_config(file).processes_per_machine(); });
  return 0;
}
