// SPDX-License-Identifier: Apache-2.0
// What was first not finite is named: data, weights, activations or the gradient.
#include "train/not_finite.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/support/devices.h"
#include "tests/train/temporary_folder.h"
#include "train/loader_task.h"

namespace weft::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSamples = 48, kBatch = 4;

/// Pairs of which one has a value that is not finite.
struct Pairs {
  int64_t bad_sample = -1;
  double bad_value = NAN;
  bool in_target = false;

  struct Sample {
    Tensor input;
    float target;
    void fields(auto& v) { v("input", input), v("target", target); }
  };
  int64_t size() const { return kSamples; }
  std::string describe() const { return "pairs"; }
  Sample get(int64_t index) const {
    std::vector<float> input{0.1f * static_cast<float>(index % 7), 0.5f, -0.2f};
    auto target = static_cast<float>(index % 3);
    if (index == bad_sample) (in_target ? target : input[1]) = static_cast<float>(bad_value);
    return {Tensor::from(input), target};
  }
};

struct Run {
  Pairs pairs = {};
  int ranks = 1;
  std::string strategy = "none";
  Device device = {};
  int64_t accumulate = 1;
  double lr = 0.01;
  optim::LossScaler* scaler = nullptr;
  int64_t epochs = 1;
  int workers = 0;
  std::function<Tensor(const Tensor& y, const Tensor& target)> loss = mse;
  std::function<void(nn::Linear&)> prepare = {};

  static Tensor mse(const Tensor& y, const Tensor& target) { return mse_loss(y.flatten(), target); }
};

class Trainer final : public LoaderTask {
 public:
  Trainer(const Run& run, const dist::World& world, std::shared_ptr<Signals> signals)
      : LoaderTask(std::make_shared<data::Loader<data::Stacked>>(
            std::make_shared<const Pairs>(run.pairs),
            data::Sampler(kSamples,
                          {.shuffle = false, .rank = world.rank(), .world = world.size(), .tail = data::Tail::joined}),
            data::LoaderOptions{.batch_size = kBatch, .workers = run.workers, .device = run.device})),
        run_(run) {
    manual_seed(7);
    model_ = std::make_shared<nn::Linear>(3, 1);
    if (run.prepare) run.prepare(*model_);
    model_->to(run.device);
    if (run.strategy != "averaging")
      strategy_ = make_strategy({.kind = run.strategy, .min_num_params = 1}, model_, world);
    sgd_ = std::make_unique<optim::SGD>(strategy_ ? strategy_->parameters() : model_->parameters(),
                                        optim::SgdOptions{.lr = run.lr});
    if (!strategy_) strategy_ = make_averaging_strategy(model_, *sgd_, world);
    engine = std::make_unique<Engine>(
        *this, Parts{world, *model_, *strategy_, *sgd_, nullptr, run.scaler},
        EngineOptions{.epochs = run.epochs, .accumulate = run.accumulate, .saves_epochs = false, .quiet = true},
        std::make_shared<Interruption>(world, StopOptions{}, LossSum::per_sample, std::move(signals)));
  }
  Measured loss(const std::vector<Tensor>& batch) override { return {run_.loss(engine->forward(batch[0]), batch[1])}; }

 private:
  const Run& run_;
  std::shared_ptr<nn::Linear> model_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<optim::SGD> sgd_;

 public:
  std::unique_ptr<Engine> engine;
};

std::string error_of(const Run& run) {
  const auto signals = std::make_shared<Signals>();
  return test::error_of([&] {
    if (run.ranks == 1) {
      const dist::World world = dist::World::around(dist::make_process_group_alone(), run.device);
      Trainer(run, world, signals).engine->run();
    } else {
      dist::run_ranks(run.ranks, [&](const dist::ProcessGroupPtr& group) {
        const dist::World world = dist::World::around(group);
        Trainer(run, world, signals).engine->run();
      });
    }
  });
}

TEST(NotFinite, DataAreNamedBySampleAndPlace) {
  for (const DeviceKind kind : tests::test_devices())
    for (const int workers : {0, 2}) {
      const Device device{kind, 0};
      // On a GPU the loss is read after the steps that the sample has spoilt, too.
      EXPECT_THAT(error_of({.pairs = {.bad_sample = 0}, .device = device, .workers = workers}),
                  AllOf(HasSubstr("loss is not finite (nan) at epoch 1, step 1"),
                        HasSubstr("the data are not finite: nan in 'input' of sample 0 of pairs at [1]. Correct"),
                        Not(HasSubstr("weights"))));
      EXPECT_THAT(error_of({.pairs = {.bad_sample = 21, .bad_value = -INFINITY}, .device = device, .workers = workers}),
                  HasSubstr("-inf in 'input' of sample 21 of pairs at [1]"));
      EXPECT_THAT(error_of({.pairs = {.bad_sample = 21, .in_target = true}, .device = device, .workers = workers}),
                  HasSubstr("nan in 'target' of sample 21 of pairs. Correct"));
    }
}

TEST(NotFinite, DataOfAnyRankAndAnyBatchOfAStep) {
  for (const char* strategy : {"ddp", "fsdp", "averaging"})
    for (const int ranks : {2, 3})
      for (const int64_t sample : {0, 1, 22, 47}) {
        SCOPED_TRACE(str(strategy, ", ", ranks, " ranks, sample ", sample));
        EXPECT_THAT(error_of({.pairs = {.bad_sample = sample}, .ranks = ranks, .strategy = strategy}),
                    AllOf(HasSubstr(str("loss is not finite (nan) on rank ", sample % ranks, " at epoch 1, step ",
                                        sample / ranks / kBatch + 1, ": ")),
                          HasSubstr(str("nan in 'input' of sample ", sample, " of pairs at [1]"))));
      }
  for (const int64_t sample : {0, 5, 11, 40})
    EXPECT_THAT(error_of({.pairs = {.bad_sample = sample}, .accumulate = 3}),
                AllOf(HasSubstr(str("step ", sample / 12 + 1, ": ")), HasSubstr(str("of sample ", sample, " of"))));
}

TEST(NotFinite, TheRateIsBlamedOnlyWhereItsStepsDidIt) {
  const auto spoil = [](nn::Linear& model) {
    const NoGrad no_grad;
    model.bias.fill_(NAN);
  };
  EXPECT_THAT(
      error_of({.prepare = spoil}),
      AllOf(HasSubstr("step 1: the weights are not finite, first in 'bias', and were so before this first step"),
            Not(HasSubstr("--lr"))));
  // A huge rate: weights of 1e30 are finite, what comes of them is not.
  EXPECT_THAT(error_of({.lr = 1e30}), AllOf(HasSubstr("step 2: the data and the weights are finite (up to "),
                                            HasSubstr("; it begins in "), HasSubstr("Lower --lr")));
  EXPECT_THAT(error_of({.lr = 3e38, .loss = [](const Tensor& y, const Tensor& t) { return Run::mse(y, t) * 1e6; }}),
              AllOf(HasSubstr("step 2: the weights are not finite, first in "), HasSubstr("the update of step 1 made"),
                    HasSubstr("Lower --lr")));
}

TEST(NotFinite, AnOpIsNamedWhereDataAndWeightsAreFinite) {
  const auto overflowing = [](const Tensor& y, const Tensor& target) { return Run::mse(exp(y * 1e6 + 1e3), target); };
  EXPECT_THAT(error_of({.loss = overflowing}),
              AllOf(HasSubstr("loss is not finite (inf)"), HasSubstr("; it begins in "), Not(HasSubstr("--lr"))));
  EXPECT_THAT(error_of({.ranks = 2, .strategy = "ddp", .loss = overflowing}), HasSubstr("; it begins in "));
  EXPECT_THAT(error_of({.ranks = 2, .strategy = "fsdp", .loss = overflowing}),
              HasSubstr("One rank, or --parallel ddp for a loss, can tell more"));
}

TEST(NotFinite, AGradientOfAFiniteLoss) {
  const auto root = [](const Tensor& y, const Tensor& target) { return sqrt(Run::mse(y * 0, target * 0)); };
  EXPECT_THAT(
      error_of({.loss = root}),
      AllOf(HasSubstr("gradient is not finite, though the loss is (0) at epoch 1, step 1: the data and the weights "
                      "are finite ("),
            HasSubstr("the gradient is not, first in 'weight'; it begins in "), Not(HasSubstr("--lr"))));
  for (const char* strategy : {"ddp", "fsdp", "averaging"})
    EXPECT_THAT(error_of({.ranks = 2, .strategy = strategy, .loss = root}),
                AllOf(HasSubstr("gradient is not finite, though the loss is (0)"), HasSubstr(", first in 'weight'")))
        << strategy;
}

TEST(NotFinite, AGradientThatNoLossScaleSaves) {
  optim::LossScaler scaler;
  const auto root = [](const Tensor& y, const Tensor& target) { return sqrt(Run::mse(y * 0, target * 0)); };
  EXPECT_THAT(error_of({.scaler = &scaler, .epochs = 5, .loss = root}),
              HasSubstr("gradient is not finite at step 27, even with a loss scale of 0.0009765625: "));
}

TEST(NotFinite, TheFirstOfSeveralValues) {
  const auto name = [](size_t number, const Shape& place) { return str(number, place); };
  const Tensor fine = Tensor::zeros({2, 3}), counts = Tensor::zeros({2}, DType::i64);
  Tensor bad = Tensor::zeros({2, 3});
  EXPECT_EQ(not_finite_in({fine, counts}, name), "");
  bad.select(0, 1).fill_(INFINITY);
  EXPECT_EQ(not_finite_in({fine, counts, bad}, name), "inf in 2[1,0], the first of 3 such values");
  EXPECT_EQ(not_finite_in({Tensor::full({4}, 1e308, DType::f64)}, name), "") << "the sum alone is too large";
}

}  // namespace
}  // namespace weft::train
