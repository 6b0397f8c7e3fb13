// SPDX-License-Identifier: Apache-2.0
#include "data/field_series.h"

#include <algorithm>
#include <cmath>

#include "data/image_folder.h"
#include "kernels/error.h"

namespace weft::data {

namespace fs = std::filesystem;

FieldSeries::FieldSeries(const fs::path& folder, FieldSeriesOptions options)
    : folder_(folder.string()), options_(std::move(options)) {
  const FieldSeriesOptions& o = options_;
  const int64_t channels = std::max(o.in_channels, o.out_channels);
  WEFT_CHECK(o.dt > 0 && o.in_channels > 0 && o.out_channels > 0 && o.rows > 0 && o.columns > 0,
             "fields: expected dt, channels, rows and columns above 0, got ", o.dt, ", ", o.in_channels, " and ",
             o.out_channels, ", ", o.rows, ", ", o.columns);
  const auto known = static_cast<int64_t>(std::min(o.means.size(), o.stds.size()));
  WEFT_CHECK(known >= channels, "fields: expected means and standard deviations of ", channels, " channels, got ",
             o.means.size(), " and ", o.stds.size());
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    WEFT_CHECK(o.stds[c] > 0 && std::isfinite(o.stds[c]), "fields: channel ", c,
               ": expected a positive standard deviation, got ", o.stds[c]);
    WEFT_CHECK(std::isfinite(o.means[c]), "fields: channel ", c, ": expected a finite mean, got ", o.means[c]);
  }
  std::error_code error;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".h5" && !is_hidden(entry.path())) paths.push_back(entry.path());
  WEFT_CHECK(!error, "fields: expected a folder of HDF5 files at ", folder_, ", got: ", error.message());
  WEFT_CHECK(!paths.empty(), "fields: expected files such as 1979.h5 in ", folder_, ", got none");
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    files_.push_back(open_fields(path));
    const FieldSize& size = files_.back()->size();
    WEFT_CHECK(size.channels >= channels && size.rows >= o.rows && size.columns >= o.columns, "fields: ", path.string(),
               ": expected at least ", channels, " x ", o.rows, " x ", o.columns,
               " values (channels, rows, columns), got ", size.channels, " x ", size.rows, " x ", size.columns);
    size_ += std::max<int64_t>(size.times - o.dt, 0);
    ends_.push_back(size_);
  }
  WEFT_CHECK(size_ > 0, "fields: ", folder_, " holds no pair of times ", o.dt, " apart in one file");
  if (o.limit > 0) size_ = std::min(size_, o.limit);
}

void FieldSeries::read_time(const FieldFile& file, int64_t time, int64_t channels, float* to) const {
  const int64_t places = options_.rows * options_.columns;
  thread_local std::vector<float> planes;
  planes.resize(static_cast<size_t>(channels * places));
  file.read(time, {1, channels, options_.rows, options_.columns}, planes.data());
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = options_.means[static_cast<size_t>(c)], factor = 1 / options_.stds[static_cast<size_t>(c)];
    const float* const from = planes.data() + c * places;
    for (int64_t i = 0; i < places; ++i) to[i * channels + c] = (from[i] - mean) * factor;
  }
}

FieldSeries::Time FieldSeries::find(int64_t index) const {
  WEFT_CHECK(index >= 0 && index < size_, "fields: expected a pair below ", size_, ", got ", index);
  const auto file = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {file, index - (file > 0 ? ends_[file - 1] : 0)};
}

std::string FieldSeries::origin(int64_t index, size_t number, const Shape& place) const {
  const auto [file, time] = find(index);
  return str(files_[file]->path(), ", time ", time + (number == 0 ? 0 : options_.dt), ", channel ", place[2], ", row ",
             place[0], ", column ", place[1]);
}

void FieldSeries::read(int64_t index, float* input, float* target) const {
  const auto [file, time] = find(index);
  read_time(*files_[file], time, options_.in_channels, input);
  read_time(*files_[file], time + options_.dt, options_.out_channels, target);
}

std::string FieldSeries::describe() const {
  return str(folder_, ": ", files_.size(), files_.size() == 1 ? " file, " : " files, ", size_, " pairs of ",
             std::max(options_.in_channels, options_.out_channels), " x ", options_.rows, " x ", options_.columns);
}

namespace {

Collation collation(const std::shared_ptr<const FieldSeries>& series) {
  const FieldSeriesOptions& o = series->options();
  Collation made;
  made.parts = {{DType::f32, {o.rows, o.columns, o.in_channels}}, {DType::f32, {o.rows, o.columns, o.out_channels}}};
  made.write = [series](int64_t index, Draw&, const Row& row) {
    series->read(index, row.part<float>(0), row.part<float>(1));
  };
  made.size = series->size();
  made.names = {"input", "target"};
  made.origin = [series](int64_t index, size_t number, const Shape& place) {
    return series->origin(index, number, place);
  };
  made.description = series->describe();
  made.upload_scope = "data copy in";
  return made;
}

}  // namespace

FieldLoader::FieldLoader(const std::shared_ptr<const FieldSeries>& series, const Sampler& sampler,
                         const LoaderOptions& options)
    : Loader(collation(series), sampler, options) {}

}  // namespace weft::data
