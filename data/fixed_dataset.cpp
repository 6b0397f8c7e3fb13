// SPDX-License-Identifier: Apache-2.0
#include "data/fixed_dataset.h"

#include "kernels/error.h"

namespace weft::data {

FixedDataset::FixedDataset(Contents contents) : contents_(std::move(contents)) {
  const Contents& c = contents_;
  const auto count = static_cast<int64_t>(c.labels.size());
  WEFT_CHECK(count > 0, c.title, ": expected at least one image, got none");
  WEFT_CHECK(static_cast<int64_t>(c.pixels.size()) == count * c.height * c.width * c.channels, c.title, ": expected ",
             count, " images of ", c.height, "x", c.width, "x", c.channels, ", got ", c.pixels.size(), " bytes");
  storage_ = {c.pixels.data(), c.labels.data(), count, c.height, c.width, c.channels};
  const auto known = static_cast<int64_t>(c.classes.size());
  for (int64_t i = 0; i < count; ++i)
    WEFT_CHECK(c.labels[i] >= 0 && c.labels[i] < known, c.title, ": expected labels 0 to ", known - 1, ", got ",
               c.labels[i], " in ", origin(i));
}

Image FixedDataset::get(int64_t index) const {
  WEFT_CHECK(index >= 0 && index < size(), contents_.title, ": expected an index below ", size(), ", got ", index);
  const uint8_t* first = storage_.image(index);
  return {std::vector<uint8_t>(first, first + storage_.image_bytes()), storage_.height, storage_.width,
          storage_.channels, storage_.labels[index]};
}

std::string FixedDataset::origin(int64_t index) const {
  return contents_.origin ? contents_.origin(index) : str(contents_.title, " image ", index);
}

std::string FixedDataset::describe() const {
  return str(contents_.title, ": ", size(), " images ", storage_.height, "x", storage_.width, "x", storage_.channels,
             ", ", contents_.classes.size(), " classes");
}

}  // namespace weft::data
