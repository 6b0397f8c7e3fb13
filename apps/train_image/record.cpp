// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/record.h"

#include <algorithm>
#include <limits>

#include "apps/support/device.h"
#include "apps/support/memory.h"
#include "kernels/allocator.h"

namespace weft::train_image {

Record::Record(const Experiment& experiment, const support::RunFolder& folder, int64_t step)
    : experiment_(experiment),
      folder_(folder),
      metrics_(step == 0 ? support::Metrics(folder.metrics()) : support::Metrics(folder.metrics(), step)),
      board_(folder.path(), step == 0 ? -1 : step) {
  const Options& o = experiment.options;
  const int ranks = experiment.ranks.size();
  folder_.write_config(
      str("# ", ranks, ranks == 1 ? " rank: " : " ranks: ", experiment.global_batch(), " pictures per step\n", o.toml));
  if (step > 0) return;
  board_.hyper_parameters({{"model", o.model},
                           {"lr", o.lr},
                           {"batch_size", static_cast<double>(experiment.global_batch())},
                           {"optimizer", o.optimizer},
                           {"weight_decay", o.weight_decay},
                           {"precision", o.precision}});
  show_samples();
}

void Record::show_samples() {
  if (!support::have_png()) return;
  std::vector<support::Picture> pictures;
  const int64_t count = std::min<int64_t>(32, experiment_.train_set->size());
  for (int64_t i = 0; i < count; ++i) {
    const data::Picture stored = experiment_.train_set->get(i);
    support::Picture picture(static_cast<int>(stored.width), static_cast<int>(stored.height));
    for (int64_t p = 0; p < stored.width * stored.height; ++p)
      for (int64_t c = 0; c < 3; ++c)
        picture.pixels[p * 3 + c] = stored.pixels[p * stored.channels + std::min(c, stored.channels - 1)];
    if (picture.width <= 512) pictures.push_back(std::move(picture));
  }
  if (!pictures.empty()) board_.picture("samples", support::grid(pictures, 8), 0);
}

void Record::epoch(const Position& at, const Training& training, const Evaluation& evaluation) {
  metrics_.append({.epoch = at.epoch,
                   .step = at.step,
                   .split = support::Split::train,
                   .loss = training.loss,
                   .accuracy = training.accuracy,
                   .lr = training.lr,
                   .images_per_second = training.pace.images_per_second,
                   .data_wait = std::max(training.pace.data_wait, 0.0)});
  metrics_.append({.epoch = at.epoch,
                   .step = at.step,
                   .split = support::Split::val,
                   .loss = evaluation.loss,
                   .accuracy = evaluation.accuracy,
                   .lr = training.lr,
                   .images_per_second = evaluation.images_per_second});
  board_.scalar("loss/train", training.loss, at.step);
  board_.scalar("loss/val", evaluation.loss, at.step);
  board_.scalar("accuracy/train", training.accuracy, at.step);
  board_.scalar("accuracy/val", evaluation.accuracy, at.step);
  board_.scalar("lr", training.lr, at.step);
  board_.scalar("images_per_second", training.pace.images_per_second, at.step);
  if (support::have_png())
    board_.picture("confusion", evaluation.confusion.draw(experiment_.val_set->classes()), at.step);
}

void Record::end(bool finished, const Position& at, const Evaluation& last, double images_per_second) {
  const Experiment& e = experiment_;
  constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();  // null in the file
  board_.end(finished);
  folder_.write_summary(
      {{"finished", finished},
       {"model", e.options.model},
       {"data", e.options.data},
       {"device", support::describe(e.device)},
       {"ranks", static_cast<int64_t>(e.ranks.size())},
       {"epochs", at.epoch},
       {"steps", at.step},
       {"val_accuracy", last.images > 0 ? last.accuracy : kNotKnown},
       {"val_loss", last.images > 0 ? last.loss : kNotKnown},
       {"best_val_accuracy", at.best_epoch > 0 ? at.best_accuracy : kNotKnown},
       {"best_epoch", at.best_epoch},
       {"images_per_second", images_per_second},
       {"peak_memory_bytes", support::peak_memory_bytes()},
       {"peak_tensor_bytes", static_cast<int64_t>(kernels::CachingAllocator::of(e.device).stats().peak_live)}});
}

}  // namespace weft::train_image
