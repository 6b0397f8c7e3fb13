// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/trainer.h"

#include <chrono>
#include <cmath>

#include "apps/nersc_vit/forecast_loader.h"
#include "apps/nersc_vit/forecast_loss.h"
#include "apps/nersc_vit/forecast_picture.h"
#include "apps/nersc_vit/memory.h"
#include "apps/nersc_vit/warmed_cosine.h"
#include "apps/support/checkpoint.h"
#include "apps/support/device.h"
#include "apps/support/exit.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/mul.h"
#include "core/random.h"
#include "core/trace.h"
#include "dist/tensor_parallel_state.h"
#include "kernels/kernel_trace.h"
#include "kernels/profiler_range.h"

namespace weft::nersc_vit {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kReadEvery = 20;     // steps between two looks at the loss on a GPU
constexpr int64_t kShownChannel = 2;   // t2m in NERSC's files
constexpr int64_t kProfiledEpoch = 3;  // what nsys -c cudaProfilerApi records

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// With --noddp each row trains by itself.
dist::Grid training_grid(const Options& o, const dist::Grid& grid) {
  return o.noddp ? dist::Grid(grid.world(), grid.model(), dist::make_process_group_alone()) : grid;
}

support::ProgressOptions progress_options(std::FILE* out) {
  support::ProgressOptions options;
  options.out = out;
  return options;
}

/// A range that NVIDIA's tools show, with the number of its step.
class StepRange {
 public:
  explicit StepRange(int64_t step) { kernels::push_profiler_range(str("step ", step).c_str()); }
  ~StepRange() { kernels::pop_profiler_range(); }
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;
};

}  // namespace

Trainer::Trainer(const Options& options, const support::Ranks& ranks, dist::Grid grid, OutLog& log)
    : options_(options),
      ranks_(ranks),
      grid_(std::move(grid)),
      log_(log),
      folder_(experiment_folder(options, ranks.size())),
      train_(make_loader(options, grid_, ranks.device(), true)),
      valid_(make_loader(options, grid_, ranks.device(), false)),
      nowhere_(ranks.is_first() ? nullptr : std::fopen("/dev/null", "w"), std::fclose),
      progress_(progress_options(nowhere_.get())) {
  manual_seed(static_cast<uint64_t>(options.seed));  // the same on all ranks: they draw one model
  model_ = std::make_shared<ForecastVit>(options.model, grid_.model());
  model_->to(ranks.device());
  parallel_ = std::make_unique<dist::TensorParallel>(
      model_, training_grid(options, grid_), dist::DdpOptions{.bucket_mb = static_cast<double>(options.bucket_cap_mb)});
  adam_ = std::make_unique<optim::Adam>(parallel_->parameters(), optim::AdamOptions{.lr = options.lr, .beta2 = 0.95});
  if (amp_dtype() == DType::bf16) adam_->flat()->keep_compute_copy(DType::bf16);
  if (amp_dtype() == DType::f16) scaler_.emplace();
  if (options.lr_schedule == "cosine") schedule_ = std::make_shared<WarmedCosine>(options.num_iters, options.warmup);
  loss_sum_ = Tensor::zeros({}, DType::f64, ranks.device());
}

DType Trainer::amp_dtype() const {
  return options_.amp_mode == "bf16" ? DType::bf16 : options_.amp_mode == "fp16" ? DType::f16 : DType::f32;
}

int64_t Trainer::local_batch() const { return local_batch_size(options_, grid_); }

std::string Trainer::describe() const {
  const int64_t steps = train_.steps_per_epoch();
  return str("grid    ", grid_.data()->size(), " data x ", grid_.model()->size(), " model ranks\n", "model   ",
             nn::parameter_count(*model_), " parameters on each rank, ", options_.amp_mode, "\n", "steps   ",
             options_.num_iters, " of ", global_batch(), " samples, ", steps, " an epoch; ", valid_.steps_per_epoch(),
             " of validation\n", "run     ", folder_.string());
}

support::RunEnd Trainer::run() {
  make_graph();
  open_folder();
  resume();
  if (ranks_.is_first()) {
    log_.open(folder_ / "out.log");
    scalars_ = std::make_unique<support::ScalarLog>(folder_ / "logs", iters_ > 0 ? iters_ : -1);
    log_beginning();
  }
  if (iters_ == 0) log_first_losses();
  bool stopped = false;
  while (!stopped && iters_ < options_.num_iters) stopped = !train_epoch();
  if (stopped && ranks_.is_first()) log_.info(str("stopped after step ", iters_, "; go on with --resume"));
  if (scalars_) scalars_->end(!stopped);
  ranks_.wait_for_all("end of the run");
  if (stopped) return stop_ > 1 ? support::RunEnd::requeue : support::RunEnd::stopped;
  log_.info(str("DONE ---- rank ", ranks_.rank()));
  return support::RunEnd::finished;
}

void Trainer::open_folder() {
  std::error_code problem;
  if (ranks_.is_first()) fs::create_directories(folder_ / "logs", problem);
  WEFT_CHECK(!problem, "expdir: cannot create ", (folder_ / "logs").string(), ": ", problem.message());
  run_folder_ = support::open_run_folder(folder_, ranks_);
}

void Trainer::log_beginning() {
  log_.info("------------------ Configuration ------------------");
  log_.info("Configuration file: " + options_.yaml_config);
  support::HyperParameters values;
  for (const auto& [key, value] : listed(options_)) {
    log_.info(key + ' ' + value);
    values.emplace_back(key, value);
  }
  log_.info("---------------------------------------------------");
  scalars_->config(values);
  for (const std::string& note : options_.notes) log_.info("without effect: " + note);
  log_.info(str("ranks: ", ranks_.describe(), ", ", grid_.data()->size(), " data x ", grid_.model()->size(),
                " model; device: ", support::describe(ranks_.device())));
  log_.info("Scaffolding memory high watermark: " + python_number(memory_in_use(ranks_.device())) + " GB.");
  log_.info("Starting Training Loop...");
}

void Trainer::log_first_losses() {
  const NoGrad no_grad;
  train_.start(0);
  const auto batch = train_.next();
  const double loss = mean_over_ranks(relative_l2_loss(forward(batch->input), batch->target).item(), "first loss");
  const Score score = validate(1);
  if (!scalars_) return;
  scalars_->log(0, {{"Loss/train", loss}, {"Loss/valid", score.loss}, {"RMSE(u10m)/valid", score.rmse.front()}});
}

void Trainer::make_graph() {
  const Device device = ranks_.device();
  const kernels::KernelChecks checks = kernels::kernel_checks();
  const bool watched = checks.synchronize || checks.not_finite;
  if (options_.graph == "off" || scaler_) return;
  const bool suits = device.kind == DeviceKind::cuda && !watched && ranks_.size() == 1;
  if (options_.graph == "auto" && !suits) return;
  if (device.kind == DeviceKind::cpu)
    throw support::UsageError("--graph on: expected --device cuda or simt, got cpu, which runs each op at once");
  graph_ = std::make_unique<GraphedFunction>(
      device, [this](const std::vector<Tensor>& in) { update(in[0], in[1]); },
      GraphedFunctionOptions{.may_run_eagerly = options_.graph == "auto", .all_agree = ranks_.all_agree()});
}

void Trainer::resume() {
  const fs::path path = folder_ / "checkpoint.h5";
  if (!options_.resume) return;
  if (ranks_.first_says(fs::exists(path) ? "yes" : "no", "is there a checkpoint") == "no") return;
  const support::Checkpoint saved = support::load_checkpoint(path);
  const int64_t batch = saved.integer("global_batch_size");
  WEFT_CHECK(batch == global_batch(), "checkpoint ", path.string(), " was made with ", batch,
             " samples per step, this run has ", global_batch());
  dist::load_full_state_dict(*parallel_, saved.part("model"));
  adam_->load_state_dict(dist::part_of_optimizer_state(*parallel_, saved.part("optimizer")));
  if (scaler_) scaler_->load_state_dict(saved.part("loss_scaler"));
  epoch_ = saved.integer("epoch");
  step_in_epoch_ = saved.integer("step_in_epoch");
  iters_ = saved.integer("iters");
  loss_read_ = saved.number("loss_sum");
  loss_sum_.fill_(loss_read_);
  if (ranks_.is_first()) log_.info(str("resumed from ", path.string(), " at epoch ", epoch_ + 1, ", step ", iters_));
}

void Trainer::save() {
  const fs::path path = folder_ / "checkpoint.h5";
  if (!support::have_checkpoints()) return;
  support::Checkpoint checkpoint;
  checkpoint.parts = {{"model", dist::full_state_dict(*parallel_)},
                      {"optimizer", dist::full_optimizer_state(*parallel_, adam_->state_dict())}};
  const double loss_sum = mean_over_ranks(loss_read_, "loss so far");
  if (!ranks_.is_first()) return;
  if (scaler_) checkpoint.parts.emplace_back("loss_scaler", scaler_->state_dict());
  checkpoint.integers = {
      {"epoch", epoch_}, {"step_in_epoch", step_in_epoch_}, {"iters", iters_}, {"global_batch_size", global_batch()}};
  checkpoint.numbers = {{"loss_sum", loss_sum}};
  checkpoint.texts = {{"config", options_.config}};
  support::save_checkpoint(path, checkpoint);
}

bool Trainer::train_epoch() {
  model_->train();
  const int64_t steps = std::min(train_.steps_per_epoch(), options_.num_iters - iters_ + step_in_epoch_);
  const int64_t first = step_in_epoch_;
  const bool profiled = ranks_.is_first() && epoch_ == kProfiledEpoch;
  if (profiled) kernels::start_profiler_capture();
  const int64_t epochs = (options_.num_iters + train_.steps_per_epoch() - 1) / train_.steps_per_epoch();
  progress_.begin(str("epoch ", epoch_ + 1, '/', epochs), steps, first);
  train_.start(epoch_, first);
  const double start = seconds_now();
  bool stopped = false;
  while (!stopped && step_in_epoch_ < steps) {
    const StepRange range(step_in_epoch_);
    const auto batch = train_.next();
    WEFT_CHECK(batch, "the loader ended early");
    train_step(*batch);
    if (step_in_epoch_ == 2 && ranks_.is_first())
      log_.info(" Memory usage after forward pass: " + python_number(memory_in_use(ranks_.device())) + " GB.");
    stopped = step_in_epoch_ < steps && stop_requested();
  }
  read_loss();
  if (profiled) kernels::stop_profiler_capture();
  if (stopped) {
    progress_.end();
    save();
    return false;
  }
  finish_epoch(seconds_now() - start, step_in_epoch_ - first);
  return iters_ >= options_.num_iters || !stop_requested();
}

bool Trainer::stop_requested() {
  if (ranks_.device().kind == DeviceKind::cuda && iters_ % kReadEvery != 0) return false;
  const std::string_view name = signals_.stop_signal();
  stop_ = ranks_.max(name == "SIGTERM" ? 2 : name == "SIGINT" ? 1 : 0, "stop");
  return stop_ > 0;
}

Tensor Trainer::forward(const Tensor& input) {
  const TraceScope scope("forward");
  const Autocast low(amp_dtype());
  return (*parallel_)(input);
}

/// What a step does on the device: the part that a graph repeats.
void Trainer::update(const Tensor& input, const Tensor& target) {
  const Tensor loss = relative_l2_loss(forward(input), target);
  adam_->zero_grad();
  if (scaler_) {
    update_scaled(loss);
  } else {
    {
      const TraceScope scope("backward");
      loss.backward();
    }
    const TraceScope scope("optimizer");
    if (options_.max_grad_norm > 0) parallel_->clip_grad_norm(options_.max_grad_norm);
    adam_->step();
  }
  const NoGrad no_grad;
  loss_sum_.add_(loss.detach().to(DType::f64));
}

void Trainer::update_scaled(const Tensor& loss) {
  const double scale = scaler_->scale();
  {
    const TraceScope scope("backward");
    (loss * Tensor::full({}, scale, DType::f32, loss.device())).backward();
  }
  const TraceScope scope("optimizer");
  if (!scaler_->update(std::isfinite(parallel_->grad_norm().item()))) return;
  {
    const NoGrad no_grad;
    adam_->flat()->gradient().mul_(1 / scale);
  }
  if (options_.max_grad_norm > 0) parallel_->clip_grad_norm(options_.max_grad_norm);
  adam_->step();
}

void Trainer::train_step(const data::FieldBatch& batch) {
  if (schedule_) adam_->set_lr(schedule_->lr(iters_, options_.lr));
  if (graph_) {
    (*graph_)({batch.input, batch.target});
    if (!graph_->failure().empty()) {
      progress_.note("no graph: " + graph_->failure());
      graph_ = nullptr;
    }
  } else {
    update(batch.input, batch.target);
  }
  ++iters_;
  ++step_in_epoch_;
  if (++unread_ >= (ranks_.device().kind == DeviceKind::cuda ? kReadEvery : 1)) read_loss();
}

/// Waits for the device.
void Trainer::read_loss() {
  if (unread_ == 0) return;
  const double now = loss_sum_.item(), mean = (now - loss_read_) / static_cast<double>(unread_);
  WEFT_CHECK(std::isfinite(now), "the loss is not a number at step ", iters_,
             ". Choose a smaller lr, a warm-up, or --max_grad_norm 1");
  progress_.step({.images = unread_ * global_batch(), .loss = mean, .steps = unread_});
  loss_read_ = now;
  unread_ = 0;
}

double Trainer::mean_over_ranks(double value, const char* what) const {
  // The ranks of a row have the same value.
  return ranks_.sum({value}, what).front() / ranks_.size();
}

void Trainer::finish_epoch(double seconds, int64_t steps) {
  const double train_loss = mean_over_ranks(loss_read_, "train loss") / static_cast<double>(step_in_epoch_);
  const double samples = static_cast<double>(steps * global_batch()) / seconds;
  progress_.end();
  const double start = seconds_now();
  const Score score = validate(valid_.steps_per_epoch());
  parallel_->synchronise();
  ++epoch_;
  step_in_epoch_ = 0;
  loss_read_ = 0;
  loss_sum_.zero_();
  save();
  if (!ranks_.is_first()) return;
  log_.info(str("Time taken for epoch ", epoch_, " is ", python_number(seconds), " sec, avg ", python_number(samples),
                " samples/sec"));
  char text[64];
  std::snprintf(text, sizeof text, "  Avg train loss=%f", train_loss);
  log_.info(text);
  std::snprintf(text, sizeof text, "  Avg val loss=%f", score.loss);
  log_.info(text);
  log_.info("  Total validation time: " + python_number(seconds_now() - start) + " sec");
  scalars_->log(iters_, {{"Loss/train", train_loss},
                         {"Loss/valid", score.loss},
                         {"RMSE(u10m)/valid", score.rmse.front()},
                         {"Learning Rate", schedule_ ? schedule_->lr(iters_, options_.lr) : options_.lr},
                         {"Avg iters per sec", static_cast<double>(steps) / seconds},
                         {"Avg samples per sec", samples}});
}

Score Trainer::validate(int64_t most_steps) {
  model_->eval();
  progress_.begin("validation", std::min(most_steps, valid_.steps_per_epoch()));
  const auto predict = [this](const Tensor& input) {
    progress_.step({.images = input.size(0) * grid_.data()->size()});
    return forward(input);
  };
  const Score score = evaluate(valid_, most_steps, ranks_, predict,
                               [this](const std::vector<Tensor>& fields) { draw_forecast(fields); });
  progress_.drop();
  model_->train();
  return score;
}

void Trainer::draw_forecast(const std::vector<Tensor>& fields) {
  const int64_t channels = std::min(options_.model.in_channels, options_.model.out_channels);
  if (!scalars_ || !support::have_png()) return;
  scalars_->picture("Visualization, t2m", draw_channel(fields, std::min(kShownChannel, channels - 1)), iters_);
}

}  // namespace weft::nersc_vit
