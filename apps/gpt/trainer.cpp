// SPDX-License-Identifier: Apache-2.0
#include "apps/gpt/trainer.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/ops/layers/losses.h"
#include "dist/tensor/parallel_block.h"
#include "train/memory.h"
#include "train/resume.h"

namespace weft::gpt {
namespace {

bool in_parts(const Options& o) { return o.tensor * o.pipeline > 1; }

void require_windows(const char* part, const Tokens& tokens, int64_t context) {
  WEFT_CHECK(tokens.size() > context, "--context: expected fewer than the ", tokens.size(), " tokens of the ", part,
             " text, got ", context);
}

std::shared_ptr<const data::TokenWindows> make_validation(const Tokens& tokens, int64_t context) {
  require_windows("validation", tokens, context);
  return std::make_shared<const data::TokenWindows>(tokens, context, context);
}

std::shared_ptr<data::BatchQueue> make_loader(const Options& o, const dist::World& world, const dist::Grid& grid,
                                              const Tokens& tokens, int64_t context) {
  require_windows("training", tokens, context);
  const auto windows = std::make_shared<const data::TokenWindows>(tokens, context, 1);
  const int64_t step = o.batch_size * o.accumulate * grid.data()->size();
  WEFT_CHECK(windows->size() >= step, "--data: a step of ", step, " sequences of ", context,
             " tokens needs more than the ", tokens.size(), " tokens of the training text");
  const data::SamplerOptions order{.seed = static_cast<uint64_t>(o.seed),
                                   .rank = grid.data_rank(),
                                   .world = grid.data()->size(),
                                   .tail = data::Tail::drop};
  return std::make_shared<data::Loader<data::Stacked>>(
      windows, data::Sampler(windows->size(), order),
      data::LoaderOptions{.batch_size = o.batch_size, .workers = 0, .drop_last = true, .device = world.device()});
}

std::unique_ptr<optim::AdamW> make_adam(const Options& o, train::Strategy& strategy) {
  return std::make_unique<optim::AdamW>(
      optim::without_decay_on_vectors(strategy.parameters()),
      optim::AdamWOptions{.lr = o.lr, .beta2 = o.beta2, .weight_decay = o.weight_decay});
}

optim::SchedulePtr make_schedule(const Options& o, int64_t steps) {
  const int64_t warmup = std::min(o.warmup_steps, steps - 1);
  return optim::after_warmup(warmup, 1.0 / static_cast<double>(warmup + 1),
                             std::make_shared<optim::CosineSchedule>(std::max<int64_t>(steps - warmup, 1), o.lr / 10));
}

train::EngineOptions engine_options(const Options& o) {
  train::EngineOptions options = train::engine_options(o);
  options.micro_batches = o.micro_batches > 0 ? o.micro_batches : std::max<int64_t>(4 * o.pipeline / o.accumulate, 1);
  return options;
}

std::unique_ptr<train::Strategy> make_strategy(const Options& o, const std::shared_ptr<nn::LanguageModel>& model,
                                               const dist::World& world, const dist::Grid& grid) {
  if (in_parts(o)) {
    if (auto* const gpt = dynamic_cast<nn::Gpt*>(model.get())) dist::divide_blocks(*gpt, grid.model());
    return train::make_grid_strategy(model, grid,
                                     {.chunks = static_cast<int>(o.chunks),
                                      .ddp = {.compress_bf16 = o.grad_compression == "bf16"},
                                      .device = world.device()});
  }
  if (o.parallel != "fsdp") model->to(world.device());
  train::use_precision(o, *model, o.model);
  train::StrategyOptions how = train::strategy_options(o, world.device());
  if (o.min_num_params == 0) how.kinds = {dynamic_cast<nn::Decoder*>(model.get()) ? "DecoderBlock" : "GptBlock"};
  how.sharded_accumulation = o.fsdp_accumulate == "sharded";
  return train::make_strategy(how, model, world);
}

}  // namespace

Trainer::Trainer(const Options& options, const train::RunFolder* folder, const dist::World& world,
                 const dist::Grid& grid, const data::BytePair& tokenizer, const GptConfig& config,
                 const std::shared_ptr<nn::LanguageModel>& model, const Tokens& train, const Tokens& val)
    : TypedTask(make_loader(options, world, grid, train, options.context)),
      options_(options),
      folder_(folder),
      world_(world),
      grid_(grid),
      tokenizer_(tokenizer),
      config_(config),
      model_(model),
      train_(train),
      val_(make_validation(val, options.context)),
      context_(options.context),
      strategy_(make_strategy(options, model, world, grid_)),
      adam_(make_adam(options, *strategy_)),
      engine_(*this, {world, *model_, *strategy_, *adam_}, engine_options(options)),
      schedule_(make_schedule(options, options.epochs * engine_.steps_per_epoch())) {
  const int64_t steps = options.epochs * engine_.steps_per_epoch();
  if (options.warmup_steps >= steps && options.warmup_steps != Options().warmup_steps && world.is_first())
    std::cerr << str("warning: --warmup-steps ", options.warmup_steps, " is not shorter than the run of ", steps,
                     " steps: it is cut to end with the last one\n")
              << std::flush;
  if (!options.resume.empty()) resume();
  if (folder_ == nullptr) return;
  folder_->write_config(options.toml);
  log_.emplace(folder_->path(), options.resume.empty() ? -1 : engine_.position().step);
}

/// Whole steps: all ranks have the same number of sequences, and one process with their batches together has the same
/// ones.
int64_t Trainer::samples() const {
  const int64_t step = batch_size() * options_.accumulate, tokens = train_.size();
  const int64_t wanted = std::min(tokens / context_, tokens - context_) / (step * grid_.data()->size());
  return std::max<int64_t>(wanted, 1) * step;
}

std::string Trainer::plan() const {
  return str(options_.epochs, " epochs of ", engine_.steps_per_epoch(), " steps, ", engine_.global_batch(),
             " sequences of ", context_, " tokens each, lr ", options_.lr,
             engine_.position().step > 0 ? str(", from step ", engine_.position().step) : "", ", and write ",
             options_.out);
}

void Trainer::resume() {
  const std::string path = train::checkpoint_to_resume(options_.resume, options_.out, world_);
  if (path.empty()) return;
  const Checkpoint saved = engine_.read(path);
  const auto changes = train::changed_settings(
      saved, options_, "tokenizer tensor pipeline chunks micro-batches fsdp-accumulate recompute");
  WEFT_CHECK(!changes.contains("seed") && !changes.contains("context"), "checkpoint ", path,
             " was made with other sequences: ", train::text_of(changes));
  engine_.note(train::note_of(changes));
  engine_.take(path, saved);
  engine_.note(str("resumed from ", path, " at step ", engine_.position().step));
}

void Trainer::before_step(Sequences&) { adam_->set_lr(schedule_->lr(engine_.position().step, options_.lr)); }

train::Measured Trainer::loss(const Sequences& batch) {
  return {cross_entropy(engine_.forward(batch.tokens), batch.next)};
}

void Trainer::log_steps(const train::StepSums::Totals& totals) {
  const double gradient_norm = engine_.gradient_norm().item();
  if (!log_) return;
  log_->log(engine_.position().step, {{"train_loss", totals.loss / static_cast<double>(totals.samples)},
                                      {"lr", adam_->lr(0)},
                                      {"gradient_norm", gradient_norm}});
}

/// Each token of the validation text once, but for those after the last whole sequence.
train::Validation Trainer::validate(const train::Epoch&) {
  model_->eval();
  const data::SamplerOptions order{
      .shuffle = false, .rank = grid_.data_rank(), .world = grid_.data()->size(), .tail = data::Tail::uneven};
  data::Loader loader(val_, data::Sampler(val_->size(), order),
                      {.batch_size = options_.batch_size, .workers = 0, .device = world_.device()});
  double sum = 0, count = 0;
  const auto each = [&](const data::Stacked& batch) {
    const double mean = loss(typed(batch.tensors)).loss.item();
    sum += mean * static_cast<double>(batch.count);
    count += static_cast<double>(batch.count);
  };
  train::Progress quiet({.quiet = true});
  train::evaluate_batches(world_, *strategy_, quiet, "validation", &loader, each, [&] {
    engine_.forward(Tensor::zeros({1, context_}, DType::i64, world_.device()));
  });
  const std::vector<double> sums = world_.sum({sum, count}, "validation");
  val_loss_ = sums[0] / sums[1];
  return {.text = str("val loss ", std::round(val_loss_ * 1e4) / 1e4)};
}

void Trainer::epoch_done(const train::Epoch& epoch, const train::Validation&) {
  if (log_)
    log_->log(engine_.position().step,
              {{"epoch", static_cast<double>(epoch.number)},
               {"epoch_loss", epoch.loss},
               {"val_loss", val_loss_},
               {"tokens_per_second", static_cast<double>(epoch.samples * context_) / epoch.seconds},
               {"peak_tensor_bytes", static_cast<double>(train::peak_tensor_bytes(world_.device()))}});
}

std::string Trainer::save() {
  const Checkpoint saved =
      engine_.save(folder_, train::RunFolder::kLastCheckpoint, {{"config", options_.toml}}, /*keep=*/2);
  if (folder_ && !saved.parts.empty()) save_gpt(folder_->file("model"), saved.part("model"), config_, tokenizer_);
  return (std::filesystem::path(options_.out) / train::RunFolder::kLastCheckpoint).string();
}

void Trainer::stopped(train::StopRule& rule) {
  engine_.note(rule.line("train_gpt", engine_.position().step, options_.out));
}

void Trainer::ended(train::RunEnd end) {
  if (options_.fsdp_checkpoints == "sharded" && strategy_->is_sharded()) {  // checkpoints left the published form out
    const StateDict whole = strategy_->model_state();
    if (folder_) save_gpt(folder_->file("model"), whole, config_, tokenizer_);
  }
  if (!log_) return;
  const bool finished = end == train::RunEnd::finished;
  log_->end(finished);
  folder_->write_summary({{"finished", finished}, {"steps", engine_.position().step}, {"val_loss", val_loss_}});
}

}  // namespace weft::gpt
