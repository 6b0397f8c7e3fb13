// SPDX-License-Identifier: Apache-2.0
#include "train/record/confusion_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/error.h"
#include "train/record/canvas.h"

namespace weft::train {
namespace {

constexpr int kMostLabelled = 20;
constexpr int kNameLetters = 12;
constexpr int kLabelledCell = 36, kMargin = 8, kZoom = 2;

/// White at 0, the color at 1.
Canvas::Color shade(double share, Canvas::Color full) {
  const auto mix = [&](uint8_t end) { return static_cast<uint8_t>(std::lround(255 + share * (end - 255))); };
  return {mix(full.red), mix(full.green), mix(full.blue)};
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int classes) : classes_(classes) {
  WEFT_CHECK(classes > 0 && classes <= 100000, "confusion matrix: expected 1 to 100000 classes, got ", classes);
  counts_.resize(static_cast<size_t>(classes) * static_cast<size_t>(classes));
}

void ConfusionMatrix::add(int64_t truth, int64_t guess) {
  WEFT_CHECK(truth >= 0 && truth < classes_ && guess >= 0 && guess < classes_,
             "confusion matrix: expected classes from 0 to ", classes_ - 1, ", got ", truth, " taken for ", guess);
  ++counts_[static_cast<size_t>(truth * classes_ + guess)];
}

void ConfusionMatrix::clear() { std::fill(counts_.begin(), counts_.end(), 0); }

void ConfusionMatrix::set_counts(std::vector<int64_t> counts) {
  WEFT_CHECK(counts.size() == counts_.size(), "confusion matrix: expected ", counts_.size(), " counts, got ",
             counts.size());
  counts_ = std::move(counts);
}

int64_t ConfusionMatrix::count(int truth, int guess) const {
  return counts_[static_cast<size_t>(truth) * static_cast<size_t>(classes_) + static_cast<size_t>(guess)];
}

int64_t ConfusionMatrix::total() const { return std::accumulate(counts_.begin(), counts_.end(), int64_t{0}); }

double ConfusionMatrix::accuracy() const {
  int64_t right = 0;
  for (int c = 0; c < classes_; ++c) right += count(c, c);
  return total() == 0 ? 0 : static_cast<double>(right) / static_cast<double>(total());
}

Canvas ConfusionMatrix::draw(const std::vector<std::string>& names) const {
  const bool labelled = classes_ <= kMostLabelled;
  const int cell = labelled ? kLabelledCell : std::max(1, 1000 / classes_);
  // More classes than pixels: several classes share one.
  const int step = (classes_ + 1999) / 2000;
  const int left =
      labelled && !names.empty() ? kMargin + text_width(std::string(kNameLetters, 'M'), kZoom) + kMargin : kMargin;
  const int drawn = (classes_ + step - 1) / step;
  Canvas out(left + drawn * cell + kMargin, kMargin + drawn * cell + kMargin);
  for (int row = 0; row < classes_; row += step) {
    int64_t of_row = 0;
    for (int column = 0; column < classes_; ++column) of_row += count(row, column);
    const int y = kMargin + row / step * cell;
    if (labelled && static_cast<size_t>(row) < names.size())
      draw_text(out, kMargin, y + (cell - text_height(kZoom)) / 2,
                names[static_cast<size_t>(row)].substr(0, kNameLetters), kZoom, {0, 0, 0});
    for (int column = 0; column < classes_; column += step) {
      const double share = of_row == 0 ? 0 : static_cast<double>(count(row, column)) / static_cast<double>(of_row);
      const int x = left + column / step * cell;
      const Canvas::Color full = row == column ? Canvas::Color{20, 70, 160} : Canvas::Color{190, 30, 30};
      out.fill(x, y, cell, cell, shade(share, full));
      if (labelled) out.fill(x, y, cell, 1, {220, 220, 220}), out.fill(x, y, 1, cell, {220, 220, 220});
      const int percent = static_cast<int>(std::lround(100 * share));
      if (!labelled || percent == 0) continue;
      const std::string text = std::to_string(percent);
      const Canvas::Color ink = share > 0.5 ? Canvas::Color{255, 255, 255} : Canvas::Color{0, 0, 0};
      draw_text(out, x + (cell - text_width(text, kZoom)) / 2, y + (cell - text_height(kZoom)) / 2, text, kZoom, ink);
    }
  }
  return out;
}

}  // namespace weft::train
