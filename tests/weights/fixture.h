// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/torch/torch_pickle.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"
#include "tests/io/random_state.h"
#include "tests/support/shell.h"
#include "tests/train/temporary_folder.h"

namespace weft::test {

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(WEFT_GOLDEN_FOLDER) / name;
}

/// Both of torch.save's formats with libzip, else the legacy one.
inline std::vector<std::string> both_formats(const std::string& name) {
  if (!have_zip()) return {name + "_legacy.pt"};
  return {name + ".pt", name + "_legacy.pt"};
}

/// A string that may contain zeros.
inline std::string bytes(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

/// Runs a pickle; `body` reads the result.
template <class Body>
void with_pickle(const std::string& pickle, Body&& body) {
  const ByteStream::Fail fail = [](const std::string& text) { weft::fail(text); };
  ByteStream stream(pickle, fail);
  const TorchPickle result = unpickle_torch(stream, fail);
  body(result);
}

inline std::string pickle_error(const std::string& pickle) {
  return error_of([&] { with_pickle(pickle, [](const TorchPickle&) {}); });
}

/// Writes a zip archive of these entries.
inline void write_zip(const std::filesystem::path& path,
                      const std::vector<std::pair<std::string, std::string>>& entries) {
  AtomicFile file(path, "test");
  ZipWriter zip(file);
  for (const auto& [name, content] : entries) {
    auto owner = std::make_shared<std::string>(content);
    zip.add(name, content.size(), [owner] { return std::shared_ptr<const void>(owner, owner->data()); });
  }
  zip.close();
  file.commit();
}

/// `pytorch: PATH: rest` as `rest`.
inline std::string without_path(const std::string& text, const std::filesystem::path& path) {
  const size_t place = text.find(path.string() + ": ");
  return place == std::string::npos ? text : text.substr(place + path.string().size() + 2);
}

}  // namespace weft::test

#define NEEDS_ZIP() \
  if (!weft::have_zip()) GTEST_SKIP() << "this build has no libzip"
#define NEEDS_TORCH()                                                          \
  if (weft::tests::shell("/usr/bin/python3 -c 'import torch'").exit_code != 0) \
  GTEST_SKIP() << "NOT TESTED against PyTorch: install python3-torch to do so"
