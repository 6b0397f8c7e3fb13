// SPDX-License-Identifier: Apache-2.0
#include "apps/vista/regression.h"

#include <algorithm>
#include <iostream>

#include "apps/support/run_flags.h"
#include "core/choose_device.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/random.h"

namespace weft::vista {

bool parse_options(const std::string& program, int argc, char** argv, Options& o) {
  const bool ranks = program == "multinode";
  support::Flags flags(program, ranks
                                    ? "Trains a small linear model on all ranks that a launcher has started, and goes "
                                      "on from snapshot.pt where this folder has one."
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

namespace {

constexpr int64_t kPairs = 2048, kInputs = 20;

}  // namespace

std::shared_ptr<data::BatchQueue> make_pairs(const Options& options, const dist::World& world) {
  const data::Sampler order(kPairs, train::training_order(options, world));
  manual_seed(static_cast<uint64_t>(options.seed));
  const Tensor x = uniform({kPairs, kInputs}, 0, 1, DType::f32, world.device());
  const Tensor y = uniform({kPairs, 1}, 0, 1, DType::f32, world.device());
  return std::make_shared<data::BatchQueue>(
      data::rows_of({x, y}), order,
      data::LoaderOptions{
          .batch_size = std::min(options.batch_size, order.most()), .workers = 0, .device = world.device()});
}

std::shared_ptr<nn::Linear> make_model(const Options& options, Device device) {
  manual_seed(static_cast<uint64_t>(options.seed) + 1);  // not the numbers of the pairs
  auto model = std::make_shared<nn::Linear>(kInputs, 1);
  model->to(device);
  return model;
}

std::string describe(const Options& options, const data::BatchQueue& pairs, Device device) {
  return str("Linear(20, 1) on ", weft::describe(device), ", ", options.total_epochs, " epochs of ",
             pairs.steps_per_epoch(), " steps of ", pairs.options().batch_size, " pairs, loss ", options.loss, ", lr ",
             options.lr);
}

Regression::Regression(const Options& options, const dist::World& world, std::shared_ptr<data::BatchQueue> pairs,
                       std::shared_ptr<nn::Module> model, train::Strategy& strategy, int64_t resumed_epoch)
    : TypedTask(std::move(pairs)),
      options_(options),
      world_(world),
      model_(std::move(model)),
      sgd_(strategy.parameters(), {.lr = options.lr}),
      engine_(*this, {world, *model_, strategy, sgd_},
              {.epochs = options.total_epochs, .sum = train::LossSum::per_step, .saves_epochs = false, .quiet = true}),
      first_epoch_(std::max<int64_t>(resumed_epoch, 0)) {
  engine_.position() = {.epoch = first_epoch_, .step = first_epoch_ * engine_.steps_per_epoch()};
  if (!world.is_first() || options.log_dir.empty()) return;
  log_.emplace(options.log_dir, resumed_epoch);
  log_->config({{"total_epochs", static_cast<double>(options.total_epochs)},
                {"batch_size", static_cast<double>(options.batch_size)},
                {"world_size", static_cast<double>(world.size())},
                {"lr", options.lr},
                {"loss", options.loss},
                {"seed", static_cast<double>(options.seed)}});
}

void Regression::print_epoch(int gpu) const {
  std::cout << str("[GPU", gpu, "] Epoch ", epoch(), " | Batchsize: ", batch_size(),
                   " | Steps: ", loader().steps_per_epoch(), '\n')
            << std::flush;
}

train::Measured Regression::loss(const Pairs& batch) {
  const Tensor out = engine_.forward(batch.x);
  return {options_.loss == "mse" ? mse_loss(out, batch.y) : cross_entropy(out, batch.y)};
}

void Regression::epoch_done(const train::Epoch& epoch, const train::Validation&) {
  if (log_)
    log_->log(epoch.number, {{"epoch", static_cast<double>(epoch.number)},
                             {"train_loss", epoch.loss},
                             {"pairs_per_second", static_cast<double>(kPairs) / epoch.seconds}});
  if (world_.is_first() && (epoch.number == first_epoch_ + 1 || epoch.number == options_.total_epochs))
    std::cerr << str("mean loss of epoch ", epoch.number - 1, ": ", epoch.loss, '\n');  // in one piece
}

void Regression::stopped(train::StopRule& rule) {
  if (world_.is_first())
    std::cerr << str("stopped by ", rule.reason(), " after step ", engine_.position().step, " of the run\n");
}

void Regression::ended(train::RunEnd end) {
  if (log_ && end == train::RunEnd::finished) log_->end(true);
}

}  // namespace weft::vista
