// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/variants.h"
#include "nn/batch_norm.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/resnet.h"
#include "tests/nn/leaves.h"
#include "tests/support/devices.h"
#include "tests/support/kernel_calls.h"

// A batch norm after a convolution runs with it. Only roundings may change: every block is compared with itself under
// hooks that separate the two.

namespace weft::nn {
namespace {

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

std::vector<int> watch(Module& block, Watch what) {
  std::vector<int> numbers;
  for (const auto& [name, module] : block.modules())
    numbers.push_back(module->register_hooks([](const Module&, const Tensor&) {}, {}, what));
  return numbers;
}

/// Hooks that replace what convolutions give, by tensors of the same values.
std::vector<int> replace(Module& block) {
  std::vector<int> numbers;
  for (const auto& [name, module] : block.modules())
    numbers.push_back(module->register_hooks(
        {}, [](const Module& of, const Tensor&, const Tensor& y) { return of.kind() == "Conv2d" ? y * 1 : Tensor(); }));
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

TEST(ConvBn, EvaluationIsOneKernelForEach) {
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
        const tests::KernelCalls calls;
        y = (*block.module)(x);
        EXPECT_EQ(calls.count.at("conv2d_norm"), block.convolutions) << block.name;
        for (const char* const name : {"conv2d_forward", "batch_norm_inference", "binary_forward", "unary_forward"})
          EXPECT_EQ(calls.count.count(name), 0u) << block.name << ' ' << name;
      }
      const std::vector<int> passers = watch(*block.module, Watch::calls);
      {
        const tests::KernelCalls calls;
        EXPECT_EQ((*block.module)(x).to_vector<double>(), y.to_vector<double>()) << block.name;
        EXPECT_EQ(calls.count.at("conv2d_norm"), block.convolutions) << block.name;
      }
      watch(*block.module, Watch::tensors);
      const tests::KernelCalls calls;
      expect_close(y, (*block.module)(x), 1e-12, block.name);
      EXPECT_EQ(calls.count.at("batch_norm_inference"), block.convolutions) << "the other way";
    }
}

TEST(ConvBn, EvaluationUnderAutocast) {
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

TEST(ConvBn, TrainingTakesTheStatisticsFromTheConvolution) {
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
      step();  // draws the slope and makes the gradients
      Step fused;
      std::vector<std::string> names;
      {
        const tests::KernelCalls calls;
        fused = step();
        names = calls.names;
        EXPECT_EQ(calls.count.at("conv2d_statistics"), block.convolutions);
        EXPECT_EQ(calls.count.count("batch_norm_forward") + calls.count.count("batch_norm_statistics"), 0u);
      }
      std::vector<int> hooks = watch(module, Watch::tensors);
      {
        const tests::KernelCalls calls;
        const Step hooked = step();
        EXPECT_EQ(calls.names, names) << "with hooks";
        EXPECT_EQ(hooked.y.to_vector<double>(), fused.y.to_vector<double>()) << "with hooks";
        EXPECT_EQ(hooked.dx.to_vector<double>(), fused.dx.to_vector<double>()) << "with hooks";
      }
      leave(module, hooks);
      hooks = replace(module);
      const tests::KernelCalls calls;
      const Step apart = step();
      EXPECT_EQ(calls.count.at("batch_norm_forward"), block.convolutions) << "the other way";
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

TEST(ConvBn, EvaluationWithGradientsKeepsThem) {
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

// On a GPU a norm with a residual and a ReLU leaves a bit for each number of y. Backward reads the bits only.
TEST(ConvBn, ABitForEachNumberGivesTheSameGradients) {
  struct Masks : kernels::KernelObserver {
    Masks() { kernels::set_kernel_observer(this); }
    ~Masks() override { kernels::set_kernel_observer(nullptr); }
    void before(const kernels::KernelCall& call) override {
      if (call.name != std::string_view("batch_norm_backward")) return;
      for (const kernels::View* const view : call.views) bits += *view && view->dtype == DType::u8;
    }
    void after(const kernels::KernelCall&) override {}
    int bits = 0;
  };
  for (const DeviceKind kind : tests::test_devices()) {
    Bottleneck block(8, 4, 2);
    unsettle(block);
    block.to(Device{kind, 0});
    const Tensor x = normal({2, 7, 6, 8}).to(Device{kind, 0});
    const auto gradients = [&](const char* variants, int expected) {
      kernels::choose_variants(variants);
      block.zero_grad();
      const Masks masks;
      const Autocast autocast(DType::bf16);
      const Tensor y = block(x);
      sum(y * y).backward();
      kernels::choose_variants("");
      EXPECT_EQ(masks.bits, expected) << variants;
      std::vector<float> all;
      for (const NamedTensor& parameter : block.parameters())
        for (const float number : parameter.tensor.grad().to_vector<float>()) all.push_back(number);
      return all;
    };
    EXPECT_EQ(gradients("", kind == DeviceKind::cuda), gradients("whole_masks", 0));
  }
}

TEST(ConvBn, InASequential) {
  const auto net = sequential(std::make_shared<Conv2d>(3, 4, Size2d{3, 3}), std::make_shared<BatchNorm2d>(4),
                              std::make_shared<Conv2d>(4, 4, Size2d{1, 1}), std::make_shared<BatchNorm2d>(4));
  unsettle(*net);
  net->eval();
  const NoGrad no_grad;
  const Tensor x = normal({2, 6, 6, 3});
  Tensor y;
  {
    const tests::KernelCalls calls;
    y = (*net)(x);
    EXPECT_EQ(calls.count.at("conv2d_norm"), 2);
  }
  Tensor apart = x;
  for (const auto& child : net->children) apart = (*child)(apart);
  expect_close(y, apart, 1e-5, "y");
}

TEST(ConvBn, HooksRunInOrderAndSeeTheirTensors) {
  for (const bool training : {true, false})
    for (const Watch what : {Watch::tensors, Watch::calls}) {
      BasicBlock block(4, 4, 1);
      std::vector<std::string> seen;
      const auto tell = [&](const char* when, const Tensor& x) { seen.push_back(str(when, x.defined() ? "" : "?")); };
      const auto listen = [&](Module& module, const char* before, const char* after) {
        module.register_hooks([&tell, before](const Module&, const Tensor& x) { tell(before, x); },
                              [&tell, after](const Module&, const Tensor&, const Tensor& y) {
                                tell(after, y);
                                return Tensor();
                              },
                              what);
      };
      listen(block.conv1, "conv", "conv's y");
      listen(block.bn1, "bn", "bn's y");
      block.train(training);
      const NoGrad no_grad;
      block(normal({1, 5, 5, 4}));
      if (training || what == Watch::tensors)
        EXPECT_THAT(seen, testing::ElementsAre("conv", "conv's y", "bn", "bn's y"));
      else
        EXPECT_THAT(seen, testing::ElementsAre("conv", "bn?", "bn's y", "conv's y?"));
    }
}

TEST(ConvBn, AHookMayChangeWhatTheConvolutionGives) {
  BasicBlock block(4, 4, 1);
  const Tensor x = normal({2, 5, 5, 4});
  const NoGrad no_grad;
  const Tensor norms_own = block.bn1(block.conv1(x) * 3, {.relu = true});
  const int number =
      block.conv1.register_hooks({}, [](const Module&, const Tensor&, const Tensor& y) { return y * 3; });
  const Tensor replaced = conv_bn(block.conv1, block.bn1, x, {.relu = true});
  block.conv1.remove_hooks(number);
  block.bn1.register_hooks([](const Module&, const Tensor& y) { y.mul_(3); }, {});
  const Tensor changed = conv_bn(block.conv1, block.bn1, x, {.relu = true});
  EXPECT_EQ(replaced.to_vector<float>(), norms_own.to_vector<float>());
  EXPECT_EQ(changed.to_vector<float>(), norms_own.to_vector<float>());
}

TEST(ConvBn, CountsItsBatches) {
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
