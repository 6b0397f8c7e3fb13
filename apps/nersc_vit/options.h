// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/nersc_vit/forecast_vit.h"
#include "data/field_series.h"
#include "train/run_options.h"

namespace weft::nersc_vit {

/// The command line and the section of the YAML file; options.cpp has the flags' texts for `--help`.
struct Options : train::RunOptions {
  Options() { lr = 5e-4, precision = "none", graph = "auto", seed = 0, unit = "samples"; }

  // Flags.
  std::string run_num = "00";
  std::string yaml_config = "./config/ViT.yaml", config = "base";
  bool enable_jit = false;
  int64_t local_batch_size = 0;  ///< 0: global_batch_size over the data ranks
  int64_t bucket_cap_mb = 25;
  bool disable_broadcast_buffers = false, noddp = false;
  int64_t row_parallel_size = 1, col_parallel_size = 1;
  bool sequence_parallel = false;
  int64_t pipeline_parallel_size = 1, pipeline_chunks = 1;
  int64_t micro_batches = 0;  ///< 0: four for each stage
  bool goes_on = false;       ///< --resume

  // Flags over keys of the YAML file.
  bool enable_fused = false;
  int64_t num_iters = 30000;
  int64_t num_data_workers = 0;
  std::string data_loader_config = "pytorch";

  // Keys of the YAML file.
  ForecastVitOptions model = {};
  std::vector<int64_t> img_size{360, 720};  ///< rows and columns of the fields
  int64_t dt = 1, global_batch_size = 16, warmup = 0;
  std::string lr_schedule = "cosine", optimizer = "Adam", expdir = "/logs";
  std::string train_data_path, valid_data_path, global_means_path, global_stds_path;
  int64_t limit_nsamples = 0, limit_nsamples_val = 0;

  std::vector<std::string> notes;  ///< flags and keys that mean nothing here, one sentence each
};

/// Reads the command line, then the file. False: --help was printed. Errors: UsageError; a file that is not there.
bool parse_options(int argc, char** argv, Options& options);

/// The options as `key: value` lines, for the log and a run's configuration. Flags that other programs share come last,
/// where they are set.
std::vector<std::pair<std::string, std::string>> listed(const Options& options);

/// Where the run's files go: `expdir/config/4GPU/run_num`, with tensor parallelism `expdir/config/2MP/run_num`, with a
/// pipeline `2PP`, with both `2MP2PP`.
std::string experiment_folder(const Options& options, int ranks);

/// The fields of one part. Errors: those of read_npy and FieldSeries.
data::FieldSeriesOptions series_options(const Options& options, int64_t limit);

}  // namespace weft::nersc_vit
