// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5_fields.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "io/file_reader.h"
#include "io/hdf5/hdf5_open.h"

namespace weft::data {
namespace {

constexpr const char* kDataset = "fields";

class Fields final : public FieldFile {
 public:
  Fields(std::unique_ptr<FileReader> file, FieldSize size, Hdf5Id hdf5, Hdf5Id dataset, haddr_t offset)
      : FieldFile(file->path(), size),
        file_(std::move(file)),
        hdf5_(std::move(hdf5)),
        dataset_(std::move(dataset)),
        offset_(offset) {}

  void read(int64_t time, const FieldSize& window, float* to) const override {
    const FieldSize& all = size();
    const bool fits = time >= 0 && time < all.times && window.channels <= all.channels && window.rows <= all.rows &&
                      window.columns <= all.columns;
    WEFT_CHECK(fits, "fields: ", path(), ": time ", time, " of ", window.channels, " x ", window.rows, " x ",
               window.columns, " values lies outside of ", all.times, " x ", all.channels, " x ", all.rows, " x ",
               all.columns);
    if (offset_ == HADDR_UNDEF) return read_through_library(time, window, to);
    const auto place = [&](int64_t channel, int64_t row) {
      const int64_t before = ((time * all.channels + channel) * all.rows + row) * all.columns;
      return offset_ + static_cast<uint64_t>(before) * sizeof(float);
    };
    // In as few pieces as the window allows.
    const bool whole_rows = window.columns == all.columns, whole_planes = whole_rows && window.rows == all.rows;
    const int64_t rows_at_once = whole_rows ? window.rows : 1, planes_at_once = whole_planes ? window.channels : 1;
    const int64_t piece = planes_at_once * rows_at_once * window.columns;
    for (int64_t channel = 0; channel < window.channels; channel += planes_at_once)
      for (int64_t row = 0; row < window.rows; row += rows_at_once, to += piece)
        file_->read(place(channel, row), to, static_cast<uint64_t>(piece) * sizeof(float));
  }

 private:
  void read_through_library(int64_t time, const FieldSize& window, float* to) const {
    const std::lock_guard lock(hdf5_mutex());
    const Hdf5Quiet quiet;
    const std::array<hsize_t, 4> start{static_cast<hsize_t>(time), 0, 0, 0};
    const std::array<hsize_t, 4> count{1, static_cast<hsize_t>(window.channels), static_cast<hsize_t>(window.rows),
                                       static_cast<hsize_t>(window.columns)};
    const Hdf5Id from(hdf5().Dget_space(dataset_), hdf5().Sclose),
        room(hdf5().Screate_simple(4, count.data(), nullptr), hdf5().Sclose);
    const bool read =
        hdf5().Sselect_hyperslab(from, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >= 0 &&
        hdf5().Dread(dataset_, hdf5().T_NATIVE_FLOAT(), room, from, H5P_DEFAULT, to) >= 0;
    if (!read) file_->bad("cannot read time ", time, ". Is the file whole?");
  }

  std::unique_ptr<FileReader> file_;
  Hdf5Id hdf5_, dataset_;
  haddr_t offset_;  ///< place of f32 values in one piece; HADDR_UNDEF: others
};

}  // namespace

bool have_fields() { return true; }

std::unique_ptr<FieldFile> open_fields(const std::filesystem::path& path) {
  auto file = std::make_unique<FileReader>(path, "fields");
  const std::lock_guard lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  Hdf5Id opened = hdf5_file(*file, "an HDF5 file with the dataset 'fields'", "another format");
  Hdf5Id dataset = hdf5_dataset(opened, kDataset);
  if (!dataset.valid())
    file->bad("expected the dataset 'fields', got none in this file", hdf5_elsewhere(opened, kDataset));
  const Hdf5Id space(hdf5().Dget_space(dataset), hdf5().Sclose), type(hdf5().Dget_type(dataset), hdf5().Tclose);
  const int rank = hdf5().Sget_simple_extent_ndims(space);
  if (rank != 4) file->bad("fields: expected [time, channel, latitude, longitude], got ", rank, " dimensions");
  if (hdf5().Tget_class(type) != H5T_FLOAT)
    file->bad(
        "fields: expected floating point numbers, got another type. Packed whole numbers (scale_factor, add_offset) "
        "must be ",
        "unpacked first: write them as float32");
  if (const std::string missing = hdf5_missing_filter(dataset); !missing.empty()) file->bad("fields: ", missing);
  std::array<hsize_t, 4> sizes{};
  hdf5().Sget_simple_extent_dims(space, sizes.data(), nullptr);
  constexpr hsize_t kMost = hsize_t{1} << 32;
  hsize_t values = 1;
  for (const hsize_t size : sizes) {
    if (size == 0 || size > kMost || values > kMost * 1024 / size) file->bad("fields: sizes of 0 or beyond all reason");
    values *= size;
  }
  haddr_t offset = hdf5().Tequal(type, hdf5().T_IEEE_F32LE()) > 0 ? hdf5().Dget_offset(dataset) : HADDR_UNDEF;
  if (offset != HADDR_UNDEF && (offset > file->size() || (file->size() - offset) / sizeof(float) < values))
    file->bad("cut short: ", values, " values do not fit into it");
  const FieldSize size{static_cast<int64_t>(sizes[0]), static_cast<int64_t>(sizes[1]), static_cast<int64_t>(sizes[2]),
                       static_cast<int64_t>(sizes[3])};
  return std::make_unique<Fields>(std::move(file), size, std::move(opened), std::move(dataset), offset);
}

void write_fields(const std::filesystem::path& path, const FieldSize& size,
                  const std::function<void(int64_t time, float* values)>& fill) {
  const std::lock_guard lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  const auto check = [&](auto result) {
    WEFT_CHECK(result >= 0, "fields: ", path.string(), ": cannot write: ", std::strerror(errno != 0 ? errno : EIO));
    return result;
  };
  errno = 0;
  Hdf5Id file(check(hdf5().Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)), hdf5().Fclose);
  const std::array<hsize_t, 4> sizes{static_cast<hsize_t>(size.times), static_cast<hsize_t>(size.channels),
                                     static_cast<hsize_t>(size.rows), static_cast<hsize_t>(size.columns)};
  const Hdf5Id space(check(hdf5().Screate_simple(4, sizes.data(), nullptr)), hdf5().Sclose);
  Hdf5Id dataset(
      check(hdf5().Dcreate2(file, kDataset, hdf5().T_IEEE_F32LE(), space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)),
      hdf5().Dclose);
  const std::array<hsize_t, 4> one{1, sizes[1], sizes[2], sizes[3]};
  const Hdf5Id room(check(hdf5().Screate_simple(4, one.data(), nullptr)), hdf5().Sclose);
  std::vector<float> values(static_cast<size_t>(size.values()));
  for (int64_t time = 0; time < size.times; ++time) {
    fill(time, values.data());
    const std::array<hsize_t, 4> start{static_cast<hsize_t>(time), 0, 0, 0};
    check(hdf5().Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, one.data(), nullptr));
    check(hdf5().Dwrite(dataset, hdf5().T_NATIVE_FLOAT(), room, space, H5P_DEFAULT, values.data()));
  }
  check(dataset.close() ? 0 : -1);
  check(file.close() ? 0 : -1);
}

}  // namespace weft::data
