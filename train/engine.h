// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/group/step_times.h"
#include "io/checkpoint.h"
#include "optim/ema.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/profile_window.h"
#include "train/progress.h"
#include "train/stop_rule.h"
#include "train/strategy.h"

namespace weft::train {

class Engine;
class RunFolder;

/// The input of a forward pass, on the device.
struct Batch {
  std::vector<Tensor> tensors;
  int64_t samples = 0;  ///< samples of this rank; 0: the tensors hold a dummy batch, which counts nothing
};

/// The result of a forward pass.
struct Measured {
  Tensor loss;          ///< scalar, the mean over the batch
  Tensor correct = {};  ///< scalar f32, how many answers are right (count_correct); undefined: not counted
};

/// How many rows of `logits` [N, classes] are largest at their label, i64 [N]: scalar f32, without gradients.
Tensor count_correct(const Tensor& logits, const Tensor& labels);

/// Where a run stands between two steps. With the weights, the optimizer, its averages and the random generator this is
/// all of its state: a resumed run equals an undisturbed run bit for bit.
struct Position {
  int64_t epoch = 0, step_in_epoch = 0;
  int64_t step = 0;                  ///< index in the whole run
  int64_t samples = 0;               ///< the epoch's so far, on all ranks, as are the next two
  double loss_sum = 0, correct = 0;  ///< as of the last read
  double own_loss_sum = 0;           ///< sum of this rank
  double best_score = -1;
  int64_t best_epoch = -1;  ///< -1: none was validated
};

/// A finished epoch, before its validation.
struct Epoch {
  int64_t number = 0;   ///< from 1
  double loss = 0;      ///< mean over the epoch's samples, all ranks; LossSum::per_step: over its steps
  double accuracy = 0;  ///< share of right answers
  double lr = 0;        ///< rate of the last step
  double seconds = 0;   ///< time of its steps that this process made, without checkpoints
  int64_t samples = 0;  ///< in these seconds, on all ranks
  int64_t steps = 0;
  ProgressState pace = {};
};

/// The result of a validation.
struct Validation {
  /// Higher is better: the best epoch so far is saved apart. NaN: no rule.
  double score = std::numeric_limits<double>::quiet_NaN();
  std::string text = {};  ///< follows the epoch's line of progress
};

/// A program's training: its data, its loss, its files and its printed lines. The engine calls these on all ranks in
/// the same order.
class Task {
 public:
  virtual ~Task() = default;

  /// Samples of this rank in an epoch; batches hold `batch_size()` samples, but for the last one.
  virtual int64_t samples() const = 0;
  virtual int64_t batch_size() const = 0;
  /// Batches of an epoch, as many on all ranks: a rank without a sample left has a dummy batch.
  virtual int64_t batches() const { return (samples() + batch_size() - 1) / batch_size(); }
  /// Samples of batch `batch` of an epoch, a mean over the ranks. The default assumes the same number on all ranks.
  virtual double mean_samples(int64_t batch) const {
    return static_cast<double>(std::min(batch_size(), samples() - batch * batch_size()));
  }
  /// next() brings batch `batch` of the epoch, and so on. May be called again for the same place.
  virtual void start_epoch(int64_t epoch, int64_t batch) = 0;
  virtual std::optional<Batch> next() = 0;
  /// Where the value at `place` of tensor `number` of a batch comes from, for error texts.
  virtual std::string origin(int64_t epoch, int64_t batch, size_t number, const Shape& place) const;
  /// Seconds that next() has waited so far; negative: not known.
  virtual double waited() const { return -1; }

  /// The epoch's first step follows; in a resumed epoch, the first that is left.
  virtual void epoch_begins() {}
  /// Ahead of a step, which has its learning rate by then. Its changes to the batch are not part of a CUDA graph.
  virtual void before_step(Batch&) {}
  /// Forward and loss: what a CUDA graph repeats. The forward pass of the model is Engine::forward().
  virtual Measured loss(const std::vector<Tensor>& batch) = 0;
  /// Gradients are there, of all ranks, and not yet clipped.
  virtual void before_update() {}
  virtual void after_step() {}
  /// After every EngineOptions::log_interval steps, with what they add up to.
  virtual void log_steps(const StepSums::Totals&) {}

  /// Evaluates the model; its averages, where they are kept, are in it.
  virtual Validation validate(const Epoch&) { return {}; }
  /// Ahead of the epoch's checkpoint: metrics. A run that dies between the two writes them again.
  virtual void epoch_done(const Epoch&, const Validation&) {}
  /// After it: printed lines.
  virtual void epoch_saved(const Epoch&, const Validation&) {}

  /// Writes a checkpoint (Engine::put) and says which, for the line of a save on request; "": none is written.
  virtual std::string save() { return ""; }
  /// Ahead of save() where the epoch is the best so far.
  virtual void save_best() {}
  /// The run stops early; its checkpoint is written. With EngineOptions::program the engine has said so.
  virtual void stopped(StopRule&) {}
  /// The last call of a run, however it ended: its last files and lines. Then all ranks wait for each other: a launcher
  /// may end the others when one ends, and rank 0's files must be whole by then.
  virtual void ended(RunEnd) {}
};

/// EngineOptions::precision by a flag's word: `f32` or `none`, `bf16` or `fp8`, `fp16`. Errors: any other word.
DType precision_named(const std::string& word);

/// The objects that the engine uses. All must outlive it.
struct Parts {
  const dist::World& world;
  nn::Module& model;
  Strategy& strategy;
  optim::Optimizer& optimizer;
  optim::Ema* averages = nullptr;
  optim::LossScaler* scaler = nullptr;  ///< scaler for f16
};

struct EngineOptions {
  int64_t epochs = 1;
  int64_t last_step = 0;      ///< the run ends with it, within an epoch too; 0: with the last epoch
  int64_t accumulate = 1;     ///< batches per step, each weighing by its samples
  int64_t micro_batches = 1;  ///< parts of each batch that go through a pipeline one after another
  double clip_norm = 0;       ///< limit of the gradient's norm; 0: any
  StopOptions stop = {};
  DType precision = DType::f32;  ///< bf16: the optimizer keeps a copy of weights that are not sharded
  std::string graph = "off";     ///< a step as a CUDA graph: `on`, `off`, `auto` (where it can be)
  int graphs = 1;                ///< their largest number, each for whole batches of one shape; above 1: one rank
  LossSum sum = LossSum::per_sample;
  int64_t log_interval = 0;             ///< steps; 0: never
  int64_t save_interval = 0;            ///< steps between two checkpoints within an epoch; 0: never
  std::string saved_prefix = "";        ///< checkpoints hold the weights whose names begin so
  bool sharded_checkpoints = false;     ///< see Engine::save()
  bool saves_epochs = true;             ///< a checkpoint after each epoch
  bool line_before_validation = false;  ///< the epoch's line of progress; else it follows, with Validation::text
  std::string unit = "images";
  std::string program = "", out = "";               ///< in the line of a run that stops early; "": the task says it
  bool quiet = false;                               ///< no progress is shown
  std::string profile = "", profile_steps = "5:8";  ///< see ProfileWindow
  /// The last step's checkpoint, and a stop after an epoch's last step, come before the epoch's validation: a resumed
  /// run that stands at such a step begins with it.
  bool validates_after_saving = false;
};

/// The signals, sums and stop rule of a run; several engines share them where a run has phases.
struct Interruption {
  /// `process`: the Signals shared by ranks that are threads of one process; null: the run's own.
  Interruption(const dist::World& world, StopOptions options, LossSum sum = LossSum::per_sample,
               std::shared_ptr<Signals> process = nullptr);
  const std::shared_ptr<Signals> own;
  Signals& signals;
  StepSums sums;
  StopRule stop;
};

/// The one training loop: epochs and steps of any task on any number of ranks. It includes gradient accumulation, loss
/// scaling, clipping, averages of the weights, CUDA graphs, checkpoints, signals, progress and profiles.
///   class Trainer final : public train::Task { … loss(…) … };
///   Engine engine(task, {world, model, strategy, optimizer}, {.epochs = 20});
///   return train::exit_code(engine.run());
class Engine {
 public:
  /// Errors: those of ProfileWindow; a graph where none can be.
  /// `interruption`: of all phases of a run; left out, the engine makes one from its options.
  Engine(Task& task, const Parts& parts, EngineOptions options, std::shared_ptr<Interruption> interruption = nullptr);

  /// Until the last epoch, the stop rule, or an error; all ranks stop after the same step. Where nothing is left to do,
  /// Task::ended() is all that it calls.
  RunEnd run();
  /// Runs in a run folder (of rank 0, else null): its summary goes until the end. A finished run leaves all files as
  /// they are.
  RunEnd run_in(const RunFolder* folder);

  /// Each step has the learning rates of its number in the run; without a schedule, those of the optimizer.
  void follow(optim::SchedulePtr schedule) { schedule_ = std::move(schedule); }

  /// Epoch, step and samples of the run so far.
  Position& position() { return position_; }
  const Position& position() const { return position_; }
  int64_t steps_per_epoch() const;
  bool is_finished() const;
  const Parts& parts() const { return parts_; }
  Progress& progress() { return progress_; }
  /// A line beside the progress, of rank 0; "": none.
  void note(const std::string& line);
  /// Mean loss of this rank's last step; mean over its batches.
  const Tensor& last_loss() const { return last_loss_; }
  /// The sums of the last read: since the one before, which is a step on the CPU and up to 20 on a GPU.
  const StepSums::Totals& last_read() const { return last_read_; }
  /// The sums since the last log_steps(). A task that saves them sets them when it resumes.
  StepSums::Totals& since_log() { return logged_; }
  /// The norm in the last step, a device scalar; with clip_norm the norm before clipping. Without clip_norm the call
  /// makes a pass over the gradients, on all ranks.
  Tensor gradient_norm();

  /// Runs the model in the run's precision, with other ranks' parts.
  Tensor forward(const Tensor& x);
  /// The state of the run: parts `model`, `optimizer` (whole on rank 0), `ema`; the position and the random generator.
  /// All ranks call it.
  void put(Checkpoint& checkpoint);
  /// Writes put() and `notes`, whose numbers win, to `name` of the run's folder (rank 0 has it, others give null), see
  /// RunFolder::save(). EngineOptions::sharded_checkpoints under fsdp or in a grid: each rank writes its part into the
  /// folder `name` without `.safetensors`. Training goes on meanwhile, and the result has no parts.
  Checkpoint save(const RunFolder* folder, const std::string& name, Checkpoint notes, int keep = 1);
  /// The folder `name` of a sharded checkpoint; `add`: see dist::CheckpointWriter. It is there after the next save, or
  /// at the end of the run. Errors: the strategy has no pieces.
  Checkpoint save_sharded(const RunFolder* folder, const std::string& name, Checkpoint notes, int keep = 1,
                          const std::function<void(const std::filesystem::path&)>& add = {});
  /// A checkpoint for take(). Under fsdp and in a grid it has no parts: take() then reads ranges of this rank.
  Checkpoint read(const std::string& path) const;
  /// Goes on from such a state. Errors: it is of another model, or was made with another number of samples per step or
  /// of steps per epoch. `with_model`: false where the caller has loaded the weights already.
  void take(const std::string& path, const Checkpoint& saved, bool with_model = true);
  /// Weights, optimizer and averages of the checkpoint at `path`, by ranges of this rank where it has pieces.
  void take_parts(const std::string& path);
  /// Samples of a step on all ranks.
  int64_t global_batch() const { return task_.batch_size() * options_.accumulate * data_ranks(); }

 private:
  bool train_epoch();
  void finish_epoch();
  void step(Batch batch);
  void update(std::vector<Tensor> batch, int64_t samples);
  void update_in_stages(dist::Pipeline& pipeline, std::vector<Tensor> batch, int64_t samples);
  Batch next_in_step(int64_t done);
  static Tensor times(const Tensor& loss, double factor);
  Tensor scaled(const Tensor& loss) const;
  int64_t batches_in_step() const;
  /// Ranks with samples of their own.
  int64_t data_ranks() const { return parts_.world.size() / parts_.strategy.row_size(); }
  void apply_gradients();
  /// The divisor from the sum of losses to their mean.
  double weight_of(const StepSums::Totals& totals) const;
  /// Reads the sums; a loss that is not finite ends the run.
  StepSums::Totals read();
  /// Ahead of each update, while the weights are still those that made the loss; else every 20 steps.
  bool reads_each_step() const { return parts_.world.device().kind == DeviceKind::cpu; }
  [[noreturn]] void fail_not_finite(const StepSums::Totals& totals);
  /// Where the data of the last steps are not finite.
  std::string bad_data(int64_t steps);
  /// Repeats forward and loss of each batch of the last step, and passes the loss to `then`.
  void repeat_step(const std::function<void(const Tensor& loss)>& then);
  void save_on_the_way();
  void put_position(Checkpoint& checkpoint);
  /// This rank's pieces of a sharded checkpoint: views of `states`.
  std::vector<std::pair<std::string, dist::ShardedState>> pieces(std::map<std::string, StateDict>& states);
  void take_pieces(const std::string& path);
  void take_whole(const std::string& path, const Checkpoint& saved, bool with_model);
  /// Waits for the writer, then removes older files that a reader would take first.
  void finish_saving();
  void make_graph();
  /// A line on the graphs of several shapes; "": there are none.
  std::string graphs_line() const;
  /// Sets a value of the last step. The tensor keeps its address, since graphs write there.
  void keep(Tensor& last, const Tensor& value) const;
  bool must_stop();
  bool is_last_step() const;
  /// Samples in the step under way, a mean over the ranks.
  double mean_samples_in_step() const;
  /// The step has as many samples as any, on all ranks: what a graph of several ranks repeats.
  bool is_whole_step() const;

  Task& task_;
  Parts parts_;
  EngineOptions options_;
  const std::shared_ptr<Interruption> own_;
  Interruption& interruption_;
  Position position_;
  optim::SchedulePtr schedule_;
  Progress progress_;
  ProfileWindow profile_;
  dist::StepTimes step_times_{parts_.world, parts_.world.step_times()};
  std::unique_ptr<GraphedFunction> graph_;  // update(); none: each step is run op by op
  StepSums::Totals logged_, last_read_;     // logged_: since the last log_steps()
  Tensor last_loss_, gradient_norm_;
  std::vector<Tensor> unread_batch_;  // the last step's, as long as its loss is not read
  double saving_seconds_ = 0;         // time in the epoch under way
  Epoch epoch_;
  bool counts_correct_ = false, alone_ = false;  // alone: without other ranks
  bool updates_ = false;                         // between a step's backward and its end
  std::unique_ptr<dist::CheckpointWriter> writer_;
  std::filesystem::path written_;  // the folder that writer_ writes
  int64_t first_step_ = -1;        // that this process makes; -1: none yet
};

}  // namespace weft::train
