// SPDX-License-Identifier: Apache-2.0
// Any number of ranks trains as one process, for any sizes: each sample counts once.
#include <gmock/gmock.h>

#include <limits>

#include "core/autograd.h"
#include "core/ops/layers/losses.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"

namespace weft::train {
namespace {

constexpr int64_t kEpochs = 3, kStep = 12;  // samples of a step, which 1, 2, 3 and 4 ranks divide

Tensor values(int64_t samples, int64_t columns) {
  std::vector<float> v;
  for (int64_t i = 0; i < samples * columns; ++i) v.push_back(static_cast<float>((i * 29) % 17) / 17 - 0.4f);
  return Tensor::from(v, {samples, columns});
}

struct Net : nn::Module {
  nn::Linear first{5, 6}, last{6, 2};
  void fields(nn::Visitor& v) override {
    v("first", first);
    v("last", last);
  }
  Tensor forward(const Tensor& x) const override { return last(gelu(first(x))); }
};

struct Case {
  std::string strategy = "none";
  int64_t samples = 1;
  int64_t batches = 1;  ///< that a rank accumulates in a step
  int64_t step = 0;     ///< see data::SamplerOptions
  LossSum sum = LossSum::per_sample;
  double clip = 0;
};

std::shared_ptr<data::BatchQueue> make_loader(const Case& c, const dist::World& world) {
  const data::Sampler order(
      c.samples, {.seed = 5, .rank = world.rank(), .world = world.size(), .tail = data::Tail::joined, .step = c.step});
  return std::make_shared<data::BatchQueue>(
      data::rows_of({values(c.samples, 5), values(c.samples, 2)}), order,
      data::LoaderOptions{.batch_size = kStep / world.size() / c.batches, .workers = 0});
}

/// A run's results: losses of its epochs, samples that it counted, weights.
struct Left {
  std::vector<double> losses;
  std::vector<int64_t> samples;
  std::vector<float> weights;
};

class Regression final : public LoaderTask {
 public:
  Regression(const Case& c, const dist::World& world, std::shared_ptr<Signals> signals)
      : LoaderTask(make_loader(c, world)) {
    manual_seed(7);
    model_ = std::make_shared<Net>();
    if (c.strategy != "averaging") strategy_ = make_strategy({.kind = c.strategy, .min_num_params = 20}, model_, world);
    sgd_ = std::make_unique<optim::SGD>(strategy_ ? strategy_->parameters() : model_->parameters(),
                                        optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
    if (!strategy_) strategy_ = make_averaging_strategy(model_, *sgd_, world);
    engine_ = std::make_unique<Engine>(*this, Parts{world, *model_, *strategy_, *sgd_},
                                       EngineOptions{.epochs = kEpochs,
                                                     .accumulate = c.batches,
                                                     .clip_norm = c.clip,
                                                     .sum = c.sum,
                                                     .saves_epochs = false,
                                                     .quiet = true},
                                       std::make_shared<Interruption>(world, StopOptions{}, c.sum, std::move(signals)));
  }
  Left run() {
    engine_->run();
    for (const NamedTensor& entry : strategy_->model_state().tensors)
      for (const float value : entry.tensor.to_vector<float>()) left_.weights.push_back(value);
    return left_;
  }

 private:
  Measured loss(const std::vector<Tensor>& batch) override { return {mse_loss(engine_->forward(batch[0]), batch[1])}; }
  Validation validate(const Epoch& epoch) override {
    left_.losses.push_back(epoch.loss);
    left_.samples.push_back(epoch.samples);
    return {};
  }

  std::shared_ptr<Net> model_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<optim::SGD> sgd_;
  std::unique_ptr<Engine> engine_;
  Left left_;
};

Left on_ranks(int ranks, Case c) {
  if (ranks == 1) c.strategy = "none";
  Left left;
  const auto signals = std::make_shared<Signals>();
  dist::run_ranks(ranks, [&](const dist::ProcessGroupPtr& group) {
    const dist::World world = dist::World::around(group);
    Left own = Regression(c, world, signals).run();
    if (world.is_first()) left = std::move(own);
  });
  return left;
}

// Sums of at most kStep terms of order 1 in another order, handed on by at most 12 steps: a few roundings each. A
// sample left out or counted twice moves losses and weights by more than 1e-3.
constexpr double kRoundings = 12 * 8 * static_cast<double>(std::numeric_limits<float>::epsilon());

void expect_equal(const Left& got, const Left& want, int64_t samples) {
  EXPECT_THAT(got.samples, testing::Each(samples));
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], kRoundings) << "epoch " << i;
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (size_t i = 0; i < want.weights.size(); ++i) EXPECT_NEAR(got.weights[i], want.weights[i], kRoundings) << i;
}

TEST(EveryGrid, TrainsWhatOneProcessTrains) {
  for (const char* strategy : {"ddp", "fsdp", "averaging"})
    for (const int64_t samples : {1, 3, 12, 13, 25, 38})
      for (const LossSum sum : {LossSum::per_sample, LossSum::per_step}) {
        const Case c{.strategy = strategy, .samples = samples, .sum = sum};
        const Left one = on_ranks(1, c);
        for (const int ranks : {2, 3, 4}) {
          SCOPED_TRACE(str(strategy, ", ", samples, " samples on ", ranks, " ranks"));
          expect_equal(on_ranks(ranks, c), one, samples);
        }
      }
}

TEST(EveryGrid, AccumulatesWhatOneProcessAccumulates) {
  for (const char* strategy : {"ddp", "fsdp"})
    for (const int64_t samples : {5, 13, 31, 37, 41, 43})
      for (const LossSum sum : {LossSum::per_sample, LossSum::per_step}) {
        const Left one = on_ranks(1, {.samples = samples, .sum = sum});
        for (const auto& [ranks, batches] : {std::pair(1, 3), std::pair(2, 2), std::pair(3, 4), std::pair(4, 3)}) {
          SCOPED_TRACE(str(strategy, ", ", samples, " samples on ", ranks, " ranks, ", batches, " batches a step"));
          expect_equal(on_ranks(ranks, {.strategy = strategy, .samples = samples, .batches = batches, .sum = sum}), one,
                       samples);
        }
      }
}

TEST(EveryGrid, AStepNeedNotDivideByTheRanks) {
  for (const int64_t step : {4, 5, 7, 11})
    for (const LossSum sum : {LossSum::per_sample, LossSum::per_step}) {
      const Case c{.strategy = "ddp", .samples = 38, .step = step, .sum = sum, .clip = 0.5};
      const Left one = on_ranks(1, c);
      for (const int ranks : {2, 3, 4}) {
        SCOPED_TRACE(str("steps of ", step, " samples on ", ranks, " ranks"));
        expect_equal(on_ranks(ranks, c), one, c.samples);
      }
    }
}

}  // namespace
}  // namespace weft::train
