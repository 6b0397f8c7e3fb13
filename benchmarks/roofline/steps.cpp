// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/roofline/steps.h"

#include <algorithm>
#include <sstream>

#include "benchmarks/cases/training.h"
#include "core/autocast.h"
#include "core/ops/layers/losses.h"
#include "core/ops/matmul.h"
#include "kernels/runtime/kernel_trace.h"
#include "nn/models/vision_transformer.h"
#include "optim/optimizers.h"

namespace weft::benchmarks {
namespace {

std::function<void()> resnet50_training(bool tiny) {
  const Target target{Device{}, tiny};
  const auto training = std::make_shared<Training>(resnet50_size(target, 256, DType::bf16), target.device);
  return [training] { training->step(); };
}

std::function<void()> vit_training(const std::shared_ptr<nn::VisionTransformer>& model, int64_t batch) {
  const auto adam = std::make_shared<optim::AdamW>(model->parameters(), optim::AdamWOptions{});
  adam->flat()->keep_compute_copy(DType::bf16);
  const int64_t edge = model->options.image;
  const Tensor x = Tensor::zeros({batch, edge, edge, 3});
  const Tensor labels = Tensor::from(std::vector<int64_t>(static_cast<size_t>(batch), 0));
  return [=] {
    Tensor loss;
    {
      const Autocast low(DType::bf16);
      loss = cross_entropy((*model)(x), labels);
    }
    adam->zero_grad();
    loss.backward();
    adam->step();
  };
}

std::function<void()> product(int64_t n, DType dtype) {
  const Tensor a = Tensor::zeros({n, n}, dtype), b = Tensor::zeros({n, n}, dtype);
  return [=] { matmul(a, b); };
}

}  // namespace

std::vector<CountedStep> roofline_steps(bool tiny) {
  const auto vit_step = [=] {
    if (!tiny) return vit_training(std::make_shared<nn::VisionTransformer>(nn::vit_options("vit_base16")), 256);
    const nn::VisionTransformerOptions small{.width = 64, .depth = 1, .heads = 2, .image = 32, .classes = 10};
    return vit_training(std::make_shared<nn::VisionTransformer>(small), 2);
  };
  std::vector<CountedStep> steps = {{"resnet50_b256_train_bf16", [=] { return resnet50_training(tiny); }},
                                    {"vit_b16_b256_train_bf16", vit_step}};
  for (const int64_t n : {1024, 2048, 4096, 8192})
    for (const DType dtype : {DType::bf16, DType::f32})
      steps.push_back({str("matmul_", n, "_", name(dtype)), [=] { return product(n, dtype); }});
  return steps;
}

namespace {

using kernels::View;

std::string shapes_of(std::span<const View* const> views) {
  int rank = 0;
  for (const View* view : views)
    if (*view) rank = std::max(rank, view->rank);
  std::ostringstream text;
  for (const View* view : views)
    if (*view && view->rank >= std::min(rank, 2)) text << (text.tellp() > 0 ? " " : "") << *view;
  return text.str();
}

class Counter : public kernels::KernelObserver {
 public:
  std::vector<CountedCall> calls;

  void before(const kernels::KernelCall& call) override {
    const kernels::KernelCost cost = kernels::cost_of(call);
    const std::string shapes = shapes_of(call.views);
    for (CountedCall& known : calls) {
      // The bytes tell apart what the shapes do not: views that are not given or lie in steps.
      if (known.kernel != call.name || known.shapes != shapes || known.cost.bytes != cost.bytes) continue;
      ++known.count;
      return;
    }
    calls.push_back({call.name, shapes, 1, cost});
  }
  void after(const kernels::KernelCall&) override {}
  bool runs() const override { return false; }
};

struct Observing {
  explicit Observing(Counter& counter) { kernels::set_kernel_observer(&counter); }
  ~Observing() { kernels::set_kernel_observer(nullptr); }
};

}  // namespace

std::vector<CountedCall> count_calls(const CountedStep& step) {
  Counter counter;
  const Observing observing(counter);
  const std::function<void()> run = step.make();
  run();
  counter.calls.clear();
  run();
  return std::move(counter.calls);
}

}  // namespace weft::benchmarks
