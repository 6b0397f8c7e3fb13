// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace weft::tests {

/// 28x28 images with one label each.
struct Digits {
  std::vector<uint8_t> pixels, labels;
};

inline void write_idx(const std::string& path, const std::vector<uint32_t>& sizes, const std::vector<uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write("\0\0\x08", 3);
  out.put(static_cast<char>(sizes.size()));
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(size >> shift));
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// `part`: train or t10k.
inline void write_part(const std::string& folder, const std::string& part, const Digits& digits) {
  std::filesystem::create_directories(folder);
  const auto count = static_cast<uint32_t>(digits.labels.size());
  write_idx(folder + "/" + part + "-images-idx3-ubyte", {count, 28, 28}, digits.pixels);
  write_idx(folder + "/" + part + "-labels-idx1-ubyte", {count}, digits.labels);
}

/// A bright bar in a place of its own for each class, in noise.
inline Digits made_up(int count, uint32_t seed) {
  std::mt19937 random(seed);
  Digits digits;
  for (int i = 0; i < count; ++i) {
    const auto label = static_cast<uint8_t>(random() % 10);
    digits.labels.push_back(label);
    for (int y = 0; y < 28; ++y)
      for (int x = 0; x < 28; ++x) {
        const bool bar = label < 5 ? y / 5 == label && x > 3 && x < 24 : x / 5 == label - 5 && y > 3 && y < 24;
        digits.pixels.push_back(static_cast<uint8_t>(random() % 80 + (bar ? 150 : 0)));
      }
  }
  return digits;
}

/// DIR/MNIST/raw with made-up digits: 640 for training, 250 for testing.
inline std::string write_mnist(const std::string& folder) {
  write_part(folder + "/MNIST/raw", "train", made_up(640, 1));
  write_part(folder + "/MNIST/raw", "t10k", made_up(250, 2));
  return folder;
}

}  // namespace weft::tests
