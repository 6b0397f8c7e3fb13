// SPDX-License-Identifier: Apache-2.0
// The tests that follow from the cases alone: see op_case.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "core/autograd.h"
#include "core/check_gradient.h"
#include "core/derivatives.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/rows.h"

namespace weft::test {
namespace {

std::mt19937_64& fresh_random() {
  static std::mt19937_64* const random = [] {
    const uint64_t seed = std::random_device{}();
    std::cout << "seed of the inputs: " << seed << "\n";
    return new std::mt19937_64(seed);
  }();
  return *random;
}

/// A gradient for y. Positive ones do not cancel in sums, which would amplify rounding without bound.
Tensor like(const Tensor& y, std::mt19937_64& random, bool positive) {
  return draw({y.sizes(), positive ? Values::positive : Values::normal}, random);
}

/// ‖a − b‖; NaN or unequal infinities count as infinite.
double distance(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = a.to_vector<double>(), right = b.to_vector<double>();
  double squares = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i]) continue;
    const double d = left[i] - right[i];
    if (!std::isfinite(d)) return INFINITY;
    squares += d * d;
  }
  return std::sqrt(squares);
}

/// x with each element changed by one relative rounding error, up or down.
Tensor rounded_otherwise(const Tensor& x, double eps, std::mt19937_64& random) {
  if (!x.is_floating()) return x;
  std::vector<double> values = x.to_vector<double>();
  for (double& value : values) value *= random() % 2 ? 1 + eps : 1 - eps;
  return Tensor::from(values, x.sizes());
}

/// How far a result of sums over `length` terms may be from the exact one: a few roundings of the result, and `moved`.
/// This is the change of the exact result when inputs are rounded otherwise (sums that cancel lose digits in any
/// order).
double tolerance(const Tensor& wanted, double moved, double eps, int64_t length) {
  const double norm = distance(wanted, zeros_like(wanted));
  return 8 * std::sqrt(static_cast<double>(length)) * (eps * norm + moved);
}

class Derived : public testing::TestWithParam<OpCase> {
  void SetUp() override {
    if (!GetParam().needs.empty())
      GTEST_SKIP() << "needs a build with " << GetParam().needs << "; this one has its stub";
  }
};

/// The unit roundoff: half the distance from 1 to the next number.
double roundoff(DType dtype) {
  return dtype == DType::f64 ? 0x1p-53 : dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-9;
}

/// The report of check_gradient about a case on fresh inputs; "" when it agrees.
std::string gradient_error(const OpCase& op) {
  std::mt19937_64& random = fresh_random();
  std::vector<Tensor> inputs = make_inputs(op, random);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_floating() && op.inputs[i].gradient) inputs[i].requires_grad_();
  try {
    check_gradient(op.function, inputs, {.seed = random()});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_P(Derived, GradientEqualsCentralDifferences) {
  const OpCase& op = GetParam();
  if (op.derivative != Derivative::smooth) GTEST_SKIP() << "has no gradient everywhere";
  note(op, {}, DType::f64, "differences");
  // About once in 10,000 draws a kink lies between two of the probed points: one more draw must do.
  const std::string first = gradient_error(op);
  if (first.empty()) return;
  EXPECT_EQ(gradient_error(op), "") << "and before: " << first;
}

/// The gradients of a case as one row. `given`: its inputs and, last, y's gradient. The row begins with the inputs, so
/// that each of them has a gradient.
Tensor gradients_of(const OpCase& op, const std::vector<Tensor>& given) {
  const NoGrad recording(true);
  std::vector<Tensor> inputs(given.begin(), given.end() - 1), wanted, flat;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_floating() || !op.inputs[i].gradient) continue;
    if (!inputs[i].requires_grad()) inputs[i] = inputs[i].detach().requires_grad_();
    wanted.push_back(inputs[i]);
    flat.push_back(inputs[i].flatten());
  }
  manual_seed(7);
  const Tensor y = op.function(inputs);
  const auto gradients = autograd::grad(
      {y}, wanted, {.create_graph = true, .grad_outputs = {given.back().to(y.dtype())}, .allow_unused = true});
  for (const Tensor& gradient : gradients)
    if (gradient.defined()) flat.push_back(gradient.flatten());
  return concat(flat);
}

std::string second_error(const OpCase& op) {
  std::mt19937_64& random = fresh_random();
  std::vector<Tensor> inputs = make_inputs(op, random);
  manual_seed(7);
  const Tensor dy = like(op.function(inputs), random, /*positive=*/false);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_floating() && op.inputs[i].gradient) inputs[i].requires_grad_();
  inputs.push_back(dy.requires_grad_());
  try {
    check_gradient([&](const std::vector<Tensor>& x) { return gradients_of(op, x); }, inputs,
                   {.seed = random(), .probes = 5});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_P(Derived, SecondDerivativeEqualsCentralDifferencesOfTheGradient) {
  const OpCase& op = GetParam();
  if (op.derivative != Derivative::smooth) GTEST_SKIP() << "has no gradient everywhere";
  const std::string first = second_error(op);
  note(op, {}, DType::f64, "second");
  if (first.empty()) return;
  EXPECT_EQ(second_error(op), "") << "and before: " << first;
}

/// The derivative of gradients_of() with `weights` for its row: the gradients of inputs and of dy as one row.
Tensor second_derivative(const OpCase& op, const std::vector<Tensor>& inputs, const Tensor& dy, const Tensor& weights,
                         Device device) {
  std::vector<Tensor> given, leaves, flat;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(place(inputs[i], op.inputs[i], DType::f64, device));
    if (given[i].is_floating() && op.inputs[i].gradient) leaves.push_back(given[i].requires_grad_());
  }
  leaves.push_back(given.emplace_back(dy.detach().to(device)).requires_grad_());
  const Tensor row = gradients_of(op, given);
  for (const Tensor& gradient :
       autograd::grad({row}, leaves, {.grad_outputs = {weights.to(device)}, .allow_unused = true}))
    if (gradient.defined()) flat.push_back(gradient.flatten());
  return concat(flat);
}

class DerivedOnGpu : public Derived {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DerivedOnGpu);  // without a GPU

TEST_P(DerivedOnGpu, SecondDerivativeEqualsTheCpus) {
  const OpCase& op = GetParam();
  if (op.derivative != Derivative::smooth) GTEST_SKIP() << "has no gradient everywhere";
  std::mt19937_64& random = fresh_random();
  const std::vector<Tensor> inputs = make_inputs(op, random);
  manual_seed(7);
  const Tensor dy = like(op.function(inputs), random, /*positive=*/false);
  std::vector<Tensor> given = inputs;
  given.push_back(dy);
  const Tensor weights = like(gradients_of(op, given), random, /*positive=*/false);
  const Tensor wanted = second_derivative(op, inputs, dy, weights, {});
  double moved = 0;
  for (int draw = 0; draw < 3; ++draw) {
    std::vector<Tensor> otherwise;
    for (const Tensor& x : inputs) otherwise.push_back(rounded_otherwise(x, 0x1p-53, random));
    moved = std::max(moved, distance(second_derivative(op, otherwise, rounded_otherwise(dy, 0x1p-53, random),
                                                       rounded_otherwise(weights, 0x1p-53, random), {}),
                                     wanted));
  }
  const Tensor got = second_derivative(op, inputs, dy, weights, {DeviceKind::cuda, 0});
  ASSERT_EQ(got.sizes(), wanted.sizes());
  // A derivative of a derivative is several sums, one after another. A forgotten term is larger by orders of
  // magnitude.
  EXPECT_LE(distance(got, wanted), 16 * tolerance(wanted, moved, 0x1p-53, op.length));
}

TEST_P(Derived, EveryDeviceAndDtypeEqualsDoubleOnCpu) {
  const OpCase& op = GetParam();
  std::mt19937_64& random = fresh_random();
  const std::vector<Tensor> drawn = make_inputs(op, random);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    if (size_of(dtype) == 2 && !op.low) continue;
    // The reference sees the rounded inputs, so that only the op's own rounding is measured.
    std::vector<Tensor> exact;
    for (size_t i = 0; i < drawn.size(); ++i) {
      const Tensor rounded = place(drawn[i], op.inputs[i], dtype, {});
      exact.push_back(rounded.is_floating() ? rounded.to(DType::f64) : rounded);
    }
    manual_seed(7);
    Tensor dy = like(op.function(exact), random, /*positive=*/true).to(dtype).to(DType::f64);
    const Outcome wanted = run_case(op, exact, dy);
    const double eps = roundoff(dtype);
    // With few numbers a draw may move all by next to nothing: the largest of three counts.
    double moved = 0;
    std::vector<double> moved_gradients(drawn.size(), 0);
    for (int draw = 0; draw < 3; ++draw) {
      std::vector<Tensor> otherwise;
      for (const Tensor& x : exact)  // ties stay ties
        otherwise.push_back(op.derivative == Derivative::kinks ? x : rounded_otherwise(x, eps, random));
      const Outcome outcome = run_case(op, otherwise, rounded_otherwise(dy, eps, random));
      moved = std::max(moved, distance(outcome.y, wanted.y));
      for (size_t i = 0; i < drawn.size(); ++i)
        if (outcome.gradients[i].defined())
          moved_gradients[i] = std::max(moved_gradients[i], distance(outcome.gradients[i], wanted.gradients[i]));
    }
    for (const Device device : case_devices()) {
      SCOPED_TRACE(str(dtype, " on ", device));
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < drawn.size(); ++i) inputs.push_back(place(exact[i], op.inputs[i], dtype, device));
      const Outcome got = run_case(op, inputs, dy);
      ASSERT_EQ(got.y.sizes(), wanted.y.sizes());
      EXPECT_EQ(got.y.device(), device);
      const bool floating = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.is_floating(); });
      note(op, device, floating ? dtype : got.y.dtype(), "forward");
      EXPECT_LE(distance(got.y, wanted.y), tolerance(wanted.y, moved, eps, op.length)) << "result";
      for (size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_EQ(got.gradients[i].defined(), wanted.gradients[i].defined()) << "gradient of input " << i;
        if (!got.gradients[i].defined()) continue;
        note(op, device, dtype, "backward");
        EXPECT_EQ(got.gradients[i].dtype(), inputs[i].dtype());
        EXPECT_LE(distance(got.gradients[i], wanted.gradients[i]),
                  tolerance(wanted.gradients[i], moved_gradients[i], eps, op.length))
            << "gradient of input " << i;
      }
    }
  }
}

/// Cases whose op also takes whole numbers, beside the ops of the table: every device makes of them exactly what f64
/// makes.
constexpr const char* kWholeNumberCases =
    "add add_row add_transposed sub sub_outer mul mul_strided mul_long maximum_ties minimum_ties where "
    "where_broadcast comparisons sum_all sum_rows sum_strided sum_long max_all max_rows max_long min_all min_rows "
    "min_long argmax argmax_last any all sort sort_descending argsort searchsorted topk cumsum cumprod cummax cummin "
    "repeat_interleave repeat_interleave_counts diagonal diag_embed diag meshgrid unbind pad_reflect pad_replicate "
    "pad_circular pixel_shuffle pixel_unshuffle unfold unique unique_counts masked_select index index_tensors "
    "index_mask index_put reshape flatten squeeze reshape_transposed permute permute_dense transpose slice select "
    "expand clone to_cpu concat concat_rows stack pad index_select index_select_columns gather gather_rows scatter "
    "scatter_value clamp_whole contiguous unsqueeze copy_ fill_";

std::vector<std::string> whole_number_cases() {
  std::istringstream in(kWholeNumberCases);
  std::vector<std::string> names{std::istream_iterator<std::string>(in), {}};
#define WEFT_ROW(name, ...) \
  if (kernels::unary_takes_integers(kernels::Unary::name)) names.push_back(#name);
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW
  return names;
}

class WholeNumbers : public testing::TestWithParam<std::string> {};

TEST_P(WholeNumbers, AreExact) {
  const auto found =
      std::find_if(op_cases().begin(), op_cases().end(), [](const OpCase& op) { return op.name == GetParam(); });
  ASSERT_NE(found, op_cases().end());
  const OpCase& op = *found;
  const NoGrad no_grad;
  std::vector<Tensor> exact;
  for (const Tensor& x : make_inputs(op, fresh_random()))
    exact.push_back(x.is_floating() ? (x * 3).to(DType::i64).to(DType::f64) : x);
  const Tensor wanted = op.function(exact);
  for (const DType dtype : {DType::i64, DType::i32})
    for (const Device device : case_devices()) {
      SCOPED_TRACE(str(dtype, " on ", device));
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < exact.size(); ++i)
        inputs.push_back(place(exact[i].is_floating() ? exact[i].to(dtype) : exact[i], op.inputs[i], dtype, device));
      const Tensor got = op.function(inputs);
      ASSERT_EQ(got.sizes(), wanted.sizes());
      EXPECT_EQ(distance(got, wanted), 0);
      note(op, device, dtype, "forward");
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, WholeNumbers, testing::ValuesIn(whole_number_cases()),
                         [](const auto& test) { return test.param; });

// Mutants: backwards that are wrong on purpose. The checks above must see each of them.

std::string mutant_error(std::vector<OpInput> inputs,
                         const std::function<Tensor(const std::vector<Tensor>&)>& function) {
  return gradient_error({"mutant", std::move(inputs), function});
}

TEST(Mutants, AScaledGradientIsSeen) {
  const auto mutant = [](const std::vector<Tensor>& x) {
    return differentiable(square(x[0].detach()), "mutant", {x[0]},
                          [x = Saved(x[0])](const Tensor& dy) { return Grads{2.0001 * dy * x}; });
  };
  EXPECT_NE(mutant_error({{{3, 5}}}, mutant), "");
}

TEST(Mutants, AForgottenHistoryIsSeen) {
  const auto mutant = [](const std::vector<Tensor>& x) {
    return differentiable(square(x[0].detach()), "mutant", {x[0]},
                          [x = Saved(x[0])](const Tensor& dy) { return Grads{2 * dy * x.get().detach()}; });
  };
  EXPECT_EQ(mutant_error({{{3, 5}}}, mutant), "");
  EXPECT_NE(second_error({"mutant", {{{3, 5}}}, mutant}), "");
}

TEST(Mutants, AForgottenBroadcastIsSeen) {
  const auto mutant = [](const std::vector<Tensor>& x) {
    return differentiable(x[0].detach() + x[1].detach(), "mutant", {x[0], x[1]}, [](const Tensor& dy) {
      return Grads{dy, dy.select(0, 0).clone()};
    });
  };
  EXPECT_NE(mutant_error({{{4, 5}}, {{5}}}, mutant), "");
}

TEST(Mutants, AMissingMeanInBatchNormIsSeen) {
  const auto mutant = [](const std::vector<Tensor>& x) {
    const Tensor y = batch_norm(x[0].detach(), {}, {}, {}, {}, {.training = true});
    return differentiable(y, "mutant", {x[0]}, [x = Saved(x[0])](const Tensor& dy) {
      const Tensor centred = x.get() - mean(x, {0});
      return Grads{dy * rsqrt(mean(square(centred), {0}) + 1e-5)};
    });
  };
  EXPECT_NE(mutant_error({{{9, 4}}}, mutant), "");
}

TEST(Mutants, AWrongPaddingInConvolutionIsSeen) {
  const auto mutant = [](const std::vector<Tensor>& x) {
    const Conv2dOptions options{.padding = {1, 1}};
    const Tensor y = conv2d(x[0].detach(), x[1].detach(), {}, options);
    return differentiable(y, "mutant", {x[0], x[1]}, [=, x0 = x[0].detach(), x1 = x[1].detach()](const Tensor& dy) {
      const Tensor a = x0.detach().requires_grad_(), b = x1.detach().requires_grad_();
      {
        const NoGrad with_grad(true);
        conv2d(a, b, {}, {.padding = {1, 1}}).slice(1, 0, 4).backward(dy.slice(1, 1, 4));
      }
      return Grads{a.grad(), b.grad()};
    });
  };
  EXPECT_NE(mutant_error({{{2, 5, 5, 3}}, {{4, 3, 3, 3}}}, mutant), "");
}

TEST(Mutants, AnErrorOfAFewRoundingsIsSeen) {
  const Tensor wanted = Tensor::from(std::vector<double>(15, 3.0));
  const double moved = distance(wanted * (1 + 0x1p-24), wanted);
  EXPECT_LE(distance(wanted * (1 + 0x1p-23), wanted), tolerance(wanted, moved, 0x1p-24, 1));
  EXPECT_GT(distance(wanted * (1 + 0x1p-18), wanted), tolerance(wanted, moved, 0x1p-24, 1));
  EXPECT_GT(distance(wanted * std::nan(""), wanted), tolerance(wanted, moved, 0x1p-24, 1));
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Ops, Derived, testing::ValuesIn(op_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Ops, DerivedOnGpu,
                         testing::ValuesIn(tests::runs_on(DeviceKind::cuda) ? op_cases() : std::vector<OpCase>{}),
                         case_name);

}  // namespace
}  // namespace weft::test
