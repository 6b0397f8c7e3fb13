// SPDX-License-Identifier: Apache-2.0
#include "train/record/canvas.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "kernels/error.h"

namespace weft::train {

Canvas::Canvas(int w, int h, Color color) : width(w), height(h) {
  WEFT_CHECK(w >= 0 && h >= 0 && w <= 1 << 15 && h <= 1 << 15, "canvas: expected sides from 0 to 32768, got ", w, " x ",
             h);
  pixels.resize(static_cast<size_t>(w) * static_cast<size_t>(h) * 3);
  fill(0, 0, w, h, color);
}

void Canvas::set(int x, int y, Color color) {
  if (x < 0 || y < 0 || x >= width || y >= height) return;
  uint8_t* pixel = &pixels[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3];
  pixel[0] = color.red;
  pixel[1] = color.green;
  pixel[2] = color.blue;
}

void Canvas::fill(int x, int y, int w, int h, Color color) {
  for (int row = y; row < y + h; ++row)
    for (int column = x; column < x + w; ++column) set(column, row, color);
}

void Canvas::paste(int x, int y, const Canvas& other, int zoom) {
  for (int row = 0; row < other.height; ++row) {
    for (int column = 0; column < other.width; ++column) {
      const size_t at = (static_cast<size_t>(row) * static_cast<size_t>(other.width) + static_cast<size_t>(column)) * 3;
      fill(x + column * zoom, y + row * zoom, zoom, zoom,
           {other.pixels[at], other.pixels[at + 1], other.pixels[at + 2]});
    }
  }
}

Canvas grid(const std::vector<Canvas>& canvases, int columns, int gap, int zoom) {
  WEFT_CHECK(columns > 0 && gap >= 0 && zoom > 0,
             "canvas grid: expected columns and zoom above 0 and a gap of at least 0", ", got ", columns, ", ", zoom,
             ", ", gap);
  int cell_width = 0, cell_height = 0;
  for (const Canvas& canvas : canvases) {
    cell_width = std::max(cell_width, canvas.width * zoom + gap);
    cell_height = std::max(cell_height, canvas.height * zoom + gap);
  }
  const int count = static_cast<int>(canvases.size());
  const int used = std::min(columns, count), rows = (count + columns - 1) / columns;
  Canvas out(used * cell_width + gap, rows * cell_height + gap);
  for (int i = 0; i < count; ++i)
    out.paste(gap + i % columns * cell_width, gap + i / columns * cell_height, canvases[static_cast<size_t>(i)], zoom);
  return out;
}

namespace {

constexpr int kWidth = 3, kHeight = 5, kAdvance = kWidth + 1;

struct Glyph {
  char letter;
  const char* rows;  // five rows of three, '#' is ink
};

constexpr std::array<Glyph, 41> kGlyphs{{
    {'0', "####.##.##.####"}, {'1', ".#.##..#..#.###"}, {'2', "##...#.#.#..###"}, {'3', "##...#.#...###."},
    {'4', "#.##.####..#..#"}, {'5', "####..##...###."}, {'6', ".###..####.####"}, {'7', "###..#.#..#..#."},
    {'8', "####.#####.####"}, {'9', "####.####..###."}, {'A', ".#.#.#####.##.#"}, {'B', "##.#.###.#.###."},
    {'C', ".###..#..#...##"}, {'D', "##.#.##.##.###."}, {'E', "####..##.#..###"}, {'F', "####..##.#..#.."},
    {'G', ".###..#.##.#.##"}, {'H', "#.##.#####.##.#"}, {'I', "###.#..#..#.###"}, {'J', "..#..#..##.#.#."},
    {'K', "#.##.###.#.##.#"}, {'L', "#..#..#..#..###"}, {'M', "#.#####.##.##.#"}, {'N', "##.#.##.##.##.#"},
    {'O', ".#.#.##.##.#.#."}, {'P', "##.#.###.#..#.."}, {'Q', ".#.#.##.###..##"}, {'R', "##.#.###.#.##.#"},
    {'S', ".###...#...###."}, {'T', "###.#..#..#..#."}, {'U', "#.##.##.##.####"}, {'V', "#.##.##.##.#.#."},
    {'W', "#.##.##.#####.#"}, {'X', "#.##.#.#.#.##.#"}, {'Y', "#.##.#.#..#..#."}, {'Z', "###..#.#.#..###"},
    {'-', "......###......"}, {'_', "............###"}, {'.', ".............#."}, {'%', "#.#..#.#.#..#.#"},
    {'/', "..#..#.#.#..#.."},
}};

}  // namespace

void draw_text(Canvas& canvas, int x, int y, std::string_view text, int zoom, Canvas::Color color) {
  for (const char c : text) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const Glyph& glyph : kGlyphs) {
      if (glyph.letter != letter) continue;
      for (int i = 0; i < kWidth * kHeight; ++i)
        if (glyph.rows[i] == '#') canvas.fill(x + i % kWidth * zoom, y + i / kWidth * zoom, zoom, zoom, color);
    }
    x += kAdvance * zoom;
  }
}

int text_width(std::string_view text, int zoom) {
  return text.empty() ? 0 : (static_cast<int>(text.size()) * kAdvance - 1) * zoom;
}

int text_height(int zoom) { return kHeight * zoom; }

}  // namespace weft::train
