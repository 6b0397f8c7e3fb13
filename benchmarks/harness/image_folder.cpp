// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/image_folder.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

namespace bench {
namespace {

constexpr int kWidth = 500, kHeight = 375;

/// Soft shapes with grain: compresses about as well as a photograph.
std::vector<unsigned char> draw(unsigned number) {
  std::vector<unsigned char> pixels(3 * kWidth * kHeight);
  unsigned state = 2654435761u * (number + 1);
  const double angle = number * 0.7;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      state = state * 1664525u + 1013904223u;
      const double grain = static_cast<double>(state >> 24) / 255 * 24 - 12;
      const double wave = std::sin((x * std::cos(angle) + y * std::sin(angle)) / 23) * 60;
      for (int c = 0; c < 3; ++c) {
        const double value = 128 + wave + 40 * std::sin(x / (31.0 + c) + y / 47.0 + c) + grain;
        pixels[3 * (y * kWidth + x) + c] = static_cast<unsigned char>(std::fmin(255, std::fmax(0, value)));
      }
    }
  return pixels;
}

void write_jpeg(const std::filesystem::path& path, std::vector<unsigned char> pixels) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("bench: cannot write " + path.string());
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;  // the default handler prints and exits: only a full disk can fail here
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, file);
  jpeg.image_width = kWidth;
  jpeg.image_height = kHeight;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < kHeight; ++y) {
    JSAMPROW row = pixels.data() + static_cast<size_t>(3 * kWidth) * y;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::fclose(file);
}

}  // namespace

ImageFolder::ImageFolder(int classes, int images_per_class) {
  std::string name = (std::filesystem::temp_directory_path() / "weft_bench_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("bench: cannot make the folder " + name);
  path_ = name;
  for (int c = 0; c < classes; ++c) {
    const std::filesystem::path folder = path_ / ("class" + std::to_string(c));
    std::filesystem::create_directory(folder);
    for (int i = 0; i < images_per_class; ++i)
      write_jpeg(folder / (std::to_string(i) + ".jpg"), draw(static_cast<unsigned>(c * images_per_class + i)));
  }
}

ImageFolder::~ImageFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench
