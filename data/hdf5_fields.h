// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace weft::data {

/// Sizes of fields on a grid of latitudes (rows) and longitudes (columns).
struct FieldSize {
  int64_t times = 0, channels = 0, rows = 0, columns = 0;
  int64_t values() const { return channels * rows * columns; }  ///< at one time
};

/// One HDF5 file with the dataset `fields` [times, channels, rows, columns] of floating point numbers, as NERSC's
/// tutorials keep a year of ERA5.
class FieldFile {
 public:
  virtual ~FieldFile() = default;
  const FieldSize& size() const { return size_; }
  const std::string& path() const { return path_; }

  /// The first channels, rows and columns of `window` at one time, to `to` [channels, rows, columns]. From any number
  /// of threads at once: data that lie in one piece in the file are read past libhdf5, others under a lock. Errors: the
  /// file is cut short, the disk fails.
  virtual void read(int64_t time, const FieldSize& window, float* to) const = 0;

 protected:
  FieldFile(std::string path, FieldSize size) : path_(std::move(path)), size_(size) {}

 private:
  std::string path_;
  FieldSize size_;
};

/// Errors name the file: no HDF5, no dataset `fields`, another rank than 4, no floating point numbers, packed by a filter
/// that libhdf5 lacks; Weft was built without HDF5. libhdf5 can crash on files that were damaged on purpose: open files of people you trust.
std::unique_ptr<FieldFile> open_fields(const std::filesystem::path& path);

/// Writes such a file in f32; `fill` is called for each time in turn with room for [channels, rows, columns]. Errors:
/// the system's text.
void write_fields(const std::filesystem::path& path, const FieldSize& size,
                  const std::function<void(int64_t time, float* values)>& fill);

/// Whether the two can work (Weft was built with HDF5).
bool have_fields();

}  // namespace weft::data
