// SPDX-License-Identifier: Apache-2.0
#include "train/engine.h"

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "core/autograd.h"
#include "core/ops/gather.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/random.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/support/error_text.h"
#include "tests/train/temporary_folder.h"
#include "train/record/run_folder.h"
#include "train/training_main.h"

namespace weft::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A line fitted to 37 points, in batches of 8: 5 steps an epoch, the last one of 5 points.
class Line : public Task {
 public:
  struct Options {
    EngineOptions engine = {};
    StopOptions stop = {};
    int64_t batch = 8;
  };

  explicit Line(const Options& options)
      : batch_(options.batch),
        engine(*this, {world, *model, *strategy, sgd}, options.engine,
               std::make_shared<Interruption>(world, options.stop, options.engine.sum)) {}

  int64_t samples() const override { return 37; }
  int64_t batch_size() const override { return batch_; }
  void start_epoch(int64_t, int64_t batch) override { next_ = batch * batch_; }
  std::optional<Batch> next() override {
    std::vector<int64_t> rows;
    for (; next_ < samples() && static_cast<int64_t>(rows.size()) < batch_; ++next_) rows.push_back(next_);
    if (rows.empty()) return std::nullopt;
    const Tensor at = Tensor::from(rows);
    return Batch{{index_select(x_, 0, at), index_select(y_, 0, at)}, static_cast<int64_t>(rows.size())};
  }
  Measured loss(const std::vector<Tensor>& batch) override { return {mse_loss(engine.forward(batch[0]), batch[1])}; }
  void after_step() override {
    if (engine.position().step == raise_after) std::raise(SIGTERM);
  }
  void log_steps(const StepSums::Totals& totals) override { logged.push_back(totals.steps); }
  Validation validate(const Epoch& epoch) override {
    losses.push_back(epoch.loss);
    calls.push_back("validate");
    return {scores.empty() ? std::nan("") : scores[static_cast<size_t>(epoch.number - 1)]};
  }
  void epoch_done(const Epoch&, const Validation&) override { calls.push_back("done"); }
  void epoch_saved(const Epoch&, const Validation&) override { calls.push_back("saved"); }
  std::string save() override {
    calls.push_back("save");
    saved = {};
    engine.put(saved);
    return "here";
  }
  void save_best() override { calls.push_back("best"); }
  void stopped(StopRule& rule) override { calls.push_back("stopped by " + rule.reason()); }

  std::vector<float> weights() { return model->weight.to_vector<float>(); }

 private:
  static std::shared_ptr<nn::Linear> make_model() {
    manual_seed(7);
    return std::make_shared<nn::Linear>(3, 1);
  }
  static Tensor values(int64_t columns) {
    std::vector<float> v;
    for (int64_t i = 0; i < 37 * columns; ++i) v.push_back(static_cast<float>((i * 29) % 17) / 17 - 0.4f);
    return Tensor::from(v).reshape({37, columns});
  }

  Tensor x_ = values(3), y_ = values(1);
  int64_t batch_, next_ = 0;

 public:
  const dist::World world = dist::World::around(dist::make_process_group_alone());
  std::shared_ptr<nn::Linear> model = make_model();
  std::unique_ptr<Strategy> strategy = make_strategy({}, model, world);
  optim::SGD sgd{strategy->parameters(), {.lr = 0.05, .momentum = 0.9}};
  int64_t raise_after = -1;
  std::vector<double> scores, losses;
  std::vector<int64_t> logged;
  std::vector<std::string> calls;
  Checkpoint saved;

  Engine engine;
};

TEST(Engine, PrecisionIsOneOfItsWords) {
  EXPECT_EQ(precision_named("none"), DType::f32);
  EXPECT_EQ(precision_named("fp8"), DType::bf16);
  EXPECT_EQ(precision_named("fp16"), DType::f16);
  EXPECT_EQ(error_text([] { precision_named("fp32"); }),
            "precision: expected f32, none, bf16, fp8 or fp16, got 'fp32'");
}

TEST(Engine, KeepsACopyOfTheWeightsInBf16Alone) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Line line({.engine = {.precision = dtype, .quiet = true}});
    EXPECT_EQ(line.sgd.flat()->compute_copy().defined(), dtype == DType::bf16) << dtype;
  }
}

TEST(Engine, AFinishedRunKeepsItsSummary) {
  const test::TemporaryFolder path;
  const RunFolder folder(path / "run");
  folder.write_summary({{"finished", true}});
  Line line({.engine = {.epochs = 1, .quiet = true}});
  EXPECT_EQ(line.engine.run_in(&folder), RunEnd::finished);
  EXPECT_FALSE(std::filesystem::exists(folder.file("summary.json")));
  folder.write_summary({{"finished", true}});
  EXPECT_EQ(line.engine.run_in(&folder), RunEnd::finished);
  EXPECT_TRUE(std::filesystem::exists(folder.file("summary.json")));
}

TEST(Engine, CallsItsTaskInOrder) {
  Line line({.engine = {.epochs = 2, .quiet = true}});
  line.scores = {0.5, 0.4};
  EXPECT_EQ(line.engine.run(), RunEnd::finished);
  EXPECT_THAT(line.calls,
              ElementsAre("validate", "done", "best", "save", "saved", "validate", "done", "save", "saved"));
  EXPECT_EQ(line.engine.position().step, 10);
  EXPECT_EQ(line.engine.position().best_epoch, 1);
  EXPECT_EQ(line.engine.position().best_score, 0.5);
  EXPECT_EQ(line.engine.run(), RunEnd::finished) << "nothing is left to do";
  EXPECT_EQ(line.calls.size(), 9u);
}

TEST(Engine, GoesOnFromACheckpointBitForBit) {
  std::vector<float> weights;
  std::vector<double> losses;
  {
    Line whole({.engine = {.epochs = 3, .quiet = true}});
    whole.engine.run();
    weights = whole.weights();
    losses = whole.losses;
  }
  Checkpoint half;
  {
    Line begun({.engine = {.epochs = 3, .quiet = true}, .stop = {.max_steps = 7}});
    EXPECT_EQ(begun.engine.run(), RunEnd::stopped);
    EXPECT_EQ(begun.calls.back(), "stopped by --max-steps");
    half = begun.saved;
    for (auto& [name, part] : half.parts)
      for (NamedTensor& entry : part.tensors) entry.tensor = entry.tensor.clone();  // a file would hold copies
  }
  Line rest({.engine = {.epochs = 3, .quiet = true}});
  rest.engine.take("half", half);
  EXPECT_EQ(rest.engine.position().step_in_epoch, 2);
  EXPECT_EQ(rest.engine.run(), RunEnd::finished);
  EXPECT_EQ(rest.weights(), weights);
  EXPECT_THAT(rest.losses, ElementsAre(losses[1], losses[2]));
}

TEST(Engine, ACheckpointOfAnotherBatchSizeIsRefused) {
  Checkpoint saved;
  {
    Line line({.engine = {.quiet = true}});
    line.engine.run();
    saved = line.saved;
  }
  Line other({.engine = {.quiet = true}, .batch = 4});
  EXPECT_THAT(test::error_of([&] { other.engine.take("file", saved); }), HasSubstr("--batch-size 8, this run has 4"));
}

TEST(Engine, ASignalStopsAfterItsStepWithOneCheckpoint) {
  Line line({.engine = {.epochs = 2, .quiet = true}});
  line.raise_after = 3;
  const RunEnd end = line.engine.run();
  EXPECT_EQ(end, RunEnd::requeue);
  EXPECT_EQ(exit_code(end), 75);
  EXPECT_EQ(line.engine.position().step, 3);
  EXPECT_THAT(line.calls, ElementsAre("save", "stopped by SIGTERM"));
}

TEST(Engine, ASignalInAnEpochsLastStepLeavesTheEpochWhole) {
  Line line({.engine = {.epochs = 2, .quiet = true}});
  line.raise_after = 5;
  EXPECT_EQ(line.engine.run(), RunEnd::requeue);
  EXPECT_EQ(line.engine.position().epoch, 1);
  EXPECT_THAT(line.calls, ElementsAre("validate", "done", "save", "saved", "save", "stopped by SIGTERM"));
}

// Work after the last epoch, such as an export, may take long; the next attempt does it.
TEST(EngineDeathTest, ASignalAfterTheLastEpochEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(training_main("train",
                                       [] {
                                         Line line({.engine = {.quiet = true}});
                                         const RunEnd end = line.engine.run();
                                         std::raise(SIGTERM);
                                         return exit_code(end);
                                       })),
              testing::ExitedWithCode(kExitRequeue), "SIGTERM outside of the training loop");
}

TEST(Engine, EndsAtItsLastStepWithinAnEpoch) {
  Line line({.engine = {.epochs = 2, .last_step = 7, .saves_epochs = false, .quiet = true}});
  EXPECT_EQ(line.engine.run(), RunEnd::finished);
  EXPECT_EQ(line.engine.position().step, 7);
  EXPECT_EQ(line.losses.size(), 2u);
}

/// The weights after two epochs.
std::vector<float> weights_after(const Line::Options& options) {
  Line line(options);
  line.engine.run();
  return line.weights();
}

TEST(Engine, AccumulatedBatchesWeighByTheirSamples) {
  const std::vector<float> whole = weights_after({.engine = {.epochs = 2, .quiet = true}});
  // Two batches of 4 a step, in the last one 4 points and 1.
  const std::vector<float> halves =
      weights_after({.engine = {.epochs = 2, .accumulate = 2, .quiet = true}, .batch = 4});
  ASSERT_EQ(halves.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(halves[i], whole[i], 1e-6);  // sums in another order
  EXPECT_NE(weights_after({.engine = {.epochs = 2, .quiet = true}, .batch = 4}), whole);
}

TEST(Engine, LogsEveryFewSteps) {
  Line line({.engine = {.epochs = 2, .log_interval = 4, .quiet = true}});
  line.engine.run();
  EXPECT_THAT(line.logged, ElementsAre(4, 4));
}

TEST(Engine, SumsLossesBySamplesOrBySteps) {
  double by_sample = 0, by_step = 0;
  for (const LossSum sum : {LossSum::per_sample, LossSum::per_step}) {
    Line line({.engine = {.sum = sum, .quiet = true}});
    line.engine.run();
    (sum == LossSum::per_sample ? by_sample : by_step) = line.losses.front();
  }
  EXPECT_GT(by_sample, 0);
  EXPECT_NE(by_sample, by_step) << "the last step has fewer samples";
  EXPECT_NEAR(by_sample, by_step, 0.2 * by_step);
}

// A GPU's are read every 20 steps, and where a run stops.
TEST(StepSums, AreTheSameHoweverOftenTheyAreRead) {
  const dist::World world = dist::World::around(dist::make_process_group_alone());
  Signals signals;
  const std::vector<float> losses = uniform({200}).to_vector<float>();
  for (const LossSum kind : {LossSum::per_sample, LossSum::per_step}) {
    StepSums rarely(world, signals, kind), often(world, signals, kind);
    double sum = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
      for (StepSums* const sums : {&rarely, &often}) {
        sums->add(Tensor::full({}, losses[i]), 16);
        sums->count(16, 0);
      }
      if (i % 3 == 0) sum += often.read().loss;
    }
    EXPECT_EQ(rarely.read().loss, sum + often.read().loss);
  }
}

TEST(Engine, ALossThatIsNotFiniteNamesItsStep) {
  Line line({.engine = {.quiet = true}});
  {
    const NoGrad no_grad;
    line.model->weight.fill_(INFINITY);
  }
  EXPECT_THAT(test::error_of([&] { line.engine.run(); }),
              HasSubstr("at epoch 1, step 1: the weights are not finite, first in 'weight'"));
}

TEST(Engine, AGraphOnTheCpuIsRefused) {
  EXPECT_THAT(test::error_of([] { Line line({.engine = {.graph = "on", .quiet = true}}); }),
              HasSubstr("--graph on: expected --device cuda, got cpu"));
}

}  // namespace
}  // namespace weft::train
