// SPDX-License-Identifier: Apache-2.0
#include "optim/ema.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "optim/optimizers.h"
#include "tests/support/error_text.h"

namespace weft::optim {
namespace {

std::vector<float> numbers(const Tensor& tensor) { return tensor.detach().to_vector<float>(); }

/// Two parameters, and a net's other state: running statistics and a counter.
struct Model {
  std::vector<NamedTensor> parameters{{"a.weight", Tensor::full({3, 5}, 1).requires_grad_()},
                                      {"b.bias", Tensor::full({7}, 2).requires_grad_()}};
  std::vector<NamedTensor> buffers{{"mean", Tensor::full({2}, 8)}, {"count", Tensor::zeros({}, DType::i64)}};
  std::shared_ptr<FlatParameters> flat = FlatParameters::of(parameters);

  void set(float weights, float mean) const {
    const NoGrad no_grad;
    for (const NamedTensor& parameter : parameters) parameter.tensor.fill_(weights);
    buffers[0].tensor.fill_(mean);
  }
};

TEST(Ema, AveragesWeightsAndBuffers) {
  const Model model;
  Ema ema(model.flat, model.buffers, {.decay = 0.75});
  model.set(5, 0);
  ema.update();
  model.set(9, 4);
  ema.update();
  EXPECT_EQ(ema.updates(), 2);
  {
    const auto averaged = ema.swapped();
    EXPECT_EQ(numbers(model.parameters[0].tensor), std::vector<float>(15, 3.75));   // 1, 2, 3.75
    EXPECT_EQ(numbers(model.parameters[1].tensor), std::vector<float>(7, 4.3125));  // 2, 2.75, 4.3125
    EXPECT_EQ(numbers(model.buffers[0].tensor), std::vector<float>(2, 5.5));        // 8, 6, 5.5
    EXPECT_EQ(error_text([&] { ema.update(); }), "Ema: update: the model has the averages now");
    EXPECT_EQ(error_text([&] { ema.state_dict(); }), "Ema: state_dict: the model has the averages now");
  }
  EXPECT_EQ(numbers(model.parameters[1].tensor), std::vector<float>(7, 9));
  EXPECT_EQ(numbers(model.buffers[0].tensor), std::vector<float>(2, 4));
}

TEST(Ema, MayBeAdopted) {
  const Model model;
  Ema ema(model.flat, model.buffers, {.decay = 0.75});
  model.set(5, 0);
  ema.update();
  ema.adopt();
  EXPECT_EQ(numbers(model.parameters[0].tensor), std::vector<float>(15, 2));
  EXPECT_EQ(numbers(model.buffers[0].tensor), std::vector<float>(2, 6));
}

TEST(Ema, WarmupForgetsTheStart) {
  const Model model;
  Ema ema(model.flat, {}, {.decay = 0.5, .warmup = true});
  model.set(11, 0);
  ema.update();  // decay 1/10: 1 -> 10
  EXPECT_FLOAT_EQ(ema.state_dict().tensor("a.weight.ema").to_vector<float>()[0], 10);
  model.set(21, 0);
  ema.update();  // decay 2/11
  EXPECT_FLOAT_EQ(ema.state_dict().tensor("a.weight.ema").to_vector<float>()[0], 19);
  for (int i = 2; i < 9; ++i) ema.update();
  model.set(0, 0);
  const float before = numbers(ema.state_dict().tensor("a.weight.ema"))[3];
  ema.update();  // (1 + 9) / (10 + 9) is above 0.5
  EXPECT_FLOAT_EQ(numbers(ema.state_dict().tensor("a.weight.ema"))[3], before / 2);
}

TEST(Ema, TheLowPrecisionCopyFollows) {
  const Model model;
  Ema ema(model.flat, {}, {.decay = 0.5});
  model.flat->keep_compute_copy(DType::bf16);
  model.set(3, 0);
  model.flat->weights_changed(/*copied=*/false);
  const Tensor& parameter = model.parameters[0].tensor;
  const auto averaged = ema.swapped();
  const AutogradMeta& meta = *parameter.impl()->autograd;
  EXPECT_EQ(numbers(meta.compute_copy), std::vector<float>(15, 1));
  EXPECT_EQ(meta.compute_version, parameter.storage()->version());
}

TEST(Ema, ASwapInvalidatesSavedWeights) {
  const Model model;
  Ema ema(model.flat, {}, {});
  const Tensor loss = sum(model.parameters[0].tensor * model.parameters[0].tensor);
  { const auto averaged = ema.swapped(); }
  EXPECT_THAT(error_text([&] { loss.backward(); }), testing::HasSubstr("changed in place after the forward"));
}

TEST(Ema, ComesBackFromItsState) {
  const Model one, two;
  Ema first(one.flat, one.buffers, {.decay = 0.9, .warmup = true}),
      second(two.flat, two.buffers, {.decay = 0.9, .warmup = true});
  const auto step = [](const Model& model, Ema& ema, float by) {
    model.set(by, -by);
    ema.update();
  };
  step(one, first, 0.3f);
  step(one, first, 0.7f);
  second.load_state_dict(first.state_dict(), first.buffers());
  EXPECT_EQ(second.updates(), 2);
  step(one, first, 1.1f);
  step(two, second, 1.1f);
  const StateDict a = first.state_dict(), b = second.state_dict();
  EXPECT_EQ(a.tensors[1].name, "b.bias.ema");
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(numbers(b.tensors[i].tensor), numbers(a.tensors[i].tensor));
  EXPECT_EQ(numbers(second.buffers().tensors[0].tensor), numbers(first.buffers().tensors[0].tensor));
}

TEST(Ema, Errors) {
  const Model model;
  EXPECT_EQ(error_text([&] { Ema(model.flat, {}, {.decay = 1}); }), "Ema: expected a decay in [0, 1), got 1");
  EXPECT_EQ(error_text([] { Ema(nullptr, {}, {}); }), "Ema: expected flat weights, got none");
  Ema ema(model.flat, model.buffers, {});
  const StateDict weights = ema.state_dict(), buffers = ema.buffers();
  const auto text = [&](const StateDict& of_weights, const StateDict& of_buffers) {
    return error_text([&] { ema.load_state_dict(of_weights, of_buffers); });
  };
  EXPECT_EQ(text(weights, {}), "Ema: the saved state does not fit; missing: mean.ema");
  StateDict other = weights;
  other.tensors[0].tensor = Tensor::zeros({5, 3});
  EXPECT_EQ(text(other, buffers),
            "Ema: the saved state does not fit; wrong shape: a.weight.ema (expected [3,5], got [5,3])");
  other = weights;
  other.tensors.push_back({"c.ema", Tensor::zeros({1})});
  EXPECT_EQ(text(other, buffers), "Ema: the saved state does not fit; unexpected: c.ema");
}

}  // namespace
}  // namespace weft::optim
