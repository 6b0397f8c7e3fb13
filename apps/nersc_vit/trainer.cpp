// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "apps/nersc_vit/forecast.h"
#include "apps/nersc_vit/forecast_loss.h"
#include "apps/nersc_vit/forecast_vit.h"
#include "apps/nersc_vit/options.h"
#include "apps/nersc_vit/out_log.h"
#include "apps/nersc_vit/warmed_cosine.h"
#include "core/autograd.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "data/field_series.h"
#include "dist/group/world.h"
#include "io/checkpoint.h"
#include "kernels/runtime/profiler_range.h"
#include "kernels/runtime/runtime.h"
#include "optim/loss_scaler.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/memory.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"
#include "train/record/stopwatch.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::nersc_vit {
namespace {

namespace fs = std::filesystem;
using support::python_number;

constexpr const char* kCheckpoint = "checkpoint.safetensors";
constexpr const char* kShards = "checkpoint";  // folder of --fsdp-checkpoints sharded
constexpr int kKept = 2;                       // number of last checkpoints
constexpr int64_t kShownChannel = 2;           // t2m in NERSC's files
constexpr int64_t kProfiledEpoch = 3;          // epoch that nsys -c cudaProfilerApi records

/// GB (2^30 bytes) in use: of a GPU's memory by everyone, else of this process at most.
double memory_in_use(Device device) {
  if (device.kind != DeviceKind::cuda) return static_cast<double>(train::peak_memory_bytes()) / (1 << 30);
  size_t free = 0, total = 0;
  kernels::runtime(device.kind).memory_info(device.index, free, total);
  return static_cast<double>(total - free) / (1 << 30);
}

std::string settings(const Options& options) {
  std::string text;
  for (const auto& [key, value] : listed(options)) text += key + ": " + value + '\n';
  return text;
}

/// With --noddp each row trains by itself.
dist::Grid training_grid(const Options& o, const dist::Grid& grid) {
  return o.noddp ? dist::Grid(grid.world(), grid.model(), dist::make_process_group_alone(), grid.pipe()) : grid;
}

/// Trains on a grid of ranks; prints and logs what NERSC's tutorial does. All ranks do the same in the same order.
class Trainer final : public train::TypedTask<data::FieldBatch> {
 public:
  Trainer(const Options& options, const dist::World& ranks, dist::Grid grid, OutLog& log)
      : TypedTask(std::make_shared<data::FieldLoader>(make_loader(options, grid, ranks.device(), true))),
        options_(options),
        ranks_(ranks),
        grid_(std::move(grid)),
        log_(log),
        folder_(experiment_folder(options, ranks.size())),
        valid_(make_loader(options, grid_, ranks.device(), false)) {
    manual_seed(static_cast<uint64_t>(options.seed));  // equal on all ranks: they draw the same model
    {
      const nn::DeferredInit::Scope deferred(options.deferred.get());
      model_ = std::make_shared<ForecastVit>(options.model, grid_.model());
    }
    const train::StrategyOptions how = train::strategy_options(options, ranks.device());
    strategy_ = train::make_grid_strategy(
        model_, training_grid(options, grid_),
        {.chunks = static_cast<int>(options.pipeline_chunks),
         .ddp = {.bucket_mb = static_cast<double>(options.bucket_cap_mb), .compress_bf16 = how.compress_bf16},
         .fsdp = options.parallel == "fsdp" ? std::optional(train::fsdp_options(how, *model_)) : std::nullopt,
         .device = ranks.device()});
    adam_ = std::make_unique<optim::Adam>(strategy_->parameters(), optim::AdamOptions{.lr = options.lr, .beta2 = 0.95});
    if (options_.dtype() == DType::f16) scaler_.emplace();
    if (options.lr_schedule == "cosine" && options.warmup >= options.num_iters && ranks.is_first())
      std::cerr << str("warning: warmup (", options.warmup, " steps) is not shorter than the run (num_iters ",
                       options.num_iters, "): the rate never reaches lr\n")
                << std::flush;
    if (options.lr_schedule == "cosine") schedule_ = std::make_shared<WarmedCosine>(options.num_iters, options.warmup);
    engine_ = std::make_unique<train::Engine>(
        *this, train::Parts{ranks, *model_, *strategy_, *adam_, nullptr, scaler_ ? &*scaler_ : nullptr},
        engine_options());
    engine_->follow(schedule_);
  }

  /// The text of --dry-run.
  std::string describe() const {
    const int64_t steps = loader().steps_per_epoch();
    const int stages = grid_.pipe()->size();
    int64_t parameters = 0;
    for (const NamedTensor& own : strategy_->parameters()) parameters += own.tensor.numel();
    return str("grid    ", grid_.data()->size(), " data x ", grid_.model()->size(), " model ranks",
               stages > 1 ? str(" x ", stages, " stages") : "", "\n", "model   ", parameters,
               " parameters on each rank, ", options_.precision, "\n", "steps   ", options_.num_iters, " of ",
               global_batch(), " samples, ", steps, " an epoch; ", valid_.steps_per_epoch(), " of validation\n",
               "run     ", folder_.string());
  }

  /// All steps that are left, or a checkpoint after the step in which a signal came.
  train::RunEnd run() {
    open_folder();
    resume();
    const int64_t first_step = engine_->position().step;
    if (ranks_.is_first()) {
      log_.open(folder_ / "out.log");
      std::error_code there_is_none;  // lines of a run that died before its first checkpoint, which come again
      if (options_.goes_on && first_step == 0) fs::remove(folder_ / "logs/metrics.jsonl", there_is_none);
      scalars_ = std::make_unique<train::ScalarLog>(folder_ / "logs", first_step > 0 ? first_step : -1);
      log_beginning();
    }
    if (first_step == 0) log_first_losses();
    const train::RunEnd end = engine_->run();
    if (end == train::RunEnd::finished) log_.info(str("DONE ---- rank ", ranks_.rank()));
    return end;
  }

 private:
  std::optional<train::Batch> next() override {
    kernels::push_profiler_range(str("step ", engine_->position().step_in_epoch).c_str());  // NVIDIA's tools show it
    return LoaderTask::next();
  }

  void epoch_begins() override {
    profiled_ = ranks_.is_first() && engine_->position().epoch == kProfiledEpoch;
    if (profiled_) kernels::start_profiler_capture();
  }

  train::Measured loss(const data::FieldBatch& batch) override {
    return {relative_l2_loss(engine_->forward(batch.input), batch.target)};
  }

  void after_step() override {
    kernels::pop_profiler_range();
    if (engine_->position().step_in_epoch == 2 && ranks_.is_first())
      log_.info(" Memory usage after forward pass: " + python_number(memory_in_use(ranks_.device())) + " GB.");
  }

  train::Validation validate(const train::Epoch& epoch) override {
    if (profiled_) kernels::stop_profiler_capture();
    profiled_ = false;
    train_loss_ = epoch.loss;
    validating_ = {};
    validated_ = score(valid_.steps_per_epoch());
    strategy_->synchronise();
    return {};
  }

  void epoch_saved(const train::Epoch& epoch, const train::Validation&) override {
    if (!ranks_.is_first()) return;
    const double steps = static_cast<double>(epoch.steps);
    const double samples = steps * static_cast<double>(global_batch()) / epoch.seconds;
    log_.info(str("Time taken for epoch ", epoch.number, " is ", python_number(epoch.seconds), " sec, avg ",
                  python_number(samples), " samples/sec"));
    char text[64];
    std::snprintf(text, sizeof text, "  Avg train loss=%f", train_loss_);
    log_.info(text);
    std::snprintf(text, sizeof text, "  Avg val loss=%f", validated_.loss);
    log_.info(text);
    log_.info("  Total validation time: " + python_number(validating_.seconds()) + " sec");
    const int64_t step = engine_->position().step;
    scalars_->log(step, {{"Loss/train", train_loss_},
                         {"Loss/valid", validated_.loss},
                         {"RMSE(u10m)/valid", validated_.rmse.front()},
                         {"Learning Rate", schedule_ ? schedule_->lr(step, options_.lr) : options_.lr},
                         {"Avg iters per sec", steps / epoch.seconds},
                         {"Avg samples per sec", samples}});
  }

  std::string save() override {
    const train::Position& at = engine_->position();
    Checkpoint checkpoint;
    checkpoint.integers = {{"epoch", at.epoch},
                           {"step_in_epoch", at.step_in_epoch},
                           {"iters", at.step},
                           {"global_batch_size", global_batch()}};
    checkpoint.texts = {{"config", options_.config}, {"settings", settings(options_)}};
    if (options_.fsdp_checkpoints == "whole") {
      checkpoint.parts = {{"model", strategy_->model_state()}, {"optimizer", strategy_->optimizer_state(*adam_)}};
      if (scaler_) checkpoint.parts.emplace_back("loss_scaler", scaler_->state_dict());
    }
    checkpoint.numbers = {{"loss_sum", mean_over_ranks(at.own_loss_sum, "loss so far")}};
    if (checkpoint.parts.empty())
      engine_->save_sharded(run_folder_.get(), kShards, std::move(checkpoint), kKept);
    else if (run_folder_)
      run_folder_->save(kCheckpoint, checkpoint, kKept);
    return (folder_ / kCheckpoint).string();
  }

  void stopped(train::StopRule&) override {
    if (ranks_.is_first()) log_.info(str("stopped after step ", engine_->position().step, "; continue with --resume"));
    if (profiled_) kernels::stop_profiler_capture();
  }

  void ended(train::RunEnd end) override {
    if (scalars_) scalars_->end(end == train::RunEnd::finished);
  }

  int64_t global_batch() const { return samples_per_step(options_, grid_); }

  train::EngineOptions engine_options() const {
    return {.epochs = (options_.num_iters + loader().steps_per_epoch() - 1) / loader().steps_per_epoch(),
            .last_step = options_.num_iters,
            .micro_batches = options_.micro_batches > 0 ? options_.micro_batches : 4 * options_.pipeline_parallel_size,
            .clip_norm = options_.clip_norm,
            .precision = options_.dtype(),
            .graph = scaler_ ? "off" : options_.graph,
            .sum = train::LossSum::per_step,
            .sharded_checkpoints = options_.fsdp_checkpoints == "sharded",
            .line_before_validation = true};
  }

  void open_folder() {
    std::error_code problem;
    if (ranks_.is_first()) fs::create_directories(folder_, problem);
    WEFT_CHECK(!problem, "expdir: cannot create ", folder_.string(), ": ", problem.message());
    std::optional<train::NewRun> fresh;
    if (!options_.goes_on)
      fresh = train::NewRun{
          .overwrite = options_.overwrite,
          .flags = "--resume continues it, --run_num names another folder",
          .own_names = {kCheckpoint, "checkpoint.1.safetensors", kShards, "checkpoint.1", "out.log", "logs"}};
    run_folder_ = train::open_run_folder(folder_, ranks_, fresh);
  }

  void resume() {
    if (!options_.goes_on) return;
    const fs::path path = train::whole_checkpoint(folder_ / kCheckpoint, ranks_);
    if (path.empty()) return;
    const Checkpoint saved = engine_->read(path);  // without its parts
    const int64_t batch = saved.integer("global_batch_size");
    WEFT_CHECK(batch == global_batch(), "checkpoint ", path.string(), " was made with ", batch,
               " samples per step, this run has ", global_batch());
    check_settings(path.string(), saved);
    engine_->take_parts(path);
    const double loss_sum = saved.number("loss_sum");  // the mean of the ranks' sums
    engine_->position() = {.epoch = saved.integer("epoch"),
                           .step_in_epoch = saved.integer("step_in_epoch"),
                           .step = saved.integer("iters"),
                           .loss_sum = loss_sum * ranks_.size(),
                           .own_loss_sum = loss_sum};
    if (ranks_.is_first())
      log_.info(str("resumed from ", path.string(), " at epoch ", saved.integer("epoch") + 1, ", step ",
                    saved.integer("iters")));
  }

  /// Refuses changes that a resumed run may not make, and notes the others.
  void check_settings(const std::string& path, const Checkpoint& saved) {
    const auto there = saved.texts.find("settings");
    if (there == saved.texts.end()) return;
    // Where files are, how fast and on what a run goes; what is checked elsewhere.
    constexpr const char* kIgnored =
        "config run_num num_data_workers row_parallel_size sequence_parallel pipeline_parallel_size pipeline_chunks "
        "micro_batches global_batch_size recompute parallel fsdp_strategy fsdp_shard_size min_num_params fsdp_offload "
        "fsdp_checkpoints";
    const auto changes = train::changed_settings(there->second, settings(options_), kIgnored);
    WEFT_CHECK(!changes.contains("seed") || saved.integer("step_in_epoch") == 0, "checkpoint ", path,
               " is of the midst of an epoch, whose order of samples depends on --seed (", changes.at("seed"), ")");
    if (ranks_.is_first() && !changes.empty()) log_.info(train::note_of(changes));
  }

  void log_beginning() {
    log_.info("------------------ Configuration ------------------");
    log_.info("Configuration file: " + options_.yaml_config);
    train::HyperParameters values;
    for (const auto& [key, value] : listed(options_)) {
      log_.info(key + ' ' + value);
      values.emplace_back(key, value);
    }
    log_.info("---------------------------------------------------");
    scalars_->config(values);
    for (const std::string& note : options_.notes) log_.info("without effect: " + note);
    const int stages = grid_.pipe()->size();
    log_.info(str("ranks: ", ranks_.describe(), ", ", grid_.data()->size(), " data x ", grid_.model()->size(), " model",
                  stages > 1 ? str(" x ", stages, " stages") : "", "; device: ", weft::describe(ranks_.device())));
    log_.info("Scaffolding memory high watermark: " + python_number(memory_in_use(ranks_.device())) + " GB.");
    log_.info("Starting Training Loop...");
  }

  void log_first_losses() {
    const NoGrad no_grad;
    start_epoch(0, 0);
    const train::Batch first = *LoaderTask::next();
    const double part = static_cast<double>(first.samples) / mean_samples(0);
    const double loss = mean_over_ranks(part * this->loss(typed(first.tensors)).loss.item(), "first loss");
    const Score score = this->score(1);
    if (!scalars_) return;
    scalars_->log(0, {{"Loss/train", loss}, {"Loss/valid", score.loss}, {"RMSE(u10m)/valid", score.rmse.front()}});
  }

  Score score(int64_t most_steps) {
    train::Progress& progress = engine_->progress();
    model_->eval();
    progress.begin("validation", std::min(most_steps, valid_.steps_per_epoch()));
    const auto predict = [&](const Tensor& input) {
      progress.step({.images = input.size(0) * grid_.data()->size()});
      return engine_->forward(input);
    };
    const Score score = evaluate(valid_, most_steps, ranks_, predict,
                                 [this](const std::vector<Tensor>& fields) { draw_forecast(fields); });
    progress.drop();
    model_->train();
    return score;
  }

  // input, target, prediction
  void draw_forecast(const std::vector<Tensor>& fields) {
    const int64_t channels = std::min(options_.model.in_channels, options_.model.out_channels);
    if (!scalars_ || !train::have_png()) return;
    scalars_->image("Visualization, t2m", draw_channel(fields, std::min(kShownChannel, channels - 1)),
                    engine_->position().step);
  }

  double mean_over_ranks(double value, const char* what) const {
    // The ranks of a row have the same value, and each row's weighs by its samples.
    return ranks_.sum({value}, what).front() / ranks_.size();
  }

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

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks =
      dist::init({.alone = options.parallel == "none", .backend = options.backend, .device = options.device});
  train::require_same_settings(ranks, settings(options), "num_data_workers train_data_path valid_data_path");
  train::defer_weights(options);
  const int64_t stages = options.pipeline_parallel_size;
  const std::string all = str(ranks.size(), ranks.size() == 1 ? " rank" : " ranks");
  if (ranks.size() % stages != 0)
    throw train::UsageError(str("--pipeline_parallel_size: ", stages, " does not divide ", all));
  if (ranks.size() / stages % options.row_parallel_size != 0)
    throw train::UsageError(str("--row_parallel_size: ", options.row_parallel_size, " does not divide ",
                                stages == 1 ? all : str(ranks.size() / stages, " ranks of each stage")));
  OutLog log;
  Trainer trainer(options, ranks,
                  dist::Grid(ranks.group(), static_cast<int>(options.row_parallel_size), static_cast<int>(stages)),
                  log);
  if (options.dry_run) {
    if (ranks.is_first())
      std::cout << "device  " << weft::describe(ranks.device()) << '\n'
                << trainer.describe() << "\ndry run: would train this; nothing is written" << std::endl;
    return train::kExitOk;
  }
  return train::exit_code(trainer.run());
}

}  // namespace
}  // namespace weft::nersc_vit

int main(int argc, char** argv) {
  return weft::train::training_main("train_vit", [&] { return weft::nersc_vit::run(argc, argv); });
}
