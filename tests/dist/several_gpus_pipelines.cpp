// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/stream.h"
#include "dist/pipeline/pipeline.h"
#include "tests/dist/several_gpus.h"
#include "tests/support/compare.h"
#include "tests/support/error_text.h"

// Pipelines over nccl, several stages and GPUs, beside one process.

namespace weft::dist::testing {
namespace {

/// Layers in a row.
template <class Layer>
struct Row : nn::Module, nn::Staged {
  std::vector<std::shared_ptr<nn::Module>> factors;
  template <class... Sizes>
  explicit Row(int count, Sizes... sizes) {
    for (int i = 0; i < count; ++i) factors.push_back(std::make_shared<Layer>(sizes..., i));
  }
  Tensor forward(const Tensor& x) const override { return run({0, layers()}, x, x); }
  int64_t layers() const override { return static_cast<int64_t>(factors.size()); }
  Tensor run(nn::LayerRange range, const Tensor& x, const Tensor&) const override {
    Tensor y = x;
    for (int64_t i = range.first; i < range.last; ++i) y = (*factors[static_cast<size_t>(i)])(y);
    return y;
  }
  bool uses(nn::LayerRange range, const std::string& parameter) const override {
    return range.has(*nn::layer_of(parameter, "factors"));
  }
  void fields(nn::Visitor& v) override { v("factors", factors); }
};
using Factors = Row<Factor>;

/// Losses of the micro-batches, and the gradients by name.
struct PipelineResult {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> gradients;
};

std::vector<Tensor> micro_batches(int64_t count, int64_t width, Device device) {
  std::vector<Tensor> inputs;
  for (int64_t m = 0; m < count; ++m)
    inputs.push_back(Tensor::full({1, width}, 1 + 0.25 * static_cast<double>(m), DType::f32, device));
  return inputs;
}

void add_gradients(PipelineResult& trained, const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& p : parameters) trained.gradients[p.name] = p.tensor.grad().to_vector<double>();
}

PipelineResult train_alone(const PipelineSize& size, int64_t width) {
  const auto model = std::make_shared<Factors>(size.stages * size.chunks, width);
  model->to(gpu(0));
  PipelineResult trained;
  for (const Tensor& x : micro_batches(size.micro_batches, width, gpu(0))) {
    const Tensor loss = mean((*model)(x));
    loss.backward();
    trained.losses.push_back(loss.item());
  }
  add_gradients(trained, model->parameters());
  return trained;
}

PipelineResult train_in_pipeline(const PipelineSize& size, int64_t width) {
  PipelineResult trained;
  std::mutex mutex;
  run_on_gpus(size.stages, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    Pipeline pipeline(std::make_shared<Factors>(size.stages * size.chunks, width), Grid(world, 1, size.stages),
                      {.chunks = size.chunks, .device = device});
    const std::vector<Tensor> inputs = micro_batches(size.micro_batches, width, device);
    std::vector<Tensor> losses;
    pipeline.run({inputs, size.micro_batches, DType::f32, [&](size_t i) {
                    losses.push_back(mean(pipeline(inputs[i])));
                    return losses.back();
                  }});
    weft::synchronize(device);
    const std::lock_guard lock(mutex);
    for (const Tensor& loss : losses) trained.losses.push_back(loss.item());
    add_gradients(trained, pipeline.parameters());
  });
  return trained;
}

void expect_equal_alone(const PipelineSize& size, int64_t width) {
  SCOPED_TRACE(str(size.stages, " stages, ", size.chunks, " chunks, ", size.micro_batches, " micro-batches of ",
                   4 * width, " bytes"));
  const PipelineResult one = train_alone(size, width), got = train_in_pipeline(size, width);
  EXPECT_EQ(got.losses, one.losses) << "the same products in the same order";
  ASSERT_EQ(got.gradients.size(), one.gradients.size());
  // Sums of the micro-batches, each of which is a product of `layers` factors.
  const double allowed = 1.2e-7 * static_cast<double>(size.micro_batches + size.stages * size.chunks);
  for (const auto& [name, want] : one.gradients)
    EXPECT_TRUE(tests::near(got.gradients.at(name), want, tests::Tolerance{allowed, allowed})) << name;
}

// A send of NCCL ends when it is received. A stage whose computation waited for its sends would wait for the next one,
// which waits for this stage.
TEST_F(SeveralGpus, APipelineOnNcclEqualsOneProcess) {
  require(4);
  if (IsSkipped()) return;
  for (const PipelineSize& size : {PipelineSize{2, 2, 4}, {2, 1, 5}, {4, 2, 6}, {3, 4, 3}}) {
    expect_equal_alone(size, 256);
    if (HasFailure()) return;  // each dead-lock takes the deadline
  }
  expect_equal_alone({2, 2, 4}, 1 << 18);  // above any buffer between two ranks
}

class EveryPipeline : public SeveralGpus, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, EveryPipeline, ::testing::Range(2, 9));

TEST_P(EveryPipeline, OnNcclEqualsOneProcess) {
  const int P = GetParam();
  require(P);
  if (IsSkipped()) return;
  for (int V = 1; V <= 4; ++V)
    for (const int64_t M : {int64_t{4}, int64_t{P} + 1}) {
      expect_equal_alone({P, V, M}, 256);
      if (HasFailure()) return;  // each dead-lock takes the deadline
    }
}

/// Multiplies the first columns, in place, and passes the rest on without a kernel.
struct FirstColumns : nn::Module {
  static constexpr int64_t kColumns = 8;
  Tensor weight;
  explicit FirstColumns(int layer) : weight(row_of_weights(kColumns, layer)) {}
  static void multiply(const Tensor& x, const Tensor& factors) {
    const Tensor first = x.slice(1, 0, kColumns);
    first.copy_(first * factors);
  }
  Tensor forward(const Tensor& x) const override {
    const Tensor w = weight.detach(), y = x.detach();
    Tensor before;
    {
      const NoGrad no_grad;
      before = y.slice(1, 0, kColumns).clone();
      multiply(y, w);
    }
    return differentiable(y, "first_columns", {x, weight}, [before, w](const Tensor& dy) {
      const Tensor dw = (dy.slice(1, 0, kColumns) * before).reshape({kColumns});
      multiply(dy, w);
      return Grads{dy, dw};
    });
  }
  void fields(nn::Visitor& v) override { v("weight", weight); }
};

/// Losses of micro-batches of 64 MiB, in a pipeline or, with one stage, in a row. A channel of NCCL buffers 4 MiB. The
/// last stage sees each value that it should.
std::vector<double> losses_of_64_mib(const PipelineSize& size, int layers) {
  constexpr int64_t kWidth = 1 << 24;
  std::vector<double> losses;
  const auto make = [&] { return std::make_shared<Row<FirstColumns>>(layers); };
  const auto values_of = [](size_t micro) {
    std::vector<float> values(kWidth);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i + 7 * micro) % 8191);
    return values;
  };
  const auto loss_of = [&](const Tensor& y, size_t micro) {
    const std::vector<float> got = y.to_vector<float>(), want = values_of(micro);
    EXPECT_TRUE(std::equal(got.begin() + FirstColumns::kColumns, got.end(), want.begin() + FirstColumns::kColumns));
    return mean(y.slice(1, 0, FirstColumns::kColumns));
  };
  const auto train = [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    Pipeline pipeline(make(), Grid(world, 1, size.stages), {.chunks = size.chunks, .device = device});
    std::vector<Tensor> inputs;  // which the first stage reads
    for (int64_t m = 0; m < size.micro_batches; ++m)
      inputs.push_back(world->rank() > 0 ? Tensor::zeros({1, 1}, DType::f32, device).expand({1, kWidth})
                                         : Tensor::from(values_of(static_cast<size_t>(m)), {1, kWidth}).to(device));
    pipeline.run({inputs, size.micro_batches, DType::f32, [&](size_t i) {
                    const Tensor loss = loss_of(pipeline(inputs[i]), i);
                    losses.push_back(loss.item());
                    return loss;
                  }});
  };
  EXPECT_THAT(errors_on_gpus(size.stages, train, {.timeout = kLongDeadline}), ::testing::Each(""));
  return losses;
}

/// Stages and chunks.
class LargeMessages : public SeveralGpus, public ::testing::WithParamInterface<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LargeMessages, ::testing::Combine(::testing::Range(2, 9), ::testing::Range(1, 5)),
                         [](const auto& of) { return str(std::get<0>(of.param), "x", std::get<1>(of.param)); });

TEST_P(LargeMessages, EqualOneStage) {
  const auto [P, V] = GetParam();
  require(P);
  if (IsSkipped()) return;
  constexpr int64_t kMicroBatches = 3;  // from three on each interleaved schedule had a circle
  const std::vector<double> losses = losses_of_64_mib({P, V, kMicroBatches}, P * V);
  EXPECT_EQ(losses.size(), static_cast<size_t>(kMicroBatches));
  EXPECT_EQ(losses, losses_of_64_mib({1, 1, kMicroBatches}, P * V)) << "the same products in the same order";
}

// A stage whose neighbour sends nothing: the error is the message's, whatever the memory of its form holds.
TEST_F(SeveralGpus, AMissingFormIsAnErrorOfItsMessage) {
  require(2);
  if (IsSkipped()) return;
  std::atomic<bool> ended{false};
  errors_on_gpus(2,
                 [&](const ProcessGroupPtr& world) {
                   const Device device = gpu(world->rank());
                   Pipeline pipeline(std::make_shared<Factors>(2, 8), Grid(world, 1, 2), {.device = device});
                   if (world->rank() == 0) return ended.wait(false);
                   const std::vector<Tensor> inputs = micro_batches(1, 8, device);
                   const std::string error = error_text([&] {
                     pipeline.run({inputs, 1, DType::f32, [&](size_t i) { return mean(pipeline(inputs[i])); }});
                   });
                   ended = true;
                   ended.notify_all();
                   EXPECT_THAT(error, ::testing::HasSubstr("'form of micro-batch 0"));
                   EXPECT_THAT(error, ::testing::HasSubstr("passed its deadline of 2 s on rank 1"));
                 },
                 {.timeout = Milliseconds(2000)});
}

}  // namespace
}  // namespace weft::dist::testing
