// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "data/dataset.h"
#include "data/decode.h"

namespace weft::data {

/// A set whose images are kept as JPEG or PNG bytes, and decoded to upright RGB when they are asked for.
class EncodedDataset : public Dataset {
 public:
  /// The bytes of image `index` as they are stored: a view of `buffer`, which grows where it must and is best used
  /// again for the next image. Threads bring a buffer each. Errors: index outside the set; unreadable.
  virtual std::span<const uint8_t> encoded(int64_t index, std::vector<uint8_t>& buffer) const = 0;
  /// Compares the bytes with the checksum that the set keeps, if any. Errors: they are damaged.
  virtual void check(int64_t index, std::span<const uint8_t> bytes) const;
  int64_t label(int64_t index) const {
    check_index(index);
    return labels_[static_cast<size_t>(index)];
  }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t channels() const override { return 3; }
  /// Checked, then decoded.
  Image get(int64_t index) const override;
  std::string describe() const override;

 protected:
  /// `title`: `folder train`. Errors: no image, a label outside the classes.
  EncodedDataset(std::string title, std::vector<std::string> classes, std::vector<int64_t> labels,
                 DecodeOptions decoding);
  void check_index(int64_t index) const;

 private:
  std::string title_;
  std::vector<std::string> classes_;
  std::vector<int64_t> labels_;
  DecodeOptions decoding_;
};

/// The first `bytes` bytes of `buffer`, which grows to hold them.
std::span<uint8_t> room_in(std::vector<uint8_t>& buffer, size_t bytes);

}  // namespace weft::data
