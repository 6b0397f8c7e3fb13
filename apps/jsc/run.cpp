// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "apps/jsc/course.h"
#include "apps/jsc/lightning.h"
#include "apps/support/run_flags.h"
#include "core/autograd.h"
#include "core/choose_device.h"
#include "core/ops/layers/losses.h"
#include "core/random.h"
#include "data/hdf5_images.h"
#include "data/image_folder.h"
#include "data/image_loader.h"
#include "data/packed_images.h"
#include "io/home.h"
#include "io/torch/zip_archive.h"
#include "nn/models/resnet.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"
#include "train/record/class_names.h"
#include "train/record/scalar_log.h"
#include "train/torch_optimizer.h"
#include "train/training_main.h"

namespace weft::jsc {
namespace {

namespace fs = std::filesystem;

/// The flags of one_gpu and ddp; the originals have none, and these are their values.
struct Options : train::RunOptions {
  Options() { data = "data/hymenoptera_data", epochs = 50, batch_size = 1, seed = 42; }
  std::string backbone = "resnet18";
};

constexpr int64_t kLogEvery = 50;  // steps between two train_…_step, as Lightning's log_every_n_steps

/// `DIR` is `folder:DIR`.
std::string with_kind(const std::string& text) {
  constexpr const char* kKinds[] = {"folder:", "hdf5:", "packed:", "random:", "cifar10:"};
  const bool said =
      std::any_of(std::begin(kKinds), std::end(kKinds), [&](auto kind) { return text.starts_with(kind); });
  if (said) return text;
  WEFT_CHECK(fs::exists(text), "data: expected images in ", text,
             ", got nothing there. `tools/fetch_data hymenoptera data` brings the ants and bees to "
             "data/hymenoptera, --data names that or another place");
  return "folder:" + text;
}

/// The test part beside train and val; null where there is none.
std::shared_ptr<const data::Dataset> open_test(const std::string& text, const std::vector<std::string>& classes) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const fs::path place = expand_home(text.substr(colon + 1));
  const auto has = [](const std::vector<std::string>& parts) {
    const auto is = [&](const char* name) { return std::find(parts.begin(), parts.end(), name) != parts.end(); };
    return is("val") && is("test");
  };
  if (kind == "folder")
    for (const auto& [part, folder] : data::image_folder_parts(place))
      if (part == "test") return data::image_folder_root(folder, "folder test", classes);
  if (kind == "packed" && has(data::packed_parts(place))) return data::packed_images(place, "test");
  if (kind == "hdf5" && has(data::hdf5_parts(place))) return data::hdf5_images(place, "test");
  return nullptr;
}

/// The images of a run, and how they reach the model: 196x196 with antialiasing, ImageNet's normalisation; in
/// training mirrored half of the time.
class Images {
 public:
  /// Errors: those of the readers; a hint where nothing is at the usual place.
  Images(const Options& options, const dist::World& ranks) : options_(options), ranks_(ranks) {
    const std::string text = with_kind(options.data);
    train_ = data::open_dataset(text, data::Split::train);
    val_ = data::open_dataset(text, data::Split::val);
    WEFT_CHECK(train_->classes() == val_->classes(), "data: training and validation part have other classes (",
               train_->classes().size(), " and ", val_->classes().size(), ")");
    WEFT_CHECK(train_->channels() == 3, "data: expected images of 3 channels, got ", train_->channels());
    test_ = open_test(text, train_->classes());
    train::require_same_images(ranks, train_.get(), val_.get(), test_.get());
  }

  /// Shuffled, and the same number for each rank: some come twice where the set does not divide.
  std::unique_ptr<data::ImageLoader> training() const {
    return loader(train_, data::Split::train, train::training_order(options_, ranks_));
  }
  /// In order, each image once on one of the ranks; null where this rank has none.
  std::unique_ptr<data::ImageLoader> validation() const { return in_order(val_); }
  std::unique_ptr<data::ImageLoader> test() const { return test_ ? in_order(test_) : nullptr; }
  bool has_test() const { return test_ != nullptr; }

  const std::vector<std::string>& classes() const { return train_->classes(); }
  /// One line for each part.
  std::string describe() const {
    return str("train   ", train_->describe(), "\nval     ", val_->describe(), '\n',
               test_ ? str("test    ", test_->describe(), '\n') : "");
  }

 private:
  using Set = std::shared_ptr<const data::Dataset>;

  std::unique_ptr<data::ImageLoader> in_order(const Set& set) const {
    return loader(set, data::Split::val, train::validation_order(ranks_));
  }

  std::unique_ptr<data::ImageLoader> loader(const Set& set, data::Split split, data::SamplerOptions how) const {
    const data::Sampler order(set->size(), how);
    data::ImageLoaderOptions loading = train::image_loading(options_, ranks_.device());
    if (split == data::Split::val) loading.batch_size = std::min(options_.batch_size, order.size());
    if (loading.batch_size == 0) return nullptr;
    loading.mean = {0.485f, 0.456f, 0.406f}, loading.std = {0.229f, 0.224f, 0.225f};  // ImageNet has these; white is 1
    return std::make_unique<data::ImageLoader>(set, order, data::make_pipeline("resize:196", split), loading);
  }

  const Options& options_;
  const dist::World& ranks_;
  Set train_, val_, test_;
};

std::shared_ptr<nn::Module> make_model(const Options& options, const Images& images, Device device) {
  manual_seed(static_cast<uint64_t>(options.seed));
  const nn::ResNetOptions sizes{.classes = static_cast<int64_t>(images.classes().size())};
  std::shared_ptr<nn::Module> model = options.backbone == "resnet50" ? nn::resnet50(sizes) : nn::resnet18(sizes);
  model->to(device);
  return model;
}

/// Trains ResNet-18 from scratch with Adam. Rank 0 prints a line per epoch on stdout, keeps
/// `tb_logs/my_model/version_N`, and writes `image_classification_model.pt` at the end.
class Trainer final : public train::TypedTask<data::Batch> {
 public:
  static constexpr double kLearningRate = 1e-3;
  static constexpr const char* kCheckpoint = "image_classification_model.pt";
  static constexpr const char* kLogs = "tb_logs/my_model";

  /// The objects must outlive it. Errors: a batch larger than a rank's images; no libzip, without which the result
  /// could not be written.
  Trainer(const Options& options, const dist::World& ranks, const Images& images)
      : TypedTask(images.training()),
        options_(options),
        ranks_(ranks),
        images_(images),
        validation_(images.validation()),
        test_(images.test()),
        model_(make_model(options, images, ranks.device())),
        strategy_(train::make_strategy({}, model_, ranks)),
        adam_(strategy_->parameters(), {.lr = kLearningRate}),
        engine_(*this, {ranks, *model_, *strategy_, adam_},
                {.epochs = options.epochs,
                 .graph = "auto",
                 .log_interval = kLogEvery,
                 .saves_epochs = false,
                 .line_before_validation = true}) {
    WEFT_CHECK(have_zip(), kCheckpoint,
               ": built without libzip. On Debian: apt-get install libzip-dev, then configure again.");
  }

  /// `resnet18, 11177538 parameters, 2 classes`.
  std::string describe() const {
    return str(options_.backbone, ", ", nn::parameter_count(*model_), " parameters, ", images_.classes().size(),
               " classes");
  }

  /// All epochs. Errors: a loss that is not finite, the disk's.
  train::RunEnd run() {
    if (ranks_.is_first()) {
      const fs::path folder = make_version_folder(kLogs);
      write_hparams(folder, hyper_parameters());
      log_ = std::make_unique<train::ScalarLog>(folder);
      log_->config(hyper_parameters());
      engine_.progress().note(str("log     ", folder.string()));
    }
    return engine_.run();
  }

 private:
  /// Mean loss and share of right answers, over the images of all ranks.
  struct Result {
    double cross_entropy = 0, accuracy = 0;
  };

  train::Measured loss(const data::Batch& batch) override {
    const Tensor logits = engine_.forward(batch.images);
    return {cross_entropy(logits, batch.labels), train::count_correct(logits, batch.labels)};
  }

  /// This rank's numbers, as Lightning logs them.
  void log_steps(const train::StepSums::Totals&) override {
    const train::StepSums::Totals& own = engine_.last_read();
    const auto count = static_cast<double>(own.own_samples);
    if (log_)
      log_->log(engine_.position().step,
                {{"train_cross_entropy_step", own.own_loss / count}, {"train_accuracy_step", own.own_correct / count}});
  }

  train::Validation validate(const train::Epoch&) override {
    validated_ = evaluate(validation_.get(), "validation");
    return {};
  }

  void epoch_saved(const train::Epoch& epoch, const train::Validation&) override {
    if (!log_) return;
    const int64_t number = epoch.number - 1;
    log_->log(engine_.position().step, {{"train_cross_entropy", epoch.loss},
                                        {"train_accuracy", epoch.accuracy},
                                        {"val_cross_entropy", validated_.cross_entropy},
                                        {"val_accuracy", validated_.accuracy},
                                        {"epoch", static_cast<double>(number)}});
    std::printf("Epoch %lld: train_cross_entropy=%.4f train_accuracy=%.4f val_cross_entropy=%.4f val_accuracy=%.4f\n",
                static_cast<long long>(number), epoch.loss, epoch.accuracy, validated_.cross_entropy,
                validated_.accuracy);
    std::fflush(stdout);
  }

  std::string save() override {
    const StateDict model = strategy_->model_state();
    if (!ranks_.is_first()) return "";
    const train::TorchOptimizer adam{
        *model_, adam_, {{.parameters = strategy_->parameters()}}, train::torch_options(optim::AdamOptions{})};
    write_lightning_checkpoint(kCheckpoint, {.epoch = engine_.position().epoch,
                                             .global_step = engine_.position().step,
                                             .model = model,
                                             .optimizer = adam.state(),
                                             .hyper_parameters = hyper_parameters()});
    return kCheckpoint;
  }

  void stopped(train::StopRule& rule) override {
    engine_.progress().note(str("stopped by ", rule.reason(), " after step ", engine_.position().step, "; ",
                                kCheckpoint, " holds its weights"));
  }

  void ended(train::RunEnd end) override {
    const bool finished = end == train::RunEnd::finished;
    if (finished && images_.has_test()) {
      const Result test = evaluate(test_.get(), "test");
      if (log_) {
        std::printf("Test: test_cross_entropy=%.4f test_accuracy=%.4f\n", test.cross_entropy, test.accuracy);
        log_->log(engine_.position().step,
                  {{"test_cross_entropy", test.cross_entropy}, {"test_accuracy", test.accuracy}});
      }
    }
    if (finished) save();
    if (log_) log_->end(finished);
  }

  Result evaluate(data::ImageLoader* loader, const char* what) {
    const NoGrad no_grad;
    model_->eval();
    const Tensor loss = Tensor::zeros({}, DType::f32, ranks_.device()), right = loss.clone();
    int64_t images = 0;
    if (loader) loader->start(0);
    while (loader) {
      const auto batch = loader->next();
      if (!batch) break;
      const Tensor logits = (*model_)(batch->images);
      loss.add_(cross_entropy(logits, batch->labels), static_cast<double>(batch->count));
      right.add_(train::count_correct(logits, batch->labels));
      images += batch->count;
    }
    const std::vector<double> all = ranks_.sum({loss.item(), right.item(), static_cast<double>(images)}, what);
    return {all[0] / all[2], all[1] / all[2]};
  }

  train::HyperParameters hyper_parameters() const {
    return {{"backbone", options_.backbone},
            {"num_classes", static_cast<double>(images_.classes().size())},
            {"optimizer", "Adam"},
            {"learning_rate", kLearningRate},
            {"batch_size", static_cast<double>(options_.batch_size)},
            {"max_epochs", static_cast<double>(options_.epochs)},
            {"seed", static_cast<double>(options_.seed)},
            {"world_size", static_cast<double>(ranks_.size())},
            {train::kClassNames, train::class_names_text(images_.classes())}};
  }

  const Options& options_;
  const dist::World& ranks_;
  const Images& images_;
  std::unique_ptr<data::ImageLoader> validation_, test_;
  std::shared_ptr<nn::Module> model_;
  std::unique_ptr<train::Strategy> strategy_;
  optim::Adam adam_;
  train::Engine engine_;
  Result validated_;
  std::unique_ptr<train::ScalarLog> log_;  ///< on rank 0
};

/// False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, const std::string& purpose, int argc, char** argv, Options& o) {
  support::Flags flags(program, purpose);
  flags.group("Data and model");
  flags.add("data", o.data,
            "folder with train/CLASS/*.jpg and val/CLASS/*.jpg (and test/…), or hdf5:FILE, packed:FILE, as `pack` "
            "writes them; `tools/fetch_data hymenoptera data` brings the ants and bees to data/hymenoptera");
  flags.add_choice("backbone", o.backbone, {"resnet18", "resnet50"},
                   "resnet50: the later course's, which begins at random weights here");
  support::add_run_flags(flags, o, "epochs batch-size seed device workers dry-run");
  flags.example(program + " --data data/hymenoptera --epochs 10 --batch-size 8");
  if (program == "ddp") flags.example("srun -n 4 ddp");
  if (!flags.parse(argc, argv)) return false;
  o.toml = flags.toml();
  return true;
}

void describe(std::ostream& out, const dist::World& ranks, const Images& images, const Trainer& trainer) {
  out << "device  " << weft::describe(ranks.device()) << '\n'
      << images.describe() << "model   " << trainer.describe() << std::endl;
}

/// Everything but training: the environment is read, other ranks are not waited for.
int dry_run(const Options& options, bool alone) {
  const dist::World ranks = dist::init({.alone = true, .device = options.device});
  const Images images(options, ranks);
  const Trainer trainer(options, ranks, images);
  std::cout << "ranks   " << (alone ? "alone" : describe_place()) << '\n';
  describe(std::cout, ranks, images, trainer);
  std::cout << "would train " << options.epochs << " epochs with batches of " << options.batch_size << ", log to "
            << Trainer::kLogs << "/version_N and write " << Trainer::kCheckpoint << std::endl;
  return train::kExitOk;
}

}  // namespace

int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv) {
  return train::training_main(program, [&] {
    const Stopwatch watch;
    Options options;
    if (!parse_options(program, purpose, argc, argv, options)) return train::kExitOk;
    if (!alone) choose_port();
    if (options.dry_run) return dry_run(options, alone);
    if (alone) options.parallel = "none";
    const dist::World ranks = train::join_ranks(options);
    const Images images(options, ranks);
    Trainer trainer(options, ranks, images);
    if (ranks.is_first()) {
      std::cerr << "ranks   " << ranks.describe() << '\n';
      describe(std::cerr, ranks, images, trainer);
    }
    const train::RunEnd end = trainer.run();
    if (ranks.is_first()) std::cout << elapsed_line(watch.seconds()) << std::endl;
    return train::exit_code(end);
  });
}

}  // namespace weft::jsc
