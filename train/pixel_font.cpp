// SPDX-License-Identifier: Apache-2.0
#include "train/pixel_font.h"

#include <array>
#include <cctype>

namespace weft::train {
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
