// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::train {

/// An RGB canvas, eight bits a channel, row by row.
struct Canvas {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  ///< height * width * 3

  struct Color {
    uint8_t red = 0, green = 0, blue = 0;
  };
  Canvas() = default;
  Canvas(int w, int h, Color color = {255, 255, 255});

  /// Outside the canvas nothing is drawn.
  void set(int x, int y, Color color);
  void fill(int x, int y, int w, int h, Color color);
  /// Copies another canvas to (x, y), each pixel as a square of `zoom`.
  void paste(int x, int y, const Canvas& other, int zoom = 1);
};

/// Canvases side by side, `columns` a row, `gap` pixels apart, each in a cell of the largest one's size.
Canvas grid(const std::vector<Canvas>& canvases, int columns, int gap = 2, int zoom = 1);

/// The canvas as a PNG file's bytes. Errors: no pixels; Weft was built without libspng.
std::string encode_png(const Canvas& canvas);
/// Whether encode_png can work (Weft was built with libspng).
bool have_png();

/// Draws capitals, digits and a few signs, 3 x 5 pixels each times `zoom`; small letters become capitals, anything else
/// a blank. (x, y) is the upper left corner.
void draw_text(Canvas& canvas, int x, int y, std::string_view text, int zoom, Canvas::Color color);
int text_width(std::string_view text, int zoom);
int text_height(int zoom);

}  // namespace weft::train
