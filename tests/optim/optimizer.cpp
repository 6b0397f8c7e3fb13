// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <cmath>
#include <functional>
#include <limits>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/support/error_text.h"

namespace weft::optim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Three parameters of odd sizes, one of them a vector.
std::vector<NamedTensor> some_parameters() {
  return {{"a.weight", normal({3, 5}).requires_grad_()},
          {"a.bias", normal({7}).requires_grad_()},
          {"b.weight", normal({33, 2}).requires_grad_()}};
}

std::vector<float> values(const Tensor& tensor) { return tensor.detach().to_vector<float>(); }

/// loss = sum(w w factor) over all parameters: the gradient is 2 factor w.
void backward_of_squares(const std::vector<NamedTensor>& parameters, double factor = 1) {
  for (const NamedTensor& parameter : parameters) sum(parameter.tensor * parameter.tensor * factor).backward();
}

TEST(FlatParameters, KeepValuesAndBecomeSlices) {
  const std::vector<NamedTensor> parameters = some_parameters();
  const std::vector<float> before = values(parameters[2].tensor);
  const auto flat = FlatParameters::of(parameters);
  EXPECT_EQ(values(parameters[2].tensor), before);
  EXPECT_TRUE(parameters[2].tensor.requires_grad());
  int64_t end = 0;
  for (const FlatSlice& slice : flat->slices()) {
    EXPECT_EQ(slice.offset, end);
    EXPECT_EQ(slice.parameter.raw_data(), flat->master().data<float>() + slice.offset);
    EXPECT_EQ(slice.parameter.grad().raw_data(), flat->gradient().data<float>() + slice.offset);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slice.parameter.raw_data()) % 16, 0u);
    end += (slice.numel + FlatParameters::kAlignment - 1) / FlatParameters::kAlignment * FlatParameters::kAlignment;
  }
  EXPECT_EQ(flat->numel(), end);
}

TEST(FlatParameters, AreMadeOnce) {
  const std::vector<NamedTensor> parameters = some_parameters();
  const auto flat = FlatParameters::of(parameters);
  EXPECT_EQ(FlatParameters::of(parameters), flat);
  EXPECT_EQ(FlatParameters::of({parameters[1]}), flat) << "some of them are slices of the same buffers";
  const SGD sgd(parameters, {.lr = 0.1});
  EXPECT_EQ(sgd.flat(), flat);
  std::vector<NamedTensor> more = parameters;
  more.push_back({"c", Tensor::ones({1}).requires_grad_()});
  EXPECT_EQ(FlatParameters::of(more), flat) << "one more joins it";
  EXPECT_EQ(flat->slices().size(), 4u);
}

TEST(FlatParameters, RangesMergeNeighbours) {
  const std::vector<NamedTensor> parameters = some_parameters();
  const auto flat = FlatParameters::of(parameters);
  const auto all = flat->ranges(parameters);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].numel, flat->numel());
  const auto outer = flat->ranges({parameters[2], parameters[0]});
  ASSERT_EQ(outer.size(), 2u);
  EXPECT_EQ(outer[0].offset, 0);
  EXPECT_EQ(outer[0].numel, flat->slices()[1].offset);
  EXPECT_EQ(outer[1].offset, flat->slices()[2].offset);
  EXPECT_EQ(error_text([&] { flat->ranges(some_parameters()); }),
            "flat_parameters: 3 of 3 parameters are not in these flat buffers");
}

TEST(FlatParameters, TakeGivenPlaces) {
  const Tensor a = Tensor::full({3, 1}, 1).requires_grad_(), none = Tensor::zeros({0}).requires_grad_(),
               b = Tensor::full({5}, 2).requires_grad_();
  const auto flat = FlatParameters::of({{"a", a, 32, 3}, {"none", none, 96, 0}, {"b", b, 96, 5}}, 160);
  EXPECT_EQ(flat->numel(), 160);
  EXPECT_EQ(a.raw_data(), flat->master().data<float>() + 32);
  EXPECT_EQ(b.raw_data(), flat->master().data<float>() + 96);
  const auto all = flat->ranges({{"b", b}, {"none", none}, {"a", a}});
  ASSERT_EQ(all.size(), 1u) << "what lies between is padding";
  EXPECT_EQ(all[0].offset, 32);
  EXPECT_EQ(all[0].numel, 128);
  EXPECT_TRUE(flat->ranges({{"none", none}}).empty());
  AdamW adam({{"a", a}, {"none", none}, {"b", b}}, {.lr = 0.5});
  EXPECT_EQ(adam.flat(), flat);
  backward_of_squares({{"a", a}, {"none", none}, {"b", b}});
  adam.step();
  EXPECT_LT(values(b)[4], 2);
  float padding = 0;
  for (const float value : values(flat->master().slice(0, 101, 59))) padding += std::abs(value);
  EXPECT_EQ(padding, 0);
  EXPECT_EQ(adam.state_dict().tensor("none.exp_avg").sizes(), Shape{0});
  const auto text = [](int64_t offset, int64_t numel) {
    return error_text([&] { FlatParameters::of({{"c", Tensor::ones({4}), offset, 4}}, numel); });
  };
  EXPECT_EQ(text(16, 64), "flat_parameters: 'c' f32[4] on cpu does not fit at 16 of 64 elements, where 0 are taken");
  EXPECT_THAT(text(64, 64), HasSubstr("does not fit at 64 of 64 elements"));
}

TEST(FlatParameters, GradientsAreOverwrittenThenAdded) {
  const std::vector<NamedTensor> parameters = some_parameters();
  const auto flat = FlatParameters::of(parameters);
  const Tensor w = parameters[0].tensor;
  sum(w * 3.0).backward();
  sum(w * 3.0).backward();
  EXPECT_EQ(values(w.grad()), std::vector<float>(15, 6));
  EXPECT_EQ(values(parameters[1].tensor.grad()), std::vector<float>(7, 0)) << "no backward reached it";
  flat->zero_grad();
  sum(w * 5.0).backward();
  EXPECT_EQ(values(w.grad()), std::vector<float>(15, 5));
  EXPECT_EQ(w.grad().storage()->memory(), flat->gradient().storage().get());
}

TEST(FlatParameters, KeepAGradientThatWasThere) {
  const std::vector<NamedTensor> parameters = some_parameters();
  sum(parameters[1].tensor * 4.0).backward();
  const auto flat = FlatParameters::of(parameters);
  EXPECT_EQ(values(parameters[1].tensor.grad()), std::vector<float>(7, 4));
  sum(parameters[1].tensor).backward();
  EXPECT_EQ(values(parameters[1].tensor.grad()), std::vector<float>(7, 5));
}

TEST(FlatParameters, ErrorsNameTheParameter) {
  std::vector<NamedTensor> parameters = some_parameters();
  EXPECT_EQ(error_text([] { FlatParameters::of({}); }), "flat_parameters: expected at least one parameter, got none");
  parameters.push_back({"c", Tensor::ones({2}, DType::f64)});
  EXPECT_EQ(error_text([&] { FlatParameters::of(parameters); }),
            "flat_parameters: one dtype and one device, got 'a.weight' f32[3,5] on cpu and 'c' f64[2] on cpu");
  parameters.back() = {"c", Tensor::ones({2}, DType::bf16)};
  EXPECT_THAT(error_text([&] { FlatParameters::of(parameters); }), HasSubstr("'c' expected f32 or f64, got bf16[2]"));
  parameters.back() = parameters.front();
  EXPECT_EQ(error_text([&] { FlatParameters::of(parameters); }), "flat_parameters: 'a.weight' is given twice");
  parameters.back() = {"c", {}};
  EXPECT_EQ(error_text([&] { FlatParameters::of(parameters); }), "flat_parameters: 'c' is undefined");
  parameters.back() = {"c", parameters[0].tensor * 2.0};
  EXPECT_THAT(error_text([&] { FlatParameters::of(parameters); }), HasSubstr("'c' f32[3,5] on cpu is the result of"));
}

TEST(FlatParameters, ComputeCopyFollowsTheWeights) {
  const std::vector<NamedTensor> parameters = some_parameters();
  SGD sgd(parameters, {.lr = 0.25});
  sgd.flat()->keep_compute_copy(DType::bf16);
  backward_of_squares(parameters);
  sgd.step();
  for (const NamedTensor& parameter : parameters) {
    const AutogradMeta& meta = *parameter.tensor.impl()->autograd;
    EXPECT_EQ(meta.compute_copy.sizes(), parameter.tensor.sizes());
    EXPECT_EQ(meta.compute_version, parameter.tensor.storage()->version()) << "autocast may use the copy";
    EXPECT_EQ(values(meta.compute_copy), values(parameter.tensor.detach().to(DType::bf16)));
  }
  const NoGrad no_grad;
  parameters[0].tensor.fill_(1);
  const AutogradMeta& meta = *parameters[0].tensor.impl()->autograd;
  EXPECT_NE(meta.compute_version, parameters[0].tensor.storage()->version()) << "autocast must not use the copy";
  const Autocast low(DType::bf16);
  EXPECT_EQ(values(autocast_low(parameters[0].tensor)), std::vector<float>(15, 1.0f));
  EXPECT_EQ(error_text([&] { sgd.flat()->keep_compute_copy(DType::i32); }),
            "keep_compute_copy: expected bf16 or f16, got i32");
}

TEST(ClipGradNorm, ScalesToTheLimit) {
  const std::vector<NamedTensor> parameters = some_parameters();
  backward_of_squares(parameters);
  double squares = 0;
  for (const NamedTensor& parameter : parameters)
    for (const float v : values(parameter.tensor.grad())) squares += double{v} * v;
  EXPECT_NEAR(clip_grad_norm(parameters, 0.5).item(), std::sqrt(squares), 1e-4 * std::sqrt(squares));
  double clipped = 0;
  for (const NamedTensor& parameter : parameters)
    for (const float v : values(parameter.tensor.grad())) clipped += double{v} * v;
  EXPECT_NEAR(std::sqrt(clipped), 0.5, 1e-4);
  EXPECT_NEAR(clip_grad_norm(parameters, 100).item(), 0.5, 1e-4);
  EXPECT_NEAR(clip_grad_norm(parameters, 100).item(), 0.5, 1e-4) << "below the limit nothing changes";
  EXPECT_EQ(error_text([&] { clip_grad_norm(parameters, 0); }), "clip_grad_norm: expected a positive norm, got 0");
}

TEST(ClipGradNorm, OfSomeParametersLeavesTheOthers) {
  const std::vector<NamedTensor> parameters = some_parameters();
  const auto flat = FlatParameters::of(parameters);
  backward_of_squares(parameters);
  const std::vector<float> middle = values(parameters[1].tensor.grad());
  double squares = 0;  // over both ranges: the parameters are no neighbours
  for (const int i : {0, 2})
    for (const float g : values(parameters[i].tensor.grad())) squares += static_cast<double>(g) * g;
  EXPECT_NEAR(clip_grad_norm({parameters[0], parameters[2]}, 1e-3).item(), std::sqrt(squares), 1e-4);
  EXPECT_EQ(values(parameters[1].tensor.grad()), middle);
  EXPECT_LT(std::abs(values(parameters[2].tensor.grad())[5]), 2e-3);
}

TEST(ClipGradNorm, PassesOverWhatIsFrozen) {
  std::vector<NamedTensor> parameters = some_parameters();
  const SGD sgd(parameters, {.lr = 0.1});
  parameters.push_back({"frozen", normal({3})});
  backward_of_squares({parameters[1]});
  EXPECT_GT(clip_grad_norm(parameters, 1).item(), 0);
  sgd.flat()->check_bound("test");
  EXPECT_EQ(error_text([&] { clip_grad_norm({parameters[3]}, 1); }),
            "clip_grad_norm: none of 1 parameters requires a gradient");
}

/// A net that leaves one of its layers out of fields().
struct Forgetful : nn::Module {
  std::shared_ptr<nn::Linear> named = std::make_shared<nn::Linear>(3, 4),
                              forgotten = std::make_shared<nn::Linear>(4, 2);
  Tensor forward(const Tensor& x) const override { return (*forgotten)((*named)(x)); }
  void fields(nn::Visitor& v) override { v("named", named); }
};

TEST(Optimizer, AForgottenMemberIsAnErrorOfTheSecondStep) {
  Forgetful net;
  SGD sgd(net.parameters(), {.lr = 0.1});
  const auto step = [&] {
    sgd.zero_grad();
    sum(net(normal({5, 3}))).backward();
    sgd.step();
  };
  step();  // the gradients of one pass may be read after the step
  const std::string text = error_text(step);
  EXPECT_THAT(text, HasSubstr("SGD: f32["));
  EXPECT_THAT(text,
              HasSubstr("on cpu, an input of linear, gets gradients that nothing uses: no fields() names it and no "
                        "optimizer has it, so it is not trained. Name it in its module's fields(), or call "
                        "requires_grad_(false)"));
  net.forgotten->parameters();  // names them
  step();
}

TEST(Optimizer, ALeafWhoseGradientIsReadIsNotForgotten) {
  const std::vector<NamedTensor> parameters = some_parameters();
  SGD sgd(parameters, {.lr = 0.1});
  const Tensor input = normal({7}).requires_grad_(), hooked = normal({7}).requires_grad_();
  int calls = 0;
  hooked.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  for (int i = 0; i < 3; ++i) {
    sum(parameters[1].tensor * input * hooked).backward();
    sgd.step();
    EXPECT_TRUE(input.grad().defined());
    sum(parameters[1].tensor * normal({7}).requires_grad_()).backward();  // another one each time
  }
  EXPECT_EQ(calls, 3);
}

TEST(Optimizer, GroupsHaveTheirOwnRates) {
  const std::vector<NamedTensor> parameters = some_parameters();
  const std::vector<float> a = values(parameters[0].tensor), bias = values(parameters[1].tensor);
  std::vector<ParameterGroup> groups = without_decay_on_vectors(parameters);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[1].parameters.size(), 1u);
  groups[1].lr = 0.5;
  SGD sgd(groups, {.lr = 0.1, .weight_decay = 0.2});
  EXPECT_EQ(sgd.base_lr(0), 0.1);
  EXPECT_EQ(sgd.lr(1), 0.5);
  for (const NamedTensor& parameter : parameters) sum(parameter.tensor).backward();
  sgd.step();
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(values(parameters[0].tensor)[i], a[i] - 0.1 * (1 + 0.2 * a[i]), 1e-6);
  for (size_t i = 0; i < bias.size(); ++i) EXPECT_NEAR(values(parameters[1].tensor)[i], bias[i] - 0.5, 1e-6);
  sgd.set_lr({0, 0});
  const std::vector<float> after = values(parameters[0].tensor);
  sgd.step();
  EXPECT_EQ(values(parameters[0].tensor), after);
  EXPECT_EQ(error_text([&] { sgd.set_lr(1, 2); }), "SGD: set_lr: there are 2 groups, got 2");
}

TEST(Optimizer, FrozenParametersStay) {
  const std::vector<NamedTensor> parameters = some_parameters();
  parameters[0].tensor.requires_grad_(false);
  const std::vector<float> before = values(parameters[0].tensor);
  SGD sgd(parameters, {.lr = 0.1, .weight_decay = 1});
  EXPECT_EQ(sgd.flat()->slices().size(), 2u);
  backward_of_squares({parameters[1], parameters[2]});
  sgd.step();
  EXPECT_EQ(values(parameters[0].tensor), before);
  EXPECT_EQ(error_text([&] { SGD(std::vector<NamedTensor>{parameters[0]}, {}); }),
            "SGD: no parameter requires a gradient");
}

TEST(Optimizer, ZeroGradIsPartOfTheStep) {
  const std::vector<NamedTensor> parameters = some_parameters();
  SGD sgd(parameters, {.lr = 0.1});
  backward_of_squares(parameters);
  sgd.step();
  sgd.zero_grad();
  const std::vector<float> before = values(parameters[2].tensor);
  sgd.step();
  EXPECT_EQ(values(parameters[2].tensor), before) << "a gradient that counts as zero was used";
}

TEST(Optimizer, AStepInvalidatesSavedWeights) {
  const std::vector<NamedTensor> parameters = some_parameters();
  SGD sgd(parameters, {.lr = 0.1});
  const Tensor x = normal({3, 5}).requires_grad_();
  const Tensor loss = sum(x * parameters[0].tensor);
  sgd.step();
  EXPECT_THAT(error_text([&] { loss.backward(); }), HasSubstr("changed in place after the forward"));
}

TEST(Optimizer, ALeftBufferIsAnError) {
  const std::vector<NamedTensor> parameters = some_parameters();
  SGD sgd(parameters, {.lr = 0.1});
  parameters[1].tensor.set_grad({});
  EXPECT_EQ(error_text([&] { sgd.step(); }),
            "SGD: the gradient of parameter 'a.bias' was replaced; it must stay in its flat buffer. Use zero_grad() "
            "instead of set_grad()");
  parameters[0].tensor.set_data(Tensor::zeros({3, 5}));
  EXPECT_EQ(error_text([&] { sgd.step(); }),
            "SGD: parameter 'a.weight' f32[3,5] on cpu has left its flat buffer on cpu. Move or convert the model "
            "before the optimizer is made");
}

// Nothing has changed after any of the errors.
TEST(Optimizer, RatesAreFiniteAndNotNegative) {
  const std::vector<NamedTensor> parameters = some_parameters();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_text([&] { SGD(parameters, {.lr = kInfinity}); }),
            "SGD: expected a finite learning rate of at least 0, got inf");
  EXPECT_EQ(error_text([&] { SGD(parameters, {.weight_decay = kInfinity}); }),
            "SGD: expected a finite weight decay of at least 0, got inf");
  const std::vector<ParameterGroup> groups{{.parameters = {parameters[0]}}, {.parameters = {parameters[1]}, .lr = 0.5}};
  SGD sgd(groups, {.lr = 0.25});
  const Rates rates = sgd.lr();
  for (const double bad : {-1.0, std::nan(""), kInfinity}) {
    EXPECT_THAT(error_text([&] { sgd.set_lr(bad, 1); }), HasSubstr("expected a finite learning rate of at least 0"));
    EXPECT_THAT(error_text([&] { sgd.set_lr(Rates{0.125, bad}); }), HasSubstr("SGD: expected a finite learning rate"));
    for (const char* name : {"group1.lr", "step"}) {
      StateDict dict = sgd.state_dict();
      for (NamedScalar& number : dict.scalars) {
        if (number.name == "group0.lr") number.value = 0.125;
        if (number.name == name) number.value = bad;
      }
      EXPECT_THAT(error_text([&] { sgd.load_state_dict(dict); }),
                  HasSubstr(name == std::string("step") ? "the saved state has no count of steps of 'a.weight', but"
                                                        : "SGD: expected a finite learning rate"));
    }
  }
  EXPECT_EQ(sgd.lr(), rates);
  EXPECT_EQ(sgd.steps(), 0);
}

TEST(Optimizer, AGroupWithoutParametersStays) {
  const std::vector<NamedTensor> vectors{{"b", Tensor::ones({2}).requires_grad_()}};
  SGD sgd(without_decay_on_vectors(vectors), {.lr = 0.125, .weight_decay = 0.5});
  ASSERT_EQ(sgd.groups(), 2);
  EXPECT_TRUE(sgd.parameters(0).empty());
  EXPECT_EQ(sgd.weight_decay(0), 0.5);
  EXPECT_EQ(sgd.weight_decay(1), 0);
  sgd.set_lr({0.5, 0.25});
  sum(vectors[0].tensor).backward();
  sgd.step();
  EXPECT_EQ(vectors[0].tensor.to_vector<double>(), (std::vector<double>{0.75, 0.75}));
  SGD other(without_decay_on_vectors(vectors), {.lr = 1});
  other.load_state_dict(sgd.state_dict());
  EXPECT_EQ(other.lr(), (Rates{0.5, 0.25}));
  for (const auto& ask :
       std::vector<std::function<void()>>{[&] { sgd.lr(2); }, [&] { sgd.base_lr(-1); }, [&] { sgd.weight_decay(2); },
                                          [&] { sgd.parameters(2); }, [&] { sgd.frozen(2); }})
    EXPECT_THAT(error_text(ask), HasSubstr("SGD: expected a group from 0 to 1, got "));
  EXPECT_EQ(error_text([&] { SGD({NamedTensor{"none", {}}}, {}); }), "SGD: parameter 'none' is an undefined tensor");
}

TEST(Optimizer, ErrorsOfTheOptions) {
  const std::vector<NamedTensor> parameters = some_parameters();
  EXPECT_EQ(error_text([&] { SGD(parameters, {.lr = -1}); }),
            "SGD: expected a finite learning rate of at least 0, got -1");
  EXPECT_EQ(error_text([&] { SGD(parameters, {.weight_decay = -1}); }),
            "SGD: expected a finite weight decay of at least 0, got -1");
  EXPECT_EQ(error_text([&] { SGD(parameters, {.momentum = -1}); }), "SGD: expected a momentum of at least 0, got -1");
  EXPECT_EQ(error_text([&] { SGD(parameters, {.nesterov = true}); }),
            "SGD: nesterov expects a momentum and no dampening, got momentum 0, dampening 0");
  EXPECT_EQ(error_text([&] { Adam(parameters, {.beta2 = 1}); }), "Adam: expected betas in [0, 1), got 1");
  EXPECT_EQ(error_text([&] { AdamW(parameters, {.eps = -1}); }), "AdamW: expected an eps of at least 0, got -1");
  EXPECT_EQ(error_text([&] { Adadelta(parameters, {.rho = 2}); }), "Adadelta: expected rho in [0, 1], got 2");
  EXPECT_EQ(error_text([&] { Adadelta(parameters, {.eps = -1}); }), "Adadelta: expected an eps of at least 0, got -1");
  EXPECT_EQ(error_text([&] { Adafactor(parameters, {.beta2_decay = 0.1}); }),
            "Adafactor: expected a beta2_decay of at most 0, got 0.1");
  EXPECT_EQ(error_text([&] { Adafactor(parameters, {.eps1 = -1}); }),
            "Adafactor: expected eps1 and eps2 of at least 0, got -1 and 0.001");
  EXPECT_EQ(error_text([&] { Adafactor(parameters, {.d = 0.5}); }), "Adafactor: expected a d of at least 1, got 0.5");
}

// 5 steps at once = 2, saved, loaded into another optimizer, 3: bit for bit.
template <class Make>
void expect_exact_resume(Make make) {
  const std::vector<NamedTensor> one = some_parameters();
  std::vector<NamedTensor> two, three;
  for (const NamedTensor& parameter : one) {
    two.push_back({parameter.name, parameter.tensor.detach().clone().requires_grad_()});
    three.push_back({parameter.name, Tensor::zeros(parameter.tensor.sizes()).requires_grad_()});
  }
  const auto run = [](Optimizer& optimizer, const std::vector<NamedTensor>& parameters, int from, int to) {
    for (int step = from; step < to; ++step) {
      optimizer.set_lr(0.01 * (step + 1));
      optimizer.zero_grad();
      backward_of_squares(parameters, 1 + step);
      optimizer.step();
    }
  };
  const auto whole = make(one), first = make(two), second = make(three);
  run(*whole, one, 0, 5);
  run(*first, two, 0, 2);
  second->load_state_dict(first->state_dict());
  EXPECT_EQ(second->steps(), 2);
  EXPECT_EQ(second->lr(), 0.02);
  const NoGrad no_grad;
  for (size_t i = 0; i < two.size(); ++i) three[i].tensor.copy_(two[i].tensor.detach());
  const NoGrad with_grad(true);
  run(*second, three, 2, 5);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(values(three[i].tensor), values(one[i].tensor)) << one[i].name;
}

TEST(Optimizer, ResumesExactly) {
  expect_exact_resume([](const auto& p) { return std::make_unique<SGD>(p, SgdOptions{.momentum = 0.9}); });
  expect_exact_resume([](const auto& p) { return std::make_unique<SGD>(p, SgdOptions{.weight_decay = 0.1}); });
  expect_exact_resume([](const auto& p) { return std::make_unique<Adam>(p, AdamOptions{}); });
  expect_exact_resume([](const auto& p) { return std::make_unique<AdamW>(p, AdamWOptions{}); });
  expect_exact_resume([](const auto& p) { return std::make_unique<Adadelta>(p, AdadeltaOptions{}); });
}

TEST(Optimizer, StateDictNamesAndErrors) {
  const std::vector<NamedTensor> parameters = some_parameters();
  Adam adam(parameters, {});
  StateDict dict = adam.state_dict();
  std::vector<std::string> names;
  for (const NamedTensor& entry : dict.tensors) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("a.weight.exp_avg", "a.weight.exp_avg_sq", "a.bias.exp_avg", "a.bias.exp_avg_sq",
                                 "b.weight.exp_avg", "b.weight.exp_avg_sq"));
  EXPECT_EQ(dict.tensor("b.weight.exp_avg_sq").sizes(), (Shape{33, 2}));
  EXPECT_EQ(dict.scalar("group0.lr"), 1e-3);
  EXPECT_EQ(error_text([&] { dict.scalar("epoch"); }), "state dict: no number named 'epoch'");

  EXPECT_EQ(error_text([&] { adam.load_state_dict(SGD(some_parameters(), {.momentum = 0.5}).state_dict()); }),
            "Adam: the saved state does not fit; missing: a.weight.exp_avg, a.weight.exp_avg_sq, a.bias.exp_avg, "
            "a.bias.exp_avg_sq, b.weight.exp_avg and 1 more; unexpected: a.weight.momentum_buffer, "
            "a.bias.momentum_buffer, b.weight.momentum_buffer");
  dict.tensors[2].tensor = Tensor::zeros({8});
  dict.scalars.push_back({"group1.lr", 1});
  EXPECT_EQ(error_text([&] { adam.load_state_dict(dict); }),
            "Adam: the saved state does not fit; wrong shape: a.bias.exp_avg (expected [7], got [8]); expected 1 "
            "parameter groups");
}

TEST(Optimizer, WorksInF64) {
  const NamedTensor w{"w", Tensor::ones({3}, DType::f64).requires_grad_()};
  AdamW adam(std::vector{w}, {.lr = 0.1, .weight_decay = 0});
  sum(w.tensor * w.tensor).backward();
  adam.step();
  for (const double v : w.tensor.to_vector<double>()) EXPECT_NEAR(v, 0.9, 1e-8);
}

}  // namespace
}  // namespace weft::optim
