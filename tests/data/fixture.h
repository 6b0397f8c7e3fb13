// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "data/image.h"
#include "io/file_reader.h"
#include "kernels/error.h"
#include "tests/support/temporary_folder.h"

namespace weft::data::testing {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

using TemporaryFolder = tests::TemporaryFolderOf<fs::path>;

/// The text of the weft::Error that `action` throws; a failure where it throws none.
template <class Action>
std::string error_text(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a weft::Error, none was thrown";
  return "";
}

inline std::vector<uint8_t> random_bytes(size_t count, int largest = 255) {
  std::random_device seed;
  std::mt19937 generator(seed());
  std::uniform_int_distribution<int> byte(0, largest);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& one : bytes) one = static_cast<uint8_t>(byte(generator));
  return bytes;
}

/// A file of the MNIST family: header and random bytes, none above `largest`.
inline std::vector<uint8_t> idx_bytes(const std::vector<uint32_t>& sizes, int largest = 255) {
  std::vector<uint8_t> bytes{0, 0, 8, static_cast<uint8_t>(sizes.size())};
  size_t elements = 1;
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(size >> shift));
    elements *= size;
  }
  const std::vector<uint8_t> body = random_bytes(elements, largest);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

/// Reads a binary PPM as tests/golden/images.py writes it.
inline Image read_ppm(const fs::path& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  const std::string text(bytes.begin(), bytes.end());
  int width = 0, height = 0, taken = 0;
  if (std::sscanf(text.c_str(), "P6 %d %d 255%n", &width, &height, &taken) != 2) fail("not a PPM: ", path.string());
  Image image = black_image(height, width, 3);
  std::copy_n(bytes.begin() + taken + 1, image.pixels.size(), image.pixels.begin());
  return image;
}

inline fs::path golden(const std::string& name) { return fs::path(WEFT_GOLDEN) / "images" / name; }

/// The folder of real data sets: the environment's WEFT_SHARED_DATA, or the one known at configure time.
inline fs::path shared_data(const std::string& name) {
  const char* folder = std::getenv("WEFT_SHARED_DATA");
  return fs::path(folder != nullptr ? folder : WEFT_SHARED_DATA) / name;
}

}  // namespace weft::data::testing

/// Skips, loudly, where a real data set is not on this machine.
#define WEFT_NEED_SHARED_DATA(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << (path) << "; set WEFT_SHARED_DATA to its folder"

/// Skips, loudly, where this build has the stub of a part; PART is HDF5, JPEG, SPNG, LEPTONICA or ZLIB.
#define WEFT_NEED_PART(PART, name) \
  if (!WEFT_HAVE_##PART) GTEST_SKIP() << "needs a build with " name "; this one has its stub"
