// SPDX-License-Identifier: Apache-2.0
#include "apps/vista/regression.h"

#include <algorithm>
#include <iostream>

#include "core/choose_device.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/losses.h"
#include "core/ops/random.h"
#include "core/random.h"

namespace weft::vista {
namespace {

constexpr int64_t kPairs = 2048, kInputs = 20;

}  // namespace

std::shared_ptr<data::LoaderEngine> make_pairs(const Options& options, const dist::World& world) {
  const data::Sampler order(kPairs, {.seed = static_cast<uint64_t>(options.seed),
                                     .rank = world.rank(),
                                     .world = world.size(),
                                     .tail = data::Tail::joined});
  manual_seed(static_cast<uint64_t>(options.seed));
  const Tensor x = uniform({kPairs, kInputs}, 0, 1, DType::f32, world.device());
  const Tensor y = uniform({kPairs, 1}, 0, 1, DType::f32, world.device());
  return std::make_shared<data::LoaderEngine>(
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

std::string describe(const Options& options, const data::LoaderEngine& pairs, Device device) {
  return str("Linear(20, 1) on ", weft::describe(device), ", ", options.total_epochs, " epochs of ",
             pairs.steps_per_epoch(), " steps of ", pairs.options().batch_size, " pairs, loss ", options.loss, ", lr ",
             options.lr);
}

Regression::Regression(const Options& options, const dist::World& world, std::shared_ptr<data::LoaderEngine> pairs,
                       std::shared_ptr<nn::Module> model, train::Strategy& strategy, int64_t resumed_epoch)
    : LoaderTask(std::move(pairs)),
      options_(options),
      world_(world),
      model_(std::move(model)),
      sgd_(strategy.parameters(), {.lr = options.lr}),
      interruption_(world, {}, train::LossSum::per_step),
      engine_(*this, {world, *model_, strategy, sgd_},
              {.epochs = options.total_epochs, .sum = train::LossSum::per_step, .saves_epochs = false, .quiet = true},
              interruption_),
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

train::Measured Regression::loss(const std::vector<Tensor>& batch) {
  const Tensor out = engine_.forward(batch[0]);
  return {options_.loss == "mse" ? mse_loss(out, batch[1]) : cross_entropy(out, batch[1])};
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
