// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/session.h"

#include "apps/support/resume.h"

namespace weft::linear_probe {
namespace {

constexpr const char* kResult = "result.";  // numbers of a checkpoint that belong to finished phases

support::StepSize step_size(const Options& options) {
  return {.batch_size = options.batch_size, .accumulate = options.accumulate};
}

}  // namespace

Record::Record(const Options& options, const support::RunFolder& run_folder, int64_t step, int64_t epoch)
    : folder(run_folder),
      metrics(step < 0 ? support::Metrics(folder.metrics()) : support::Metrics(folder.metrics(), step)),
      board(folder.path(), epoch) {
  folder.write_config(options.toml);
  if (options.program != kOuaiDemo) return;
  // wandb.init(project, entity, name) of the workflow; its steps count from 0.
  tracked = std::make_unique<support::ScalarLog>(folder.file("OUAI Demo"), step < 0 ? -1 : epoch - 1);
  tracked->config({{"project", std::string("OUAI Demo")},
                   {"entity", std::string("ai2es")},
                   {"name", std::string("Tuning DINOv2")},
                   {"epochs", static_cast<double>(options.epochs)},
                   {"batch_size", static_cast<double>(options.batch_size)},
                   {"lr", options.lr}});
}

void Record::validated(int64_t epoch, double accuracy) {
  board.scalar("validation accuracy", accuracy, epoch);
  if (tracked) tracked->log(epoch - 1, {{"validation accuracy", accuracy}});
}

Session::Session(const Options& options, const support::Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      folder_(options.dry_run ? nullptr : support::open_run_folder(options.out, ranks)),
      path_(support::checkpoint_to_resume(options.resume, options.out, ranks)),
      sums_(ranks, signals_),
      stop_(sums_, {.max_steps = options.max_steps, .usr1_stops = options.usr1 == "stop"}) {
  if (!options.dry_run) support::prepare_checkpoints();
  if (!path_.empty()) {
    saved_ = support::load_checkpoint(path_);
    check(path_);
    for (const auto& [name, value] : saved_->numbers)
      if (name.starts_with(kResult)) results_[name.substr(std::string(kResult).size())] = value;
  }
  if (!folder_) return;
  record_ = saved_ ? std::make_unique<Record>(options, *folder_, saved_->integer("step"),
                                              saved_->integer("first_epoch") + saved_->integer("epoch"))
                   : std::make_unique<Record>(options, *folder_, -1, -1);
}

void Session::check(const std::string& path) const {
  const std::string &model = saved_->text("model"), &phase = saved_->text("phase");
  WEFT_CHECK(model == options_.model, "checkpoint ", path, " is of model '", model, "', this run trains '",
             options_.model, "'");
  WEFT_CHECK(("," + options_.phases + ",").find("," + phase + ",") != std::string::npos, "checkpoint ", path,
             " is of phase '", phase, "', this run has --phases ", options_.phases);
  support::require_same_step(path, *saved_, step_size(options_), ranks_);
}

bool Session::begin(const std::string& phase, int64_t first_epoch) {
  const std::string of_saved = saved_ ? saved_->text("phase") : "";
  if (phase == "probe" && of_saved == "finetune") return false;
  resumes_ = phase == of_saved;
  if (!resumes_) {
    position_ = {.phase = phase, .first_epoch = first_epoch, .step = position_.step, .result = {}};
    return true;
  }
  support::load_generator(*saved_, ranks_);
  position_ = {.phase = phase,
               .first_epoch = saved_->integer("first_epoch"),
               .epoch = saved_->integer("epoch"),
               .step_in_epoch = saved_->integer("step_in_epoch"),
               .step = saved_->integer("step"),
               .images = saved_->integer("images"),
               .loss_sum = saved_->number("loss_sum"),
               .result = {.accuracy = saved_->number("accuracy"),
                          .best_accuracy = saved_->number("best_accuracy"),
                          .train_loss = saved_->number("train_loss"),
                          .images_per_second = saved_->number("images_per_second")}};
  return true;
}

void Session::load_model(nn::Module& model) const {
  if (!resumes_) return;
  const StateDict& state = saved_->part("model");
  support::require_match(str("checkpoint ", path_, ": model"), model.state_dict(), state);
  model.load_state_dict(state);
}

void Session::load_optimizer(support::Parallel& parallel, optim::Optimizer& optimizer, optim::Ema* averages) {
  if (!resumes_) return;
  optimizer.load_state_dict(parallel.part_of(saved_->part("optimizer")));
  support::load_averages(path_, *saved_, parallel, averages);
  saved_->parts.clear();  // as large as the model, three times
}

void Session::save(support::Parallel& parallel, const optim::Optimizer& optimizer, const optim::Ema* averages,
                   const std::string& prefix) {
  if (!support::have_checkpoints()) return;
  StateDict model;
  for (const NamedTensor& entry : parallel.model_state().tensors)
    if (entry.name.starts_with(prefix)) model.tensors.push_back(entry);
  support::Checkpoint checkpoint;
  checkpoint.parts = {{"model", std::move(model)}, {"optimizer", parallel.optimizer_state(optimizer)}};
  support::save_averages(checkpoint, parallel, averages);
  if (!record_) return;
  const Position& at = position_;
  checkpoint.integers = {{"first_epoch", at.first_epoch},
                         {"epoch", at.epoch},
                         {"step_in_epoch", at.step_in_epoch},
                         {"step", at.step},
                         {"images", at.images},
                         {"batch_size", step_size(options_).on(ranks_)}};
  support::save_generator(checkpoint, ranks_.device());
  checkpoint.numbers = {{"loss_sum", at.loss_sum},
                        {"accuracy", at.result.accuracy},
                        {"best_accuracy", at.result.best_accuracy},
                        {"train_loss", at.result.train_loss},
                        {"images_per_second", at.result.images_per_second}};
  for (const auto& [name, value] : results_) checkpoint.numbers[kResult + name] = value;
  checkpoint.texts = {{"model", options_.model}, {"phase", at.phase}, {"config", options_.toml}};
  support::save_checkpoint(record_->folder.last_checkpoint(), checkpoint);
}

void Session::finish(const PhaseResult& result) {
  const std::string phase = position_.phase + '_';
  results_[phase + "accuracy"] = result.accuracy;
  results_[phase + "best_accuracy"] = result.best_accuracy;
  results_[phase + "train_loss"] = result.train_loss;
  results_[phase + "images_per_second"] = result.images_per_second;
  results_[phase + "peak_tensor_bytes"] = result.peak_tensor_bytes;
}

void Session::write_summary(bool finished) {
  if (!record_) return;
  support::Summary summary{{"finished", finished}, {"steps", position_.step}};
  for (const char* phase : {"probe", "finetune"})
    for (const char* what : {"accuracy", "best_accuracy", "train_loss", "images_per_second", "peak_tensor_bytes"})
      if (const auto found = results_.find(str(phase, '_', what)); found != results_.end())
        summary.emplace_back(found->first, found->second);
  record_->folder.write_summary(summary);
}

}  // namespace weft::linear_probe
