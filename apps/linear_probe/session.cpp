// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/session.h"

#include <iostream>

#include "train/record/class_names.h"
#include "train/resume.h"

namespace weft::linear_probe {
namespace {

constexpr const char* kResult = "result.";  // numbers of a checkpoint that belong to finished phases

}  // namespace

Record::Record(const Options& options, const train::RunFolder& run_folder, int64_t step, int64_t epoch)
    : folder(run_folder), metrics(folder.metrics(), step), board(folder.path(), epoch) {
  folder.write_config(options.toml);
  folder.remove_summary();
  if (options.program != kOuaiDemo) return;
  // wandb.init(project, entity, name) of the workflow; its steps count from 0.
  std::error_code there_is_none;  // lines of a run that died before its first checkpoint, which come again
  if (step == 0) std::filesystem::remove(folder.file("OUAI Demo") / "metrics.jsonl", there_is_none);
  tracked = std::make_unique<train::ScalarLog>(folder.file("OUAI Demo"), step < 0 ? -1 : epoch - 1);
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

Session::Session(const Options& options, const dist::World& ranks, std::vector<std::string> classes, bool by_ranges)
    : options_(options),
      ranks_(ranks),
      classes_(std::move(classes)),
      folder_(options.dry_run ? nullptr : train::open_run_folder(options.out, ranks)),
      path_(train::checkpoint_to_resume(options.resume, options.out, ranks)),
      interruption_(std::make_shared<train::Interruption>(ranks, train::stop_options(options))) {
  if (!path_.empty()) {
    saved_ = by_ranges ? train::read_notes(path_, ranks) : load_checkpoint(path_);
    check(path_);
    for (const auto& [name, value] : saved_->numbers)
      if (name.starts_with(kResult)) results_[name.substr(std::string(kResult).size())] = value;
  }
  // The folder is open already: --overwrite removes nothing for a run that cannot begin.
  const std::vector<std::string> own{"OUAI Demo", "probe.safetensors", "finetuned.safetensors", "logreg.safetensors"};
  if (!options.dry_run) train::open_run_folder(options.out, ranks, train::new_run(options, own));
  if (!folder_) return;
  train::write_class_names(folder_->path(), classes_);
  record_ = saved_ ? std::make_unique<Record>(options, *folder_, saved_->integer("step"),
                                              saved_->integer("first_epoch") + saved_->integer("epoch"))
                   : std::make_unique<Record>(options, *folder_, options.resume.empty() ? -1 : 0,
                                              options.resume.empty() ? -1 : 0);
}

void Session::check(const std::string& path) const {
  const std::string &model = saved_->text("model"), &phase = saved_->text("phase");
  WEFT_CHECK(model == options_.model, "checkpoint ", path, " is of model '", model, "', this run trains '",
             options_.model, "'");
  WEFT_CHECK(("," + options_.phases + ",").find("," + phase + ",") != std::string::npos, "checkpoint ", path,
             " is of phase '", phase, "', this run has --phases ", options_.phases);
  train::require_same_classes(path, saved_->texts, classes_);
  check_settings(path);
  train::require_same_step(
      path, *saved_, {.batch_size = options_.batch_size, .accumulate = options_.accumulate, .ranks = ranks_.size()});
}

void Session::check_settings(const std::string& path) const {
  const auto changes = train::changed_settings(*saved_, options_, "model phases cache-features checkpointing");
  WEFT_CHECK(!changes.contains("seed"), "checkpoint ", path, " was made with another --seed (", changes.at("seed"),
             "), on which the order of images depends");
  if (!changes.empty() && ranks_.is_first()) std::cout << train::note_of(changes) << std::endl;
}

bool Session::begin(const std::string& phase, int64_t first_epoch) {
  const std::string of_saved = saved_ ? saved_->text("phase") : "";
  if (phase == "probe" && of_saved == "finetune") return false;
  resumes_ = phase == of_saved;
  phase_ = phase;
  first_epoch_ = resumes_ ? saved_->integer("first_epoch") : first_epoch;
  result_ = {};
  if (resumes_)
    result_ = {.accuracy = saved_->number("accuracy"),
               .best_accuracy = saved_->number("best_accuracy"),
               .train_loss = saved_->number("train_loss"),
               .images_per_second = saved_->number("images_per_second")};
  return true;
}

void Session::load_model(nn::Module& model) const {
  if (!resumes_ || saved_->parts.empty()) return;
  const StateDict& state = saved_->part("model");
  require_match(str("checkpoint ", path_, ": model"), model.state_dict(), state);
  model.load_state_dict(state);
}

void Session::resume(train::Engine& engine) {
  engine.position().step = step_;
  if (!resumes_) return;
  engine.take(path_, *saved_, /*with_model=*/false);
  saved_->parts.clear();  // as large as the model, three times
}

void Session::save(train::Engine& engine) {
  Checkpoint notes;
  notes.integers["first_epoch"] = first_epoch_;
  notes.numbers = {{"accuracy", result_.accuracy},
                   {"best_accuracy", result_.best_accuracy},
                   {"train_loss", result_.train_loss},
                   {"images_per_second", result_.images_per_second}};
  for (const auto& [name, value] : results_) notes.numbers[kResult + name] = value;
  notes.texts = {{"model", options_.model},
                 {"phase", phase_},
                 {"config", options_.toml},
                 {train::kClassNames, train::class_names_text(classes_)}};
  engine.save(folder_.get(), train::RunFolder::kLastCheckpoint, std::move(notes), static_cast<int>(options_.keep));
}

void Session::end(int64_t step, bool finished) {
  step_ = step;
  if (!finished) return;
  const std::string phase = phase_ + '_';
  results_[phase + "accuracy"] = result_.accuracy;
  results_[phase + "best_accuracy"] = result_.best_accuracy;
  results_[phase + "train_loss"] = result_.train_loss;
  results_[phase + "images_per_second"] = result_.images_per_second;
  results_[phase + "peak_tensor_bytes"] = result_.peak_tensor_bytes;
}

void Session::write_summary(bool finished) {
  if (!record_) return;
  train::Summary summary{{"finished", finished}, {"steps", step_}};
  for (const char* phase : {"probe", "finetune"})
    for (const char* what : {"accuracy", "best_accuracy", "train_loss", "images_per_second", "peak_tensor_bytes"})
      if (const auto found = results_.find(str(phase, '_', what)); found != results_.end())
        summary.emplace_back(found->first, found->second);
  record_->folder.write_summary(summary);
}

}  // namespace weft::linear_probe
