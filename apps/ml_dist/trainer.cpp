// SPDX-License-Identifier: Apache-2.0
#include "apps/ml_dist/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/support/device.h"
#include "apps/support/stopwatch.h"
#include "apps/support/weights/weights_file.h"
#include "apps/support/weights/zip_archive.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/nll_loss.h"
#include "core/random.h"
#include "data/idx.h"
#include "optim/schedule/step.h"

namespace weft::ml_dist {
namespace {

namespace fs = std::filesystem;

/// One write, so that lines of several ranks do not mix.
void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// torchvision's place, DIR/MNIST/raw; or DIR itself, as tools/fetch_data leaves it.
std::shared_ptr<const data::Dataset> read(const Options& options, data::Split split) {
  const fs::path raw = fs::path(options.data_dir) / "MNIST" / "raw";
  WEFT_CHECK(fs::is_directory(options.data_dir), "--data-dir: there is no folder ", options.data_dir,
             ", which should hold MNIST/raw with MNIST's four files. `tools/fetch_data mnist` brings them to "
             "datasets/mnist, --data-dir names that or another place");
  auto set = data::idx(fs::is_directory(raw) ? raw : fs::path(options.data_dir), split);
  const data::Storage& pictures = *set->storage();
  WEFT_CHECK(pictures.height == 28 && pictures.width == 28 && pictures.channels == 1 && set->classes().size() == 10,
             "--data-dir: expected pictures of 28x28x1 in 10 classes, got ", set->describe());
  return set;
}

}  // namespace

Trainer::Trainer(const Options& options, Mode mode, const support::Ranks& ranks)
    : options_(options),
      mode_(mode),
      ranks_(ranks),
      train_set_(read(options, data::Split::train)),
      test_set_(read(options, data::Split::val)),
      train_loader_(make_loader(data::Split::train)),
      test_loader_(make_loader(data::Split::val)) {
  manual_seed(static_cast<uint64_t>(options.seed));
  model_ = std::make_shared<Net>();
  model_->to(ranks.device());
  // Dropout: the same on every device, another on each rank.
  manual_seed(static_cast<uint64_t>(options.seed) ^ static_cast<uint64_t>(ranks.rank() + 1) * 0x9E3779B97F4A7C15ull);
  if (mode == Mode::ddp) ddp_ = std::make_unique<dist::DDP>(model_, ranks.group());
  adadelta_ = std::make_unique<optim::Adadelta>(ddp_ ? ddp_->parameters() : model_->parameters(),
                                                optim::AdadeltaOptions{.lr = options.lr * ranks.size()});
  if (mode == Mode::mpi) {
    distributed_ = std::make_unique<dist::DistributedOptimizer>(*adadelta_, ranks.group());
    dist::broadcast_parameters(*ranks.group(), *model_);
    dist::broadcast_optimizer_state(*ranks.group(), *adadelta_);
  }
  scheduler_ = std::make_unique<optim::Scheduler>(*adadelta_, std::make_shared<optim::StepSchedule>(1, options.gamma));
  if (ranks.is_first())
    std::fprintf(stderr, "ranks   %s\ndevice  %s\ndata    %s; %s\n", ranks.describe().c_str(),
                 support::describe(ranks.device()).c_str(), train_set_->describe().c_str(),
                 test_set_->describe().c_str());
}

/// Training: as many pictures on all ranks, in another order in each epoch. Testing: each picture once.
std::unique_ptr<data::Loader> Trainer::make_loader(data::Split split) const {
  const bool training = split == data::Split::train;
  const auto& set = training ? train_set_ : test_set_;
  const data::Sampler sampler(set->size(), {.seed = static_cast<uint64_t>(options_.seed),
                                            .shuffle = training,
                                            .rank = ranks_.rank(),
                                            .world = ranks_.size(),
                                            .tail = training ? data::Tail::repeat : data::Tail::uneven});
  const int64_t wanted = training ? options_.batch_size : options_.test_batch_size;
  return std::make_unique<data::Loader>(set, sampler, data::Pipeline(),
                                        data::LoaderOptions{.batch_size = std::min(wanted, sampler.size()),
                                                            .workers = 1,
                                                            .device = ranks_.device(),
                                                            .mean = {0.1307f},
                                                            .std = {0.3081f}});
}

support::HyperParameters Trainer::hyper_parameters() const {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  return {{"mode", std::string(mode_ == Mode::base  ? "base"
                               : mode_ == Mode::ddp ? "ddp"
                                                    : "mpi")},
          {"batch_size", number(options_.batch_size)},
          {"world_size", number(ranks_.size())},
          {"epochs", number(options_.epochs)},
          {"lr", options_.lr},
          {"gamma", options_.gamma},
          {"seed", number(options_.seed)}};
}

/// Before anything is trained: what cannot be saved is better known now than behind the last epoch.
void Trainer::open_output() {
  WEFT_CHECK(support::have_zip(),
             "--save-model: built without libzip. On Debian: apt-get install libzip-dev, then configure again.");
  output_ = support::open_run_folder(options_.output_dir, ranks_);
}

void Trainer::run() {
  if (options_.save_model && !options_.dry_run) open_output();
  if (ranks_.is_first() && !options_.log_dir.empty() && !options_.dry_run) {
    log_ = std::make_unique<support::ScalarLog>(options_.log_dir);
    log_->config(hyper_parameters());
  }
  for (int64_t epoch = 1; epoch <= options_.epochs; ++epoch) {
    train(epoch);
    test(epoch);
    scheduler_->step();
  }
  if (options_.save_model && ranks_.is_first()) save();
  if (log_) log_->end(true);
  ranks_.wait_for_all("end of training");
}

void Trainer::train(int64_t epoch) {
  const support::Stopwatch watch;
  model_->train();
  train_loader_->start(epoch);
  int64_t pictures = 0;
  while (const auto batch = train_loader_->next()) {
    const Tensor scores = ddp_ ? (*ddp_)(batch->images) : (*model_)(batch->images);
    const Tensor loss = nll_loss(scores, batch->labels);
    update(loss);
    pictures += batch->count;
    ++steps_;
    if (batch->step % options_.log_interval == 0) {
      print_train(epoch, *batch, loss.item());
      if (log_) log_->log(steps_, {{"epoch", static_cast<double>(epoch)}, {"train_loss", loss.item()}});
    }
    if (options_.dry_run) break;
  }
  const double seconds = watch.seconds();
  images_per_second_ = static_cast<double>(pictures * ranks_.size()) / seconds;
  if (ranks_.is_first())
    std::fprintf(stderr, "epoch %lld: %.1f s, %.0f pictures/s\n", static_cast<long long>(epoch), seconds,
                 images_per_second_);
}

void Trainer::update(const Tensor& loss) {
  if (distributed_) {
    distributed_->zero_grad();
    loss.backward();
    distributed_->step();
  } else {
    adadelta_->zero_grad();
    loss.backward();
    adadelta_->step();
  }
}

/// Of the whole set in mode base, of what this rank sees in the others.
void Trainer::print_train(int64_t epoch, const data::Batch& batch, double loss) const {
  const int64_t steps = train_loader_->steps_per_epoch();
  const int64_t total = mode_ == Mode::base ? train_set_->size() : steps * options_.batch_size;
  print(fmt::format("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}{}\n", epoch, batch.step * options_.batch_size,
                    total, 100.0 * static_cast<double>(batch.step) / static_cast<double>(steps), loss,
                    mode_ == Mode::ddp ? " " : ""));
}

void Trainer::test(int64_t epoch) {
  const NoGrad no_grad;
  model_->eval();
  test_loader_->start(epoch);
  double loss = 0, right = 0;
  while (const auto batch = test_loader_->next()) {
    const Tensor scores = (*model_)(batch->images);
    loss += nll_loss(scores, batch->labels, {.reduction = Reduction::sum}).item();
    const auto guesses = argmax(scores, 1).to_vector<int64_t>(), labels = batch->labels.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) right += guesses[i] == labels[i];
  }
  const std::vector<double> sums = ranks_.sum({loss, right}, "test");
  const auto count = static_cast<double>(test_set_->size());
  const double percent = 100 * sums[1] / count;
  const std::string accuracy = mode_ == Mode::mpi
                                   ? fmt::format("{:.4f}%", percent)
                                   : fmt::format("{:.0f}/{} ({:.0f}%)", sums[1], test_set_->size(), percent);
  print(fmt::format("\nTest set: Average loss: {:.4f}, Accuracy: {}\n\n", sums[0] / count, accuracy));
  if (log_)
    log_->log(steps_, {{"epoch", static_cast<double>(epoch)},
                       {"test_loss", sums[0] / count},
                       {"test_accuracy", sums[1] / count},
                       {"learning_rate", adadelta_->lr()},
                       {"images_per_second", images_per_second_}});
}

void Trainer::save() const {
  const fs::path file = fs::path(options_.output_dir) / "mnist_cnn.pt";
  if (options_.dry_run) {
    std::fprintf(stderr, "dry run: would write %s\n", file.c_str());
    return;
  }
  support::write_torch(file, model_->state_dict());
}

}  // namespace weft::ml_dist
