// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/weft_weights/options.h"
#include "apps/weft_weights/sizes.h"
#include "core/text.h"
#include "train/exit.h"
#include "train/record/class_names.h"

namespace weft::weft_weights {
namespace {

struct Totals {
  int64_t elements = 0;
  uint64_t bytes = 0;
  explicit Totals(const WeightsFile& file) {
    for (const WeightInfo& info : file.tensors()) elements += info.sizes.numel(), bytes += info.bytes();
  }
};

/// `f32`, or `i32 (I8)` if the file's type is narrower.
std::string dtype_text(const WeightInfo& info) {
  return is_stored_as_is(info) ? str(info.dtype) : str(info.dtype, " (", info.stored, ")");
}

void print_json(const std::string& path, const WeightsFile& file) {
  using Json = nlohmann::ordered_json;
  Json tensors = Json::array();
  for (const WeightInfo& info : file.tensors())
    tensors.push_back({{"name", info.name},
                       {"dtype", name(info.dtype)},
                       {"stored", info.stored},
                       {"shape", std::vector<int64_t>(info.sizes.begin(), info.sizes.end())},
                       {"bytes", info.bytes()}});
  const Totals totals(file);
  const Json json = {{"file", path},       {"format", file.format()},     {"metadata", file.metadata()},
                     {"tensors", tensors}, {"elements", totals.elements}, {"bytes", totals.bytes}};
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

int show(const Options& options) {
  const auto file = open_first(options);
  if (options.json) {
    print_json(options.files[0], *file);
    return printed(train::kExitOk);
  }
  const Totals totals(*file);
  std::cout << printable(options.files[0]) << ": " << file->format() << ", " << file->tensors().size() << " tensors, "
            << totals.elements << " elements, " << size_text(totals.bytes) << '\n';
  for (const auto& [key, value] : file->metadata()) {
    if (const auto names = train::class_names_of(file->metadata()); key == train::kClassNames && !names.empty()) {
      for (size_t i = 0; i < names.size(); ++i) std::cout << "  class " << i << " = " << printable(names[i]) << '\n';
      continue;
    }
    constexpr size_t kLongest = 200;
    const std::string text = printable(value);
    std::cout << "  " << printable(key) << " = " << text.substr(0, kLongest) << (text.size() > kLongest ? "…" : "")
              << '\n';
  }
  size_t widest = 4, dtypes = 5;
  for (const WeightInfo& info : file->tensors()) {
    widest = std::max(widest, printable(info.name).size());
    dtypes = std::max(dtypes, dtype_text(info).size());
  }
  const auto padded = [](std::string text, size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
  };
  for (const WeightInfo& info : file->tensors())
    std::cout << padded(printable(info.name), widest) << "  " << padded(dtype_text(info), dtypes) << "  " << info.sizes
              << '\n';
  return printed(train::kExitOk);
}

}  // namespace weft::weft_weights
