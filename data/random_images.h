// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "data/dataset.h"

namespace weft::data {

struct RandomImagesOptions {
  int64_t count = 1024;
  int64_t height = 32;
  int64_t width = 32;
  int64_t channels = 3;
  int64_t classes = 10;
  uint64_t seed = 0;
};

/// Uniform noise with uniform labels, for speed measurements. Errors: a size below 1, more than 4 channels, over 64
/// GiB.
std::shared_ptr<const Dataset> random_images(RandomImagesOptions options, Split split);
/// Reads `NxHxWxC`; an empty text gives the defaults. Errors: any other text.
RandomImagesOptions parse_random_images(const std::string& text);

}  // namespace weft::data
