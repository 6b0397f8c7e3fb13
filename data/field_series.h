// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/hdf5_fields.h"
#include "data/loader.h"

namespace weft::data {

struct FieldSeriesOptions {
  int64_t dt = 1;                             ///< steps of time between input and target
  int64_t in_channels = 0, out_channels = 0;  ///< the first ones of the file
  int64_t rows = 0, columns = 0;              ///< the first ones of the file
  int64_t limit = 0;                          ///< use the first `limit` samples; 0: all
  std::vector<float> means = {}, stds = {};   ///< per channel
};

/// A folder of HDF5 files, one for each year, as pairs of fields at times t and t + dt of the same file. Values are
/// z-scores (x - mean) / std of their channel, channels last.
class FieldSeries {
 public:
  /// Errors: no file NAME.h5 in the folder, files of different sizes or smaller than the window; fewer means or
  /// standard deviations than channels; a value that is not finite, a deviation not above 0; no pair at all; errors of
  /// open_fields.
  FieldSeries(const std::filesystem::path& folder, FieldSeriesOptions options);

  int64_t size() const { return size_; }
  const FieldSeriesOptions& options() const { return options_; }
  /// input [rows, columns, in_channels], target [rows, columns, out_channels]. From any number of threads at once.
  void read(int64_t index, float* input, float* target) const;
  /// Where a value of that comes from, `place` in input (0) or target (1): `train/1979.h5, time 3, channel 0, row 5,
  /// column 2`.
  std::string origin(int64_t index, size_t number, const Shape& place) const;
  /// `data/train: 3 files, 1095 pairs of 20 x 360 x 720`.
  std::string describe() const;

 private:
  struct Time {
    size_t file;
    int64_t time;  ///< index of the input's time
  };
  Time find(int64_t index) const;
  void read_time(const FieldFile& file, int64_t time, int64_t channels, float* to) const;

  std::string folder_;
  FieldSeriesOptions options_;
  std::vector<std::unique_ptr<FieldFile>> files_;
  std::vector<int64_t> ends_;  ///< pairs in all files up to this one
  int64_t size_ = 0;
};

struct FieldBatch {
  Tensor input;   ///< f32 [count, rows, columns, in_channels]
  Tensor target;  ///< f32 [count, rows, columns, out_channels]
  int64_t count = 0, epoch = 0, step = 0;
  void fields(auto& v) { v("input", input), v("target", target); }
};

/// Batches of a FieldSeries, read straight into their memory.
class FieldLoader : public Loader<FieldBatch> {
 public:
  FieldLoader(const std::shared_ptr<const FieldSeries>& series, const Sampler& sampler, const LoaderOptions& options);
};

}  // namespace weft::data
