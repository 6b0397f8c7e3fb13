// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/run_state.h"

#include "apps/support/averages.h"
#include "apps/support/checkpoint.h"
#include "apps/support/resume.h"

namespace weft::train_image {

void RunState::save(const std::filesystem::path& path) const {
  if (!support::have_checkpoints()) return;
  const Experiment& e = experiment;
  support::Checkpoint checkpoint;
  checkpoint.parts = {{"model", e.parallel->model_state()}, {"optimizer", e.parallel->optimizer_state(optimizer)}};
  support::save_averages(checkpoint, *e.parallel, averages);
  if (!e.ranks.is_first()) return;
  checkpoint.integers = {
      {"epoch", position.epoch},   {"step_in_epoch", position.step_in_epoch}, {"step", position.step},
      {"images", position.images}, {"best_epoch", position.best_epoch},       {"batch_size", e.global_batch()}};
  support::save_generator(checkpoint, e.device);
  checkpoint.numbers = {
      {"loss_sum", position.loss_sum}, {"correct", position.correct}, {"best_accuracy", position.best_accuracy}};
  checkpoint.texts = e.pixels.texts();
  checkpoint.texts.insert({{"model", e.options.model}, {"config", e.options.toml}});
  support::save_checkpoint(path, checkpoint);
}

std::string RunState::resume() const {
  Experiment& e = experiment;
  const std::string path = support::checkpoint_to_resume(e.options.resume, e.options.out, e.ranks);
  if (path.empty()) return path;
  const support::Checkpoint saved = support::load_checkpoint(path);
  const std::string& model = saved.text("model");
  WEFT_CHECK(model == e.options.model, "checkpoint ", path, " is of model '", model, "', this run trains '",
             e.options.model, "'");
  support::require_same_step(path, saved, {.batch_size = e.options.batch_size}, e.ranks);
  e.parallel->load(str("checkpoint ", path, ": model"), saved.part("model"), saved.part("optimizer"), optimizer);
  support::load_averages(path, saved, *e.parallel, averages);
  support::load_generator(saved, e.ranks);
  position = {.epoch = saved.integer("epoch"),
              .step_in_epoch = saved.integer("step_in_epoch"),
              .step = saved.integer("step"),
              .images = saved.integer("images"),
              .loss_sum = saved.number("loss_sum"),
              .correct = saved.number("correct"),
              .best_accuracy = saved.number("best_accuracy"),
              .best_epoch = saved.integer("best_epoch")};
  return path;
}

}  // namespace weft::train_image
