// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/nersc_vit/evaluation.h"
#include "apps/nersc_vit/options.h"
#include "apps/nersc_vit/out_log.h"
#include "apps/support/progress.h"
#include "apps/support/ranks.h"
#include "apps/support/run_folder.h"
#include "apps/support/scalar_log.h"
#include "apps/support/signals.h"
#include "apps/support/stop_rule.h"
#include "core/graph.h"
#include "data/field_loader.h"
#include "dist/tensor_parallel.h"
#include "optim/adam.h"
#include "optim/loss_scaler.h"
#include "optim/schedule/scheduler.h"

namespace weft::nersc_vit {

/// Trains on a grid of ranks; prints and logs what NERSC's tutorial does. All ranks do the same in the same order.
class Trainer {
 public:
  Trainer(const Options& options, const support::Ranks& ranks, dist::Grid grid, OutLog& log);

  /// What --dry-run says.
  std::string describe() const;
  /// All steps that are left, or a checkpoint behind the step in which a signal came.
  support::RunEnd run();

 private:
  int64_t local_batch() const;
  int64_t global_batch() const { return local_batch() * grid_.data()->size(); }
  DType amp_dtype() const;
  void open_folder();
  void make_graph();
  void resume();
  void save();
  void log_beginning();
  void log_first_losses();
  bool train_epoch();
  void train_step(const data::FieldBatch& batch);
  void update(const Tensor& input, const Tensor& target);
  void update_scaled(const Tensor& loss);
  void finish_epoch(double seconds, int64_t steps);
  Score validate(int64_t most_steps);
  Tensor forward(const Tensor& input);
  bool stop_requested();
  void read_loss();
  void draw_forecast(const std::vector<Tensor>& fields);  // input, target, prediction
  double mean_over_ranks(double value, const char* what) const;

  const Options& options_;
  const support::Ranks& ranks_;
  dist::Grid grid_;
  OutLog& log_;
  std::filesystem::path folder_;
  std::unique_ptr<support::RunFolder> run_folder_;  // of rank 0, once it trains
  data::FieldLoader train_, valid_;
  std::shared_ptr<ForecastVit> model_;
  std::unique_ptr<dist::TensorParallel> parallel_;
  std::unique_ptr<optim::Adam> adam_;
  optim::SchedulePtr schedule_;
  std::optional<optim::LossScaler> scaler_;  // with fp16
  std::unique_ptr<GraphedFunction> graph_;
  std::unique_ptr<support::ScalarLog> scalars_;  // of rank 0
  support::Signals signals_;
  int64_t stop_ = 0;  // what came to any rank: 1 SIGINT, 2 SIGTERM

  int64_t epoch_ = 0, step_in_epoch_ = 0, iters_ = 0;
  Tensor loss_sum_;                                          // of the epoch, f64 on the device
  double loss_read_ = 0;                                     // of it, what the host knows
  int64_t unread_ = 0;                                       // steps since
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_;  // where ranks but the first draw their progress
  support::Progress progress_;
};

}  // namespace weft::nersc_vit
