// SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <optional>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/flat_parameters.h"
#include "core/ops/layers/losses.h"
#include "core/random.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "optim/ema.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "tests/support/devices.h"
#include "tests/train_image/program.h"

// Steps that are replayed give the bits of steps that are run op by op: weights, buffers, optimizer, random numbers.

namespace weft::tests {
namespace {

using testing::HasSubstr;

struct Recipe {
  const char* name;
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<NamedTensor>&)> make_optimizer;
  DType precision = DType::f32;
  double clip_norm = 0;
  int micro_batches = 1;  // gradients are summed over these
};

constexpr Device kGpu{DeviceKind::cuda, 0};
constexpr int kSteps = 7, kSmallStep = 4;  // the step whose batch is smaller: run eagerly in between
constexpr int64_t kBatch = 8, kSide = 6;

std::shared_ptr<nn::Sequential> make_net() {
  return nn::sequential(std::make_shared<nn::Conv2d>(3, 8, Size2d{3, 3}, Conv2dOptions{.padding = {1, 1}},
                                                     nn::Conv2dWeights{.bias = false}),
                        std::make_shared<nn::BatchNorm2d>(8), std::make_shared<nn::ReLU>(),
                        std::make_shared<nn::Dropout>(0.2), std::make_shared<nn::Flatten>(),
                        std::make_shared<nn::Linear>(8 * kSide * kSide, 10));
}

Tensor images(int step, int64_t count, Device device) {
  std::vector<float> values(static_cast<size_t>(count * kSide * kSide * 3));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i * (i % 13 + 1)) + step));
  return Tensor::from(values, {count, kSide, kSide, 3}, device);
}

Tensor labels(int step, int64_t count, Device device) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<int64_t>((3 * n + static_cast<size_t>(step)) % 10);
  return Tensor::from(values, device);
}

/// Everything that training leaves behind, as one list of numbers.
std::vector<double> train(const Recipe& recipe, Device device, bool graphed) {
  manual_seed(5);
  const auto net = make_net();
  net->to(device);
  const auto optimizer = recipe.make_optimizer(net->parameters());
  if (recipe.precision == DType::bf16) optimizer->flat()->keep_compute_copy(DType::bf16);
  optim::Scheduler scheduler(*optimizer, std::make_shared<optim::CosineSchedule>(kSteps));
  optim::Ema ema(optimizer->flat(), net->buffers(), {.decay = 0.9, .warmup = true});
  const Tensor loss_sum = Tensor::zeros({}, DType::f32, device);

  const auto step = [&](const std::vector<Tensor>& in) {
    optimizer->zero_grad();
    for (int micro = 0; micro < recipe.micro_batches; ++micro) {
      const int64_t part = in[0].size(0) / recipe.micro_batches;
      const Tensor x = in[0].slice(0, micro * part, part), y = in[1].slice(0, micro * part, part);
      Tensor loss;
      {
        const Autocast low(recipe.precision);
        loss = cross_entropy((*net)(x), y, {.label_smoothing = 0.1});
      }
      loss.backward();
      const NoGrad no_grad;
      loss_sum.add_(loss.detach());
    }
    if (recipe.clip_norm > 0) clip_grad_norm(net->parameters(), recipe.clip_norm);
    optimizer->step();
    ema.update();
  };
  std::optional<GraphedFunction> graph;
  if (graphed) graph.emplace(device, step);
  for (int i = 0; i < kSteps; ++i) {
    const int64_t count = i == kSmallStep ? kBatch / 2 : kBatch;
    const std::vector<Tensor> inputs{images(i, count, device), labels(i, count, device)};
    graphed ? (*graph)(inputs) : step(inputs);
    scheduler.step();
  }
  EXPECT_EQ(graphed && graph->is_captured(), graphed);

  std::vector<double> left{loss_sum.item(), static_cast<double>(generator(device).offset)};
  const auto add = [&](const StateDict& dict) {
    for (const NamedTensor& named : dict.tensors)
      for (const double value : named.tensor.to_vector<double>()) left.push_back(value);
    for (const NamedScalar& named : dict.scalars) left.push_back(named.value);
  };
  add(net->state_dict());
  add(optimizer->state_dict());
  add(ema.state_dict());
  add(ema.buffers());
  if (optimizer->flat()->compute_copy().defined())
    for (const double value : optimizer->flat()->compute_copy().to_vector<double>()) left.push_back(value);
  return left;
}

const std::vector<Recipe>& recipes() {
  using Parameters = std::vector<NamedTensor>;
  static const auto sgd = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::SGD>(
        p, optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
  };
  static const auto adamw = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.01});
  };
  static const auto two_groups = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::AdamW>(optim::without_decay_on_vectors(p), optim::AdamWOptions{.lr = 0.01});
  };
  static const auto adadelta = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::Adadelta>(p, optim::AdadeltaOptions{});
  };
  static const auto amsgrad = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.01, .amsgrad = true});
  };
  static const auto lars = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::LARS>(optim::without_decay_on_vectors(p), optim::LarsOptions{.trust = 0.02});
  };
  static const auto lamb = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::LAMB>(optim::without_decay_on_vectors(p), optim::LambOptions{.lr = 0.01});
  };
  static const std::vector<Recipe> all{{"Sgd", sgd},
                                       {"AdamWAmsgrad", amsgrad},
                                       {"Lars", lars},
                                       {"LambBf16", lamb, DType::bf16},
                                       {"AdamW", adamw},
                                       {"AdamWInTwoGroups", two_groups},
                                       {"Adadelta", adadelta},
                                       {"SgdClipped", sgd, DType::f32, 0.5},
                                       {"AdamWBf16Clipped", adamw, DType::bf16, 0.5},
                                       {"SgdAccumulating", sgd, DType::f32, 0, 2}};
  return all;
}

class GraphedTraining : public testing::TestWithParam<Recipe> {};
INSTANTIATE_TEST_SUITE_P(Recipes, GraphedTraining, testing::ValuesIn(recipes()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(GraphedTraining, GivesTheBitsOfEagerTraining) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const std::vector<double> eager = train(GetParam(), kGpu, false), replayed = train(GetParam(), kGpu, true);
  EXPECT_TRUE(std::isfinite(eager[0]));
  EXPECT_EQ(eager, replayed);
}

TEST(GraphedTrainingErrors, RatesInsideACaptureAreRefused) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const auto net = make_net();
  net->to(kGpu);
  optim::SGD sgd(net->parameters(), {.lr = 0.1});
  Graph graph;
  try {
    graph.capture(kGpu, [&] { sgd.set_lr(0.2); });
    ADD_FAILURE() << "the rate would be frozen";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "set_lr: needs the host, while a graph is captured on cuda:0. Do it before capture() or after "
                 "replay()");
  }
}

TEST(GraphedTrainingErrors, AReplayAfterFreezingOrThawingIsRefused) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  nn::Linear net(3, 2);
  net.to(kGpu);
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  const Tensor x = Tensor::ones({4, 3}, DType::f32, kGpu), labels = Tensor::zeros({4}, DType::i64, kGpu);
  const auto step = [&] {
    sgd.zero_grad();
    cross_entropy(net(x), labels).backward();
    sgd.step();
  };
  step();
  Graph graph;
  graph.capture(kGpu, step);
  graph.replay();
  EXPECT_EQ(sgd.steps(), 2);
  net.bias.requires_grad_(false);
  const std::vector<float> before = net.bias.to_vector<float>();
  try {
    graph.replay();
    ADD_FAILURE() << "the bias would move";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "SGD: parameter 'bias' was frozen after the step had been captured. Capture it anew");
  }
  EXPECT_EQ(net.bias.to_vector<float>(), before);
}

const std::string kRun =
    "--data random:88x16x16x3 --model resnet8 --batch-size 16 --epochs 2 --seed 3 --device " + gpu_device() + ' ';

class TrainImageGraph : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  }
};

TEST_F(TrainImageGraph, TrainsToTheSameBits) {
  const TemporaryFolder folder;
  const auto weights = [&](const std::string& name, const std::string& more) {
    const Outcome run = train_image(kRun + "--out " + (folder / name) + " --export " + (folder / "w") + ' ' + more);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return read_text(folder / "w");
  };
  const std::string common = "--mixup 0.2 --clip-norm 1 --precision bf16 --optimizer adamw --lr 0.01 ";
  const std::string eager = weights("off", common + "--graph off");
  EXPECT_EQ(weights("on", common + "--graph on"), eager);
  // Stopped between two captures' worth of steps, and gone on with.
  const Outcome first = train_image(kRun + "--out " + (folder / "cut") + " --max-steps 5 --graph on " + common);
  EXPECT_THAT(first.output, HasSubstr("stopped by --max-steps"));
  EXPECT_EQ(weights("cut", common + "--graph on --resume auto"), eager);
}

TEST_F(TrainImageGraph, ImagesOfTheHostAndOfTheDeviceTrainToTheSameBits) {
  const TemporaryFolder folder;
  const auto weights = [&](const std::string& more) {
    const Outcome run = train_image(kRun + "--overwrite --augment cifar --mixup 0.2 --cutmix 1 --export " +
                                    (folder / "w") + " --out " + (folder / "run") + ' ' + more);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return read_text(folder / "w");
  };
  const std::string automatic = weights("");
  EXPECT_NE(automatic, "");
  EXPECT_EQ(weights("--transform-on device"), automatic);
  EXPECT_EQ(weights("--transform-on host"), automatic);
  EXPECT_NE(weights("--transform-on host --cutmix 0.5"), automatic);
}

TEST_F(TrainImageGraph, RefusesChecksOfEachKernel) {
  const TemporaryFolder folder;
  const Outcome watched =
      shell("WEFT_CHECK_NAN=1 " + std::string(TRAIN_IMAGE) + ' ' + kRun + "--out " + (folder / "run") + " --graph on");
  EXPECT_EQ(watched.exit_code, 1);
  EXPECT_THAT(watched.output, HasSubstr("graph: WEFT_SYNC=1 and WEFT_CHECK_NAN=1 look at each kernel"));
}

}  // namespace
}  // namespace weft::tests
