// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <memory>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "optim/ema.h"
#include "optim/lbfgs.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "tests/support/error_text.h"

// A step passes over parameters without a gradient, frozen or not used, as PyTorch's optimizers do: each parameter
// moves as in an optimizer of its own that steps only with a gradient.

namespace weft::optim {
namespace {

using ::testing::HasSubstr;

using Maker = std::function<std::unique_ptr<Optimizer>(const std::vector<NamedTensor>&)>;

template <class Rule, class Options>
Maker maker(const Options& options) {
  return [options](const std::vector<NamedTensor>& p) { return std::make_unique<Rule>(p, options); };
}

const std::vector<std::pair<std::string, Maker>>& rules() {
  static const std::vector<std::pair<std::string, Maker>> all{
      {"sgd", maker<SGD>(SgdOptions{.lr = 0.1})},
      {"sgd_decay", maker<SGD>(SgdOptions{.lr = 0.1, .weight_decay = 0.1})},
      {"sgd_dampened", maker<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1})},
      {"sgd_nesterov", maker<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true})},
      {"adam", maker<Adam>(AdamOptions{.lr = 0.1, .weight_decay = 0.1})},
      {"amsgrad", maker<Adam>(AdamOptions{.lr = 0.1, .amsgrad = true})},
      {"adamw", maker<AdamW>(AdamWOptions{.lr = 0.1})},
      {"adadelta", maker<Adadelta>(AdadeltaOptions{.weight_decay = 0.1})},
      {"rmsprop", maker<RMSprop>(RMSpropOptions{.momentum = 0.9, .centered = true})},
      {"adagrad", maker<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1, .initial_accumulator_value = 0.1})},
      {"adafactor", maker<Adafactor>(AdafactorOptions{.weight_decay = 0.1})},
      {"lion", maker<Lion>(LionOptions{.lr = 0.1, .weight_decay = 0.1})},
      {"lars", maker<LARS>(LarsOptions{.trust = 0.1})},
      {"lamb", maker<LAMB>(LambOptions{.lr = 0.1})}};
  return all;
}

std::vector<NamedTensor> some_parameters() {
  manual_seed(3);
  return {{"a.weight", normal({3, 5}).requires_grad_()},
          {"a.bias", normal({7}).requires_grad_()},
          {"b.weight", normal({33, 2}).requires_grad_()}};
}

Tensor factor(size_t parameter, int step, const Tensor& like) {
  manual_seed(100 + 10 * step + static_cast<uint64_t>(parameter));
  return normal(like.sizes());
}

/// Which of the three parameters has a gradient in which step.
constexpr bool kUsed[][3] = {{true, true, false},  {true, true, true},    {false, true, false},
                             {false, false, true}, {false, false, false}, {true, true, true}};

enum class How { unused, frozen };

/// A step of those that are used, the others unused in the loss or frozen.
void step(Optimizer& optimizer, const std::vector<NamedTensor>& all, int number, How how) {
  optimizer.zero_grad();
  Tensor loss;
  for (size_t i = 0; i < all.size(); ++i) {
    const Tensor& w = all[i].tensor;
    const bool used = kUsed[number][i];
    if (how == How::frozen) w.requires_grad_(used);
    if (how == How::unused && !used) continue;
    const Tensor part = sum(w * factor(i, number, w));
    loss = loss.defined() ? loss + part : part;
  }
  if (loss.requires_grad()) loss.backward();
  optimizer.step();
}

class Skipped : public ::testing::TestWithParam<std::tuple<size_t, How>> {};

TEST_P(Skipped, EachParameterMovesAsIfAlone) {
  const auto& [name, make] = rules()[std::get<0>(GetParam())];
  const How how = std::get<1>(GetParam());
  const std::vector<NamedTensor> all = some_parameters();
  if (how == How::frozen) all[2].tensor.requires_grad_(false);  // thawed after the optimizer was made
  const auto optimizer = make(all);
  for (int t = 0; t < 6; ++t) step(*optimizer, all, t, how);
  const std::vector<NamedTensor> others = some_parameters();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto alone = make({others[i]});
    for (int t = 0; t < 6; ++t) {
      if (!kUsed[t][i]) continue;
      alone->zero_grad();
      sum(others[i].tensor * factor(i, t, others[i].tensor)).backward();
      alone->step();
    }
    EXPECT_EQ(all[i].tensor.to_vector<float>(), others[i].tensor.to_vector<float>()) << name << ' ' << all[i].name;
  }
}

TEST_P(Skipped, CountsOfStepsAreSaved) {
  const auto& [name, make] = rules()[std::get<0>(GetParam())];
  const How how = std::get<1>(GetParam());
  const std::vector<NamedTensor> all = some_parameters(), others = some_parameters();
  const auto optimizer = make(all), second = make(others);
  for (int t = 0; t < 3; ++t) step(*optimizer, all, t, how);
  const StateDict saved = optimizer->state_dict();
  EXPECT_EQ(steps_of(saved, "a.bias"), 3);
  EXPECT_EQ(steps_of(saved, "a.weight"), 2);
  EXPECT_EQ(steps_of(saved, "b.weight"), 1);
  {
    const NoGrad no_grad;
    for (size_t i = 0; i < all.size(); ++i) others[i].tensor.copy_(all[i].tensor.detach());
  }
  second->load_state_dict(saved);
  for (int t = 3; t < 6; ++t) {
    step(*optimizer, all, t, how);
    step(*second, others, t, how);
  }
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].tensor.to_vector<float>(), others[i].tensor.to_vector<float>()) << name << ' ' << all[i].name;
}

INSTANTIATE_TEST_SUITE_P(
    All, Skipped, ::testing::Combine(::testing::Range<size_t>(0, 14), ::testing::Values(How::unused, How::frozen)),
    [](const auto& i) {
      return rules()[std::get<0>(i.param)].first + (std::get<1>(i.param) == How::frozen ? "_frozen" : "_unused");
    });

// A run that thaws, is stopped, and thaws again before resuming.
TEST(SkippedParameters, StatesOfThawedParametersLoadIntoAnOptimizerThatHasNotStepped) {
  const auto thawed = [](const std::vector<NamedTensor>& all) {
    all[0].tensor.requires_grad_(false);
    auto optimizer = std::make_unique<Adam>(all, AdamOptions{.lr = 0.1});
    all[0].tensor.requires_grad_();
    return optimizer;
  };
  const std::vector<NamedTensor> all = some_parameters(), others = some_parameters();
  const auto optimizer = thawed(all), second = thawed(others);
  for (int t = 0; t < 3; ++t) step(*optimizer, all, t, How::unused);
  second->load_state_dict(optimizer->state_dict());
  EXPECT_EQ(steps_of(second->state_dict(), "a.weight"), steps_of(optimizer->state_dict(), "a.weight"));
}

TEST(SkippedParameters, NumbersOfPyTorch) {
  // torch 2.15: w = [1, 2], v = [3]; Adam(lr=0.1, weight_decay=0.1) over both; losses sum(w) + v, sum(w) + v, v (w
  // frozen), sum(w) + v (w thawed).
  const Tensor w = Tensor::from<float>({1, 2}).requires_grad_(), v = Tensor::from<float>({3}).requires_grad_();
  Adam adam({{"w", w}, {"v", v}}, {.lr = 0.1, .weight_decay = 0.1});
  for (int t = 0; t < 4; ++t) {
    w.requires_grad_(t != 2);
    adam.zero_grad();
    (sum(w) + sum(v)).backward();
    adam.step();
  }
  const std::vector<float> got = w.to_vector<float>();
  EXPECT_NEAR(got[0], 0.70009130, 2e-6);
  EXPECT_NEAR(got[1], 1.70008326, 2e-6);
  EXPECT_NEAR(v.to_vector<float>()[0], 2.60018182, 2e-6);
}

TEST(SkippedParameters, AGradientOfBeforeMovesAFrozenParameterUntilZeroGrad) {  // as in PyTorch
  const std::vector<NamedTensor> all = some_parameters();
  SGD sgd(all, {.lr = 0.1});
  sum(all[0].tensor).backward();
  all[0].tensor.requires_grad_(false);
  const Tensor before = all[0].tensor.clone();
  sgd.step();
  EXPECT_NEAR(max(abs(all[0].tensor - before)).item(), 0.1, 1e-6);
  sgd.zero_grad();
  const Tensor after = all[0].tensor.clone();
  sgd.step();
  EXPECT_EQ(max(abs(all[0].tensor - after)).item(), 0);
}

TEST(SkippedParameters, AGradientWrittenByHandCounts) {
  const std::vector<NamedTensor> all = some_parameters();
  SGD sgd(all, {.lr = 1});
  sgd.zero_grad();
  EXPECT_FALSE(all[1].tensor.has_gradient());
  EXPECT_EQ(sum(all[1].tensor.grad()).item(), 0);
  EXPECT_FALSE(all[1].tensor.has_gradient()) << "a look at it is no gradient";
  const Tensor before = all[1].tensor.detach().clone();
  all[1].tensor.grad().fill_(2);
  EXPECT_TRUE(all[1].tensor.has_gradient());
  EXPECT_FALSE(all[0].tensor.has_gradient());
  sgd.step();
  EXPECT_NEAR(max(abs(before - all[1].tensor.detach())).item(), 2, 1e-6);
}

TEST(SkippedParameters, ZeroGradIsOfOnesOwnParameters) {
  const std::vector<NamedTensor> all = some_parameters();
  FlatParameters::of(all);  // as DDP does
  SGD first({all[0]}, {.lr = 0.1}), second({all[1]}, {.lr = 0.1});
  (sum(all[0].tensor) + sum(all[1].tensor)).backward();
  first.zero_grad();
  EXPECT_FALSE(all[0].tensor.has_gradient());
  EXPECT_EQ(all[1].tensor.grad().to_vector<float>(), std::vector<float>(7, 1));
}

TEST(SkippedParameters, AveragesTakeInThawedParameters) {
  const std::vector<NamedTensor> all = some_parameters();
  all[0].tensor.requires_grad_(false);
  SGD sgd(all, {.lr = 1});
  Ema ema(sgd.flat(), {}, {.decay = 0.5});
  for (int t = 0; t < 2; ++t) {
    sgd.zero_grad();
    sum(all[1].tensor).backward();
    sgd.step();
    ema.update();
  }
  const Tensor before = all[0].tensor.clone();
  all[0].tensor.requires_grad_();
  sgd.zero_grad();
  sum(all[0].tensor).backward();
  sgd.step();
  ema.update();
  EXPECT_EQ(ema.state_dict().tensors.size(), 3u);
  EXPECT_NEAR(max(abs(ema.state_dict().tensor("a.weight.ema") - (before - 0.5))).item(), 0, 1e-6);
}

TEST(SkippedParameters, ClippingCountsEachOnceAndWithoutFrozenOnes) {
  const std::vector<NamedTensor> all = some_parameters();
  SGD first({all[0]}, {.lr = 0.1}), second({all[1]}, {.lr = 0.1});  // two flat buffers, and one parameter in none
  (sum(all[0].tensor) + sum(all[1].tensor) + sum(all[2].tensor)).backward();
  EXPECT_NEAR(clip_grad_norm({all[0], all[1], all[2], all[0]}, 1).item(), std::sqrt(15.0 + 7 + 66), 1e-5);
  EXPECT_NEAR(clip_grad_norm(all, 10).item(), 1, 1e-5);
  first.step(), second.step();  // they have kept their buffers
  first.zero_grad();
  all[0].tensor.requires_grad_(false);
  EXPECT_NEAR(clip_grad_norm(all, 10).item(), std::sqrt((7.0 + 66) / (15 + 7 + 66)), 1e-5);
}

TEST(SkippedParameters, LbfgsMovesItsOwnTrainedParametersOnly) {
  const std::vector<NamedTensor> all = some_parameters();
  const auto flat = FlatParameters::of(all);
  sum(all[2].tensor).backward();  // another user's backward
  Lbfgs lbfgs({all[0], all[1]}, {});
  all[1].tensor.requires_grad_(false);
  const Tensor bias = all[1].tensor.clone(), other = all[2].tensor.detach().clone();
  lbfgs.minimize([&] {
    const Tensor loss = sum(square(all[0].tensor)) + sum(square(all[1].tensor));
    loss.backward();
    return loss.item();
  });
  EXPECT_NEAR(max(abs(all[0].tensor.detach())).item(), 0, 1e-4);
  EXPECT_EQ(max(abs(all[1].tensor - bias)).item(), 0);
  EXPECT_EQ(max(abs(all[2].tensor.detach() - other)).item(), 0);
  all[1].tensor.requires_grad_();  // thawed
  lbfgs.minimize([&] {
    const Tensor loss = sum(square(all[1].tensor));
    loss.backward();
    return loss.item();
  });
  EXPECT_NEAR(max(abs(all[1].tensor.detach())).item(), 0, 1e-4);
}

TEST(SkippedParameters, AThawedParameterOfAnotherOptimizerIsAnError) {
  const std::vector<NamedTensor> all = some_parameters();
  all[1].tensor.requires_grad_(false);
  SGD first({all[0], all[1]}, {.lr = 0.1});
  all[1].tensor.requires_grad_();
  SGD second({all[1]}, {.lr = 0.1});
  EXPECT_EQ(
      error_text([&] { first.step(); }),
      "SGD: parameter 'a.bias' f32[7] on cpu was thawed, and lies in the flat buffers of another optimizer by now. "
      "Thaw it before the first of the two is made");
}

TEST(GroupsUnderASchedule, KeepTheirOwnRates) {
  const std::vector<NamedTensor> all = some_parameters();
  SGD sgd({{.parameters = {all[0]}, .lr = 1e-4}, {.parameters = {all[1]}, .lr = 1e-2}}, {});
  const CosineSchedule cosine(100, 1e-5);
  sgd.set_lr(cosine.lr(0, sgd.base_lr()));
  EXPECT_EQ(sgd.lr(), (Rates{1e-4, 1e-2}));
  sgd.set_lr(cosine.lr(30, sgd.base_lr()));
  EXPECT_EQ(sgd.lr(0), cosine.lr(30, 1e-4));
  EXPECT_EQ(sgd.lr(1), cosine.lr(30, 1e-2));
  EXPECT_EQ(error_text([&] { sgd.set_lr(0.1); }),
            "SGD: set_lr(0.1): 2 groups have rates of their own (0.0001 and 0.01), which one rate would replace. Write "
            "set_lr(schedule.lr(step, optimizer.base_lr())), or set_lr(rate, group)");
  EXPECT_EQ(error_text([&] { sgd.set_lr(Rates{0.1}); }), "SGD: set_lr: expected 2 rates, one per group, got 1");
  EXPECT_THAT(error_text([&] { [[maybe_unused]] const double rate = sgd.base_lr(); }),
              HasSubstr("learning rates: the groups have 2 different ones, expected one number"));
}

TEST(GroupsUnderASchedule, OfOneRateTakeOne) {
  const std::vector<NamedTensor> all = some_parameters();
  SGD sgd(without_decay_on_vectors(all), {.lr = 0.1});
  sgd.set_lr(0.2);
  EXPECT_EQ(sgd.lr(), 0.2);
}

}  // namespace
}  // namespace weft::optim
