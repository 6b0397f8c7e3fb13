// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "kernels/engines/cudnn.h"
#include "nn/conv.h"
#include "nn/embedding.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/recurrent.h"
#include "nn/spectral_norm.h"
#include "nn/transformer.h"
#include "nn/upsample.h"
#include "nn/weight_norm.h"
#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"
#include "tests/support/devices.h"

namespace weft::golden {
namespace {

constexpr uint32_t kX = 700, kDy = 800;  // seeds of modules.py

Tensor hashed(uint32_t seed, const Shape& sizes, Device device, float scale = 1, float shift = 0) {
  return Tensor::from(hashed_values(seed, sizes.numel(), scale, shift), sizes, device);
}

struct ModuleCase {
  std::string name;
  Shape input = {};  ///< none: embeddings
  std::function<std::shared_ptr<nn::Module>()> make = {};
  std::function<std::vector<Tensor>(const nn::Module&, const Tensor& x)> run = {};
};

std::vector<Tensor> plain(const nn::Module& module, const Tensor& x) { return {module(x)}; }

ModuleCase up(const std::string& name, const Shape& input, const nn::UpsampleOptions& options) {
  return {name, input, [options] { return std::make_shared<nn::Upsample>(options); }, plain};
}

ModuleCase lstm(const std::string& name, const Shape& input, int64_t hidden, const nn::RecurrentOptions& options,
                const Shape& states = {}) {
  return {name, input, [=] { return std::make_shared<nn::LSTM>(4, hidden, options); },
          [=](const nn::Module& module, const Tensor& x) {
            Tensor h, c;
            if (states.rank() > 0) {
              h = hashed(kX + 1, states, x.device());
              c = hashed(kX + 2, states, x.device());
            }
            const nn::LstmOutput all = dynamic_cast<const nn::LSTM&>(module)(x, h, c);
            return std::vector<Tensor>{all.y, all.h, all.c};
          }};
}

ModuleCase gru(const std::string& name, const Shape& input, int64_t hidden, const nn::RecurrentOptions& options,
               const Shape& states = {}) {
  return {name, input, [=] { return std::make_shared<nn::GRU>(4, hidden, options); },
          [=](const nn::Module& module, const Tensor& x) {
            const Tensor h = states.rank() > 0 ? hashed(kX + 1, states, x.device()) : Tensor();
            const nn::GruOutput all = dynamic_cast<const nn::GRU&>(module)(x, h);
            return std::vector<Tensor>{all.y, all.h};
          }};
}

ModuleCase rnn(const std::string& name, const Shape& input, int64_t hidden, const nn::RnnOptions& options,
               const Shape& states = {}) {
  return {name, input, [=] { return std::make_shared<nn::RNN>(4, hidden, options); },
          [=](const nn::Module& module, const Tensor& x) {
            const Tensor h = states.rank() > 0 ? hashed(kX + 1, states, x.device()) : Tensor();
            const nn::GruOutput all = dynamic_cast<const nn::RNN&>(module)(x, h);
            return std::vector<Tensor>{all.y, all.h};
          }};
}

/// LSTM and GRU over sequences of several lengths.
template <class Layer>
ModuleCase packed(const std::string& name, const Shape& input, int64_t hidden, const nn::RecurrentOptions& options,
                  const std::vector<int64_t>& lengths) {
  return {name, input, [=] { return std::make_shared<Layer>(4, hidden, options); },
          [=](const nn::Module& module, const Tensor& x) {
            const auto all = dynamic_cast<const Layer&>(module)(x, nn::Lengths(lengths));
            std::vector<Tensor> outputs{all.y, all.h};
            if constexpr (requires { all.c; }) outputs.push_back(all.c);
            return outputs;
          }};
}

/// The result and the singular vectors after it.
template <class Layer>
ModuleCase spectral(const std::string& name, const Shape& input, const std::function<std::shared_ptr<Layer>()>& make) {
  return {name, input, [=] { return std::make_shared<nn::SpectralNorm<Layer>>(make()); },
          [](const nn::Module& module, const Tensor& x) {
            const auto& normed = dynamic_cast<const nn::SpectralNorm<Layer>&>(module);
            const Tensor y = normed(x);
            return std::vector<Tensor>{y, normed.weight_u.clone(), normed.weight_v.clone()};
          }};
}

template <class Cell>
ModuleCase cell(const std::string& name) {
  return {name,
          {3, 4},
          [] { return std::make_shared<Cell>(4, 5); },
          [](const nn::Module& module, const Tensor& x) {
            const Tensor h = hashed(kX + 1, {3, 5}, x.device());
            return std::vector<Tensor>{dynamic_cast<const Cell&>(module)(x, h)};
          }};
}

ModuleCase bag(const std::string& name, const EmbeddingBagOptions& options, const std::vector<int64_t>& offsets = {}) {
  return {name,
          {},
          [=] { return std::make_shared<nn::EmbeddingBag>(6, 3, options); },
          [=](const nn::Module& module, const Tensor& like) {
            const std::vector<int64_t> index{1, 3, 3, 0, 5, 2, 2, 2, 2, 4, 0, 5};
            const auto& bags = dynamic_cast<const nn::EmbeddingBag&>(module);
            if (offsets.empty()) return std::vector<Tensor>{bags(Tensor::from(index, {3, 4}, like.device()))};
            return std::vector<Tensor>{bags(Tensor::from(index, like.device()), Tensor::from(offsets, like.device()))};
          }};
}

const std::vector<ModuleCase>& module_cases() {
  using namespace nn;
  static const std::vector<ModuleCase> all{
      {"conv1d",
       {2, 9, 4},
       [] {
         return std::make_shared<Conv1d>(4, 6, 3, Conv1dOptions{.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
       },
       plain},
      {"conv3d",
       {2, 6, 5, 7, 3},
       [] {
         return std::make_shared<Conv3d>(
             3, 4, Size3d{3, 2, 3}, Conv3dOptions{.stride = {2, 1, 2}, .padding = {1, 0, 1}, .dilation = {1, 2, 1}});
       },
       plain},
      {"conv3d_groups",
       {1, 4, 5, 4, 4},
       [] {
         return std::make_shared<Conv3d>(
             4, 6, Size3d{2, 3, 1},
             Conv3dOptions{.stride = {1, 2, 1}, .padding = {1, 1, 0}, .dilation = {2, 1, 1}, .groups = 2},
             Conv2dWeights{.bias = false});
       },
       plain},
      {"conv_transpose1d",
       {2, 6, 4},
       [] {
         return std::make_shared<ConvTranspose1d>(
             4, 6, 3,
             ConvTranspose1dOptions{.stride = 2, .padding = 1, .dilation = 2, .output_padding = 1, .groups = 2});
       },
       plain},
      {"conv_transpose3d",
       {2, 3, 4, 2, 3},
       [] {
         return std::make_shared<ConvTranspose3d>(
             3, 4, Size3d{3, 2, 3},
             ConvTranspose3dOptions{
                 .stride = {2, 1, 2}, .padding = {1, 0, 1}, .dilation = {1, 2, 1}, .output_padding = {1, 0, 0}});
       },
       plain},
      {"cross_attention",
       {2, 3, 8},
       [] { return std::make_shared<CrossAttention>(8, 2, CrossAttentionOptions{.context = 6}); },
       [](const Module& module, const Tensor& x) {
         const Tensor context = hashed(kX + 1, {2, 5, 6}, x.device());
         return std::vector<Tensor>{dynamic_cast<const CrossAttention&>(module)(x, context)};
       }},
      spectral<Conv2d>("spectral_norm", {2, 5, 4, 3},
                       [] {
                         return std::make_shared<Conv2d>(3, 4, Size2d{3, 3});
                       }),
      spectral<Linear>("spectral_norm_linear", {4, 5}, [] { return std::make_shared<Linear>(5, 3); }),
      {"instance_norm",
       {2, 4, 5, 6},
       [] { return std::make_shared<InstanceNorm>(6, InstanceNormOptions{.affine = true}); },
       plain},
      {"instance_norm_plain",
       {2, 7, 3},
       [] { return std::make_shared<InstanceNorm>(3, InstanceNormOptions{.eps = 0.1}); },
       plain},
      {"weight_norm",
       {2, 5, 4, 3},
       [] {
         return std::make_shared<WeightNorm<Conv2d>>(std::make_shared<Conv2d>(3, 4, Size2d{3, 3}));
       },
       plain},
      {"weight_norm_linear",
       {4, 5},
       [] { return std::make_shared<WeightNorm<Linear>>(std::make_shared<Linear>(5, 3)); },
       plain},
      up("nearest", {2, 3, 4, 2}, {}),
      up("nearest_size", {1, 5, 4, 2}, {.size = Size2d{7, 3}}),
      up("bilinear", {2, 5, 4, 3}, {.scale = 1.7, .interpolation = Interpolation::bilinear}),
      up("bilinear_corners", {1, 5, 4, 3},
         {.size = Size2d{9, 3}, .interpolation = Interpolation::bilinear, .align_corners = true}),
      up("bicubic", {1, 5, 4, 3}, {.size = Size2d{8, 6}, .interpolation = Interpolation::bicubic}),
      up("bicubic_corners", {1, 5, 4, 2},
         {.size = Size2d{7, 9}, .interpolation = Interpolation::bicubic, .align_corners = true}),
      lstm("lstm", {5, 3, 4}, 6, {}),
      lstm("lstm_deep", {3, 5, 4}, 3, {.layers = 2, .batch_first = true, .bidirectional = true}, {4, 3, 3}),
      lstm("lstm_plain", {1, 2, 4}, 3, {.layers = 2, .bias = false}),
      rnn("rnn", {5, 3, 4}, 6, {}),
      rnn("rnn_deep", {3, 5, 4}, 3, {{.layers = 2, .batch_first = true, .bidirectional = true}, /*relu=*/true},
          {4, 3, 3}),
      {"lstm_cell",
       {3, 4},
       [] { return std::make_shared<LSTMCell>(4, 5); },
       [](const Module& module, const Tensor& x) {
         const LstmState next = dynamic_cast<const LSTMCell&>(module)(
             x, {hashed(kX + 1, {3, 5}, x.device()), hashed(kX + 2, {3, 5}, x.device())});
         return std::vector<Tensor>{next.h, next.c};
       }},
      cell<GRUCell>("gru_cell"),
      cell<RNNCell>("rnn_cell"),
      gru("gru", {5, 3, 4}, 6, {}),
      gru("gru_deep", {3, 5, 4}, 3, {.layers = 2, .batch_first = true, .bidirectional = true}, {4, 3, 3}),
      gru("gru_plain", {2, 2, 4}, 3, {.layers = 2, .bias = false}),
      packed<LSTM>("lstm_lengths", {5, 4, 4}, 6, {}, {3, 5, 1, 3}),
      packed<LSTM>("lstm_lengths_deep", {3, 5, 4}, 3, {.layers = 2, .batch_first = true, .bidirectional = true},
                   {2, 4, 5}),
      packed<GRU>("gru_lengths", {5, 4, 4}, 3, {.layers = 2, .bidirectional = true}, {3, 4, 1, 3}),
      bag("bag_sum", {.mode = Bag::sum, .padding = 2}),
      bag("bag_mean", {.mode = Bag::mean, .padding = 2}),
      bag("bag_max", {.mode = Bag::max}),
      bag("bag_sum_offsets", {.mode = Bag::sum}, {0, 3, 3, 10}),
      bag("bag_mean_offsets", {.mode = Bag::mean, .padding = 3}, {0, 5, 5, 7}),
  };
  return all;
}

/// Compares outputs and gradients with the file's entries of this name; there are no others.
void expect_all(const File& file, const std::string& name, const std::vector<Tensor>& outputs,
                const std::vector<NamedTensor>& inputs) {
  Tensor total;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    expect_close(y, file[str(name, ".y", i)], str(name, " output ", i));
    const Tensor part = sum(mul(y, hashed(kDy + static_cast<uint32_t>(i), y.sizes(), y.device())));
    total = total.defined() ? add(total, part) : part;
  }
  total.backward();
  for (const auto& [key, tensor] : inputs) {
    const bool is_filter = key.find("weight") != std::string::npos && tensor.dim() > 2;
    const Tensor gradient = is_filter ? to_file_order(tensor.grad()) : tensor.grad();
    expect_close(gradient, file[name + ".d." + key], name + " gradient of " + key);
  }
  size_t expected = 0;
  for (const auto& [key, tensor] : file.tensors()) expected += key.starts_with(name + '.');
  EXPECT_EQ(outputs.size() + inputs.size(), expected) << "PyTorch has other parameters";
}

/// On a GPU with cuDNN: LSTM and GRU by it, too.
std::vector<kernels::Engine> engines_of(DeviceKind kind) {
  if (kind != DeviceKind::cuda || !kernels::vendor::cudnn::missing().empty()) return {kernels::Engine::own};
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 0);  // else cuDNN's RNN does not run
  return {kernels::Engine::own, kernels::Engine::vendor, kernels::Engine::automatic};
}

class Modules : public testing::TestWithParam<ModuleCase> {};

TEST_P(Modules, EqualPyTorch) {
  const ModuleCase& one = GetParam();
  const File file("modules");
  for (const DeviceKind kind : tests::test_devices()) {
    SCOPED_TRACE(weft::name(kind));
    const Device device{kind, 0};
    for (const kernels::Engine engine : engines_of(kind)) {
      SCOPED_TRACE(kernels::name(engine));
      const kernels::EngineGuard guard(engine);
      const auto module = one.make();
      fill_parameters(*module);
      module->to(device);
      std::vector<NamedTensor> inputs = module->parameters();
      const bool has_input = one.input.rank() > 0;
      const Tensor x = hashed(kX, has_input ? one.input : Shape{1}, device).requires_grad_();
      if (has_input) inputs.push_back({"x", x});
      expect_all(file, one.name, one.run(*module, x), inputs);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Modules, testing::ValuesIn(module_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(WeightNormed, BeginsAsTheLayerThatItIsGiven) {
  const auto conv = std::make_shared<nn::Conv2d>(3, 4, Size2d{3, 3});
  const Tensor x = hashed(kX, {2, 5, 5, 3}, {}), y = conv->forward(x);
  expect_close(nn::WeightNorm<nn::Conv2d>(conv)(x), y.detach(), "output");
}

TEST(Recurrent, DropoutIsBetweenLayersInTrainingOnly) {
  nn::GRU gru(4, 6, {.layers = 2, .dropout = 0.5});
  const Tensor x = hashed(kX, {3, 2, 4}, {});
  EXPECT_NE(gru(x).to_vector<float>(), gru(x).to_vector<float>());
  gru.eval();
  EXPECT_EQ(gru(x).to_vector<float>(), gru(x).to_vector<float>());
  nn::GRU one(4, 6, {.dropout = 0.5});
  EXPECT_EQ(one(x).to_vector<float>(), one(x).to_vector<float>()) << "not after the last layer";
}

}  // namespace
}  // namespace weft::golden
