// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/mul.h"
#include "core/ops/random.h"
#include "core/ops/sum.h"
#include "kernels/kernel_trace.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/resnet.h"
#include "tests/nn/leaves.h"
#include "tests/support/devices.h"

// A batch norm behind a convolution runs with it. What that may change is roundings: every block is held against itself
// with hooks, which make it run in two steps.

namespace weft::nn {
namespace {

struct Calls : kernels::KernelObserver {
  Calls() { kernels::set_kernel_observer(this); }
  ~Calls() override { kernels::set_kernel_observer(nullptr); }
  void before(const kernels::KernelCall& call) override { ++count[std::string(call.name)]; }
  void after(const kernels::KernelCall&) override {}
  std::map<std::string, int> count;
};

/// Norms that change what they normalise: by running statistics and parameters of all signs.
void unsettle(Module& block) {
  const NoGrad no_grad;
  for (const auto& [name, module] : block.modules()) {
    auto* const norm = dynamic_cast<BatchNorm2d*>(module);
    if (!norm) continue;
    const Shape sizes = norm->weight.sizes();
    norm->weight.copy_(normal(sizes));
    norm->bias.copy_(normal(sizes));
    norm->running_mean.copy_(normal(sizes));
    norm->running_var.copy_(uniform(sizes, 0.2, 2));
  }
}

std::vector<int> watch(Module& block) {
  std::vector<int> numbers;
  for (const auto& [name, module] : block.modules())
    numbers.push_back(module->register_hooks([](const Module&, const Tensor&) {}, {}));
  return numbers;
}

void leave(Module& block, const std::vector<int>& numbers) {
  size_t i = 0;
  for (const auto& [name, module] : block.modules()) module->remove_hooks(numbers[i++]);
}

void expect_close(const Tensor& got, const Tensor& want, double allowed, const std::string& what) {
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += (a[i] - b[i]) * (a[i] - b[i]), norm += b[i] * b[i];
  EXPECT_LE(std::sqrt(difference), allowed * std::sqrt(norm)) << what;
  EXPECT_GT(norm, 0) << what;
}

struct Block {
  const char* name;
  std::shared_ptr<Module> module;
  int convolutions;
};

/// With and without a projection, a stride and a shortcut without parameters.
std::vector<Block> blocks() {
  return {{"basic", std::make_shared<BasicBlock>(8, 8, 1), 2},
          {"basic, stride 2", std::make_shared<BasicBlock>(8, 16, 2), 3},
          {"bottleneck", std::make_shared<Bottleneck>(8, 4, 2), 4},
          {"cifar", std::make_shared<CifarBlock>(8, 16, 2), 2}};
}

TEST(ConvNorm, EvaluationIsOneKernelForEach) {
  for (const DeviceKind kind : tests::test_devices())
    for (const Block& block : blocks()) {
      const Device device{kind, 0};
      unsettle(*block.module);
      block.module->to(device);
      block.module->to(DType::f64);
      block.module->eval();
      const NoGrad no_grad;
      const Tensor x = normal({2, 7, 6, 8}).to(DType::f64).to(device);
      Tensor y;
      {
        const Calls calls;
        y = (*block.module)(x);
        EXPECT_EQ(calls.count.at("conv2d_norm"), block.convolutions) << block.name;
        for (const char* const name : {"conv2d_forward", "batch_norm_inference", "binary_forward", "unary_forward"})
          EXPECT_EQ(calls.count.count(name), 0u) << block.name << ' ' << name;
      }
      const std::vector<int> hooks = watch(*block.module);
      const Calls calls;
      expect_close(y, (*block.module)(x), 1e-12, block.name);
      EXPECT_EQ(calls.count.at("batch_norm_inference"), block.convolutions) << "the other way";
    }
}

TEST(ConvNorm, EvaluationUnderAutocast) {
  for (const DeviceKind kind : tests::test_devices()) {
    const auto block = std::make_shared<BasicBlock>(8, 16, 2);
    unsettle(*block);
    block->to(Device{kind, 0});
    block->eval();
    const NoGrad no_grad;
    const Tensor x = normal({2, 7, 6, 8}).to(Device{kind, 0});
    const auto low = [&] {
      const Autocast bf16(DType::bf16);
      return (*block)(x);
    };
    const Tensor y = low();
    EXPECT_EQ(y.dtype(), DType::bf16);
    const Tensor exact = (*block)(x);
    expect_close(y.to(DType::f32), exact, 0.02, "bf16 beside f32");
  }
}

TEST(ConvNorm, TrainingTakesTheStatisticsFromTheConvolution) {
  for (const DeviceKind kind : tests::test_devices())
    for (const Block& block : blocks()) {
      SCOPED_TRACE(block.name);
      const Device device{kind, 0};
      Module& module = *block.module;
      unsettle(module);
      module.to(device);
      module.to(DType::f64);
      const StateDict before = [&] {
        StateDict copy = module.state_dict();
        for (NamedTensor& tensor : copy.tensors) tensor.tensor = tensor.tensor.clone();
        return copy;
      }();
      const Tensor x = normal({2, 7, 6, 8}).to(DType::f64).to(device);
      struct Step {
        Tensor y, dx;
        std::vector<Tensor> gradients, buffers;
      };
      Tensor slope;
      const auto step = [&] {
        module.load_state_dict(before);
        module.zero_grad();
        const Tensor leaf = x.detach().requires_grad_();
        Step result{module(leaf), {}, {}, {}};
        if (!slope.defined()) slope = normal(result.y.sizes()).to(DType::f64).to(device);
        sum(mul(result.y, slope)).backward();
        result.dx = leaf.grad();
        for (const NamedTensor& parameter : module.parameters())
          result.gradients.push_back(parameter.tensor.grad().clone());
        for (const NamedTensor& buffer : module.buffers()) result.buffers.push_back(buffer.tensor.clone());
        return result;
      };
      Step fused;
      {
        const Calls calls;
        fused = step();
        EXPECT_EQ(calls.count.at("conv2d_statistics"), block.convolutions);
        EXPECT_EQ(calls.count.count("batch_norm_forward") + calls.count.count("batch_norm_statistics"), 0u);
      }
      const std::vector<int> hooks = watch(module);
      const Step apart = step();
      leave(module, hooks);
      expect_close(fused.y, apart.y, 1e-12, "y");
      expect_close(fused.dx, apart.dx, 1e-11, "dx");
      const auto parameters = module.parameters(), buffers = module.buffers();
      for (size_t i = 0; i < parameters.size(); ++i)
        expect_close(fused.gradients[i], apart.gradients[i], 1e-11, parameters[i].name);
      for (size_t i = 0; i < buffers.size(); ++i) {
        expect_close(fused.buffers[i], apart.buffers[i], 1e-12, buffers[i].name);
        EXPECT_NE(fused.buffers[i].to_vector<double>(), before.tensor(buffers[i].name).to_vector<double>());
      }
    }
}

TEST(ConvNorm, EvaluationWithGradientsKeepsThem) {
  for (const DeviceKind kind : tests::test_devices()) {
    BasicBlock block(4, 4, 1);
    unsettle(block);
    block.to(Device{kind, 0});
    block.eval();
    sum(block(normal({2, 5, 5, 4}).to(Device{kind, 0}))).backward();
    for (const NamedTensor& parameter : block.parameters())
      EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
  }
}

TEST(ConvNorm, InASequential) {
  const auto net = sequential(std::make_shared<Conv2d>(3, 4, Size2d{3, 3}), std::make_shared<BatchNorm2d>(4),
                              std::make_shared<Conv2d>(4, 4, Size2d{1, 1}), std::make_shared<BatchNorm2d>(4));
  unsettle(*net);
  net->eval();
  const NoGrad no_grad;
  const Tensor x = normal({2, 6, 6, 3});
  Tensor y;
  {
    const Calls calls;
    y = (*net)(x);
    EXPECT_EQ(calls.count.at("conv2d_norm"), 2);
  }
  Tensor apart = x;
  for (const auto& child : net->children) apart = (*child)(apart);
  expect_close(y, apart, 1e-5, "y");
}

TEST(ConvNorm, AHookSeesItsModule) {
  BasicBlock block(4, 4, 1);
  int seen = 0;
  block.conv1.register_hooks({}, [&](const Module&, const Tensor&, const Tensor&) {
    ++seen;
    return Tensor();
  });
  block.bn2.register_hooks([&](const Module&, const Tensor&) { ++seen; }, {});
  block.eval();
  const NoGrad no_grad;
  block(normal({1, 5, 5, 4}));
  EXPECT_EQ(seen, 2);
}

TEST(ConvNorm, CountsItsBatches) {
  BasicBlock block(4, 4, 1);
  const Tensor x = normal({2, 5, 5, 4});
  block(x);
  block(x);
  block.eval();
  block(x);
  EXPECT_EQ(block.bn1.num_batches_tracked, 2);
}

}  // namespace
}  // namespace weft::nn
