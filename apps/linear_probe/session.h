// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/linear_probe/options.h"
#include "io/checkpoint.h"
#include "train/engine.h"
#include "train/record/metrics.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"
#include "train/record/tensorboard.h"

namespace weft::linear_probe {

/// Rank 0's files about a run.
struct Record {
  /// A run that continues after this step and epoch (-1: a new run) drops records of later ones.
  /// `folder` must outlive it.
  Record(const Options& options, const train::RunFolder& folder, int64_t step, int64_t epoch);
  const train::RunFolder& folder;
  train::Metrics metrics;
  train::TensorBoard board;
  std::unique_ptr<train::ScalarLog> tracked;  ///< for ouai_demo alone
  /// Adds an epoch's accuracy in per cent.
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

/// The state that lasts over the phases of a run: its folder, the checkpoint to resume from, its reasons to stop.
class Session {
 public:
  /// Opens the run folder and reads the checkpoint of --resume; `by_ranges`: its notes alone, since phases share the
  /// weights, and read their own. All ranks make it. Errors: the folder's, the
  /// checkpoint's; it is of another model, of other classes, of another global batch, or of a phase that --phases
  /// leaves out.
  Session(const Options& options, const dist::World& ranks, std::vector<std::string> classes, bool by_ranges);

  /// The record on rank 0, else null; null in a dry run.
  Record* record() { return record_.get(); }
  const std::shared_ptr<train::Interruption>& interruption() const { return interruption_; }

  /// Begins a phase, with its result so far if the checkpoint is from this phase. `false`: the checkpoint is from a
  /// later phase.
  bool begin(const std::string& phase, int64_t first_epoch);
  /// Epochs of earlier phases, for the metrics.
  int64_t first_epoch() const { return first_epoch_; }
  /// The result of the phase begun.
  PhaseResult& result() { return result_; }
  /// The weights that the checkpoint holds of the phase begun, into the modules that they name; nothing in a new phase,
  /// and by ranges. To be called before the model is shared out.
  void load_model(nn::Module& model) const;
  /// All else that it holds: the optimizer, the averages, where the phase stands; by ranges the weights, too.
  void resume(train::Engine& engine);
  /// Writes the last checkpoint. All ranks call it.
  void save(train::Engine& engine);
  /// The phase begun ends with this step of the run. Its result, if it is finished, is for summary.json, and for the
  /// checkpoints of later ones.
  void end(int64_t step, bool finished);
  /// Steps of the whole run, as of the last end().
  int64_t step() const { return step_; }
  void write_summary(bool finished);

 private:
  void check(const std::string& path) const;
  void check_settings(const std::string& path) const;

  const Options& options_;
  const dist::World& ranks_;
  std::vector<std::string> classes_;
  std::unique_ptr<train::RunFolder> folder_;  ///< on rank 0; none in a dry run
  std::string path_;                          ///< path of `saved_`
  std::optional<Checkpoint> saved_;
  bool resumes_ = false;  ///< the phase begun is that of `saved_`
  std::string phase_;     ///< the one begun: `probe`, `finetune`
  int64_t first_epoch_ = 0, step_ = 0;
  PhaseResult result_;
  std::map<std::string, double> results_;  ///< `probe_accuracy`, … of finished phases
  std::unique_ptr<Record> record_;
  std::shared_ptr<train::Interruption> interruption_;
};

}  // namespace weft::linear_probe
