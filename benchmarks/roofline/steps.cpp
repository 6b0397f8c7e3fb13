// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/training.h"
#include "benchmarks/roofline/step.h"
#include "core/autocast.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
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

}  // namespace weft::benchmarks
