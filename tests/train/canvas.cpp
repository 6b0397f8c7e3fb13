// SPDX-License-Identifier: Apache-2.0
#include "train/record/canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/temporary_folder.h"
#include "train/record/confusion_matrix.h"

namespace weft::train {
namespace {

using test::error_of;

std::vector<int> pixel(const Canvas& canvas, int x, int y) {
  const size_t at = static_cast<size_t>(y * canvas.width + x) * 3;
  return {canvas.pixels[at], canvas.pixels[at + 1], canvas.pixels[at + 2]};
}

TEST(Canvas, GridPlacesEachInItsCell) {
  const Canvas red(2, 3, {255, 0, 0}), blue(2, 3, {0, 0, 255});
  const Canvas out = grid({red, blue, red}, 2, 1, 2);
  EXPECT_EQ(out.width, 2 * (2 * 2 + 1) + 1);
  EXPECT_EQ(out.height, 2 * (3 * 2 + 1) + 1);
  EXPECT_EQ(pixel(out, 0, 0), (std::vector<int>{255, 255, 255}));
  EXPECT_EQ(pixel(out, 1, 1), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(pixel(out, 4, 6), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(pixel(out, 5, 1), (std::vector<int>{255, 255, 255}));
  EXPECT_EQ(pixel(out, 6, 1), (std::vector<int>{0, 0, 255}));
  EXPECT_EQ(pixel(out, 1, 8), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(pixel(out, 6, 8), (std::vector<int>{255, 255, 255}));
}

TEST(Canvas, Errors) {
  EXPECT_EQ(error_of([] { Canvas(-1, 2); }), "canvas: expected sides from 0 to 32768, got -1 x 2");
  EXPECT_EQ(error_of([] { grid({}, 0); }),
            "canvas grid: expected columns and zoom above 0 and a gap of at least 0, got 0, 1, 2");
  const std::string png = error_of([] { encode_png({}); });
  EXPECT_EQ(png, have_png() ? "png: expected a canvas with pixels, got 0 x 0"
                            : "png: expected a build with libspng, got one without. Install libspng-dev, configure and "
                              "build again");
}

TEST(PixelFont, DrawsWhereItSays) {
  Canvas out(20, 7);
  draw_text(out, 1, 1, "t1", 1, {0, 0, 0});
  const auto row = [&](int y) {
    std::string text;
    for (int x = 1; x < 8; ++x) text += pixel(out, x, y)[0] == 0 ? '#' : '.';
    return text;
  };
  EXPECT_EQ(row(1), "###..#.");
  EXPECT_EQ(row(2), ".#..##.");
  EXPECT_EQ(row(5), ".#..###");
  EXPECT_EQ(text_width("t1", 1), 7);
  EXPECT_EQ(text_height(3), 15);
  draw_text(out, 15, 3, "WIDE TEXT", 4, {0, 0, 0});  // cut at the edge
}

TEST(ConfusionMatrix, CountsAndDraws) {
  ConfusionMatrix matrix(3);
  for (int i = 0; i < 8; ++i) matrix.add(0, 0);
  matrix.add(0, 2);
  matrix.add(0, 2);
  matrix.add(1, 1);
  EXPECT_EQ(matrix.count(0, 2), 2);
  EXPECT_EQ(matrix.total(), 11);
  EXPECT_DOUBLE_EQ(matrix.accuracy(), 9.0 / 11);
  const Canvas out = matrix.draw({"cat", "dog", "a very long name"});
  // The corner pixel of a cell lies beside the text: blue for right, red for wrong, white for none.
  const auto cell = [&](int row, int column) {
    return pixel(out, out.width - 8 - 36 * (3 - column) + 2, 8 + 36 * row + 2);
  };
  EXPECT_GT(cell(0, 0)[2], cell(0, 0)[0]);
  EXPECT_GT(cell(0, 2)[0], cell(0, 2)[2]);
  EXPECT_EQ(cell(0, 1), (std::vector<int>{255, 255, 255}));
  EXPECT_EQ(cell(2, 2), (std::vector<int>{255, 255, 255}));
  EXPECT_EQ(cell(1, 1), (std::vector<int>{20, 70, 160}));
  matrix.clear();
  EXPECT_EQ(matrix.total(), 0);
  EXPECT_EQ(matrix.accuracy(), 0);
}

TEST(ConfusionMatrix, StaysSmallForManyClasses) {
  for (const int classes : {1, 20, 21, 100, 999, 1000, 2500}) {
    const Canvas out = ConfusionMatrix(classes).draw();
    EXPECT_LE(out.width, 2100) << classes;
    EXPECT_EQ(out.width, out.height);
  }
}

TEST(ConfusionMatrix, Errors) {
  EXPECT_EQ(error_of([] { ConfusionMatrix(0); }), "confusion matrix: expected 1 to 100000 classes, got 0");
  ConfusionMatrix matrix(3);
  EXPECT_EQ(error_of([&] { matrix.add(3, 1); }), "confusion matrix: expected classes from 0 to 2, got 3 taken for 1");
  EXPECT_EQ(error_of([&] { matrix.add(0, -1); }), "confusion matrix: expected classes from 0 to 2, got 0 taken for -1");
}

TEST(ConfusionMatrix, CountsOfRanksAddUp) {
  ConfusionMatrix one(2), two(2);
  one.add(0, 1);
  two.add(0, 1);
  two.add(1, 1);
  std::vector<int64_t> sum = one.counts();
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += two.counts()[i];
  one.set_counts(sum);
  EXPECT_EQ(one.count(0, 1), 2);
  EXPECT_EQ(one.count(1, 1), 1);
  EXPECT_EQ(one.total(), 3);
  EXPECT_EQ(error_of([&] { one.set_counts({1, 2}); }), "confusion matrix: expected 4 counts, got 2");
}

}  // namespace
}  // namespace weft::train
