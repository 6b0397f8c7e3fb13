// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/draw.h"
#include "data/image.h"

namespace weft::data {

/// A part of an image, in pixels.
struct Window {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// The window of height x width whose upper left corner is (top, left); what lies outside the image is black.
Image crop(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

/// The middle window, as torchvision's center_crop: the offset rounded half to even. A smaller image gets black rows
/// and columns, the odd one of them below and on the right.
Image centre_crop(const Image& image, int64_t height, int64_t width);

/// A random window of the image's own size after `padding` black pixels were added on every side.
Image pad_and_crop(const Image& image, int64_t padding, Draw& draw);

}  // namespace weft::data
