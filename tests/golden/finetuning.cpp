// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/unary.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "optim/ema.h"
#include "optim/layer_decay.h"
#include "optim/optimizers.h"
#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"

namespace weft::golden {
namespace {

/// Block and Net of finetuning.py.
struct Block : nn::Module {
  nn::LayerNorm norm{6};
  nn::Linear fc{6, 6};
  Tensor forward(const Tensor& x) const override { return x + gelu(fc(norm(x))); }
  void fields(nn::Visitor& v) override {
    v("norm", norm);
    v("fc", fc);
  }
};

struct Net : nn::Module {
  nn::Linear embed{4, 6};
  std::vector<std::shared_ptr<Block>> blocks;
  nn::LayerNorm norm{6};
  nn::Linear head{6, 3};

  Net() {
    for (int i = 0; i < 3; ++i) blocks.push_back(std::make_shared<Block>());
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = embed(x);
    for (const auto& block : blocks) y = (*block)(y);
    return head(norm(y));
  }
  void fields(nn::Visitor& v) override {
    v("embed", embed);
    v("blocks", blocks);
    v("norm", norm);
    v("head", head);
  }
};

constexpr int kSteps = 12;
constexpr double kAllowed = 2e-6;  // f32 weights of about 1 after 12 steps

/// The net of the file, trained; `each_step` is called behind each step with the net's parameters.
struct Training {
  Net net;
  std::unique_ptr<optim::AdamW> adam;

  explicit Training(bool decay_vectors) {
    fill_parameters(net);
    adam = std::make_unique<optim::AdamW>(
        optim::by_layer(net.parameters(),
                        {.lr = 2e-3, .factor = 0.6, .weight_decay = 0.1, .decay_vectors = decay_vectors}),
        optim::AdamWOptions{});
  }
  void step(int number) {
    std::vector<int64_t> labels;
    for (int i = 0; i < 5; ++i) labels.push_back((i + number) % 3);
    const Tensor x = Tensor::from(hashed_values(static_cast<uint32_t>(200 + number), 20), {5, 4});
    adam->zero_grad();
    cross_entropy(net(x), Tensor::from(labels)).backward();
    adam->step();
  }
  void expect_weights(const std::string& key) {
    static const File file("finetuning");
    for (const auto& [name, parameter] : net.parameters())
      expect_close(parameter.detach(), file[key + '.' + name], key + '.' + name, kAllowed);
  }
};

TEST(LayerDecay, EqualsPyTorchsParameterGroups) {
  for (const bool decay_vectors : {false, true}) {
    Training training(decay_vectors);
    EXPECT_EQ(training.adam->groups(), decay_vectors ? 5 : 10);
    for (int step = 0; step < kSteps; ++step) training.step(step);
    training.expect_weights(decay_vectors ? "all_decay.weights" : "vectors_stay.weights");
  }
}

TEST(Ema, EqualsPyTorch) {
  for (const bool warmup : {false, true}) {
    Training training(false);
    optim::Ema ema(training.adam->flat(), {}, {.decay = 0.8, .warmup = warmup});
    for (int step = 0; step < kSteps; ++step) {
      training.step(step);
      ema.update();
    }
    {
      const auto averaged = ema.swapped();
      training.expect_weights(warmup ? "vectors_stay.ema_warmup" : "vectors_stay.ema");
    }
    training.expect_weights("vectors_stay.weights");
  }
}

}  // namespace
}  // namespace weft::golden
