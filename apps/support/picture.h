// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft::support {

/// An RGB picture, eight bits a channel, row by row.
struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  ///< height * width * 3

  struct Color {
    uint8_t red = 0, green = 0, blue = 0;
  };
  Picture() = default;
  Picture(int w, int h, Color color = {255, 255, 255});

  /// Outside the picture nothing is drawn.
  void set(int x, int y, Color color);
  void fill(int x, int y, int w, int h, Color color);
  /// Copies another picture to (x, y), each pixel as a square of `zoom`.
  void paste(int x, int y, const Picture& other, int zoom = 1);
};

/// Pictures side by side, `columns` a row, `gap` pixels apart, each in a cell of the largest one's size.
Picture grid(const std::vector<Picture>& pictures, int columns, int gap = 2, int zoom = 1);

/// The picture as a PNG file's bytes. Errors: no pixels; Weft was built without libspng.
std::string encode_png(const Picture& picture);
/// Whether encode_png can work (Weft was built with libspng).
bool have_png();

}  // namespace weft::support
