// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/autocast.h"
#include "core/ops/layers/losses.h"
#include "core/random.h"
#include "data/image_loader.h"
#include "nn/models/cifar_resnet.h"
#include "optim/optimizers.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::tests {
namespace {

struct Trained {
  std::vector<double> losses, change;  ///< change: of all weights over the run
};

constexpr int kSteps = 3;
constexpr int64_t kBatch = 8, kSide = 16;

/// Three steps of SGD on the same images from the same weights.
Trained train(Device device, DType storage, DType compute) {
  manual_seed(7);
  const auto model = nn::resnet8({.classes = 10});
  std::vector<double> before;
  for (const NamedTensor& p : model->parameters())
    for (const double value : p.tensor.to_vector<double>()) before.push_back(value);
  model->to(storage);
  model->to(device);
  optim::SGD sgd(model->parameters(), {.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
  Trained result;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> pixels(static_cast<size_t>(kBatch * kSide * kSide * 3));
    std::vector<int64_t> labels(static_cast<size_t>(kBatch));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::sin(0.7 * static_cast<double>(i * (i % 13 + 1)) + step);
    for (size_t n = 0; n < labels.size(); ++n)
      labels[n] = static_cast<int64_t>((3 * n + static_cast<size_t>(step)) % 10);
    const Tensor x = Tensor::from(pixels, {kBatch, kSide, kSide, 3}).to(storage).to(device);
    Tensor loss;
    {
      const Autocast low(compute);
      loss = cross_entropy((*model)(x), Tensor::from(labels, device));
    }
    result.losses.push_back(loss.item());
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  for (const NamedTensor& p : model->parameters())
    for (const double value : p.tensor.to_vector<double>()) result.change.push_back(value);
  for (size_t i = 0; i < before.size(); ++i) result.change[i] -= before[i];
  return result;
}

/// In each step each of the net's 8 layers rounds five times (weight, product, norm; forward and backward), and errors
/// of independent roundings add up like a random walk. A rounding to bf16 is uniform within half an epsilon: its
/// standard deviation is epsilon / 2 / sqrt(3). f32 sums run over up to kBatch kSide^2 places. The batch norms on a
/// batch of 8 amplify: c = 8.
Tolerance allowed(DType compute) {
  const double roundings = std::sqrt(5.0 * 8 * kSteps);
  const double sum = epsilon_of(DType::f32) * std::sqrt(static_cast<double>(kBatch * kSide * kSide));
  const double norm = 8 * roundings * (sum + (compute == DType::f32 ? 0 : epsilon_of(compute) / 2 / std::sqrt(3.0)));
  return {norm, 4 * norm};
}

class DevicesAgree : public testing::Test {
 protected:
  static const Trained& reference() {
    static const Trained result = train({}, DType::f64, DType::f32);
    return result;
  }
  static void expect_agreement(const Trained& got, DType compute) {
    EXPECT_TRUE(near(got.losses, reference().losses, allowed(compute)));
    EXPECT_TRUE(near(got.change, reference().change, allowed(compute)));
  }
};

TEST_F(DevicesAgree, CpuF32) { expect_agreement(train({}, DType::f32, DType::f32), DType::f32); }
TEST_F(DevicesAgree, CpuBf16) { expect_agreement(train({}, DType::f32, DType::bf16), DType::bf16); }

constexpr Device kGpu{DeviceKind::cuda, 0};

class OnGpu : public DevicesAgree {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  }
};

TEST_F(OnGpu, F32) { expect_agreement(train(kGpu, DType::f32, DType::f32), DType::f32); }
TEST_F(OnGpu, Bf16) { expect_agreement(train(kGpu, DType::f32, DType::bf16), DType::bf16); }

TEST_F(OnGpu, ThirtyStepsLowerTheLossThroughTheCudaKernels) {
  manual_seed(3);
  const auto set = data::open_dataset("shapes", data::Split::train);
  data::ImageLoader loader(set, data::Sampler(set->size()), data::make_pipeline("shapes", data::Split::train),
                           {.batch_size = 16, .device = kGpu});
  const auto model = nn::resnet8({.classes = 10});
  model->to(kGpu);
  optim::SGD sgd(model->parameters(), {.lr = 0.02, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    loader.start(0, step % 2);  // two batches, over and over: a net that learns at all learns them
    const auto batch = loader.next();
    const Tensor loss = cross_entropy((*model)(batch->images), batch->labels);
    losses.push_back(loss.item());
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  const double first = (losses[0] + losses[1]) / 2, last = (losses[28] + losses[29]) / 2;
  EXPECT_LT(last, 0.8 * first) << "first " << first << ", last " << last;
}

}  // namespace
}  // namespace weft::tests
