// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "nn/batch_norm.h"
#include "nn/copy_of.h"
#include "nn/linear.h"
#include "optim/ema.h"
#include "optim/optimizers.h"
#include "tests/support/error_text.h"

// A tensor with several names counts once, trains once, and is saved under each of them.

namespace weft::nn {
namespace {

enum class Sharing { assigned, two_names, pointer };

/// a and b share their weights.
struct Shared : Module {
  std::shared_ptr<Linear> a = std::make_shared<Linear>(4, 4), b = std::make_shared<Linear>(4, 4);
  explicit Shared(Sharing sharing) {
    if (sharing == Sharing::pointer) b = a;
    if (sharing == Sharing::assigned) b->weight = a->weight, b->bias = a->bias;
    is_one_child = sharing == Sharing::two_names;
  }
  bool is_one_child;
  Tensor forward(const Tensor& x) const override { return is_one_child ? (*a)((*a)(x)) : (*b)((*a)(x)); }
  void fields(Visitor& v) override {
    v("a", a);
    v("b", is_one_child ? a : b);
  }
};

class SharedParameters : public ::testing::TestWithParam<Sharing> {};

TEST_P(SharedParameters, CountAndTrainOnce) {
  manual_seed(1);
  Shared model(GetParam());
  Linear one(4, 4);
  one.load_state_dict({{{"weight", model.a->weight.detach()}, {"bias", model.a->bias.detach()}}, {}});
  EXPECT_EQ(parameter_count(model), 20);
  ASSERT_EQ(model.parameters().size(), 2u);
  EXPECT_EQ(model.parameters()[0].name, "a.weight");
  EXPECT_EQ(model.parameter_names().size(), 4u);
  optim::SGD sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  optim::SGD alone(one.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = normal({5, 4});
    sgd.zero_grad(), alone.zero_grad();
    sum(square(model(x))).backward();
    sum(square(one(one(x)))).backward();
    EXPECT_EQ(clip_grad_norm(model.parameters(), 1).item(), clip_grad_norm(one.parameters(), 1).item());
    sgd.step(), alone.step();
    EXPECT_EQ(model.a->weight.to_vector<float>(), one.weight.to_vector<float>());
  }
  EXPECT_EQ(sgd.state_dict().tensors.size(), 2u);
}

TEST_P(SharedParameters, SurviveSavingLoadingConvertingAndCopying) {
  manual_seed(1);
  Shared model(GetParam());
  const StateDict state = model.state_dict();
  ASSERT_EQ(state.tensors.size(), 4u);
  EXPECT_EQ(state.tensor("a.weight").to_vector<float>(), state.tensor("b.weight").to_vector<float>());
  manual_seed(2);
  Shared other(GetParam());
  other.load_state_dict(state);
  EXPECT_EQ(other.a->weight.to_vector<float>(), model.a->weight.to_vector<float>());
  EXPECT_EQ(other.parameters().size(), 2u);
  other.to(DType::f64);
  EXPECT_EQ(other.parameters().size(), 2u);
  EXPECT_EQ(other.state_dict().tensor("b.weight").dtype(), DType::f64);
  const auto copy = copy_of(other, [&] { return std::make_shared<Shared>(GetParam()); });
  EXPECT_EQ(copy->parameters().size(), 2u);
  EXPECT_EQ(copy->state_dict().tensor("b.weight").to_vector<double>(), other.a->weight.to_vector<double>());
}

INSTANTIATE_TEST_SUITE_P(All, SharedParameters,
                         ::testing::Values(Sharing::assigned, Sharing::two_names, Sharing::pointer));

TEST(SharedTensors, ATieMadeAfterTheOptimizer) {  // the old weight has no gradient any more and stays, as in PyTorch
  manual_seed(1);
  Linear a(3, 3), b(3, 3);
  std::vector<NamedTensor> all = a.parameters();
  for (const NamedTensor& p : b.parameters()) all.push_back({"b." + p.name, p.tensor});
  optim::AdamW adam(all, {.lr = 0.1});
  const Tensor left = b.weight, before = b.weight.detach().clone();
  b.weight = a.weight;
  sum(square(b(a(normal({2, 3}))))).backward();
  adam.step();
  EXPECT_EQ(max(abs(left.detach() - before)).item(), 0);
}

TEST(SharedTensors, BuffersAreAveragedOnce) {
  struct Twice : Module {
    BatchNorm2d norm{2};
    void fields(Visitor& v) override { v("a", norm), v("b", norm); }
  } model;
  EXPECT_EQ(model.buffers().size(), 2u);
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  optim::Ema ema(sgd.flat(), model.buffers(), {.decay = 0.5});
  model.norm.running_mean.fill_(4);
  ema.update();
  {
    const auto swapped = ema.swapped();
    EXPECT_EQ(model.norm.running_mean.to_vector<float>(), std::vector<float>(2, 2));
  }
  EXPECT_EQ(model.norm.running_mean.to_vector<float>(), std::vector<float>(2, 4));
}

TEST(Handles, AStateDictSharesMemoryWhateverComesAfter) {
  manual_seed(1);
  Linear model(4, 1);
  const StateDict state = model.state_dict();
  const Tensor weight = model.weight, row = model.weight.detach().select(0, 0);
  {
    optim::SGD first(model.parameters(), {.lr = 0.1});
    sum(model(Tensor::ones({2, 4}))).backward();
    first.step();
  }
  optim::Adam second({{"weight", model.weight}}, {.lr = 0.1});
  second.step();
  EXPECT_EQ(state.tensor("weight").to_vector<float>(), model.weight.to_vector<float>());
  EXPECT_EQ(row.to_vector<float>(), model.weight.to_vector<float>());
  EXPECT_TRUE(weight.is_same(model.weight));
  model.load_state_dict({{{"weight", Tensor::ones({1, 4})}, {"bias", Tensor::ones({1})}}, {}});
  EXPECT_EQ(state.tensor("weight").to_vector<float>(), std::vector<float>(4, 1));
}

TEST(Handles, AConvertedModelKeepsItsGradient) {
  Linear model(2, 1);
  sum(model(Tensor::ones({2, 2}))).backward();
  const Tensor held = model.weight.detach();
  model.to(DType::f64);
  EXPECT_EQ(model.weight.grad().dtype(), DType::f64);
  EXPECT_EQ(model.weight.grad().to_vector<double>(), (std::vector<double>{2, 2}));
  EXPECT_EQ(held.dtype(), DType::f32) << "to() makes new memory, as in PyTorch";
}

}  // namespace
}  // namespace weft::nn
