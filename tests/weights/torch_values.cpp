// SPDX-License-Identifier: Apache-2.0
// What torch.load(weights_only=True) of PyTorch 2.15 reads, bit by bit: kept files always, some 200 fresh ones where it
// is installed (write_torch_values.py).
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "io/torch/torch_object.h"
#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string hex(const std::string& bytes) {
  std::string out;
  char digits[3];
  for (const unsigned char byte : bytes) std::snprintf(digits, sizeof digits, "%02x", byte), out += digits;
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "fnan";
  char text[32];
  std::snprintf(text, sizeof text, "f%016llx", static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return text;
}

template <class List, class Text>
std::string listed(const List& list, const Text& text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ",") + text(item);
  return out;
}

/// The value as write_torch_values.py's words().
std::string words(const TorchObject& object) {
  if (std::get_if<TorchObject::None>(&object.is)) return "N";
  if (const auto* is = std::get_if<bool>(&object.is)) return *is ? "b1" : "b0";
  if (const auto* is = std::get_if<int64_t>(&object.is)) return str("i", *is);
  if (const auto* is = std::get_if<double>(&object.is)) return number(*is);
  if (const auto* is = std::get_if<std::string>(&object.is)) return "s" + hex(*is);
  if (const auto* is = std::get_if<Tensor>(&object.is)) {
    const std::string values = is->is_floating()
                                   ? listed(is->to_vector<double>(), number)
                                   : listed(is->to_vector<int64_t>(), [](int64_t value) { return str("i", value); });
    return str("t", is->sizes()) + "{" + values + "}";
  }
  if (const auto* is = std::get_if<TorchObject::List>(&object.is)) return "[" + listed(*is, words) + "]";
  if (const auto* is = std::get_if<TorchObject::Tuple>(&object.is)) return "(" + listed(is->items, words) + ")";
  return "{" +
         listed(std::get<TorchObject::Dict>(object.is),
                [](const TorchObject::Item& item) {
                  const auto* name = std::get_if<std::string>(&item.key);
                  return (name != nullptr ? "s" + hex(*name) : str("i", std::get<int64_t>(item.key))) + ":" +
                         words(item.value);
                }) +
         "}";
}

/// Reads each file of the list; how many there are.
int expect_files(const fs::path& list) {
  int files = 0;
  std::ifstream in(list);
  for (std::string name, kind, expected; in >> name >> kind && std::getline(in >> std::ws, expected); ++files) {
    const fs::path path = list.parent_path() / name;
    std::string got;
    const std::string error = test::error_of([&] { got = words(read_torch(path)); });
    if (kind == "read") {
      EXPECT_EQ(error, "(no error)") << name;
      EXPECT_EQ(got, expected) << name;
      const std::string walked = test::error_of([&] { static_cast<void>(open_torch(path)->read_all()); });
      EXPECT_THAT(walked, testing::AnyOf("(no error)", testing::HasSubstr("expected tensors, got"))) << name;
    } else {
      EXPECT_THAT(error, testing::HasSubstr(expected)) << name;
    }
  }
  return files;
}

TEST(TorchValues, KeptFilesAreReadBitByBit) {
  NEEDS_ZIP();
  EXPECT_EQ(expect_files(test::golden("values_2_15.txt")), 3);
}

TEST(TorchValues, WhateverPyTorchReadsIsReadOrRefusedByName) {
  NEEDS_ZIP();
  const char* chosen = std::getenv("WEFT_TORCH_PYTHON");
  const std::string python = chosen == nullptr ? "/usr/bin/python3" : chosen;
  if (tests::shell(python + " -c 'import torch; torch.uint16; torch.nn.Buffer'").exit_code != 0)
    GTEST_SKIP() << "NOT TESTED against PyTorch: " << python
                 << " has none of version 2.5 or later. pip install torch, and name its python in WEFT_TORCH_PYTHON";
  const test::TemporaryFolder folder;
  const auto run = tests::shell(python + " " WEFT_SOURCE_FOLDER "/write_torch_values.py " + folder.path().string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const int files = expect_files(folder / "expected.txt");
  std::cout << files << " files of PyTorch\n";
  EXPECT_GE(files, 150);
}

}  // namespace
}  // namespace weft
