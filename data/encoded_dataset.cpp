// SPDX-License-Identifier: Apache-2.0
#include "data/encoded_dataset.h"

#include "kernels/engines/nvjpeg.h"
#include "kernels/error.h"

namespace weft::data {

EncodedDataset::EncodedDataset(std::string title, std::vector<std::string> classes, std::vector<int64_t> labels,
                               DecodeOptions decoding)
    : title_(std::move(title)), classes_(std::move(classes)), labels_(std::move(labels)), decoding_(decoding) {
  WEFT_CHECK(!labels_.empty(), title_, ": expected at least one image, got none");
  WEFT_CHECK(decoding_.gpu < 0 || kernels::vendor::nvjpeg::missing().empty(), title_,
             ": images cannot be decoded on a GPU: ", kernels::vendor::nvjpeg::missing());
  const auto known = static_cast<int64_t>(classes_.size());
  for (size_t i = 0; i < labels_.size(); ++i)
    WEFT_CHECK(labels_[i] >= 0 && labels_[i] < known, title_, ": expected labels 0 to ", known - 1, ", got ",
               labels_[i], " for image ", i);
}

void EncodedDataset::check_index(int64_t index) const {
  WEFT_CHECK(index >= 0 && index < size(), title_, ": expected an index below ", size(), ", got ", index);
}

void EncodedDataset::check(int64_t, std::span<const uint8_t>) const {}

Image EncodedDataset::get(int64_t index) const {
  std::vector<uint8_t> buffer;
  const std::span<const uint8_t> bytes = encoded(index, buffer);
  check(index, bytes);
  Image image = decode(bytes, origin(index), decoding_);
  image.label = label(index);
  return image;
}

std::string EncodedDataset::describe() const {
  return str(title_, ": ", size(), " images of varying size, ", classes_.size(), " classes");
}

std::span<uint8_t> room_in(std::vector<uint8_t>& buffer, size_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return {buffer.data(), bytes};
}

}  // namespace weft::data
