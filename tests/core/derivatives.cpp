// SPDX-License-Identifier: Apache-2.0
#include "core/derivatives.h"

#include <gmock/gmock.h>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/check_gradient.h"
#include "core/flat_parameters.h"
#include "core/ops/binary.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "kernels/runtime/allocator.h"
#include "tests/support/devices.h"

namespace weft::derivative_tests {
namespace {

using autograd::grad;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor leaf(const std::vector<double>& values) { return Tensor::from(values).requires_grad_(); }
std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }
Tensor slope(const Tensor& y, const Tensor& x) { return grad({y}, {x}, {.create_graph = true})[0]; }
Tensor drawn(const Shape& sizes) { return normal(sizes, 0, 1, DType::f64); }

/// y = 2 x by a kernel's rule: its gradient has no history.
Tensor doubled(const Tensor& x) {
  return differentiable(x.detach() * 2, "doubled", {x}, [](const Tensor& dy) {
    const NoGrad no_grad;
    return Grads{dy * 2};
  });
}

TEST(Derivatives, AreTensorsThatCanBeDifferentiatedAgain) {
  const Tensor x = leaf({1, 2, -3});
  const Tensor first = slope(sum(x * x * x * x), x), second = slope(sum(first), x), third = slope(sum(second), x);
  EXPECT_THAT(numbers(first), ElementsAre(4, 32, -108));
  EXPECT_THAT(numbers(second), ElementsAre(12, 48, 108));
  EXPECT_THAT(numbers(third), ElementsAre(24, 48, -72));
  EXPECT_FALSE(x.has_gradient());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Derivatives, WithoutCreateGraphHaveNoHistoryAndUseTheGraphUp) {
  const Tensor x = leaf({3}), y = square(exp(x));
  EXPECT_FALSE(grad({y}, {x}, {.retain_graph = true})[0].requires_grad());
  EXPECT_FALSE(grad({y}, {x})[0].requires_grad());
  EXPECT_THAT([&] { grad({y}, {x}); }, ThrowsMessage<Error>(HasSubstr("backward a second time")));
}

TEST(Derivatives, AConstantHasNoHistory) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor of_sum = slope(sum(2.0 * x.reshape({1, 2})), x), of_product = slope(sum(x * w), x);
  EXPECT_THAT(numbers(of_sum), ElementsAre(2, 2));
  EXPECT_FALSE(of_sum.requires_grad());
  EXPECT_TRUE(of_product.requires_grad());
  EXPECT_THAT(numbers(grad({sum(square(of_product))}, {w})[0]), ElementsAre(6, 8));
  EXPECT_THAT([&] { grad({sum(of_product)}, {x}); }, ThrowsMessage<Error>(HasSubstr("no output depends on input 0")));
}

TEST(Derivatives, OfTensorsOnTheWay) {
  const Tensor x = leaf({2}), h = square(x), y = h * x;
  const std::vector<Tensor> gradients = grad({y, h}, {h, x, y}, {.create_graph = true});
  EXPECT_EQ(gradients[0].item(), 2 + 1);          // x, and the output's own
  EXPECT_EQ(gradients[1].item(), 3 * 4 + 2 * 2);  // x^3 + x^2
  EXPECT_EQ(gradients[2].item(), 1);
  EXPECT_EQ(grad({gradients[1]}, {x})[0].item(), 6 * 2 + 2);
}

TEST(Derivatives, OnlyWhatLeadsToAnInputRuns) {
  const Tensor x = leaf({2}), w = leaf({3});
  const Tensor other = differentiable(w.detach().clone(), "other", {w}, [](const Tensor& dy) {
    ADD_FAILURE() << "nobody asked for w";
    return Grads{dy};
  });
  EXPECT_EQ(grad({x * other}, {x})[0].item(), 3);
  EXPECT_EQ(grad({x * other}, {other})[0].item(), 2);
  EXPECT_FALSE(w.grad().defined());
}

TEST(Derivatives, GivenGradientsAndSeveralOutputs) {
  const Tensor x = leaf({2, 3}), v = leaf({5, 7});
  const Tensor g = grad({x * x, sum(x)}, {x}, {.create_graph = true, .grad_outputs = {v, {}}})[0];
  EXPECT_THAT(numbers(g), ElementsAre(2 * 2 * 5 + 1, 2 * 3 * 7 + 1));
  EXPECT_THAT(numbers(grad({sum(g)}, {v})[0]), ElementsAre(4, 6));
}

TEST(Derivatives, HooksSeeThemWithTheirHistory) {
  const Tensor x = leaf({2}), h = square(x);
  h.register_hook([](const Tensor& g) { return 3 * g; });
  x.register_hook([](const Tensor& g) { return 5 * g; });
  const Tensor first = slope(h * h, x);
  EXPECT_EQ(first.item(), 3 * 5 * 4 * 8);
  // first = 60 h x, and its own gradient goes through the hooks again.
  EXPECT_EQ(grad({first}, {x})[0].item(), 5 * (60 * 4 + 3 * 60 * 2 * 4));
}

TEST(Derivatives, OfThirdOrderEqualDifferences) {
  manual_seed(1);
  check_gradient(
      [](const std::vector<Tensor>& in) {
        const NoGrad recording(true);
        const Tensor x = in[0].requires_grad() ? in[0] : in[0].detach().requires_grad_();
        const Tensor w = in[1].requires_grad() ? in[1] : in[1].detach().requires_grad_();
        const Tensor y = sum(tanh(conv2d(x, w, {}, {.stride = 2, .padding = 1})));
        return slope(sum(square(slope(y, x))), w);
      },
      {drawn({1, 5, 4, 2}).requires_grad_(), drawn({3, 3, 2, 2}).requires_grad_()});
}

TEST(Derivatives, AnOpOfTheUsersOwn) {
  const auto cube = [](const Tensor& x) {
    return differentiable(x.detach() * x.detach() * x.detach(), "cube", {x},
                          [x = Saved(x)](const Tensor& dy) { return Grads{3.0 * dy * square(x)}; });
  };
  const Tensor x = leaf({2});
  EXPECT_EQ(slope(slope(cube(x), x), x).item(), 12);
  EXPECT_EQ(slope(slope(slope(cube(x), x), x), x).item(), 6);

  EXPECT_EQ(grad({doubled(x)}, {x})[0].item(), 2);
  EXPECT_THAT([&] { slope(doubled(x), x); },
              ThrowsMessage<Error>(HasSubstr("doubled: its gradient cannot be differentiated: no second derivative is "
                                             "known. Use other ops, or leave out create_graph")));
  const Tensor y =
      differentiable(x.detach(), "hidden", {x},
                     [kept = Saved(Tensor::from<double>({7}))](const Tensor& dy) { return Grads{dy * kept}; });
  EXPECT_THAT([&] { slope(y, x); },
              ThrowsMessage<Error>(HasSubstr("hidden: its gradient cannot be differentiated: it reads f64[1] on cpu, "
                                             "which is neither an input nor the result. Name it among the inputs, or "
                                             "leave out create_graph")));
}

TEST(Derivatives, Errors) {
  const Tensor x = leaf({2, 3}), other = leaf({1}), plain = Tensor::from<double>({1});
  const auto says = [](const char* text) { return ThrowsMessage<Error>(HasSubstr(text)); };
  EXPECT_THAT(
      [&] { grad({sum(x)}, {plain}); },
      says("autograd::grad: input 0, f64[1] on cpu, needs no gradient. Call requires_grad_() before the outputs "
           "are computed"));
  EXPECT_THAT(
      [&] {
        grad({sum(x)}, {x, other});
      },
      says("autograd::grad: no output depends on input 1, f64[1] on cpu. With allow_unused its gradient is an "
           "undefined tensor"));
  EXPECT_FALSE(grad({sum(x)}, {x, other}, {.allow_unused = true})[1].defined());
  EXPECT_THAT([&] { grad({plain}, {x}); }, says("autograd::grad: f64[1] on cpu depends on no tensor that needs a"));
  EXPECT_THAT([&] { grad({x * x}, {x}); }, says("autograd::grad: f64[2] on cpu has more than one element"));
  EXPECT_THAT(
      [&] {
        grad({sum(x)}, {x}, {.grad_outputs = {plain, plain}});
      },
      says("autograd::grad: 1 outputs, 2 gradients"));
  EXPECT_THAT([&] { grad({sum(x)}, {x}, {.grad_outputs = {plain}}); },
              says("autograd::grad: expected a gradient of f64[] on cpu, got f64[1] on cpu"));
  const Tensor again = checkpoint([](const std::vector<Tensor>& in) { return sum(square(in[0])); }, {x});
  for (const bool create_graph : {false, true})
    EXPECT_THAT([&] { grad({again}, {x}, {.create_graph = create_graph}); },
                says("checkpoint: only a backward() without create_graph goes through it. Call the function itself"));
  EXPECT_THAT([&] { again.backward({}, BackwardOptions{.create_graph = true}); }, says("checkpoint: only"));
}

TEST(Derivatives, AChangeInPlaceIsSeen) {
  const Tensor x = leaf({2}), y = sum(x * x * x);
  const Tensor first = slope(y, x);
  {
    const NoGrad no_grad;
    x.add_(Tensor::from<double>({1}));
  }
  EXPECT_THAT([&] { grad({first}, {x}); }, ThrowsMessage<Error>(HasSubstr("which was changed in place")));
}

TEST(Derivatives, OfAFusedOpWithConstants) {
  manual_seed(4);
  const Tensor x = drawn({2, 3}), w = drawn({4, 3}), b = drawn({4});
  for (int constant = 0; constant < 3; ++constant) {
    SCOPED_TRACE(constant);
    const auto run = [&](bool fused) {
      std::vector<Tensor> in{x.detach(), w.detach(), b.detach()}, leaves;
      for (int i = 0; i < 3; ++i)
        if (i != constant) leaves.push_back(in[static_cast<size_t>(i)].requires_grad_());
      const Tensor y = fused ? linear_gelu(in[0], in[1], in[2]) : gelu(linear(in[0], in[1], in[2]));
      const std::vector<Tensor> slopes = grad({sum(square(y))}, leaves, {.create_graph = true});
      std::vector<double> all;
      for (const Tensor& second : grad({sum(square(slopes[0])) + sum(square(slopes[1]))}, leaves))
        for (const double value : numbers(second)) all.push_back(value);
      return all;
    };
    EXPECT_THAT(run(true), testing::Pointwise(testing::DoubleNear(1e-12), run(false)));
  }
}

TEST(Derivatives, UnderAutocast) {
  manual_seed(3);
  const Tensor x = normal({4, 8}).requires_grad_(), w = normal({8, 8}).requires_grad_();
  const auto penalty = [&](DType dtype) {
    const Autocast low(dtype);
    const Tensor y = tanh(matmul(tanh(linear(x, w)), w));
    return grad({sum(square(slope(sum(y), x)))}, {w})[0];
  };
  const Tensor want = penalty(DType::f32), got = penalty(DType::bf16);
  EXPECT_EQ(got.dtype(), DType::f32);
  EXPECT_LT(norm(got - want).item(), 0.1 * norm(want).item());
}

TEST(CreateGraph, LeavesGradientsWithAHistory) {
  const Tensor x = leaf({2, 3});
  sum(x * x * x).backward({}, BackwardOptions{.create_graph = true});
  EXPECT_THAT(numbers(x.grad()), ElementsAre(12, 27));
  sum(x * x).backward({}, BackwardOptions{.create_graph = true});
  EXPECT_THAT(numbers(x.grad()), ElementsAre(16, 33));
  EXPECT_THAT(numbers(grad({sum(x.grad())}, {x})[0]), ElementsAre(6 * 2 + 2, 6 * 3 + 2));
  sum(x).backward();
  EXPECT_THAT(numbers(x.grad()), ElementsAre(17, 34));
  EXPECT_FALSE(x.grad().requires_grad()) << "a plain backward leaves no history";
}

TEST(CreateGraph, InTheMemoryOfAnOptimizer) {
  const Tensor x = leaf({2, 3});
  const auto flat = FlatParameters::of({{"x", x}});
  sum(x * x * x).backward({}, BackwardOptions{.create_graph = true});
  flat->check_bound("test");
  EXPECT_EQ(flat->gradient().slice(0, 0, 2).to_vector<double>(), (std::vector<double>{12, 27}));
  const Tensor penalty = sum(square(x.grad()));
  x.zero_grad();
  penalty.backward();
  flat->check_bound("test");
  EXPECT_THAT(numbers(x.grad()), ElementsAre(2 * 12 * 12, 2 * 27 * 18));
}

TEST(CreateGraph, AReducedGradientIsRefused) {
  const Tensor x = leaf({2});
  x.register_accumulated_hook([](const Tensor&) {});
  EXPECT_THAT([&] { square(x).backward({}, BackwardOptions{.create_graph = true}); },
              ThrowsMessage<Error>(HasSubstr("backward: with create_graph the gradient of f64[1] on cpu has a history, "
                                             "and DDP or FSDP reduces it without. Use autograd::grad()")));
  EXPECT_EQ(slope(square(x), x).item(), 4);
}

TEST(CreateGraph, NothingIsLeftBehind) {
  const auto live = [] { return kernels::CachingAllocator::of(Device{}).stats().live; };
  const Tensor x = drawn({4, 4}).requires_grad_(), w = drawn({4, 4}).requires_grad_();
  const auto run = [&] {
    const Tensor y = sum(exp(linear_gelu(tanh(linear(x, w)), w)));
    sum(square(slope(sum(slope(y, x)), w))).backward();
    const Tensor z = sum(tanh(matmul(x, w)));
    z.backward({}, BackwardOptions{.create_graph = true});
    sum(square(x.grad())).backward();
    x.set_grad({}), w.set_grad({});
  };
  run();
  const auto before = live();
  for (int i = 0; i < 3; ++i) run();
  EXPECT_EQ(live(), before);
}

TEST(Functional, EqualsClosedForms) {
  manual_seed(5);
  const Tensor a = drawn({3, 4}), x = drawn({4}), v = drawn({4}), w = drawn({3});
  const auto f = [&](const Tensor& t) { return matmul(a, sin(t)); };  // J = a diag(cos x)
  const auto near = [](const Tensor& got, const Tensor& want) {
    ASSERT_EQ(got.sizes(), want.sizes());
    EXPECT_LT(norm(got - want).item(), 1e-12 * (1 + norm(want).item()));
    EXPECT_FALSE(got.requires_grad());
  };
  const Tensor J = a * cos(x);
  near(autograd::vjp(f, x, w).first, f(x));
  near(autograd::vjp(f, x, w).second, matmul(w, J));
  near(autograd::jvp(f, x, v).second, matmul(J, v));
  near(autograd::jacobian(f, x), J);
  const auto g = [&](const Tensor& t) { return sum(exp(matmul(a, t))); };  // H = a^T diag(exp a x) a
  const Tensor H = matmul(a.transpose(0, 1), exp(matmul(a, x)).unsqueeze(1) * a);
  near(autograd::hessian(g, x), H);
  near(autograd::hvp(g, x, v).second, matmul(H, v));
  near(autograd::hvp(g, x, v).first, g(x));
  near(autograd::hessian([](const Tensor& t) { return sum(t); }, x), Tensor::zeros({4, 4}, DType::f64));
  near(autograd::jacobian(
           [](const Tensor& t) {
             return t.reshape({2, 2});
           },
           x),
       autograd::jacobian([](const Tensor& t) { return 1.0 * t; }, x).reshape({2, 2, 4}));
  {
    const NoGrad no_grad;
    near(autograd::hvp(g, x, v).second, matmul(H, v));
  }
}

TEST(Functional, CanBeDifferentiated) {
  manual_seed(6);
  const auto cubes = [](const Tensor& t) { return sum(t * t * t); };
  const Tensor x = leaf({2, 3}), v = Tensor::from<double>({1, 10});
  const autograd::DerivativeOptions recorded{.create_graph = true};
  EXPECT_THAT(numbers(grad({sum(autograd::hvp(cubes, x, v, recorded).second)}, {x})[0]), ElementsAre(6, 60));
  EXPECT_THAT(numbers(grad({sum(autograd::hessian(cubes, x, recorded))}, {x})[0]), ElementsAre(6, 6));
  EXPECT_THAT(numbers(grad({autograd::jvp(cubes, x, v, recorded).second}, {x})[0]), ElementsAre(12, 180));
  EXPECT_THAT(numbers(grad({sum(autograd::jacobian(cubes, x, recorded))}, {x})[0]), ElementsAre(12, 18));
}

TEST(Functional, Errors) {
  const Tensor x = Tensor::from<double>({1, 2});
  const auto same = [](const Tensor& t) { return t * t; };
  EXPECT_THAT(
      [&] { autograd::vjp(same, x, Tensor::ones({3}, DType::f64)); },
      ThrowsMessage<Error>(HasSubstr("autograd::vjp: expected a vector like f64[2] on cpu, got f64[3] on cpu")));
  EXPECT_THAT(
      [&] { autograd::jacobian([](const Tensor&) { return Tensor::ones({2}); }, x); },
      ThrowsMessage<Error>(HasSubstr("autograd::jacobian: the result f32[2] on cpu does not depend on f64[2]")));
  EXPECT_THAT([&] { autograd::hessian(same, x); }, ThrowsMessage<Error>(HasSubstr("has more than one element")));
  EXPECT_THAT([&] { autograd::jvp(same, Tensor::arange(2), x); },
              ThrowsMessage<Error>(HasSubstr("autograd::jvp: expected a floating tensor, got i64[2] on cpu")));
}

}  // namespace
}  // namespace weft::derivative_tests
