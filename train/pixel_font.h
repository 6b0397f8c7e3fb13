// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "train/canvas.h"

namespace weft::train {

/// Draws capitals, digits and a few signs, 3 x 5 pixels each times `zoom`; small letters become capitals, anything else
/// a blank. (x, y) is the upper left corner.
void draw_text(Canvas& canvas, int x, int y, std::string_view text, int zoom, Canvas::Color color);
int text_width(std::string_view text, int zoom);
int text_height(int zoom);

}  // namespace weft::train
