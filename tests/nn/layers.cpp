// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/index.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/models/resnet.h"
#include "nn/pool2d.h"
#include "nn/recurrent.h"
#include "nn/sequential.h"
#include "nn/spectral_norm.h"
#include "nn/transformer.h"
#include "nn/upsample.h"
#include "nn/weight_norm.h"
#include "tests/nn/leaves.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

struct Layer {
  const char* name;
  std::function<std::shared_ptr<Module>()> make;
  Shape input, output;
};

const Layer kLayers[] = {
    {"Linear", [] { return std::make_shared<Linear>(3, 5); }, {4, 3}, {4, 5}},
    {"LinearWithoutBias",
     [] { return std::make_shared<Linear>(3, 5, LinearOptions{.bias = false}); },
     {2, 4, 3},
     {2, 4, 5}},
    {"Conv2d",
     [] {
       return std::make_shared<Conv2d>(3, 6, Size2d{3, 3},
                                       Conv2dOptions{.stride = {2, 2}, .padding = {1, 1}, .groups = 3});
     },
     {2, 7, 5, 3},
     {2, 4, 3, 6}},
    {"BatchNorm2d", [] { return std::make_shared<BatchNorm2d>(3); }, {2, 4, 5, 3}, {2, 4, 5, 3}},
    {"LayerNorm", [] { return std::make_shared<LayerNorm>(6); }, {2, 4, 6}, {2, 4, 6}},
    {"GroupNorm", [] { return std::make_shared<GroupNorm>(3, 6); }, {2, 4, 5, 6}, {2, 4, 5, 6}},
    {"RMSNorm", [] { return std::make_shared<RMSNorm>(6); }, {2, 4, 6}, {2, 4, 6}},
    {"ConvTranspose2d",
     [] {
       return std::make_shared<ConvTranspose2d>(4, 6, Size2d{2, 2},
                                                ConvTranspose2dOptions{.stride = {2, 2}, .groups = 2});
     },
     {2, 3, 5, 4},
     {2, 6, 10, 6}},
    {"Conv1d",
     [] { return std::make_shared<Conv1d>(3, 6, 3, Conv1dOptions{.stride = 2, .padding = 1}); },
     {2, 7, 3},
     {2, 4, 6}},
    {"Conv3d",
     [] {
       return std::make_shared<Conv3d>(3, 6, Size3d{2, 3, 3}, Conv3dOptions{.stride = {2, 1, 1}, .padding = {1, 1, 0}});
     },
     {2, 4, 5, 6, 3},
     {2, 3, 5, 4, 6}},
    {"InstanceNorm",
     [] { return std::make_shared<InstanceNorm>(3, InstanceNormOptions{.affine = true}); },
     {2, 4, 5, 3},
     {2, 4, 5, 3}},
    {"Upsample", [] { return std::make_shared<Upsample>(); }, {2, 3, 4, 2}, {2, 6, 8, 2}},
    {"WeightNorm", [] { return std::make_shared<WeightNorm<Linear>>(std::make_shared<Linear>(3, 5)); }, {4, 3}, {4, 5}},
    {"SpectralNorm",
     [] { return std::make_shared<SpectralNorm<Linear>>(std::make_shared<Linear>(3, 5)); },
     {4, 3},
     {4, 5}},
    {"AdaptiveMaxPool2d",
     [] {
       return std::make_shared<AdaptiveMaxPool2d>(Size2d{2, 1});
     },
     {1, 5, 4, 2},
     {1, 2, 1, 2}},
    {"LSTM",
     [] {
       return std::make_shared<LSTM>(3, 4, RecurrentOptions{.layers = 2, .batch_first = true, .bidirectional = true});
     },
     {2, 5, 3},
     {2, 5, 8}},
    {"GRU", [] { return std::make_shared<GRU>(3, 4); }, {5, 2, 3}, {5, 2, 4}},
    {"RNN",
     [] {
       return std::make_shared<RNN>(3, 4, RnnOptions{{.layers = 2, .bidirectional = true}, /*relu=*/false});
     },
     {5, 2, 3},
     {5, 2, 8}},
    {"LSTMCell", [] { return std::make_shared<LSTMCell>(3, 4); }, {2, 3}, {2, 4}},
    {"GRUCell", [] { return std::make_shared<GRUCell>(3, 4); }, {2, 3}, {2, 4}},
    {"RNNCell", [] { return std::make_shared<RNNCell>(3, 4); }, {2, 3}, {2, 4}},
    {"CrossAttention", [] { return std::make_shared<CrossAttention>(6, 2); }, {2, 3, 6}, {2, 3, 6}},
    {"ELU", [] { return std::make_shared<ELU>(0.5); }, {2, 3}, {2, 3}},
    {"SiLU", [] { return std::make_shared<SiLU>(); }, {2, 3}, {2, 3}},
    {"Softplus", [] { return std::make_shared<Softplus>(); }, {2, 3}, {2, 3}},
    {"Mish", [] { return std::make_shared<Mish>(); }, {2, 3}, {2, 3}},
    {"Sigmoid", [] { return std::make_shared<Sigmoid>(); }, {2, 3}, {2, 3}},
    {"Tanh", [] { return std::make_shared<Tanh>(); }, {2, 3}, {2, 3}},
    {"ReLU", [] { return std::make_shared<ReLU>(); }, {2, 3}, {2, 3}},
    {"LeakyReLU", [] { return std::make_shared<LeakyReLU>(0.2); }, {2, 3}, {2, 3}},
    {"GELU", [] { return std::make_shared<GELU>(Gelu::tanh); }, {2, 3}, {2, 3}},
    {"MaxPool2d",
     [] {
       return std::make_shared<MaxPool2d>(Pool2dOptions{.kernel = {2, 2}});
     },
     {1, 5, 4, 2},
     {1, 2, 2, 2}},
    {"AvgPool2d",
     [] {
       return std::make_shared<AvgPool2d>(Pool2dOptions{.kernel = {2, 2}});
     },
     {1, 5, 4, 2},
     {1, 2, 2, 2}},
    {"AdaptiveAvgPool2d",
     [] {
       return std::make_shared<AdaptiveAvgPool2d>(Size2d{2, 3});
     },
     {1, 5, 4, 2},
     {1, 2, 3, 2}},
    {"BatchNorm1d", [] { return std::make_shared<BatchNorm1d>(3); }, {2, 4, 3}, {2, 4, 3}},
    {"BatchNorm3d", [] { return std::make_shared<BatchNorm3d>(3); }, {2, 2, 4, 5, 3}, {2, 2, 4, 5, 3}},
    {"ConvTranspose1d",
     [] { return std::make_shared<ConvTranspose1d>(4, 6, 3, ConvTranspose1dOptions{.stride = 2, .groups = 2}); },
     {2, 3, 4},
     {2, 7, 6}},
    {"ConvTranspose3d",
     [] {
       return std::make_shared<ConvTranspose3d>(4, 6, Size3d{2, 3, 2},
                                                ConvTranspose3dOptions{.stride = 2, .groups = 2});
     },
     {2, 3, 2, 3, 4},
     {2, 6, 5, 6, 6}},
    {"MaxPool1d", [] { return std::make_shared<MaxPool1d>(Pool1dOptions{.kernel = 2}); }, {1, 5, 2}, {1, 2, 2}},
    {"AvgPool1d", [] { return std::make_shared<AvgPool1d>(Pool1dOptions{.kernel = 3}); }, {1, 6, 2}, {1, 2, 2}},
    {"AdaptiveAvgPool1d", [] { return std::make_shared<AdaptiveAvgPool1d>(3); }, {1, 5, 2}, {1, 3, 2}},
    {"MaxPool3d", [] { return std::make_shared<MaxPool3d>(Pool3dOptions{}); }, {1, 4, 5, 4, 2}, {1, 2, 2, 2, 2}},
    {"AvgPool3d", [] { return std::make_shared<AvgPool3d>(Pool3dOptions{}); }, {1, 4, 5, 4, 2}, {1, 2, 2, 2, 2}},
    {"AdaptiveAvgPool3d", [] { return std::make_shared<AdaptiveAvgPool3d>(2); }, {1, 4, 5, 4, 2}, {1, 2, 2, 2, 2}},
    {"Dropout", [] { return std::make_shared<Dropout>(0.5); }, {2, 3}, {2, 3}},
    {"Flatten", [] { return std::make_shared<Flatten>(); }, {2, 3, 4, 5}, {2, 60}},
    {"Identity", [] { return std::make_shared<Identity>(); }, {2, 3}, {2, 3}},
};

class Layers : public testing::TestWithParam<Layer> {};

TEST_P(Layers, ShapesFieldsAndFlow) {
  const auto layer = GetParam().make();
  const Tensor x = normal(GetParam().input).requires_grad_();
  const Tensor y = (*layer)(x);
  EXPECT_EQ(y.sizes(), GetParam().output);
  for (const NamedTensor& parameter : layer->parameters()) EXPECT_TRUE(parameter.tensor.requires_grad());
  if (!layer->parameters().empty()) {
    EXPECT_EQ(forgotten_members(*layer, x.detach()), 0u);
    EXPECT_EQ(idle_members(*layer, x.detach()), 0u);
  }
  if (!y.is_same(x)) {
    y.backward(normal(y.sizes()));
    EXPECT_EQ(x.grad().sizes(), x.sizes());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Layers, testing::ValuesIn(kLayers), [](const auto& test) { return test.param.name; });

/// A module as STYLE.md warns of: `hidden` works and is never named, so nobody would train or save it.
struct Forgetful : Module {
  Linear named{3, 3}, hidden{3, 3};
  Tensor forward(const Tensor& x) const override { return hidden(named(x)); }
  void fields(Visitor& v) override { v("named", named); }
};

TEST(Fields, AForgottenMemberIsFound) {
  Forgetful net;
  EXPECT_EQ(forgotten_members(net, normal({2, 3})), 2u);
}

TEST(BatchNorm2d, CountsBatchesInTrainingOnly) {
  BatchNorm2d norm(3);
  const Tensor x = normal({4, 2, 2, 3});
  norm(x);
  norm(x);
  norm.eval();
  norm(x);
  EXPECT_EQ(norm.num_batches_tracked, 2);
  EXPECT_EQ(norm.state_dict().tensor("num_batches_tracked").item(), 2);
  norm.train();
  EXPECT_THAT(error_text([&] { norm(normal({4, 2, 2, 5})); }), ::testing::HasSubstr("Is the input NHWC?"));
  EXPECT_EQ(norm.num_batches_tracked, 2) << "an error is no batch";
}

TEST(BatchNorm2d, ACheckpointsSecondRunIsNoBatch) {
  BatchNorm2d norm(3);
  sum(checkpoint([&](const std::vector<Tensor>& in) { return norm(in[0]); }, {normal({4, 3})})).backward();
  EXPECT_EQ(norm.num_batches_tracked, 1);
}

TEST(BatchNorm2d, EvaluationUsesTheRunningStatistics) {
  BatchNorm2d norm(2);
  norm.eval();
  const Tensor x = normal({50, 2}, 3, 2);
  const std::vector<double> given = x.to_vector<double>(), fresh = norm(x).to_vector<double>();
  for (size_t i = 0; i < given.size(); ++i)
    EXPECT_NEAR(fresh[i], given[i] / std::sqrt(1 + 1e-5), 1e-6 * std::abs(given[i])) << "mean 0, variance 1 at first";
}

TEST(BatchNorm2d, TrainingMovesTheRunningStatistics) {
  BatchNorm2d norm(1, {.momentum = 0.25});
  norm(Tensor::from<float>({1, 2, 3, 6}, {4, 1}));  // mean 3, unbiased variance 14 / 3
  EXPECT_FLOAT_EQ(static_cast<float>(norm.running_mean.item()), 0.25f * 3);
  EXPECT_FLOAT_EQ(static_cast<float>(norm.running_var.item()), 0.75f + 0.25f * 14 / 3);
}

TEST(BatchNorm2d, WithoutRunningStatisticsUsesTheBatch) {
  BatchNorm2d norm(2, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(norm.state_dict().tensors.empty());
  norm.eval();
  const std::vector<float> y = norm(normal({50, 2}, 3, 2)).to_vector<float>();
  double mean = 0;
  for (const float v : y) mean += v / 100;
  EXPECT_NEAR(mean, 0, 1e-5);
}

TEST(BatchNorm2d, FusedFormCallsTheHooks) {
  BatchNorm2d norm(3);
  int calls = 0;
  norm.register_hooks([&](const Module&, const Tensor&) { ++calls; }, {});
  const Tensor x = normal({2, 2, 2, 3});
  const std::vector<float> y = norm(x, {.relu = true, .residual = x}).to_vector<float>();
  EXPECT_EQ(calls, 1);
  for (const float v : y) EXPECT_GE(v, 0);
}

// The largest singular value of diag(3, 1) turned by a rotation is 3, and that of a convolution's weight [out, …] 1.
TEST(Normed, NeedALayerWithAWeight) {
  EXPECT_EQ(error_text([] { WeightNorm<Linear> w(nullptr); }), "WeightNorm: expected a layer with a weight, got null");
  EXPECT_EQ(error_text([] { SpectralNorm<Linear> s(nullptr); }),
            "SpectralNorm: expected a layer with a weight, got null");
  const auto layer = std::make_shared<Linear>(2, 2);
  const WeightNorm<Linear> first(layer);  // it has taken the weight
  EXPECT_EQ(error_text([&] { WeightNorm<Linear> w(layer); }),
            "WeightNorm: expected a layer with a weight, got Linear without one");
  EXPECT_EQ(error_text([&] { SpectralNorm<Linear> s(layer); }),
            "SpectralNorm: expected a layer with a weight, got Linear without one");
}

TEST(SpectralNorm, DividesByTheLargestSingularValue) {
  manual_seed(2);
  const auto inner = std::make_shared<Linear>(2, 2, LinearOptions{.bias = false});
  const double c = 0.6, s = 0.8;
  {
    const NoGrad no_grad;
    inner->weight.copy_(Tensor::from<double>({3 * c, -s, 3 * s, c}, {2, 2}));
  }
  SpectralNorm<Linear> net(inner, {.iterations = 40});
  const Tensor x = Tensor::from<float>({1, 0, 0, 1}, {2, 2});
  const auto expect = [&](const Tensor& y, const std::vector<double>& want) {
    const std::vector<double> got = y.to(DType::f64).to_vector<double>();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  };
  expect(net(x), {c, s, -s / 3, c / 3});
  const std::vector<float> u = net.weight_u.to_vector<float>();
  net.eval();
  sum(net(x)).backward();
  EXPECT_EQ(net.weight_u.to_vector<float>(), u) << "evaluation leaves the vectors";
  // d(sum(W / s)) / dW = 1 / s - sum(W) / s^2 u v^T, u = (c, s), v = (1, 0).
  const double total = 3 * c - s + 3 * s + c;
  expect(net.weight_orig.grad(), {1 / 3. - total * c / 9, 1 / 3., 1 / 3. - total * s / 9, 1 / 3.});
  SpectralNorm<Conv2d> image(std::make_shared<Conv2d>(3, 5, Size2d{2, 3}), {.iterations = 30});
  EXPECT_EQ(image.weight_v.sizes(), Shape{18});
  EXPECT_EQ(image.state_dict().tensor("weight_orig").sizes(), (Shape{5, 3, 2, 3}));
  image(normal({1, 4, 4, 3}));
  const Tensor w = image.state_dict().tensor("weight_orig").reshape({5, 18});
  const Tensor product = matmul(w, image.weight_v);  // a singular vector: its length is the value
  expect(sum(product * image.weight_u) - norm(product), {0});
  EXPECT_EQ(error_text([] { SpectralNorm<Linear>(std::make_shared<Linear>(2, 2), {.iterations = 0}); }),
            "SpectralNorm: expected at least one iteration, got 0");
}

TEST(Dropout, WorksInTrainingOnly) {
  Dropout dropout(0.5);
  const Tensor x = Tensor::ones({1000});
  size_t zeros = 0;
  for (const float v : dropout(x).to_vector<float>()) {
    EXPECT_TRUE(v == 0 || v == 2) << v;
    zeros += v == 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros), 500, 100);
  dropout.eval();
  EXPECT_EQ(dropout(x).to_vector<float>(), x.to_vector<float>());
}

// The Linear behind a Flatten must take PyTorch's weights: the order is C, H, W although memory is H, W, C.
TEST(Flatten, OrderIsPyTorchs) {
  const Tensor x = Tensor::arange(1 * 2 * 3 * 2).reshape({1, 2, 3, 2});  // element = ((h * 3) + w) * 2 + c
  const std::vector<float> channels_first{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11};
  EXPECT_EQ(Flatten()(x).to_vector<float>(), channels_first);
  EXPECT_EQ(Flatten()(x.reshape({1, 3, 1, 2, 2})).to_vector<float>(), channels_first) << "of a volume";
}

TEST(Layers, OneNumberMeansAllDimensions) {
  const Tensor x = normal({1, 8, 8, 3});
  EXPECT_EQ(Conv2d(3, 4, 3, {.padding = 1})(x).sizes(), (Shape{1, 8, 8, 4}));
  EXPECT_EQ(Conv2d(3, 4, {3, 3}, {.stride = 2, .padding = 1})(x).sizes(), (Shape{1, 4, 4, 4}));
  EXPECT_EQ(ConvTranspose2d(3, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1})(x).sizes(),
            (Shape{1, 16, 16, 4}));
  EXPECT_EQ(Conv3d(3, 4, 3, {.padding = 1})(normal({1, 4, 4, 4, 3})).sizes(), (Shape{1, 4, 4, 4, 4}));
  EXPECT_EQ(MaxPool2d({.kernel = 2, .stride = 1})(x).sizes(), (Shape{1, 7, 7, 3}));
  EXPECT_EQ(AvgPool2d({.kernel = 3, .padding = 1})(x).sizes(), (Shape{1, 3, 3, 3}));
  EXPECT_EQ(AdaptiveAvgPool2d(2)(x).sizes(), (Shape{1, 2, 2, 3}));
  EXPECT_EQ(Upsample({.size = 5})(x).sizes(), (Shape{1, 5, 5, 3}));
  EXPECT_EQ(Upsample({.scale = 3})(x).sizes(), (Shape{1, 24, 24, 3}));
  EXPECT_EQ(Upsample({.scale = {2, 3}})(x).sizes(), (Shape{1, 16, 24, 3}));
}

TEST(Layers, EmbeddingsBeginAsPyTorchs) {
  manual_seed(3);
  const Tensor weight = Embedding(1000, 10).weight;
  EXPECT_NEAR(norm(weight).item() / 100, 1, 0.05);
  EXPECT_EQ(max(abs(Embedding(4, 3, {.std = 0.5, .padding = 2}).weight.select(0, 2))).item(), 0);
}

static_assert(!std::is_constructible_v<Linear, int, double> && !std::is_constructible_v<Conv2d, int, int, double> &&
              !std::is_constructible_v<Embedding, int, int, double> && std::is_constructible_v<Conv2d, int, int, int>);

TEST(Layers, CrossAttentionToItselfIsSelfAttention) {
  MultiHeadAttention self(6, 2);
  CrossAttention cross(6, 2);
  const NoGrad no_grad;
  cross.q.weight.copy_(self.qkv.weight.slice(0, 0, 6));
  cross.kv.weight.copy_(self.qkv.weight.slice(0, 6, 12));
  normal_(self.qkv.bias);
  cross.q.bias.copy_(self.qkv.bias.slice(0, 0, 6));
  cross.kv.bias.copy_(self.qkv.bias.slice(0, 6, 12));
  cross.proj.weight.copy_(self.proj.weight);
  const Tensor x = normal({2, 5, 6}), y = self(x), z = cross(x.slice(1, 1, 3), x);
  EXPECT_LE(max(abs(z - y.slice(1, 1, 3))).item(), 1e-6);
  const Tensor hidden = Tensor::from<bool>({true, false, true, true, false});
  EXPECT_LE(max(abs(cross(x, x, {.bias = hidden}) - cross(x, x.index({Slice{}, hidden})))).item(), 1e-6);
  EXPECT_EQ(
      error_text([&] {
        cross(x, Tensor::zeros({3, 5, 6}));
      }),
      "CrossAttention: expected tokens [N, tokens, width] and others [N, others, context], got f32[2,5,6] on cpu and "
      "f32[3,5,6] on cpu");
  EXPECT_EQ(error_text([] { CrossAttention(6, 4); }),
            "CrossAttention: expected a width that is a multiple of the heads, got 6 and 4");
}

TEST(Layers, ErrorsOfTheCells) {
  EXPECT_EQ(error_text([] { LSTMCell(0, 4); }), "LSTMCell: expected positive sizes, got in = 0, hidden = 4");
  EXPECT_EQ(error_text([] {
              GRUCell(3, 4)(Tensor::zeros({2, 5}));
            }),
            "GRUCell: expected an input [B, 3], got f32[2,5] on cpu");
  EXPECT_EQ(error_text([] {
              RNNCell(3, 4)(Tensor::zeros({2, 3}), Tensor::zeros({1, 4}));
            }),
            "RNNCell: expected a state [2,4], got f32[1,4] on cpu");
  EXPECT_EQ(error_text([] {
              RNN(3, 4)(Tensor::zeros({0, 2, 3}));
            }),
            "RNN: expected at least one step, got f32[0,2,3] on cpu");
}

TEST(Layers, ErrorsOfTheConstructors) {
  EXPECT_EQ(error_text([] {
              ResNet({2, 2, 2}, false, {});
            }),
            "ResNet: expected at least one block in each of four stages, got [2,2,2,0]");
  EXPECT_EQ(error_text([] { Linear(0, 3); }), "Linear: expected positive sizes, got in = 0, out = 3");
  EXPECT_EQ(error_text([] {
              Conv2d(3, 8, {0, 3});
            }),
            "Conv2d: expected positive sizes, got in = 3, out = 8, kernel = 0x3");
  EXPECT_EQ(error_text([] {
              Conv2d(3, 8, {3, 3}, {.groups = 2});
            }),
            "Conv2d: groups = 2 must divide in = 3 and out = 8");
  EXPECT_EQ(error_text([] { BatchNorm2d(0); }), "BatchNorm2d: expected a positive number of channels, got 0");
  EXPECT_EQ(error_text([] {
              BatchNorm1d(3)(Tensor::zeros({2, 2, 2, 3}));
            }),
            "BatchNorm1d: expected an input [N, L, C] or [N, C], got f32[2,2,2,3] on cpu");
  EXPECT_EQ(error_text([] {
              BatchNorm3d(3)(Tensor::zeros({2, 3}));
            }),
            "BatchNorm3d: expected an input [N, D, H, W, C], got f32[2,3] on cpu");
  for (const Shape& sizes : {Shape{2, 1, 1, 4}, Shape{2, 4}})
    EXPECT_EQ(error_text([&] { InstanceNorm(4)(Tensor::ones(sizes)); }),
              str("InstanceNorm: expected more than one spatial element, got f32", sizes, " on cpu"));
  EXPECT_EQ(InstanceNorm(4)(Tensor::ones({1, 2, 1, 4})).sizes(), (Shape{1, 2, 1, 4}));
  EXPECT_EQ(error_text([] { LayerNorm(0); }), "LayerNorm: expected a positive size, got 0");
  EXPECT_EQ(error_text([] { Dropout(1); }), "Dropout: expected a probability in [0, 1), got 1");
}

}  // namespace
}  // namespace weft::nn
