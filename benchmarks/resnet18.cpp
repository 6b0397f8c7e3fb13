// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/random.h"
#include "nn/models/resnet.h"
#include "optim/sgd.h"

// ResNet-18 with the CIFAR stem on a batch of 64 pictures 32x32: images per second, on the CPU.

namespace weft {
namespace {

constexpr int64_t kBatch = 64;

struct Setup {
  std::shared_ptr<nn::ResNet> model = nn::resnet18({.classes = 10, .stem = nn::Stem::cifar});
  Tensor x = normal({kBatch, 32, 32, 3});
  Tensor labels = Tensor::arange(kBatch);
  Setup() {
    for (int64_t n = 0; n < kBatch; ++n) labels.data<int64_t>()[n] = n % 10;
  }
};

void count_images(benchmark::State& state) {
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(kBatch * state.iterations()), benchmark::Counter::kIsRate);
}

void train(benchmark::State& state, DType precision) {
  Setup setup;
  optim::SGD sgd(setup.model->parameters(), {.lr = 0.01, .momentum = 0.9});
  if (precision == DType::bf16) sgd.flat()->keep_compute_copy(precision);
  for (auto _ : state) {
    Tensor loss;
    {
      const Autocast low(precision);
      loss = cross_entropy((*setup.model)(setup.x), setup.labels);
    }
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    benchmark::DoNotOptimize(loss.item());
  }
  count_images(state);
}

void infer(benchmark::State& state, DType precision) {
  Setup setup;
  setup.model->eval();
  const NoGrad no_grad;
  for (auto _ : state) {
    const Autocast low(precision);
    benchmark::DoNotOptimize((*setup.model)(setup.x).raw_data());
  }
  count_images(state);
}

BENCHMARK_CAPTURE(train, f32, DType::f32)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(4);
BENCHMARK_CAPTURE(train, bf16, DType::bf16)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(4);
BENCHMARK_CAPTURE(infer, f32, DType::f32)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2);
BENCHMARK_CAPTURE(infer, bf16, DType::bf16)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2);

}  // namespace
}  // namespace weft
