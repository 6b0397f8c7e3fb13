// SPDX-License-Identifier: Apache-2.0
#include "apps/vista/regression.h"

#include <algorithm>
#include <iostream>
#include <numeric>

#include "apps/support/device.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/index_select.h"
#include "core/ops/mse_loss.h"
#include "core/ops/random.h"
#include "core/random.h"

namespace weft::vista {
namespace {

constexpr int64_t kPairs = 2048, kInputs = 20;

}  // namespace

Pairs::Pairs(const Options& options, Device device, int rank, int world)
    : sampler_(kPairs, {.seed = static_cast<uint64_t>(options.seed), .rank = rank, .world = world}),
      batch_size_(options.batch_size) {
  manual_seed(static_cast<uint64_t>(options.seed));
  x_ = uniform({kPairs, kInputs}, 0, 1, DType::f32, device);
  y_ = uniform({kPairs, 1}, 0, 1, DType::f32, device);
}

int64_t Pairs::steps() const { return (sampler_.size() - 1) / batch_size_ + 1; }

int64_t Pairs::first_batch() const { return std::min(batch_size_, sampler_.size()); }

Pairs::Batch Pairs::batch(int64_t epoch, int64_t step) const {
  std::vector<int64_t> places;
  for (int64_t i = step * batch_size_; i < std::min((step + 1) * batch_size_, sampler_.size()); ++i)
    places.push_back(sampler_.index(epoch, i));
  const Tensor rows = Tensor::from(places, x_.device());
  return {index_select(x_, 0, rows), index_select(y_, 0, rows)};
}

std::shared_ptr<nn::Linear> make_model(const Options& options, Device device) {
  manual_seed(static_cast<uint64_t>(options.seed) + 1);  // not the numbers of the pairs
  auto model = std::make_shared<nn::Linear>(kInputs, 1);
  model->to(device);
  return model;
}

void print_epoch(int gpu, int64_t epoch, const Pairs& pairs) {
  std::cout << str("[GPU", gpu, "] Epoch ", epoch, " | Batchsize: ", pairs.first_batch(), " | Steps: ", pairs.steps(),
                   '\n')
            << std::flush;
}

double train_epoch(const Options& options, const Pairs& pairs, int64_t epoch,
                   const std::function<Tensor(const Tensor&)>& forward, optim::SGD& sgd) {
  Tensor sum = Tensor::zeros({}, DType::f64, pairs.batch(epoch, 0).x.device());
  for (int64_t step = 0; step < pairs.steps(); ++step) {
    const Pairs::Batch batch = pairs.batch(epoch, step);
    const Tensor out = forward(batch.x);
    const Tensor loss = options.loss == "mse" ? mse_loss(out, batch.y) : cross_entropy(out, batch.y);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    sum.add_(loss.detach().to(DType::f64));
  }
  return sum.item() / static_cast<double>(pairs.steps());
}

LossLog::LossLog(const Options& o, int ranks, int64_t resumed_epoch) : log_(o.log_dir, resumed_epoch) {
  log_.config({{"total_epochs", static_cast<double>(o.total_epochs)},
               {"batch_size", static_cast<double>(o.batch_size)},
               {"world_size", static_cast<double>(ranks)},
               {"lr", o.lr},
               {"loss", o.loss},
               {"seed", static_cast<double>(o.seed)}});
}

void LossLog::log(int64_t epochs_run, double loss, double seconds) {
  log_.log(epochs_run, {{"epoch", static_cast<double>(epochs_run)},
                        {"train_loss", loss},
                        {"pairs_per_second", static_cast<double>(kPairs) / seconds}});
}

std::string describe(const Options& options, const Pairs& pairs, Device device) {
  return str("Linear(20, 1) on ", support::describe(device), ", ", options.total_epochs, " epochs of ", pairs.steps(),
             " steps of ", pairs.first_batch(), " pairs, loss ", options.loss, ", lr ", options.lr);
}

}  // namespace weft::vista
