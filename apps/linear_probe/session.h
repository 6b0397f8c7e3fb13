// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "apps/linear_probe/options.h"
#include "apps/support/averages.h"
#include "apps/support/checkpoint.h"
#include "apps/support/metrics.h"
#include "apps/support/parallel.h"
#include "apps/support/run_folder.h"
#include "apps/support/scalar_log.h"
#include "apps/support/signals.h"
#include "apps/support/stop_rule.h"
#include "apps/support/tensorboard.h"

namespace weft::linear_probe {

/// What rank 0 writes about a run.
struct Record {
  /// Of a run that goes on behind this step and epoch (-1: of a new one), what was written of later ones is dropped.
  /// `folder` must outlive it.
  Record(const Options& options, const support::RunFolder& folder, int64_t step, int64_t epoch);
  const support::RunFolder& folder;
  support::Metrics metrics;
  support::TensorBoard board;
  std::unique_ptr<support::ScalarLog> tracked;  ///< of ouai_demo alone
  /// One more epoch's accuracy in per cent.
  void validated(int64_t epoch, double accuracy);
};

/// How a phase goes.
struct PhaseResult {
  double accuracy = 0;           ///< share of right answers on the validation part after the last epoch
  double best_accuracy = 0;      ///< after any epoch
  double train_loss = 0;         ///< mean over the last epoch
  double images_per_second = 0;  ///< on all ranks, over the last epoch's training
  double peak_tensor_bytes = 0;  ///< most at once on this rank's device, in what this process ran of the phase
};

/// Where a run stands between two steps; with the weights, the optimizer and the random generator all of its state.
struct Position {
  std::string phase;                     ///< `probe`, `finetune`
  int64_t first_epoch = 0;               ///< epochs of earlier phases, for the metrics
  int64_t epoch = 0, step_in_epoch = 0;  ///< of the phase
  int64_t step = 0;                      ///< of the whole run
  int64_t images = 0;                    ///< of the epoch under way, on all ranks
  double loss_sum = 0;                   ///< over them
  PhaseResult result;                    ///< so far
};

/// What lasts over the phases of a run: its folder, the checkpoint that it goes on from, what may stop it.
class Session {
 public:
  /// Opens the run folder and reads the checkpoint of --resume. All ranks make it. Errors: the folder's, the
  /// checkpoint's; it is of another model, of another global batch, or of a phase that --phases leaves out.
  Session(const Options& options, const support::Ranks& ranks);

  /// Of rank 0, else null; null in a dry run.
  Record* record() { return record_.get(); }
  support::StepSums& sums() { return sums_; }
  support::StopRule& stop() { return stop_; }
  const support::Signals& signals() const { return signals_; }

  /// Begins a phase: position() is its start, or, if the checkpoint is of it, where that stands. `false`: the
  /// checkpoint is of a later one.
  bool begin(const std::string& phase, int64_t first_epoch);
  Position& position() { return position_; }
  /// The weights that the checkpoint holds of the phase begun, into the modules that they name; nothing in a phase that
  /// begins anew. To be called before the model is shared out.
  void load_model(nn::Module& model) const;
  void load_optimizer(support::Parallel& parallel, optim::Optimizer& optimizer, optim::Ema* averages);
  /// Writes checkpoint_last.h5: of the model's state what begins with `prefix`. All ranks call it.
  void save(support::Parallel& parallel, const optim::Optimizer& optimizer, const optim::Ema* averages,
            const std::string& prefix);
  /// The result of a phase for summary.json, and for the checkpoints of later ones.
  void finish(const PhaseResult& result);
  void write_summary(bool finished);

 private:
  void check(const std::string& path) const;

  const Options& options_;
  const support::Ranks& ranks_;
  std::unique_ptr<support::RunFolder> folder_;  ///< of rank 0; none in a dry run
  std::string path_;                            ///< of `saved_`
  std::optional<support::Checkpoint> saved_;
  bool resumes_ = false;  ///< the phase begun is that of `saved_`
  Position position_;
  std::map<std::string, double> results_;  ///< `probe_accuracy`, … of finished phases
  std::unique_ptr<Record> record_;
  support::Signals signals_;
  support::StepSums sums_;
  support::StopRule stop_;
};

}  // namespace weft::linear_probe
