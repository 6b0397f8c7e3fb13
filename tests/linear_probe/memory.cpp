// SPDX-License-Identifier: Apache-2.0
// The bytes of a training step as the allocator counts them, against the formula (apps/linear_probe/memory.h).
#include "apps/linear_probe/memory.h"

#include <gtest/gtest.h>

#include "apps/linear_probe/probe.h"
#include "core/autocast.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "kernels/runtime/allocator.h"
#include "nn/models/dinov2.h"
#include "optim/optimizers.h"
#include "tests/support/error_text.h"

namespace weft::tests {
namespace {

using linear_probe::StepShape;

/// Peak of live bytes over the second step of fine-tuning, from before the model is made.
double measured(const nn::VisionTransformerOptions& model, const StepShape& step) {
  kernels::CachingAllocator& allocator = kernels::CachingAllocator::of(Device{});
  const size_t before = allocator.stats().live;
  linear_probe::Probe probe(std::make_shared<nn::VisionTransformer>(model), step.classes);
  probe.thaw();
  optim::Adam adam(probe.parameters(), {});
  if (step.precision != DType::f32) adam.flat()->keep_compute_copy(step.precision);
  const Tensor images = normal({step.batch, step.side, step.side, 3});
  const Tensor labels = Tensor::zeros({step.batch}, DType::i64);
  for (int i = 0; i < 2; ++i) {
    allocator.reset_peak();
    const Tensor loss = [&] {
      const Autocast low(step.precision);
      return cross_entropy(probe(images), labels);
    }();
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
  return static_cast<double>(allocator.stats().peak_live - before);
}

/// The formula's share of what was measured. `rounding`: what the allocator's size classes may add.
void expect_as_computed(nn::VisionTransformerOptions model, const StepShape& step, double rounding) {
  double kept = 0;
  for (const bool recompute : {false, true}) {
    model.recompute = recompute;
    const linear_probe::StepMemory memory = step_memory(model, step);
    const double got = measured(model, step), wanted = static_cast<double>(memory.total());
    std::printf("    %s recomputation, %s: %.1f MiB measured, %.1f computed (%.3f), of them %.1f in blocks\n",
                recompute ? "with" : "without", std::string(name(step.precision)).c_str(), got / (1 << 20),
                wanted / (1 << 20), got / wanted, static_cast<double>(memory.blocks) / (1 << 20));
    EXPECT_GT(got, 0.97 * wanted) << recompute;
    EXPECT_LT(got, (1.03 + rounding) * wanted) << recompute;
    EXPECT_TRUE(!recompute || got < kept) << kept;
    kept = got;
  }
}

// 128 tokens (81 patches, 46 registers, the class token) and powers of two all around: the size classes add next to
// nothing, and the blocks' tensors dominate.
const nn::VisionTransformerOptions kEven{
    .width = 256, .depth = 8, .heads = 4, .patch = 14, .image = 126, .classes = 0, .registers = 46, .layer_scale = 1};

TEST(StepMemory, OfEvenShapes) {
  expect_as_computed(kEven, {.batch = 16, .side = 126, .precision = DType::f32}, 0.02);
  expect_as_computed(kEven, {.batch = 8, .side = 126, .precision = DType::bf16}, 0.02);
}

TEST(StepMemory, WithoutLayerScaleAndWithSwiGlu) {
  nn::VisionTransformerOptions model = kEven;
  model.layer_scale = 0;
  expect_as_computed(model, {.batch = 8, .side = 126, .precision = DType::f32}, 0.02);
  model.feed_forward = nn::FeedForward::swiglu;
  model.hidden = 512;
  expect_as_computed(model, {.batch = 8, .side = 126, .precision = DType::f32}, 0.02);
}

// Blocks of ViT-L/14 with registers at 224 pixels, as many as fit: the size classes may add an eighth to each tensor.
TEST(StepMemory, OfViTLargeBlocks) {
  nn::VisionTransformerOptions model = nn::dinov2_options("dinov2_vitl14_reg");
  model.depth = 2;
  expect_as_computed(model, {.batch = 2, .precision = DType::f32}, 0.125);
}

TEST(StepMemory, ASideIsOfWholePatches) {
  EXPECT_EQ(error_text([] { linear_probe::step_memory(kEven, {.side = 100}); }),
            "memory of a step: expected a side that is a multiple of 14, got 100");
}

}  // namespace
}  // namespace weft::tests
