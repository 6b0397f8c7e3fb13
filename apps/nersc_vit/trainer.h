// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/nersc_vit/forecast.h"
#include "apps/nersc_vit/forecast_vit.h"
#include "apps/nersc_vit/options.h"
#include "apps/nersc_vit/out_log.h"
#include "data/field_series.h"
#include "dist/group/world.h"
#include "optim/loss_scaler.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"
#include "train/record/stopwatch.h"

namespace weft::nersc_vit {

/// Trains on a grid of ranks; prints and logs what NERSC's tutorial does. All ranks do the same in the same order.
class Trainer final : public train::TypedTask<data::FieldBatch> {
 public:
  Trainer(const Options& options, const dist::World& ranks, dist::Grid grid, OutLog& log);

  /// The text of --dry-run.
  std::string describe() const;
  /// All steps that are left, or a checkpoint after the step in which a signal came.
  train::RunEnd run();

 private:
  std::optional<train::Batch> next() override;
  void epoch_begins() override;
  void before_step(data::FieldBatch&) override;
  train::Measured loss(const data::FieldBatch& batch) override;
  void after_step() override;
  train::Validation validate(const train::Epoch&) override;
  void epoch_saved(const train::Epoch& epoch, const train::Validation&) override;
  std::string save() override;
  void stopped(train::StopRule&) override;
  void ended(train::RunEnd end) override;

  int64_t global_batch() const { return samples_per_step(options_, grid_); }
  train::EngineOptions engine_options() const;
  void open_folder();
  void resume();
  void check_settings(const std::string& path, const Checkpoint& saved);
  void log_beginning();
  void log_first_losses();
  Score score(int64_t most_steps);
  void draw_forecast(const std::vector<Tensor>& fields);  // input, target, prediction
  double mean_over_ranks(double value, const char* what) const;

  const Options& options_;
  const dist::World& ranks_;
  dist::Grid grid_;
  OutLog& log_;
  std::filesystem::path folder_;
  std::unique_ptr<train::RunFolder> run_folder_;  // on rank 0, once training begins
  data::FieldLoader valid_;
  std::shared_ptr<ForecastVit> model_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::Adam> adam_;
  optim::SchedulePtr schedule_;
  std::optional<optim::LossScaler> scaler_;    // with fp16
  std::unique_ptr<train::ScalarLog> scalars_;  // on rank 0
  std::unique_ptr<train::Engine> engine_;
  Score validated_;
  double train_loss_ = 0;
  train::Stopwatch validating_;  // since the last validation began
  bool profiled_ = false;        // the epoch under way
};

}  // namespace weft::nersc_vit
