// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "data/dataset.h"

namespace weft::data {

/// A set held in memory, all images of one size.
class FixedDataset : public Dataset {
 public:
  struct Contents {
    std::string title;  ///< `cifar10 train`
    std::vector<uint8_t> pixels;
    std::vector<int64_t> labels;
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    std::vector<std::string> classes;
    /// Names the source of an image; `TITLE image N` where absent.
    std::function<std::string(int64_t)> origin;
  };

  /// Errors: sizes that do not fit together, a label outside the classes (the text names its origin).
  explicit FixedDataset(Contents contents);

  int64_t size() const override { return storage_.count; }
  const std::vector<std::string>& classes() const override { return contents_.classes; }
  int64_t channels() const override { return contents_.channels; }
  Image get(int64_t index) const override;
  const Storage* storage() const override { return &storage_; }
  std::string origin(int64_t index) const override;
  std::string describe() const override;

 private:
  Contents contents_;
  Storage storage_;
};

}  // namespace weft::data
