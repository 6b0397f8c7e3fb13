// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "core/autocast.h"
#include "core/graph.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "kernels/runtime/variants.h"
#include "nn/models/resnet.h"
#include "nn/transformer.h"
#include "tests/support/hopper.h"
#include "tests/support/kernel_calls.h"

// The variant `pdl`: kernels on wgmma may begin before their predecessor ends. On an emulated GPU `--check streams`
// finds an access that does not wait for that end (tests/orders).

namespace weft::nn {
namespace {

/// A step's gradients, bit for bit.
struct Step {
  Bottleneck convolutions{64, 64, 1};
  TransformerBlock block{{.width = 128, .heads = 2, .hidden = 256}};
  Tensor images = normal({2, 9, 7, 64}, 0, 1, DType::f32), few = normal({2, 40, 128}, 0, 1, DType::f32),
         many = normal({1, 150, 128}, 0, 1, DType::f32);

  explicit Step(Device device) {
    convolutions.to(device);
    block.to(device);
    for (Tensor* const x : {&images, &few, &many}) *x = x->to(device);
  }
  void run() {
    convolutions.zero_grad();
    block.zero_grad();
    const Autocast low(DType::bf16);
    for (const Tensor& y : {convolutions(images), block(few), block(many)}) sum(y * y).backward();
  }
  std::vector<float> gradients() {
    std::vector<float> all;
    for (Module* const part : {static_cast<Module*>(&convolutions), static_cast<Module*>(&block)})
      for (const NamedTensor& parameter : part->parameters())
        for (const float number : parameter.tensor.grad().to_vector<float>()) all.push_back(number);
    return all;
  }
};

struct Overlapped : ::testing::Test {
  void SetUp() override {
    if (const std::string why = tests::why_no_wgmma(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { kernels::choose_variants(before_); }

 private:
  const std::string before_ = std::getenv("WEFT_VARIANT") ? std::getenv("WEFT_VARIANT") : "";
};

TEST_F(Overlapped, GivesTheSameBits) {
  Step step(Device{DeviceKind::cuda, 0});
  step.run();
  const std::vector<float> expected = step.gradients();
  kernels::choose_variants("pdl");
  const tests::KernelCalls seen;
  step.run();
  EXPECT_EQ(step.gradients(), expected);
  for (const char* const name : {"attention_backward", "attention_forward", "conv2d_backward_input",
                                 "conv2d_backward_weight", "conv2d_statistics", "matmul_fused"})
    EXPECT_THAT(seen.count, ::testing::Contains(::testing::Key(std::string(name) + " sm90")));
}

TEST_F(Overlapped, GivesTheSameBitsInAGraph) {
  const Device device{DeviceKind::cuda, 0};
  Step step(device);
  step.run();
  step.run();
  const std::vector<float> expected = step.gradients();
  kernels::choose_variants("pdl");
  Graph graph;
  graph.capture(device, [&] { step.run(); });
  for (int i = 0; i < 2; ++i) graph.replay();
  EXPECT_EQ(step.gradients(), expected);
}

}  // namespace
}  // namespace weft::nn
