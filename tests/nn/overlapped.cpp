// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <string>

#include "core/autocast.h"
#include "core/graph.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/kernel_variant.h"
#include "kernels/runtime/variants.h"
#include "nn/models/resnet.h"
#include "nn/transformer.h"
#include "tests/support/hopper.h"

// The variant `pdl`: kernels on wgmma may begin before their predecessor ends. On an emulated GPU `--check streams`
// finds an access that does not wait for that end (tests/orders).

namespace weft::nn {
namespace {

/// The ops whose last call ran on wgmma.
struct OnWgmma : kernels::KernelObserver {
  OnWgmma() { kernels::set_kernel_observer(this); }
  ~OnWgmma() override { kernels::set_kernel_observer(nullptr); }
  void before(const kernels::KernelCall&) override { kernels::note_kernel_variant(""); }
  void after(const kernels::KernelCall& call) override {
    if (std::string(kernels::noted_kernel_variant()) == "sm90") names.insert(std::string(call.name));
  }
  std::set<std::string> names;
};

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
  OnWgmma seen;
  step.run();
  EXPECT_EQ(step.gradients(), expected);
  EXPECT_THAT(seen.names, ::testing::IsSupersetOf({"attention_backward", "attention_forward", "conv2d_backward_input",
                                                   "conv2d_backward_weight", "conv2d_statistics", "matmul_fused"}));
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
