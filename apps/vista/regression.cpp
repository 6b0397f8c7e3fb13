// SPDX-License-Identifier: Apache-2.0
// A linear regression on one device (single_gpu), or on all ranks of a launcher (multinode); see
// docs/workflows/vista.md.
#include "apps/vista/regression.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/support/run_flags.h"
#include "core/choose_device.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/random.h"
#include "io/torch/torch_object.h"
#include "io/weights/weights_file.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"
#include "train/record/scalar_log.h"
#include "train/training_main.h"

namespace weft::vista {
namespace {

constexpr int64_t kPairs = 2048, kInputs = 20;
constexpr const char *kCheckpoint = "checkpoint.pt", *kSnapshot = "snapshot.pt";

/// The arguments and flags of both programs.
struct Options : train::RunOptions {
  Options() { batch_size = 32, seed = 0; }
  bool several = false;  ///< multinode
  int64_t total_epochs = 0;
  int64_t save_every = 0;
  std::string loss = "mse";
  std::string log_dir;  ///< '': no metrics are kept
};

/// False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& o) {
  const bool ranks = o.several;
  support::Flags flags(o.program, ranks ? "Trains a small linear model on all ranks that a launcher has started, and "
                                          "goes on from snapshot.pt where this folder has one."
                                        : "Trains a small linear model on one GPU, or on the CPU where there is none.");
  flags.add_positional("total_epochs", o.total_epochs, "epochs to train", {.min = 0, .max = 1e9});
  flags.add_positional("save_every", o.save_every,
                       ranks ? "write snapshot.pt in every epoch that this divides"
                             : "write checkpoint.pt after every epoch that this divides",
                       {.min = 1, .max = 1e9});
  flags.add("batch-size", o.batch_size, ranks ? "pairs per step of each rank" : "pairs per step",
            {.min = 1, .max = 1e9});
  flags.add("lr", o.lr, "learning rate of SGD", {.min = 0});
  flags.add_choice("loss", o.loss, {"mse", "cross_entropy"},
                   "cross_entropy, over the model's only class, is the original's: it is always 0 and trains nothing");
  support::add_run_flags(flags, o, ranks ? "seed device backend" : "seed device");
  flags.add("log-dir", o.log_dir,
            "folder for metrics.jsonl, TensorBoard files and config.yaml, as weft-watch draws them; none: not kept");
  flags.add("dry-run", o.dry_run, "say what would run, train nothing, write nothing");
  if (ranks) {
    flags.example("multinode 50 10");
    flags.example("mpirun -np 2 --map-by ppr:1:node multinode 50 10 --log-dir logs");
  } else {
    flags.example("single_gpu 50 10 --batch_size 64");
  }
  if (!flags.parse(argc, argv)) return false;
  o.toml = flags.toml();
  return true;
}

struct Pairs {
  Tensor x, y;  ///< [count, 20], [count, 1]
  void fields(auto& v) { v("x", x), v("y", y); }
};

/// 2048 pairs, uniform in [0, 1), the same for one seed on every rank; they lie on the device. Each rank takes its
/// share of an epoch.
std::shared_ptr<data::BatchQueue> make_pairs(const Options& o, const dist::World& world) {
  const data::Sampler order(kPairs, train::training_order(o, world));
  manual_seed(static_cast<uint64_t>(o.seed));
  const Tensor x = uniform({kPairs, kInputs}, 0, 1, DType::f32, world.device());
  const Tensor y = uniform({kPairs, 1}, 0, 1, DType::f32, world.device());
  return std::make_shared<data::BatchQueue>(
      data::rows_of({x, y}), order,
      data::LoaderOptions{.batch_size = std::min(o.batch_size, order.most()), .workers = 0, .device = world.device()});
}

std::shared_ptr<nn::Linear> make_model(const Options& o, Device device) {
  manual_seed(static_cast<uint64_t>(o.seed) + 1);  // not the numbers of the pairs
  auto model = std::make_shared<nn::Linear>(kInputs, 1);
  model->to(device);
  return model;
}

/// Rank 0 looks for a snapshot in its folder and reads it; the epoch to begin with is the same on all ranks. DDP shares
/// the weights. -1: there is none.
int64_t resume(nn::Module& model, const dist::World& ranks) {
  int64_t epoch = -1;
  if (ranks.is_first() && std::filesystem::exists(kSnapshot)) {
    const TorchObject snapshot = read_torch(kSnapshot);
    model.load_state_dict(snapshot.at("MODEL_STATE", kSnapshot).state(str(kSnapshot, ": MODEL_STATE")));
    epoch = snapshot.at("EPOCHS_RUN", kSnapshot).integer(str(kSnapshot, ": EPOCHS_RUN"));
    WEFT_CHECK(epoch >= 0, kSnapshot, ": EPOCHS_RUN: expected a number of epochs, got ", epoch);
  }
  epoch = ranks.max(epoch, "epoch of the snapshot");
  if (epoch < 0) return epoch;
  std::cout << "Loading snapshot\n" << str("Resuming training from snapshot at Epoch ", epoch, '\n') << std::flush;
  return epoch;
}

/// The regression by SGD, from the start or from `resumed_epoch` on (-1: a new run). --log-dir keeps `train_loss` and
/// `pairs_per_second` by the number of epochs that have been run.
class Regression final : public train::TypedTask<Pairs> {
 public:
  /// All must outlive it.
  Regression(const Options& o, const dist::World& world, std::shared_ptr<data::BatchQueue> pairs, nn::Module& model,
             train::Strategy& strategy, int64_t resumed_epoch)
      : TypedTask(std::move(pairs)),
        options_(o),
        world_(world),
        model_(model),
        sgd_(strategy.parameters(), {.lr = o.lr}),
        engine_(*this, {world, model, strategy, sgd_},
                {.epochs = o.total_epochs, .sum = train::LossSum::per_step, .saves_epochs = false, .quiet = true}),
        first_epoch_(std::max<int64_t>(resumed_epoch, 0)) {
    engine_.position() = {.epoch = first_epoch_, .step = first_epoch_ * engine_.steps_per_epoch()};
    if (!world.is_first() || o.log_dir.empty()) return;
    log_.emplace(o.log_dir, resumed_epoch);
    log_->config({{"total_epochs", static_cast<double>(o.total_epochs)},
                  {"batch_size", static_cast<double>(o.batch_size)},
                  {"world_size", static_cast<double>(world.size())},
                  {"lr", o.lr},
                  {"loss", o.loss},
                  {"seed", static_cast<double>(o.seed)}});
  }
  train::RunEnd run() { return engine_.run(); }

 private:
  int64_t epoch() const { return engine_.position().epoch; }

  void epoch_begins() override {
    std::cout << str("[GPU", options_.several ? world_.rank() : world_.device().index, "] Epoch ", epoch(),
                     " | Batchsize: ", batch_size(), " | Steps: ", loader().steps_per_epoch(), '\n')
              << std::flush;
    if (options_.several && world_.is_first() && epoch() % options_.save_every == 0) save_snapshot();
  }

  train::Measured loss(const Pairs& batch) override {
    const Tensor out = engine_.forward(batch.x);
    return {options_.loss == "mse" ? mse_loss(out, batch.y) : cross_entropy(out, batch.y)};
  }

  void epoch_done(const train::Epoch& epoch, const train::Validation&) override {
    if (log_)
      log_->log(epoch.number, {{"epoch", static_cast<double>(epoch.number)},
                               {"train_loss", epoch.loss},
                               {"pairs_per_second", static_cast<double>(kPairs) / epoch.seconds}});
    if (world_.is_first() && (epoch.number == first_epoch_ + 1 || epoch.number == options_.total_epochs))
      std::cerr << str("mean loss of epoch ", epoch.number - 1, ": ", epoch.loss, '\n');  // in one piece
  }

  void epoch_saved(const train::Epoch& epoch, const train::Validation&) override {
    if (options_.several || (epoch.number - 1) % options_.save_every != 0) return;
    write_torch(kCheckpoint, model_.state_dict());
    std::cout << "Epoch " << epoch.number - 1 << " | Training checkpoint saved at " << kCheckpoint << std::endl;
  }

  /// The state at the beginning of epoch EPOCHS_RUN, so that a resumed run repeats nothing.
  void save_snapshot() const {
    write_torch(kSnapshot,
                {TorchObject::Dict{{"MODEL_STATE", TorchObject::of(model_.state_dict())}, {"EPOCHS_RUN", {epoch()}}}});
    std::cout << str("Epoch ", epoch(), " | Training snapshot saved at ", kSnapshot, '\n') << std::flush;
  }

  void stopped(train::StopRule& rule) override {
    if (world_.is_first())
      std::cerr << str("stopped by ", rule.reason(), " after step ", engine_.position().step, " of the run\n");
  }

  void ended(train::RunEnd end) override {
    if (log_ && end == train::RunEnd::finished) log_->end(true);
  }

  const Options& options_;
  const dist::World& world_;
  nn::Module& model_;
  optim::SGD sgd_;
  train::Engine engine_;
  std::optional<train::ScalarLog> log_;  // on rank 0
  int64_t first_epoch_;
};

int run(int argc, char** argv, Options& options) {
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  if (!options.several) options.parallel = "none";
  const dist::World world = train::join_ranks(options);
  const auto pairs = make_pairs(options, world);
  const auto model = make_model(options, world.device());
  if (options.dry_run) {
    if (world.is_first())
      std::cerr << str(options.program, ": would train Linear(20, 1) on ", weft::describe(world.device()), ", ",
                       options.total_epochs, " epochs of ", pairs->steps_per_epoch(), " steps of ",
                       pairs->options().batch_size, " pairs, loss ", options.loss, ", lr ", options.lr,
                       options.several ? ", ranks " + world.describe() : "", "; ",
                       options.several ? kSnapshot : kCheckpoint, " every ", options.save_every, " epochs\n");
    return train::kExitOk;
  }
  const auto folder = train::open_run_folder(std::filesystem::current_path(), world);
  const int64_t resumed = options.several ? resume(*model, world) : -1;
  const auto strategy = train::make_strategy({.kind = options.several ? "ddp" : "none"}, model, world);
  return train::exit_code(Regression(options, world, pairs, *model, *strategy, resumed).run());
}

}  // namespace

int train(int argc, char** argv, bool several) {
  Options options;
  options.several = several;
  options.program = several ? "multinode" : "single_gpu";
  return train::training_main(options.program, [&] { return run(argc, argv, options); });
}

}  // namespace weft::vista
