// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::data {

/// Writes encoded images, part by part, into one new file. The path keeps its old file until commit(); without it
/// nothing is left behind. Errors: the disk's, each naming the path.
class ImageWriter {
 public:
  virtual ~ImageWriter() = default;

  /// Begins a part, such as `train`, of exactly `count` images. Errors: the name is taken or empty, the part before
  /// has got another number of images.
  virtual void begin_part(const std::string& name, int64_t count) = 0;
  /// Errors: no part, more than its `count`, no bytes, a label outside the classes, 4 GiB or more.
  virtual void add(std::span<const uint8_t> bytes, int64_t label) = 0;
  /// The file appears under its name, whole. Errors: the last part is not full.
  virtual void commit() = 0;
};

/// Layout: packed_images.h.
std::unique_ptr<ImageWriter> packed_writer(const std::filesystem::path& path, std::vector<std::string> classes);
/// Layout: hdf5_images.h. Errors: also more than 32768 classes; Weft was built without HDF5.
std::unique_ptr<ImageWriter> hdf5_writer(const std::filesystem::path& path, std::vector<std::string> classes);

/// The counts that every ImageWriter requires of its caller.
class PartCount {
 public:
  /// `what` opens the error texts. Errors: no class, a class without a name or named twice.
  PartCount(std::string what, const std::vector<std::string>& classes);

  void begin_part(const std::string& name, int64_t count);
  void add(std::span<const uint8_t> bytes, int64_t label);
  /// Errors: the part is not full.
  void finish() const;

 private:
  std::string what_;
  int64_t classes_;
  std::vector<std::string> parts_;
  int64_t wanted_ = 0, got_ = 0;
};

}  // namespace weft::data
