// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <thread>
#include <utility>

#include "core/autograd.h"
#include "core/graph.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

Tensor input(int64_t rows = 2) { return samples(0, 0, rows, {6}, DeviceKind::cpu); }

/// A linear layer, and one that is used only when told.
struct Optional : nn::Module {
  nn::Linear always{6, 4}, sometimes{4, 4};
  mutable int uses = 0;
  Tensor forward(const Tensor& x) const override {
    Tensor y = always(x);
    const auto segment = [this](const std::vector<Tensor>& in) { return sometimes(in[0]); };
    for (int i = 0; i < uses; ++i) y = checkpoint(segment, {y});
    return y;
  }
  void fields(nn::Visitor& v) override {
    v("always", always);
    v("sometimes", sometimes);
  }
};
std::shared_ptr<nn::Module> optional_net() { return std::make_shared<Optional>(); }
int& uses_of(DDP& ddp) { return dynamic_cast<Optional&>(ddp.module()).uses; }

TEST(DdpErrors, UnusedParametersAreNamed) {
  const std::string text = error_text([] {
    run_ranks(2, [](const ProcessGroupPtr& group) {
      DDP ddp(build(optional_net, 1, DeviceKind::cpu), group);
      sum(ddp(input())).backward();
    });
  });
  EXPECT_THAT(text, HasSubstr("ddp: backward gave no gradient to 'sometimes.weight', 'sometimes.bias' on rank "));
  EXPECT_THAT(text, HasSubstr("Freeze what the loss does not depend on (requires_grad_(false)), or choose "
                              "Unused::zero"));
}

TEST(DdpErrors, UnusedParametersCountAsZero) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    DDP ddp(build(optional_net, 1, DeviceKind::cpu), group,
            {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5, .unused = Unused::zero});
    const auto gradient = [&] { return dynamic_cast<Optional&>(ddp.module()).sometimes.bias.grad(); };
    // Used by nobody, by one, by all, by nobody again: gradients of a sum over 2 rows of 4 equal columns.
    for (const std::vector<int>& uses : {std::vector<int>{0, 0}, {0, 1}, {1, 1}, {1, 0}, {0, 0}}) {
      uses_of(ddp) = uses[static_cast<size_t>(group->rank())];
      ddp.module().zero_grad();
      sum(ddp(input())).backward();
      const double used = uses[0] + uses[1];
      EXPECT_EQ(gradient().to_vector<double>(), std::vector<double>(4, 2 * used / 2)) << used;
    }
  });
}

TEST(DdpErrors, MoreGradientsThanInTheFirstBackwardAreAnError) {
  const std::string text = error_text([] {
    run_ranks(2, [](const ProcessGroupPtr& group) {
      DDP ddp(build(optional_net, 1, DeviceKind::cpu), group, {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5});
      for (const int uses : {1, 1, 2}) {
        uses_of(ddp) = uses;
        ddp.module().zero_grad();
        sum(ddp(input())).backward();
      }
    });
  });
  EXPECT_THAT(text, HasSubstr("ddp: parameter 'sometimes."));
  EXPECT_THAT(text, HasSubstr("got gradient 2 of this backward after its bucket had been reduced; the first backward "
                              "had 1. Backward must give each parameter the same number of gradients in each step"));
}

TEST(DdpErrors, ModelsThatDifferAreNamedWithTheirRanks) {
  const std::string text = error_text([] {
    run_ranks(3, [](const ProcessGroupPtr& group) {
      const int64_t out = group->rank() == 1 ? 5 : 4;
      DDP ddp(build([&] { return std::make_shared<nn::Linear>(6, out); }, 1, DeviceKind::cpu), group);
    });
  });
  EXPECT_THAT(text, HasSubstr("ddp: the model is not the same on all ranks: at entry 1 ranks 0 and 2 have 'parameter "
                              "weight f32[4,6] on cpu', rank 1 has 'parameter weight f32[5,6] on cpu'. All ranks must "
                              "build the same model"));
}

TEST(DdpErrors, AMissingParameterAndAFrozenOneAreDifferences) {
  EXPECT_THAT(
      error_text([] {
        run_ranks(2, [](const ProcessGroupPtr& group) {
          DDP ddp(
              build([&] { return std::make_shared<nn::Linear>(6, 4, nn::LinearOptions{.bias = group->rank() == 0}); },
                    1, DeviceKind::cpu),
              group);
        });
      }),
      HasSubstr("at entry 2 rank 0 has 'parameter bias f32[4] on cpu', rank 1 has 'nothing more'"));
  EXPECT_THAT(error_text([] {
                run_ranks(2, [](const ProcessGroupPtr& group) {
                  const auto model = build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cpu);
                  model->parameters()[1].tensor.requires_grad_(group->rank() == 0);
                  DDP ddp(model, group);
                });
              }),
              HasSubstr("rank 1 has 'parameter bias f32[4] on cpu, frozen'"));
}

TEST(DdpErrors, WhatChangesUnderDdpIsNamed) {
  const auto group = make_process_group_alone();
  const auto make = [] { return build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cpu); };
  {
    const auto model = make();
    model->parameters()[0].tensor.requires_grad_(false);
    DDP ddp(model, group);
    const auto flat = FlatParameters::of({{"weight", model->parameters()[0].tensor}});
    model->parameters()[0].tensor.requires_grad_();
    EXPECT_EQ(error_text([&] { ddp(input()); }),
              "ddp: parameter 'weight' was thawed, and lies in the flat buffers of another optimizer by now. Thaw it "
              "before the first of the two is made");
  }
  {
    DDP ddp(make(), group);
    ddp.module().to(DType::f64);
    EXPECT_THAT(error_text([&] { ddp(input()); }), HasSubstr("ddp: parameter 'weight' f64[4,6] on cpu has left its"));
  }
  {
    DDP ddp(build(normed_net, 1, DeviceKind::cpu), group);
    const Tensor mean = ddp.module().buffers()[0].tensor;
    mean.set_data(mean.detach().clone());
    EXPECT_EQ(
        error_text([&] {
          ddp(samples(0, 0, 2, {8, 8, 3}, DeviceKind::cpu));
        }),
        "ddp: buffer 'bn1.running_mean' f32[8] on cpu has left its place. Move or convert the model before ddp is "
        "made");
  }
}

TEST(DdpErrors, ArgumentsAreChecked) {
  const auto group = make_process_group_alone();
  const auto make = [] { return build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cpu); };
  EXPECT_EQ(error_text([&] { DDP ddp(make(), group, {.bucket_mb = 0}); }),
            "ddp: expected bucket_mb above 0 and below 1e6, got 0");
  EXPECT_EQ(error_text([&] { DDP ddp(make(), group, {.first_bucket_mb = -1}); }),
            "ddp: expected first_bucket_mb above 0 and below 1e6, got -1");
  EXPECT_EQ(error_text([&] { DDP ddp(nullptr, group); }), "ddp: expected a model and a group, got none");
  EXPECT_EQ(error_text([&] {
              const auto model = make();
              for (const auto& parameter : model->parameters()) parameter.tensor.requires_grad_(false);
              DDP ddp(model, group);
            }),
            "ddp: expected at least one parameter that requires a gradient, got none of 2");
  EXPECT_EQ(error_text([&] {
              const auto model = make();
              model->to(DType::f64);
              DDP ddp(model, group, {.compress_bf16 = true});
            }),
            "ddp: gradients of dtype f64 cannot travel as bf16, expected f32");
  DDP ddp(make(), group);
  EXPECT_EQ(error_text([&] {
              ddp(Tensor::zeros({0, 6}));
            }),
            "ddp: expected a batch of at least one sample on rank 0, got none");
  EXPECT_EQ(error_text([&] { ddp(Tensor::zeros({})); }),
            "ddp: expected a batch of at least one dimension, got f32[] on cpu");
  EXPECT_EQ(error_text([&] { ddp.set_samples(-1); }), "ddp: expected a number of samples, got -1");
  EXPECT_EQ(error_text([&] { sum(ddp.module()(input())).backward(); }),
            "ddp: backward without a forward through this DDP. Call the model by it: ddp(x)");
}

TEST(DdpErrors, APassThatFailedLeavesNothingBehind) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    DDP ddp(build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cpu), group);
    const Tensor x = input().requires_grad_();
    x.register_hook([](const Tensor&) -> Tensor { fail("a hook's own trouble"); });
    EXPECT_THAT(error_text([&] { sum(ddp(x)).backward(); }), HasSubstr("a hook's own trouble"));
    ddp.module().zero_grad();
    sum(ddp(input())).backward();
    EXPECT_EQ(ddp.parameters()[1].tensor.grad().to_vector<double>(), std::vector<double>(4, 2));
  });
}

// A failed pass' reductions must not change the next pass' gradients, however late another rank is.
TEST(DdpErrors, APassThatFailedReducesNothingLater) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    struct Two : nn::Module {
      nn::Linear first{6, 6}, second{6, 4};
      Tensor forward(const Tensor& x) const override { return second(first(x)); }
      void fields(nn::Visitor& v) override {
        v("first", first);
        v("second", second);
      }
    };
    DDP ddp(build([] { return std::make_shared<Two>(); }, 1, DeviceKind::cpu), group,
            {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5});
    sum(ddp(input())).backward();  // from here on buckets travel early
    bool fails = true;
    ddp.module().parameters()[0].tensor.register_hook([&](const Tensor& dy) {
      if (std::exchange(fails, false)) fail("a hook's own trouble");
      return dy;
    });
    ddp.module().zero_grad();
    const Tensor loss = sum(ddp(input()));
    if (group->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_THAT(error_text([&] { loss.backward(); }), HasSubstr("a hook's own trouble"));
    ddp.module().zero_grad();
    (sum(ddp(input())) * 5).backward();
    EXPECT_EQ(ddp.parameters()[3].tensor.grad().to_vector<double>(), std::vector<double>(4, 5 * 2)) << group->rank();
  });
}

TEST(DdpErrors, SetSamplesWeighsTheRanks) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    DDP ddp(build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cpu), group);
    ddp.set_samples(group->rank() == 0 ? 3 : 1);
    const double scale = group->rank() == 0 ? 1 : 5;  // gradients of the bias: 2 and 10; weights 3/4 and 1/4
    (sum(ddp(input())) * scale).backward();
    EXPECT_EQ(ddp.parameters()[1].tensor.grad().to_vector<double>(), std::vector<double>(4, 0.75 * 2 + 0.25 * 10));
  });
}

TEST(DdpOnGpu, AGraphRefusesAHostGroup) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  std::vector<std::string> texts(2);
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    texts[static_cast<size_t>(group->rank())] = error_text([&] {
      const Device gpu{DeviceKind::cuda, 0};
      DDP ddp(build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cuda), group);
      GraphedFunction step(gpu, [&](const std::vector<Tensor>& in) { sum(ddp(in[0])).backward(); }, {.warm_up = 1});
      for (int i = 0; i < 3; ++i) {
        ddp.module().zero_grad();
        step({samples(0, 0, 2, {6}, DeviceKind::cuda)});
      }
    });
  });
  // Both ranks share the GPU here: while one captures, CUDA refuses that the other waits for the device.
  EXPECT_THAT(texts, ::testing::Contains(
                         HasSubstr("ddp over a host backend: needs the host, while a graph is captured on cuda:0")));
}

TEST(DdpOnGpu, AGroupOfOneIsCaptured) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const Device gpu{DeviceKind::cuda, 0};
  DDP ddp(build([] { return std::make_shared<nn::Linear>(6, 4); }, 1, DeviceKind::cuda), make_process_group_alone());
  optim::SGD sgd(ddp.parameters(), {.lr = 0.1});
  GraphedFunction step(gpu, [&](const std::vector<Tensor>& in) {
    sgd.zero_grad();
    sum(ddp(in[0])).backward();
    sgd.step();
  });
  std::vector<double> bias;
  for (int i = 0; i < 5; ++i) {
    step({samples(0, 0, 2, {6}, DeviceKind::cuda)});
    bias.push_back(ddp.parameters()[1].tensor.to_vector<double>()[0]);
  }
  EXPECT_TRUE(step.is_captured());
  for (size_t i = 1; i < bias.size(); ++i) EXPECT_NEAR(bias[i - 1] - bias[i], 0.2, 1e-6);
}

}  // namespace
}  // namespace weft::dist::testing
