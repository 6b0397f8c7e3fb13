// SPDX-License-Identifier: Apache-2.0
// MNIST in one process, by DDP, or by an optimizer that averages; see docs/workflows/ml_dist.md.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/support/run_flags.h"
#include "core/autograd.h"
#include "core/choose_device.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "data/idx.h"
#include "data/image_loader.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::ml_dist {
namespace {

namespace fs = std::filesystem;

/// How a run is parallel, and how it prints.
enum class Mode {
  base,  ///< one process
  ddp,   ///< gradients averaged by dist::DDP
  mpi,   ///< averages by dist::DistributedOptimizer, as Horovod does
};

/// The flags of mnist.
struct Options : train::RunOptions {
  Options() { epochs = 16, batch_size = 64, lr = 1, log_interval = 10; }
  int64_t test_batch_size = 1000;
  double gamma = 0.7;
  bool no_cuda = false;
  bool save_model = false;
  std::string data_dir = "./data";
  std::string output_dir = "./output/default";
  std::string log_dir;  ///< '': no metrics are kept
  std::string mode = "auto";
};

/// The mode that a program's name asks for: `base` of mnist_base and base_training, `ddp`, `mpi` of mnist_horovod;
/// `auto` for any other.
std::string mode_of_program(const std::string& program) {
  const auto has = [&](const char* part) { return program.find(part) != std::string::npos; };
  if (has("base")) return "base";
  if (has("ddp")) return "ddp";
  if (has("horovod")) return "mpi";
  return "auto";
}

/// Errors and `--help` use the name `program`. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, int argc, char** argv, Options& o) {
  o.mode = mode_of_program(program);
  support::Flags flags(program, "Trains a small convolutional network on MNIST, or on any set in its place.");
  flags.group("Training");
  flags.add("test-batch-size", o.test_batch_size, "images at once when testing", {.min = 1, .max = 1e6});
  flags.add("lr", o.lr, "learning rate of Adadelta, times the number of ranks", {.min = 0});
  flags.add("gamma", o.gamma, "factor of the learning rate after each epoch", {.min = 0, .above = true});
  support::add_run_flags(flags, o, "epochs batch-size device backend seed");
  flags.add("no-cuda", o.no_cuda, "use the CPU even where there is a GPU");
  flags.group("Run");
  flags.add("dry-run", o.dry_run, "one batch per epoch, and nothing is written");
  flags.add("log-interval", o.log_interval, "a line of loss after so many batches", {.min = 1});
  flags.add("save-model", o.save_model, "write mnist_cnn.pt into --output-dir at the end");
  flags.add("data-dir", o.data_dir, "folder that holds MNIST/raw/ with the four IDX files, plain or .gz");
  flags.add("output-dir", o.output_dir, "folder of the model");
  flags.add_choice("mode", o.mode, {"auto", "base", "ddp", "mpi", "horovod"},
                   "base: one process; ddp: gradients averaged during backward; mpi (or horovod): by the optimizer; "
                   "auto: ddp where there are several ranks, else base");
  flags.add("log-dir", o.log_dir,
            "folder for metrics.jsonl, TensorBoard files and config.yaml, as weft-watch draws them; none: not kept");
  flags.example(program + " --data-dir data --save-model");
  if (o.mode != "base") flags.example("weft-run --nproc_per_node 4 " + program + " --data-dir data --epochs 3");
  if (!flags.parse(argc, argv)) return false;
  if (o.no_cuda && o.device != "auto" && o.device != "cpu")
    throw train::UsageError("--no-cuda: expected no other --device, got --device " + o.device);
  if (o.no_cuda) o.device = "cpu";
  if (o.mode == "horovod") o.mode = "mpi";
  o.toml = flags.toml();
  return true;
}

/// The network of PyTorch's MNIST example: two 3x3 convolutions, a pool, two linear layers, dropout; 1,199,882
/// parameters under that example's names. x [N, 28, 28, 1] to log probabilities [N, 10].
struct Net : nn::Module {
  nn::Conv2d conv1{1, 32, {3, 3}}, conv2{32, 64, {3, 3}};
  nn::Dropout dropout1{0.25}, dropout2{0.5};
  nn::Flatten flatten;
  nn::Linear fc1{9216, 128}, fc2{128, 10};

  Tensor forward(const Tensor& x) const override {
    Tensor y = relu(conv2(relu(conv1(x))));
    y = dropout1(max_pool2d(y, {.kernel = {2, 2}, .stride = {2, 2}}));
    y = dropout2(relu(fc1(flatten(y))));
    return log_softmax(fc2(y));
  }

  void fields(nn::Visitor& v) override {
    v("conv1", conv1);
    v("conv2", conv2);
    v("dropout1", dropout1);
    v("dropout2", dropout2);
    v("flatten", flatten);
    v("fc1", fc1);
    v("fc2", fc2);
  }
};

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
  const data::Storage& images = *set->storage();
  WEFT_CHECK(images.height == 28 && images.width == 28 && images.channels == 1 && set->classes().size() == 10,
             "--data-dir: expected images of 28x28x1 in 10 classes, got ", set->describe());
  return set;
}

/// Each image once, in training in another order in each epoch.
std::unique_ptr<data::ImageLoader> make_loader(const Options& options, const dist::World& ranks,
                                               const std::shared_ptr<const data::Dataset>& set, bool training) {
  const data::Sampler sampler(set->size(),
                              training ? train::training_order(options, ranks) : train::validation_order(ranks));
  const int64_t wanted = training ? options.batch_size : options.test_batch_size;
  return std::make_unique<data::ImageLoader>(
      set, sampler, data::Pipeline(),
      data::ImageLoaderOptions{.batch_size = std::min(wanted, training ? sampler.most() : sampler.size()),
                               .workers = 1,
                               .device = ranks.device(),
                               .mean = {0.1307f},
                               .std = {0.3081f}});
}

struct Sets {
  /// Errors: files that are missing or wrong.
  explicit Sets(const Options& options)
      : train(read(options, data::Split::train)), test(read(options, data::Split::val)) {}

  std::shared_ptr<const data::Dataset> train, test;
};

/// Trains and tests, epoch by epoch, and prints as the workflow's three programs do.
class Trainer final : public train::TypedTask<data::Batch> {
 public:
  Trainer(const Options& options, Mode mode, const dist::World& ranks, const Sets& sets)
      : TypedTask(make_loader(options, ranks, sets.train, true)),
        options_(options),
        mode_(mode),
        ranks_(ranks),
        sets_(sets),
        test_loader_(make_loader(options, ranks, sets.test, false)) {
    manual_seed(static_cast<uint64_t>(options.seed));
    model_ = std::make_shared<Net>();
    model_->to(ranks.device());
    manual_seed(static_cast<uint64_t>(options.seed) ^ seed_of_rank(1));  // dropout: the same on every device
    if (mode != Mode::mpi)
      strategy_ = train::make_strategy({.kind = mode == Mode::ddp ? "ddp" : "none"}, model_, ranks);
    adadelta_ = std::make_unique<optim::Adadelta>(strategy_ ? strategy_->parameters() : model_->parameters(),
                                                  optim::AdadeltaOptions{.lr = options.lr * ranks.size()});
    if (mode == Mode::mpi) strategy_ = train::make_averaging_strategy(model_, *adadelta_, ranks);
    scheduler_ =
        std::make_unique<optim::Scheduler>(*adadelta_, std::make_shared<optim::StepSchedule>(1, options.gamma));
    engine_ = std::make_unique<train::Engine>(
        *this, train::Parts{ranks, *model_, *strategy_, *adadelta_},
        train::EngineOptions{.epochs = options.epochs, .saves_epochs = false, .quiet = true});
    if (ranks.is_first())
      std::fprintf(stderr, "ranks   %s\ndevice  %s\ndata    %s; %s\n", ranks.describe().c_str(),
                   weft::describe(ranks.device()).c_str(), sets.train->describe().c_str(),
                   sets.test->describe().c_str());
  }

  train::RunEnd run() {
    if (options_.save_model && !options_.dry_run) open_output();
    if (ranks_.is_first() && !options_.log_dir.empty() && !options_.dry_run) {
      log_ = std::make_unique<train::ScalarLog>(options_.log_dir);
      log_->config(hyper_parameters());
    }
    return engine_->run();
  }

 private:
  int64_t samples() const override { return options_.dry_run ? batch_size() : LoaderTask::samples(); }
  void start_epoch(int64_t epoch, int64_t batch) override { LoaderTask::start_epoch(epoch + 1, batch); }

  train::Measured loss(const data::Batch& batch) override {
    return {nll_loss(engine_->forward(batch.images), batch.labels)};
  }

  /// Counts the whole set in mode base, what this rank sees in the others.
  void after_step() override {
    const int64_t epoch = engine_->position().epoch + 1, step = engine_->position().step_in_epoch - 1;
    if (step % options_.log_interval != 0) return;
    const double loss = engine_->last_loss().item();
    const int64_t steps = loader().steps_per_epoch();
    const int64_t total = mode_ == Mode::base ? sets_.train->size() : steps * options_.batch_size;
    print(fmt::format("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}{}\n", epoch, step * options_.batch_size, total,
                      100.0 * static_cast<double>(step) / static_cast<double>(steps), loss,
                      mode_ == Mode::ddp ? " " : ""));
    if (log_) log_->log(engine_->position().step, {{"epoch", static_cast<double>(epoch)}, {"train_loss", loss}});
  }

  train::Validation validate(const train::Epoch& epoch) override {
    const double images_per_second = static_cast<double>(epoch.samples) / epoch.seconds;
    if (ranks_.is_first())
      std::fprintf(stderr, "epoch %lld: %.1f s, %.0f images/s\n", static_cast<long long>(epoch.number), epoch.seconds,
                   images_per_second);
    const NoGrad no_grad;
    model_->eval();
    test_loader_->start(epoch.number);
    double loss = 0, right = 0;
    while (const auto batch = test_loader_->next()) {
      const Tensor scores = (*model_)(batch->images);
      loss += nll_loss(scores, batch->labels, {.reduction = Reduction::sum}).item();
      const auto guesses = argmax(scores, 1).to_vector<int64_t>(), labels = batch->labels.to_vector<int64_t>();
      for (size_t i = 0; i < labels.size(); ++i) right += guesses[i] == labels[i];
    }
    const std::vector<double> sums = ranks_.sum({loss, right}, "test");
    const auto count = static_cast<double>(sets_.test->size());
    const double percent = 100 * sums[1] / count;
    const std::string accuracy = mode_ == Mode::mpi
                                     ? fmt::format("{:.4f}%", percent)
                                     : fmt::format("{:.0f}/{} ({:.0f}%)", sums[1], sets_.test->size(), percent);
    print(fmt::format("\nTest set: Average loss: {:.4f}, Accuracy: {}\n\n", sums[0] / count, accuracy));
    if (log_)
      log_->log(engine_->position().step, {{"epoch", static_cast<double>(epoch.number)},
                                           {"test_loss", sums[0] / count},
                                           {"test_accuracy", sums[1] / count},
                                           {"learning_rate", adadelta_->lr(0)},
                                           {"images_per_second", images_per_second}});
    return {};
  }

  void epoch_saved(const train::Epoch&, const train::Validation&) override { scheduler_->step(); }

  std::string save() override {
    if (!options_.save_model || !ranks_.is_first()) return "";
    const fs::path file = fs::path(options_.output_dir) / "mnist_cnn.pt";
    if (options_.dry_run)
      std::fprintf(stderr, "dry run: would write %s\n", file.c_str());
    else
      write_torch(file, model_->state_dict());
    return file.string();
  }

  void stopped(train::StopRule& rule) override {
    if (ranks_.is_first())
      std::fprintf(
          stderr, "stopped by %s after step %lld%s\n", rule.reason().c_str(),
          static_cast<long long>(engine_->position().step),
          options_.save_model ? "; mnist_cnn.pt holds its weights" : "; --save-model would have kept its weights");
  }

  void ended(train::RunEnd end) override {
    if (end == train::RunEnd::finished) save();
    if (log_) log_->end(end == train::RunEnd::finished);
  }

  train::HyperParameters hyper_parameters() const {
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

  /// Before anything is trained: what cannot be saved is better known now than after the last epoch.
  void open_output() {
    WEFT_CHECK(have_zip(),
               "--save-model: built without libzip. On Debian: apt-get install libzip-dev, then configure again.");
    output_ = train::open_run_folder(options_.output_dir, ranks_);
  }

  const Options& options_;
  Mode mode_;
  const dist::World& ranks_;
  const Sets& sets_;
  std::unique_ptr<data::ImageLoader> test_loader_;
  std::shared_ptr<Net> model_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::Adadelta> adadelta_;
  std::unique_ptr<optim::Scheduler> scheduler_;
  std::unique_ptr<train::RunFolder> output_;  // on rank 0, with --save-model
  std::unique_ptr<train::ScalarLog> log_;     // on rank 0, with --log-dir
  std::unique_ptr<train::Engine> engine_;
};

int run(const std::string& program, int argc, char** argv) {
  Options options;
  if (!parse_options(program, argc, argv, options)) return train::kExitOk;
  if (options.mode == "base") options.parallel = "none";
  const dist::World ranks = train::join_ranks(options);
  const Mode mode = options.mode == "mpi"                       ? Mode::mpi
                    : options.mode == "ddp" || ranks.size() > 1 ? Mode::ddp
                                                                : Mode::base;
  const Sets sets(options);
  train::require_same_images(ranks, sets.train.get(), nullptr, sets.test.get());
  return train::exit_code(Trainer(options, mode, ranks, sets).run());
}

}  // namespace
}  // namespace weft::ml_dist

int main(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "mnist";
  return weft::train::training_main(program, [&] { return weft::ml_dist::run(program, argc, argv); });
}
