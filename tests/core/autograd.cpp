// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/backward_context.h"
#include "core/backward_pass.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/devices.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor leaf(const std::vector<double>& values) { return Tensor::from(values).requires_grad_(); }
std::vector<double> grad_of(const Tensor& x) { return x.grad().to_vector<double>(); }

TEST(Autograd, ChainAndFanOut) {
  const Tensor x = leaf({2, 3}), y = leaf({5, 7});
  const Tensor z = x * y + x;  // dz/dx = y + 1, dz/dy = x
  sum(z * z).backward();       // 2 z
  EXPECT_THAT(grad_of(x), ElementsAre(2 * 12 * 6, 2 * 24 * 8));
  EXPECT_THAT(grad_of(y), ElementsAre(2 * 12 * 2, 2 * 24 * 3));
}

TEST(Autograd, GradientsAccumulateOverPasses) {
  const Tensor x = leaf({2});
  square(x).backward();
  const Tensor first = x.grad();
  square(x).backward();
  EXPECT_EQ(x.grad().item(), 8);
  EXPECT_TRUE(x.grad().is_same(first)) << "later passes add in place";
  x.zero_grad();
  EXPECT_EQ(x.grad().item(), 0);
  x.zero_grad();
  square(x).backward();
  EXPECT_EQ(x.grad().item(), 4);
  EXPECT_EQ(first.item(), 8) << "who holds a gradient keeps its values";
}

// Where nobody else holds either, the new gradient takes the place of the one that counts as zero.
TEST(Autograd, AGradientAfterZeroGradIsNotCopied) {
  const Tensor x = leaf({2});
  square(x).backward();
  x.zero_grad();
  const Tensor y = square(x);
  const void* made = nullptr;
  x.register_hook([&](const Tensor& dx) {
    made = dx.raw_data();
    return Tensor();
  });
  y.backward();
  EXPECT_EQ(x.grad().raw_data(), made);
  EXPECT_EQ(x.grad().item(), 4);
  x.zero_grad();
  const Tensor held = x.grad();
  square(x).backward();
  EXPECT_EQ(x.grad().raw_data(), held.raw_data()) << "who holds a gradient sees the next one";
}

TEST(Autograd, LeavesShareNoGradient) {
  const Tensor x = leaf({2, 3}), y = leaf({5, 7}), given = Tensor::from<double>({1, 1});
  const Tensor z = x + y;
  z.backward(given, /*retain_graph=*/true);
  z.backward(given);
  EXPECT_THAT(grad_of(x), ElementsAre(2, 2));
  EXPECT_THAT(grad_of(y), ElementsAre(2, 2));
  EXPECT_THAT(given.to_vector<double>(), ElementsAre(1, 1)) << "the caller's tensor is left alone";
  EXPECT_NE(x.grad().raw_data(), y.grad().raw_data());
}

TEST(Autograd, LeafItself) {
  const Tensor x = leaf({2, 3});
  x.backward(Tensor::from<double>({4, 5}));
  EXPECT_THAT(grad_of(x), ElementsAre(4, 5));
}

TEST(Autograd, NoGradAndDetach) {
  const Tensor x = leaf({2});
  {
    const NoGrad no_grad;
    EXPECT_FALSE((x * x).requires_grad());
    const NoGrad yes(true);
    EXPECT_TRUE((x * x).requires_grad());
  }
  EXPECT_TRUE((x * x).requires_grad());
  (x * x.detach()).backward();
  EXPECT_EQ(x.grad().item(), 2);
  EXPECT_EQ(x.detach().raw_data(), x.raw_data());
}

TEST(Autograd, OnlyWhatIsWanted) {
  const Tensor x = leaf({2}), constant = Tensor::from<double>({3});
  (x * constant).backward();
  EXPECT_FALSE(constant.grad().defined());
  EXPECT_FALSE((constant * constant).requires_grad());
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE((x * x).is_leaf());
}

TEST(Autograd, SecondBackwardNeedsRetain) {
  const Tensor x = leaf({3});
  const Tensor y = square(x);
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_EQ(x.grad().item(), 12);
  EXPECT_THAT([&] { y.backward(); },
              ThrowsMessage<Error>(
                  HasSubstr("square: backward a second time through the same graph. Pass retain_graph = true")));
}

TEST(Autograd, ChangeInPlaceAfterSaving) {
  const Tensor x = leaf({3}), y = exp(x);
  const Tensor z = sum(y);
  {
    const NoGrad no_grad;
    y.mul_(2);
  }
  EXPECT_THAT(
      [&] { z.backward(); },
      ThrowsMessage<Error>(HasSubstr("exp: backward needs f64[1] on cpu, which was changed in place after the forward "
                                     "(version 0, now 1)")));
}

TEST(Autograd, ViewsCountAsTheSameMemory) {
  const Tensor x = leaf({3, 4}), y = square(x * 1.0), z = leaf({1, 1});
  const Tensor product = sum(y * z);
  {
    const NoGrad no_grad;
    y.slice(0, 0, 1).fill_(0);
  }
  EXPECT_THROW(product.backward(), Error);
}

TEST(Autograd, AFailedPassLeavesTheGraphUsable) {
  const Tensor x = leaf({3}), y = x * 2.0;
  bool fail_now = true;
  y.register_hook([&](const Tensor&) -> Tensor {
    if (fail_now) fail("stop here");
    return {};
  });
  const Tensor z = sum(y);
  EXPECT_THAT([&] { z.backward({}, true); }, ThrowsMessage<Error>(HasSubstr("stop here")));
  fail_now = false;
  z.backward({}, true);
  EXPECT_EQ(x.grad().item(), 2);
}

TEST(Autograd, HooksSeeAndReplaceGradients) {
  const Tensor x = leaf({3}), y = square(x);
  std::vector<double> seen;
  y.register_hook([&](const Tensor& dy) {
    seen.push_back(dy.item());
    return dy * 10.0;
  });
  x.register_hook([&](const Tensor& dx) {
    seen.push_back(dx.item());
    return Tensor();
  });
  (y + y).backward();
  EXPECT_THAT(seen, ElementsAre(2, 120)) << "once each, with the sum";
  EXPECT_EQ(x.grad().item(), 120);
}

TEST(Autograd, AccumulatedHookComesOncePerPassAndLast) {
  const Tensor x = leaf({3});
  int calls = 0;
  double value = 0;
  x.register_accumulated_hook([&](const Tensor& tensor) {
    ++calls;
    value = tensor.grad().item();
  });
  const Tensor y = x * x + x * 2.0;
  y.backward({}, true);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(value, 8);
  y.backward();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(value, 16);
}

TEST(Autograd, AccumulatedHooksRunDuringBackwardNotAfterIt) {
  // Gradients of late layers are there while early ones are still being computed: data parallelism overlaps on it.
  const Tensor early = leaf({3}), late = leaf({5});
  std::vector<std::string> order;
  late.register_accumulated_hook([&](const Tensor&) { order.push_back("late"); });
  const Tensor hidden = square(early);
  hidden.register_hook([&](const Tensor&) {
    order.push_back("hidden");
    return Tensor();
  });
  early.register_accumulated_hook([&](const Tensor&) { order.push_back("early"); });
  (hidden * late).backward();
  EXPECT_THAT(order, ElementsAre("late", "hidden", "early"));
}

TEST(Autograd, SeveralOutputs) {
  const Tensor x = leaf({3}), y = square(x), z = y * 2.0;
  backward({y, z}, {Tensor(), Tensor::from<double>({10})});
  EXPECT_EQ(x.grad().item(), 6 + 10 * 2 * 6);
  EXPECT_THAT([&] { backward({y}, {}); }, ThrowsMessage<Error>(HasSubstr("backward: 1 outputs, 0 gradients")));
}

TEST(Autograd, Errors) {
  EXPECT_THAT([] { Tensor::ones({1}).backward(); },
              ThrowsMessage<Error>(HasSubstr("backward: f32[1] on cpu depends on no tensor that needs a gradient")));
  EXPECT_THAT(
      [] {
        leaf({1, 2}).backward();
      },
      ThrowsMessage<Error>(HasSubstr("has more than one element: pass a gradient")));
  EXPECT_THAT(
      [] {
        leaf({1, 2}).backward(Tensor::ones({3}));
      },
      ThrowsMessage<Error>(HasSubstr("expected a gradient of f64[2] on cpu, got f32[3] on cpu")));
  EXPECT_THAT([] { Tensor::zeros({1}, DType::i64).requires_grad_(); },
              ThrowsMessage<Error>(HasSubstr("only floating tensors have gradients, got i64[1]")));
  EXPECT_THAT([] { square(leaf({1})).requires_grad_(false); },
              ThrowsMessage<Error>(HasSubstr("is the result of square, not a leaf. Use detach() first")));
  EXPECT_THAT([] { Tensor::ones({1}).register_hook({}); }, ThrowsMessage<Error>(HasSubstr("needs no gradient")));
  EXPECT_THAT([] { square(leaf({1})).register_accumulated_hook({}); },
              ThrowsMessage<Error>(HasSubstr("is not a leaf")));
  EXPECT_THAT(
      [] {
        leaf({1, 2}).set_grad(Tensor::ones({3}));
      },
      ThrowsMessage<Error>(HasSubstr("set_grad: expected [2], got f32[3]")));
  for (const DType dtype : {DType::f32, DType::i64})
    EXPECT_THAT(
        [&] {
          leaf({1, 2}).set_grad(Tensor::ones({2}, dtype));
        },
        ThrowsMessage<Error>(HasSubstr(str("set_grad: expected a gradient of the dtype and on the device of "
                                           "f64[2] on cpu, got ",
                                           dtype, "[2] on cpu. Convert it with to()"))));
  EXPECT_THAT([] { leaf({1}).register_hook({}); },
              ThrowsMessage<Error>(HasSubstr("register_hook: expected a function of the gradient, got none")));
  EXPECT_THAT([] { leaf({1}).register_accumulated_hook({}); },
              ThrowsMessage<Error>(HasSubstr("register_accumulated_hook: expected a function of the leaf, got none")));
  EXPECT_THAT([] { checkpoint({}, {leaf({1})}); },
              ThrowsMessage<Error>(HasSubstr("checkpoint: expected a function of the inputs, got none")));
}

// The hook of a leaf, and of a result.
TEST(Autograd, AHookReturnsAGradientOfTheSameKind) {
  for (const Tensor& other : {Tensor::ones({2}), Tensor::ones({3}, DType::f64), Tensor::ones({2}, DType::i64)})
    for (const bool of_leaf : {false, true}) {
      const Tensor x = leaf({1, 2}), y = x * 2;
      (of_leaf ? x : y).register_hook([other](const Tensor&) { return other; });
      EXPECT_THAT(
          [&] { sum(y).backward(); },
          ThrowsMessage<Error>(HasSubstr(str("backward: a hook was given the gradient f64[2] on cpu and returned ",
                                             other, ". Return one of the same sizes, dtype and device"))));
    }
}

TEST(Autograd, AGradientOnAnotherDeviceIsRefused) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  EXPECT_THAT(
      [] {
        Tensor::ones({2}, DType::f32, {DeviceKind::cuda, 0}).requires_grad_().backward(Tensor::ones({2}));
      },
      ThrowsMessage<Error>(HasSubstr(", got f32[2] on cpu")));
}

TEST(Autograd, BackwardInsideItsOwnGraphIsRefused) {
  const Tensor x = leaf({3}), y = square(x);
  y.register_hook([&](const Tensor&) {
    y.backward();
    return Tensor();
  });
  EXPECT_THAT([&] { (y * 2.0).backward(); },
              ThrowsMessage<Error>(HasSubstr("square belongs to a graph whose backward is running")));
}

TEST(Autograd, WrongBackwardIsNamed) {
  const Tensor x = leaf({3, 4});
  const Tensor few = differentiable(x.detach().clone(), "few", {x}, [](const Tensor&) { return Grads{}; });
  EXPECT_THAT([&] { few.backward(x.detach()); },
              ThrowsMessage<Error>(HasSubstr("few: backward returned 0 gradients for 1 inputs")));
  const Tensor wrong =
      differentiable(x.detach().clone(), "wrong", {x}, [](const Tensor&) { return Grads{Tensor::ones({5})}; });
  EXPECT_THAT([&] { wrong.backward(x.detach()); },
              ThrowsMessage<Error>(HasSubstr(
                  "wrong: backward returned the gradient f32[5] on cpu for input 0, expected f64[2] on cpu")));
}

TEST(Autograd, DeepChain) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100'000; ++i) y = y + 1.0;
  y.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(x.grad().item(), 1);
  y = {};  // freed without recursion
}

TEST(Autograd, DeepChainHeldByTensors) {
  // Lambdas that capture tensors with their history make the chain run through tensors.
  Tensor y = leaf({1});
  for (int i = 0; i < 100'000; ++i)
    y = differentiable(Tensor::ones({1}, DType::f64), "hold", {y}, [y](const Tensor& dy) { return Grads{dy}; });
  y = {};
}

TEST(Autograd, WideFanOut) {
  const Tensor x = leaf({1});
  Tensor y = x * 1.0;
  for (int i = 0; i < 40; ++i) y = y + y;  // 2^40 paths, 40 nodes
  y.backward();
  EXPECT_EQ(x.grad().item(), 1099511627776.0);
}

TEST(Autograd, GraphGoesWithItsTensors) {
  const Tensor x = leaf({1});
  const Ref<Storage> memory = [&] {
    const Tensor y = exp(x);
    EXPECT_TRUE(y.requires_grad());
    return y.storage();
  }();
  EXPECT_EQ(memory->owners(), 1) << "exp keeps its own output: no cycle may hold it";
}

TEST(Autograd, AfterBackwardRunsOnceBehindTheOutermostPass) {
  const Tensor x = leaf({2}), w = leaf({3});
  std::vector<std::string> order;
  for (const Tensor& t : {x, w})
    t.register_accumulated_hook([&](const Tensor&) {
      order.push_back("gradient");
      after_backward([&] { order.push_back("behind"); });
    });
  sum(checkpoint([&](const std::vector<Tensor>& in) { return in[0] * w; }, {x})).backward();
  EXPECT_THAT(order, ElementsAre("gradient", "gradient", "behind", "behind"));
  EXPECT_THAT([] { after_backward([] {}); },
              ThrowsMessage<Error>(HasSubstr("after_backward: no backward is running on this thread")));
  const Tensor y = leaf({2});
  y.register_accumulated_hook([&](const Tensor&) {
    after_backward([&] { order.push_back("never"); });
    throw std::runtime_error("hook");
  });
  EXPECT_ANY_THROW(square(y).backward());
  order.clear();
  square(x).backward();
  EXPECT_THAT(order, ElementsAre("gradient", "behind"));
}

TEST(Autograd, GradientPendingUntilEveryUseWasGoneThrough) {
  const Tensor x = leaf({2}), w = leaf({3});
  std::vector<std::string> seen;
  const auto tell = [&](const char* when) {
    seen.push_back(str(when, gradient_pending(w) ? " w" : "", gradient_pending(x) ? " x" : ""));
  };
  w.register_accumulated_hook([&](const Tensor&) { tell("w came"); });
  const Tensor inner = checkpoint([&](const std::vector<Tensor>& in) { return in[0] * w; }, {x * w});
  const Tensor y = inner * w;
  y.register_hook([&](const Tensor&) {
    tell("begins");
    return Tensor();
  });
  EXPECT_FALSE(gradient_pending(w));
  sum(y).backward();
  EXPECT_THAT(seen, ElementsAre("begins w x", "w came w x", "w came"))
      << "the pass of the checkpoint has brought its gradient, the outer one still waits for w";
  EXPECT_FALSE(gradient_pending(x));
}

TEST(Autograd, SavedMemoryMayGoAndComeBackElsewhere) {
  const Tensor w = Tensor::from<double>({5, 7});
  const Tensor x = leaf({2, 3});
  const Tensor y = sum(x * w.slice(0, 1, 1));
  w.storage()->release();
  EXPECT_FALSE(w.storage()->has_memory());
  EXPECT_EQ(w.storage()->bytes(), 16u);
  EXPECT_THAT([&] { y.backward({}, true); },
              ThrowsMessage<Error>(AllOf(HasSubstr("mul: backward needs "), HasSubstr("memory has been given back"))));
  const Tensor in_the_way = Tensor::zeros({2}, DType::f64);
  w.storage()->acquire();
  w.storage()->acquire();
  auto* values = static_cast<double*>(w.storage()->data());
  values[0] = 11, values[1] = 13;
  y.backward();
  EXPECT_THAT(grad_of(x), ElementsAre(13, 13));
  double outside = 0;
  const Tensor wrapped = Tensor::wrap(&outside, {1}, DType::f64, {});
  EXPECT_THAT([&] { wrapped.storage()->release(); }, ThrowsMessage<Error>(HasSubstr("belong to somebody else")));
}

/// x * factor whose backward asks for a gradient target, and notes where it was.
Tensor scaled(const Tensor& x, double factor, const void** written) {
  const Tensor y = x.detach().clone();
  y.mul_(factor);
  return differentiable(y, "scaled", {x}, [=](const Tensor& dy, BackwardContext& context) {
    const Tensor dx = context.gradient_target(0, dy.sizes(), dy.dtype(), dy.device());
    dx.copy_(dy).mul_(factor);
    *written = dx.raw_data();
    return Grads{dx};
  });
}

TEST(Autograd, AGradientIsWrittenInItsPlaceWhereItIsTheOnlyOne) {
  const Tensor x = leaf({2, 3});
  const void* written = nullptr;
  x.set_grad(Tensor::from<double>({50, 60}));
  const void* const place = x.grad().raw_data();

  sum(scaled(x, 4, &written)).backward();
  EXPECT_NE(written, place) << "added to what is there";
  EXPECT_THAT(grad_of(x), ElementsAre(54, 64));

  x.zero_grad();
  sum(scaled(x, 4, &written)).backward();
  EXPECT_EQ(written, place);
  EXPECT_THAT(grad_of(x), ElementsAre(4, 4));

  x.zero_grad();
  sum(scaled(x, 4, &written) + x).backward();
  EXPECT_NE(written, place) << "one of two gradients";
  EXPECT_THAT(grad_of(x), ElementsAre(5, 5));

  x.zero_grad();
  const void* second = nullptr;
  sum(scaled(x, 4, &written) + scaled(x, 5, &second)).backward();
  EXPECT_TRUE(written != place && second != place);
  EXPECT_THAT(grad_of(x), ElementsAre(9, 9));
}

TEST(Autograd, AnUnusedGradientTargetCountsAsZeroAsBefore) {
  const Tensor x = leaf({2, 3});
  x.set_grad(Tensor::from<double>({50, 60}));
  x.zero_grad();
  const auto op = [&](bool fails) {
    return differentiable(x.detach().clone(), "op", {x}, [=](const Tensor& dy, BackwardContext& context) {
      context.gradient_target(0, dy.sizes(), dy.dtype(), dy.device()).fill_(99);
      if (fails) throw std::runtime_error("op");
      return Grads{dy.clone()};
    });
  };
  EXPECT_ANY_THROW(sum(op(true)).backward());
  EXPECT_THAT(grad_of(x), ElementsAre(0, 0));
  x.zero_grad();
  sum(op(false)).backward();
  EXPECT_THAT(grad_of(x), ElementsAre(1, 1));
}

TEST(Autograd, ReduceTo) {
  const Tensor g = Tensor::ones({4, 2, 3});
  EXPECT_THAT(reduce_to(g, {2, 1}).to_vector<float>(), ElementsAre(12, 12));
  EXPECT_THAT(reduce_to(g, {3}).to_vector<float>(), ElementsAre(8, 8, 8));
  EXPECT_EQ(reduce_to(g, {}).item(), 24);
  EXPECT_TRUE(reduce_to(g, {4, 2, 3}).is_same(g));
  EXPECT_EQ(reduce_to(g, {1, 1, 1}).sizes(), (Shape{1, 1, 1}));
}

TEST(Autograd, ThreadsHaveTheirOwnSwitch) {
  const NoGrad no_grad;
  bool other = false;
  std::thread([&] { other = grad_enabled(); }).join();
  EXPECT_TRUE(other);
  EXPECT_FALSE(grad_enabled());
}

TEST(Autograd, AnOwnOpsGradientMustBeLikeItsInput) {
  const auto message = [](const Tensor& x, const Tensor& gradient) {
    const Tensor y = differentiable(x.detach().clone(), "own", {x}, [=](const Tensor&) { return Grads{gradient}; });
    try {
      sum(y).backward();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Tensor x = Tensor::ones({2, 3}).requires_grad_(), made = x * 2;  // a leaf, and what an op made
  for (const Tensor& input : {x, made}) {
    EXPECT_EQ(message(input, Tensor::ones({2, 3}, DType::f64)),
              "own: backward returned the gradient f64[2,3] on cpu for input 0, expected f32[2,3] on cpu");
    for (const DeviceKind kind : tests::test_devices()) {
      const Device other{kind, 0};
      if (kind == DeviceKind::cpu) continue;
      EXPECT_EQ(
          message(input, Tensor::ones({2, 3}, DType::f32, other)),
          str("own: backward returned the gradient f32[2,3] on ", other, " for input 0, expected f32[2,3] on cpu"));
    }
    EXPECT_EQ(message(input, Tensor::ones({3})),
              "own: backward returned the gradient f32[3] on cpu for input 0, expected f32[2,3] on cpu");
  }
  EXPECT_EQ(message(x, Tensor::ones({2, 3})), "");
  EXPECT_EQ(message(x, {}), "");
}

}  // namespace
}  // namespace weft
