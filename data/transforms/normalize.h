// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "data/image.h"

namespace weft::data {

/// Where the model's input lies in a stored image, and whether it is mirrored: a row of the `place` argument of
/// kernels::image_normalize. top and left may be negative: what lies outside counts as black.
struct Place {
  int32_t top = 0;
  int32_t left = 0;
  int32_t flip = 0;
};

/// Byte to normalised value, (byte / 255 - mean[c]) / std[c], worked out once per channel: a byte has 256 values.
struct NormalizeTable {
  float value[4][256] = {};

  NormalizeTable() = default;
  /// Errors: more than four channels, sizes that differ, a std that is not positive.
  NormalizeTable(const std::vector<float>& mean, const std::vector<float>& std);
};

/// The image in memory that a place refers to: u8 [height, width, channels].
struct ImageView {
  const uint8_t* pixels = nullptr;
  int64_t height = 0, width = 0, channels = 0;
};

/// An image of kernels::image_normalize, with crop, flip and normalisation fused in one pass:
/// y[p, q, c] = (x[top + p, left + (flip ? Q - 1 - q : q), c] / 255 - mean[c]) / std[c]; y is f32 [rows, columns, c].
void normalize(float* y, int64_t rows, int64_t columns, const ImageView& x, Place place, const NormalizeTable& table);

/// As normalize(), window and mirroring without arithmetic: y is u8 [rows, columns, c].
void cut_out(uint8_t* y, int64_t rows, int64_t columns, const ImageView& x, Place place);

}  // namespace weft::data
