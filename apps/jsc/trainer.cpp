// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/jsc/lightning_checkpoint.h"
#include "apps/jsc/log_folder.h"
#include "apps/support/weights/torch_optimizer.h"
#include "apps/support/weights/zip_archive.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/compare.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/sum.h"
#include "core/random.h"
#include "nn/models/resnet.h"

namespace weft::jsc {
namespace {

constexpr int64_t kLogEvery = 50;   // steps between two train_…_step, as Lightning's log_every_n_steps
constexpr int64_t kLookEvery = 20;  // steps between two looks at the sums on a GPU

std::shared_ptr<nn::Module> make_model(const Options& options, const Pictures& pictures, Device device) {
  manual_seed(static_cast<uint64_t>(options.seed));
  auto model = nn::resnet18({.classes = static_cast<int64_t>(pictures.classes().size())});
  model->to(device);
  return model;
}

support::ProgressOptions progress_on(std::FILE* out) {
  support::ProgressOptions options;
  options.out = out;
  return options;
}

}  // namespace

void Trainer::Sums::clear() {
  loss.zero_();
  correct.zero_();
  images = 0;
}

Trainer::Trainer(const Options& options, const support::Ranks& ranks, const Pictures& pictures)
    : options_(options),
      ranks_(ranks),
      pictures_(pictures),
      training_(pictures.training()),
      validation_(pictures.validation()),
      test_(pictures.test()),
      model_(make_model(options, pictures, ranks.device())),
      parallel_(support::make_parallel({}, model_, ranks)),
      adam_(parallel_->parameters(), {.lr = kLearningRate}),
      sums_{Tensor::zeros({}, DType::f32, ranks.device()), Tensor::zeros({}, DType::f32, ranks.device())},
      nowhere_(ranks.is_first() ? nullptr : std::fopen("/dev/null", "w"), std::fclose),
      progress_(progress_on(nowhere_.get())) {
  WEFT_CHECK(support::have_zip(), kCheckpoint,
             ": built without libzip. On Debian: apt-get install libzip-dev, then configure again.");
  if (ranks.device().kind == DeviceKind::cuda && ranks.size() == 1)
    graph_ = std::make_unique<GraphedFunction>(
        ranks.device(), [this](const std::vector<Tensor>& in) { update(in[0], in[1]); },
        GraphedFunctionOptions{.may_run_eagerly = true});
}

std::string Trainer::describe() const {
  return str("resnet18, ", nn::parameter_count(*model_), " parameters, ", pictures_.classes().size(), " classes");
}

support::HyperParameters Trainer::hyper_parameters() const {
  return {{"backbone", "resnet18"},
          {"num_classes", static_cast<double>(pictures_.classes().size())},
          {"optimizer", "Adam"},
          {"learning_rate", kLearningRate},
          {"batch_size", static_cast<double>(options_.batch_size)},
          {"max_epochs", static_cast<double>(options_.epochs)},
          {"seed", static_cast<double>(options_.seed)},
          {"world_size", static_cast<double>(ranks_.size())}};
}

void Trainer::run() {
  if (ranks_.is_first()) {
    const std::filesystem::path folder = make_version_folder(kLogs);
    write_hparams(folder, hyper_parameters());
    log_ = std::make_unique<support::ScalarLog>(folder);
    log_->config(hyper_parameters());
    progress_.note(str("log     ", folder.string()));
  }
  for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    const Result train = train_epoch(epoch);
    // Workers make the next epoch's first batches while this thread validates.
    if (epoch + 1 < options_.epochs) training_->start(epoch + 1);
    const Result val = evaluate(validation_.get(), "validation");
    log_epoch(epoch, train, val);
  }
  if (pictures_.has_test()) {
    const Result test = evaluate(test_.get(), "test");
    if (log_) {
      std::printf("Test: test_cross_entropy=%.4f test_accuracy=%.4f\n", test.cross_entropy, test.accuracy);
      log_->log(steps_, {{"test_cross_entropy", test.cross_entropy}, {"test_accuracy", test.accuracy}});
    }
  }
  save();
  if (log_) log_->end(true);
  // A launcher may end the others when one rank ends: not before rank 0's files are whole.
  ranks_.wait_for_all("end of the run");
}

Trainer::Result Trainer::train_epoch(int64_t epoch) {
  model_->train();
  progress_.begin(str("epoch ", epoch + 1, "/", options_.epochs), training_->steps_per_epoch());
  const int64_t look_every = ranks_.device().kind == DeviceKind::cuda ? kLookEvery : 1;
  double loss = 0, correct = 0;
  int64_t images = 0, unread = 0;
  const auto look = [&] {
    const double more_loss = sums_.loss.item(), more_correct = sums_.correct.item();
    const auto count = static_cast<double>(sums_.images);
    if (!std::isfinite(more_loss)) progress_.end();
    WEFT_CHECK(std::isfinite(more_loss), "loss is not finite (", more_loss / count, ") in epoch ", epoch + 1,
               " before step ", steps_);
    progress_.step({.images = sums_.images, .loss = more_loss / count, .correct = more_correct, .steps = unread});
    loss += more_loss, correct += more_correct, images += sums_.images;
    const Result result{more_loss / count, more_correct / count};
    sums_.clear();
    unread = 0;
    return result;
  };
  training_->start(epoch);
  while (const auto batch = training_->next()) {
    train_step(*batch);
    ++steps_;
    const bool logs = steps_ % kLogEvery == 0;
    if (++unread < look_every && !logs) continue;
    const Result result = look();
    if (logs) log_step(result);
  }
  if (unread > 0) look();
  return of_all_ranks(loss, correct, images, "training");
}

void Trainer::train_step(const data::Batch& batch) {
  if (graph_)
    (*graph_)({batch.images, batch.labels});
  else
    update(batch.images, batch.labels);
  sums_.images += batch.count;
}

/// What a step does on the device: the part that a graph repeats.
void Trainer::update(const Tensor& images, const Tensor& labels) {
  const Tensor logits = parallel_->forward(images);
  const Tensor loss = cross_entropy(logits, labels);
  adam_.zero_grad();
  loss.backward();
  adam_.step();
  add(logits, loss, labels);
}

void Trainer::add(const Tensor& logits, const Tensor& loss, const Tensor& labels) {
  const NoGrad no_grad;
  sums_.loss.add_(loss.detach(), static_cast<double>(labels.size(0)));
  sums_.correct.add_(sum(eq(argmax(logits, 1), labels).to(DType::f32)));
}

Trainer::Result Trainer::evaluate(data::Loader* loader, const char* what) {
  const NoGrad no_grad;
  model_->eval();
  sums_.clear();
  if (loader) loader->start(0);
  while (loader) {
    const auto batch = loader->next();
    if (!batch) break;
    const Tensor logits = (*model_)(batch->images);
    add(logits, cross_entropy(logits, batch->labels), batch->labels);
    sums_.images += batch->count;
  }
  const Result result = of_all_ranks(sums_.loss.item(), sums_.correct.item(), sums_.images, what);
  sums_.clear();
  return result;
}

Trainer::Result Trainer::of_all_ranks(double loss, double correct, int64_t images, const char* what) const {
  const std::vector<double> all = ranks_.sum({loss, correct, static_cast<double>(images)}, what);
  return {all[0] / all[2], all[1] / all[2]};
}

void Trainer::log_step(const Result& result) {
  if (log_)
    log_->log(steps_, {{"train_cross_entropy_step", result.cross_entropy}, {"train_accuracy_step", result.accuracy}});
}

void Trainer::log_epoch(int64_t epoch, const Result& train, const Result& val) {
  progress_.end();
  if (!log_) return;
  log_->log(steps_, {{"train_cross_entropy", train.cross_entropy},
                     {"train_accuracy", train.accuracy},
                     {"val_cross_entropy", val.cross_entropy},
                     {"val_accuracy", val.accuracy},
                     {"epoch", static_cast<double>(epoch)}});
  std::printf("Epoch %lld: train_cross_entropy=%.4f train_accuracy=%.4f val_cross_entropy=%.4f val_accuracy=%.4f\n",
              static_cast<long long>(epoch), train.cross_entropy, train.accuracy, val.cross_entropy, val.accuracy);
  std::fflush(stdout);
}

void Trainer::save() {
  const StateDict model = parallel_->model_state();
  if (!ranks_.is_first()) return;
  const support::TorchOptimizer adam{
      *model_, adam_, {{.parameters = parallel_->parameters()}}, support::torch_options(optim::AdamOptions{})};
  write_lightning_checkpoint(kCheckpoint, {.epoch = options_.epochs,
                                           .global_step = steps_,
                                           .model = model,
                                           .optimizer = adam.state(),
                                           .hyper_parameters = hyper_parameters()});
}

}  // namespace weft::jsc
