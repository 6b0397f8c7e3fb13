// SPDX-License-Identifier: Apache-2.0
#include "data/random_images.h"

#include <charconv>

#include "core/text.h"
#include "data/dataset.h"
#include "data/draw.h"
#include "kernels/error.h"

namespace weft::data {

std::shared_ptr<const Dataset> random_images(RandomImagesOptions o, Split split) {
  WEFT_CHECK(o.count > 0 && o.height > 0 && o.width > 0 && o.channels > 0 && o.channels <= 4 && o.classes > 0,
             "random: expected sizes of at least 1 and at most 4 channels, got ", o.count, "x", o.height, "x", o.width,
             "x", o.channels, " with ", o.classes, " classes");
  constexpr int64_t kLimit = int64_t{64} << 30;
  WEFT_CHECK(o.count <= kLimit / o.height / o.width / o.channels, "random: expected at most 64 GiB of images, got ",
             o.count, "x", o.height, "x", o.width, "x", o.channels);
  FixedDataset::Contents contents;
  contents.title = str("random ", name(split));
  contents.height = o.height;
  contents.width = o.width;
  contents.channels = o.channels;
  contents.labels.resize(o.count);
  contents.pixels.resize(o.count * o.height * o.width * o.channels);
  Draw draw(o.seed, split == Split::train ? 0 : 1);
  for (int64_t& label : contents.labels) label = draw.below(o.classes);
  uint32_t word = 0;
  for (size_t i = 0; i < contents.pixels.size(); ++i) {
    if (i % 4 == 0) word = draw.word();
    contents.pixels[i] = static_cast<uint8_t>(word >> (8 * (i % 4)));
  }
  for (int64_t c = 0; c < o.classes; ++c) contents.classes.push_back(std::to_string(c));
  return std::make_shared<FixedDataset>(std::move(contents));
}

RandomImagesOptions parse_random_images(const std::string& text) {
  RandomImagesOptions options;
  if (text.empty()) return options;
  int64_t* const sizes[] = {&options.count, &options.height, &options.width, &options.channels};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 4; ++i) {
    const auto [next, problem] = std::from_chars(at, end, *sizes[i]);
    const bool separated = i == 3 ? next == end : next != end && *next == 'x';
    WEFT_CHECK(problem == std::errc() && separated, "random: expected NxHxWxC such as 1024x32x32x3, got '",
               printable(text), "'");
    at = next + 1;
  }
  return options;
}

}  // namespace weft::data
