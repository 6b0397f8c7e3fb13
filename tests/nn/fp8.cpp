// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/derivatives.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "kernels/contracts/fp8.h"
#include "nn/transformer.h"
#include "optim/optimizers.h"
#include "tests/nn/leaves.h"
#include "tests/support/compare.h"
#include "tests/support/error_text.h"
#include "tests/support/hopper.h"

// Linear layers in 8 bits: values and gradients against f64 of the same rounded numbers, scales over steps,
// checkpoints, and a training beside its twin in bf16.

namespace weft::nn::fp8_tests {
namespace {

using kernels::Fp8;
using tests::near;
using tests::on_both_generations;
using tests::tolerance;

using Values = std::vector<double>;

Values host(const Tensor& x) { return x.to(DType::f64).to_vector<double>(); }

/// The numbers that these become in 8 bits, by the scale of their own largest magnitude.
Values rounded_to(Fp8 format, Values values, int margin = 0) {
  float amax = 0;
  for (const double value : values) amax = std::max(amax, std::abs(static_cast<float>(value)));
  const float scale = kernels::fp8_scale(format, amax, margin);
  for (double& value : values)
    value = kernels::from_fp8(format, kernels::to_fp8(format, static_cast<float>(value) * scale)) / scale;
  return values;
}

/// y[i, j] = sum over k of a[i, k] b[j, k].
Values product(const Values& a, const Values& b, int64_t M, int64_t N, int64_t K) {
  Values y(static_cast<size_t>(M * N));
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j)
      for (int64_t k = 0; k < K; ++k) y[i * N + j] += a[i * K + k] * b[j * K + k];
  return y;
}

Values turned(const Values& a, int64_t rows, int64_t columns) {
  Values t(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  return t;
}

struct Layer {
  std::shared_ptr<Linear> linear;
  Layer(DeviceKind kind, int64_t in, int64_t out, Fp8Recipe recipe = {}) : linear(std::make_shared<Linear>(in, out)) {
    linear->to(Device{kind, 0});
    EXPECT_EQ(use_fp8(*linear, recipe), 1);
  }
  Tensor operator()(const Tensor& x) const {
    const Autocast low(DType::bf16);
    return (*linear)(x);
  }
  Values scale() const { return host(linear->fp8->scale); }
};

TEST(Fp8Linear, ValuesAndGradientsAreThoseOfTheRoundedNumbers) {
  on_both_generations([](DeviceKind kind) {
    const Device device{kind, 0};
    for (const bool gelu_follows : {false, true})
      for (const auto& [M, in, out] : {std::tuple<int64_t, int64_t, int64_t>{6, 40, 24}, {70, 33, 19}}) {
        SCOPED_TRACE(str(M, ' ', in, ' ', out, " gelu ", gelu_follows, " on ", name(kind)));
        const Layer layer(kind, in, out, {.margin = 1});
        const Tensor x = normal({M, in}, 0, 3, DType::f32, device).requires_grad_();
        const Tensor dy = normal({M, out}, 0, 1e-4, DType::bf16, device);
        Tensor y;
        {
          const Autocast low(DType::bf16);
          y = gelu_follows ? layer.linear->forward_gelu(x) : layer(x);
        }
        EXPECT_EQ(y.dtype(), DType::bf16);
        y.backward(dy);
        const Values x8 = rounded_to(Fp8::e4m3, host(x.detach().to(DType::bf16)), 1);
        const Values w8 = rounded_to(Fp8::e4m3, host(layer.linear->weight.detach().to(DType::bf16)), 1);
        const Values bias = host(layer.linear->bias.detach().to(DType::bf16));
        Values want = product(x8, w8, M, out, in), d = host(dy);
        for (size_t i = 0; i < want.size(); ++i) {
          const double s = want[i] += bias[i % static_cast<size_t>(out)];
          if (!gelu_follows) continue;
          const double below = 0.5 * std::erfc(-s / std::sqrt(2.0));
          want[i] = s * below;
          d[i] *= below + s * std::exp(-s * s / 2) / std::sqrt(2 * std::acos(-1.0));
        }
        EXPECT_TRUE(near(host(y.detach()), want, tolerance(DType::bf16, in)));
        if (gelu_follows) continue;  // d is rounded before it gets 8 bits, to where ours need not be
        Values db(static_cast<size_t>(out));
        for (size_t i = 0; i < d.size(); ++i) db[i % static_cast<size_t>(out)] += d[i];
        const Values d8 = rounded_to(Fp8::e5m2, d, 1);
        EXPECT_TRUE(near(host(x.grad()), product(d8, turned(w8, out, in), M, in, out), tolerance(DType::bf16, out)));
        EXPECT_TRUE(near(host(layer.linear->weight.grad()), product(turned(d8, M, out), turned(x8, M, in), out, in, M),
                         tolerance(DType::bf16, M)));
        EXPECT_EQ(layer.linear->weight.grad().dtype(), DType::f32);
        EXPECT_TRUE(near(host(layer.linear->bias.grad()), db, tolerance(DType::bf16, M)));
      }
  });
}

/// The two forms of GELU's derivative round equally but for one ulp of bf16 before 8 bits, of which e5m2 has 2.
TEST(Fp8Linear, GradientOfGeluIsNearThatOfBf16) {
  on_both_generations([](DeviceKind kind) {
    const Layer layer(kind, 48, 32);
    const Tensor x = normal({40, 48}, 0, 2, DType::f32, {kind, 0}), dy = normal({40, 32}, 0, 1, DType::bf16, {kind, 0});
    const auto gradient = [&] {
      const Autocast low(DType::bf16);
      layer.linear->zero_grad();
      layer.linear->forward_gelu(x).backward(dy);
      return host(layer.linear->weight.grad());
    };
    const Values eight = gradient();
    layer.linear->fp8 = nullptr;
    // Each factor errs by half of its last place at most: 2^-3 of e5m2, 2^-4 of e4m3, one error among K independent
    // ones.
    EXPECT_TRUE(near(eight, gradient(), {0x1p-3, 0.5}));
    EXPECT_FALSE(near(eight, gradient(), {0x1p-8, 0.5})) << "these are 8 bits";
  });
}

TEST(Fp8Linear, ScalesFollowAStepLate) {
  on_both_generations([](DeviceKind kind) {
    const Layer layer(kind, 16, 16, {.history = 3});
    {
      const NoGrad no_grad;
      layer.linear->weight.fill_(1);
      layer.linear->bias.zero_();
    }
    const auto step = [&](double size, double gradient) {
      layer.linear->zero_grad();
      const Tensor y = layer(Tensor::full({4, 16}, size, DType::bf16, {kind, 0}));
      y.backward(Tensor::full({4, 16}, gradient, DType::bf16, {kind, 0}));
      return host(y.detach())[0];
    };
    EXPECT_EQ(step(2, 1), 32) << "the first time magnitudes are measured";
    EXPECT_EQ(layer.scale(), (Values{128, 256, 32768}));
    EXPECT_EQ(step(2, 0x1p-20), 32);
    EXPECT_EQ(layer.scale(), (Values{128, 256, 32768})) << "of the step before";
    EXPECT_EQ(step(64, 1), 16 * 3.5) << "64 overflows: 448 / 128 is the largest number";
    EXPECT_EQ(step(64, 1), 1024) << "and the next scale holds it";
    EXPECT_EQ(layer.scale(), (Values{4, 256, 32768}));
    EXPECT_EQ(host(layer.linear->weight.grad())[0], 4 * 64);
    step(INFINITY, 1), step(NAN, 1);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(step(2, 1))) << "a step that overflowed teaches nothing";
    EXPECT_EQ(step(2, 1), 32);
    EXPECT_EQ(layer.scale(), (Values{128, 256, 32768})) << "three steps later 64 is forgotten";
    // The gradient of one step overflows; the next one's is right.
    step(2, 100);
    EXPECT_EQ(host(layer.linear->weight.grad())[0], 4 * 2 * 1.75) << "57344 / 32768";
    step(2, 100);
    EXPECT_NEAR(host(layer.linear->weight.grad())[0], 800, 100);
  });
}

TEST(Fp8Linear, EvaluationRecordsNothing) {
  on_both_generations([](DeviceKind kind) {
    const Layer layer(kind, 16, 8);
    const Tensor x = normal({4, 16}, 0, 1, DType::f32, {kind, 0}),
                 large = normal({4, 16}, 0, 1000, DType::f32, {kind, 0});
    layer.linear->eval();
    const Values before = host(layer(x));
    EXPECT_EQ(layer.linear->fp8->measured, 0);
    EXPECT_EQ(host(layer.linear->fp8->amaxes), Values(48));
    layer.linear->train();
    const NoGrad no_grad;
    EXPECT_EQ(host(layer(x)), before) << "the first scales are measured either way";
    const Values amaxes = host(layer.linear->fp8->amaxes), latest = host(layer.linear->fp8->latest);
    EXPECT_GT(amaxes[0], 0);
    layer.linear->eval();
    EXPECT_EQ(host(layer(x)), before);
    layer(large);
    EXPECT_EQ(host(layer.linear->fp8->amaxes), amaxes);
    EXPECT_EQ(host(layer.linear->fp8->latest), latest);
  });
}

TEST(Fp8Linear, OnlyWhereBf16IsWanted) {
  const Layer layer(DeviceKind::cpu, 16, 8);
  const Tensor x = normal({4, 16});
  const Values plain = host((*layer.linear)(x));
  EXPECT_EQ(host(layer.linear->fp8->amaxes), Values(48)) << "f32 stays f32";
  {
    const Autocast f16(DType::f16);
    EXPECT_EQ((*layer.linear)(x).dtype(), DType::f16);
  }
  const Values eight = host(layer(x));
  EXPECT_NE(eight, plain);
  EXPECT_TRUE(near(eight, plain, {0x1p-4, 0.5}));
  layer.linear->to(DType::bf16);
  EXPECT_TRUE(near(host((*layer.linear)(x.to(DType::bf16))), eight, {})) << "a model that is bf16 itself";
  EXPECT_EQ(layer.linear->fp8->amaxes.dtype(), DType::f32);
}

TEST(Fp8Linear, ASecondRunOfACheckpointHasTheSameScales) {
  const Layer layer(DeviceKind::cpu, 16, 16);
  const Tensor x = normal({4, 16}).requires_grad_(), dy = normal({4, 16}, 0, 1, DType::bf16);
  layer(x * 3).backward(dy);  // so that a run which moves the history on changes the scale
  const StateDict before = layer.linear->state_dict();
  StateDict kept;
  for (const NamedTensor& entry : before.tensors) kept.tensors.push_back({entry.name, entry.tensor.clone()});
  x.set_grad({}), layer.linear->zero_grad();
  layer(x).backward(dy);
  const Values want = host(x.grad()), amaxes = host(layer.linear->fp8->amaxes);
  layer.linear->load_state_dict(kept);
  x.set_grad({}), layer.linear->zero_grad();
  checkpoint([&](const std::vector<Tensor>& in) { return layer(in[0]); }, {x}).backward(dy);
  EXPECT_EQ(host(x.grad()), want);
  EXPECT_EQ(host(layer.linear->fp8->amaxes), amaxes);
}

/// Two layers with GELU between learn a smooth function, on all of it at each step.
struct Regression {
  std::shared_ptr<Mlp> model;
  std::unique_ptr<optim::Adam> adam;
  Tensor x, target;

  Regression(DeviceKind kind, bool in_fp8) {
    manual_seed(7);
    model = std::make_shared<Mlp>(32, 64);
    x = normal({96, 32}), target = tanh(x.slice(1, 0, 1) * 2.0) + x * 0.3;
    model->to(Device{kind, 0});
    x = x.to(Device{kind, 0}), target = target.to(Device{kind, 0});
    if (in_fp8) {
      EXPECT_EQ(use_fp8(*model), 2);
    }
    adam = std::make_unique<optim::Adam>(model->parameters(), optim::AdamOptions{.lr = 0.01});
  }
  double step() {
    Tensor loss;
    {
      const Autocast low(DType::bf16);
      loss = mse_loss((*model)(x).to(DType::f32), target);
    }
    adam->zero_grad();
    loss.backward();
    adam->step();
    return loss.item();
  }
};

TEST(Fp8Linear, ATrainingFollowsThatInBf16) {
  for (const DeviceKind kind : tests::test_devices()) {
    Regression eight(kind, true), sixteen(kind, false);
    double first = 0, last = 0;
    for (int step = 0; step < 80; ++step) {
      const double a = eight.step(), b = sixteen.step();
      EXPECT_NEAR(a, b, 0.1 * b + 0.005) << "step " << step << " on " << name(kind);
      if (step == 0) first = a;
      last = a;
    }
    EXPECT_LT(last, 0.1 * first);
  }
}

TEST(Fp8Linear, GoesOnFromItsStateWithTheSameBits) {
  Regression whole(DeviceKind::cpu, true), rest(DeviceKind::cpu, true);
  for (int step = 0; step < 5; ++step) whole.step();
  StateDict model, moments = whole.adam->state_dict();
  for (const NamedTensor& entry : whole.model->state_dict().tensors)
    model.tensors.push_back({entry.name, entry.tensor.clone()});
  for (NamedTensor& entry : moments.tensors) entry.tensor = entry.tensor.clone();
  rest.model->load_state_dict(model);
  rest.adam->load_state_dict(moments);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(rest.step(), whole.step()) << step;
}

TEST(Fp8Linear, StatesWithAndWithoutIt) {
  Linear plain(16, 8), eight(16, 8);
  use_fp8(eight, {.history = 4});
  const StateDict with = eight.state_dict();
  EXPECT_EQ(names_of(with), (std::vector<std::string>{"weight", "bias", "fp8_amaxes", "fp8_latest", "fp8_measured"}));
  EXPECT_EQ(with.tensor("fp8_amaxes").sizes(), (Shape{3, 4}));
  plain.load_state_dict(with);
  EXPECT_EQ(host(plain.weight.detach()), host(eight.weight.detach()));
  Linear another(16, 8);
  EXPECT_NO_THROW(eight.load_state_dict(another.state_dict()));
  EXPECT_EQ(host(eight.weight.detach()), host(another.weight.detach()));
}

TEST(Fp8Linear, RefusesWhatItCannotDo) {
  Linear linear(16, 8);
  EXPECT_EQ(error_text([&] { use_fp8(linear, {.history = 0}); }),
            "fp8: expected a history of at least one step, got 0");
  use_fp8(linear);
  const Tensor x = Tensor::zeros({2, 16}, DType::f16);
  const Tensor w = linear.weight.detach().to(DType::f16);
  EXPECT_EQ(error_text([&] { linear_fp8(x, w, {}, linear.fp8, true); }),
            "linear_fp8: expected bf16, under Autocast or as it is, got input f16[2,16] on cpu, weight f16[8,16] on "
            "cpu, bias none");
  EXPECT_EQ(error_text([&] {
              linear_fp8(Tensor::zeros({2, 15}, DType::bf16), linear.weight, {}, linear.fp8, true);
            }),
            "linear_fp8: weight f32[8,16] on cpu wants 16 features, input bf16[2,15] on cpu has 15. Was the input "
            "flattened?");
  const Tensor leaf = Tensor::zeros({2, 16}, DType::bf16).requires_grad_();
  const Tensor y = sum(linear_fp8(leaf, linear.weight.detach().to(DType::bf16), {}, linear.fp8, true));
  EXPECT_EQ(error_text([&] { autograd::grad({y}, {leaf}, {.create_graph = true}); }),
            "linear_fp8: its gradient cannot be differentiated: no second derivative is known. Use other ops, or leave "
            "out create_graph");
  for (const DeviceKind kind : tests::test_devices()) {
    if (kind == DeviceKind::cpu) continue;
    const Device device{kind, 0};
    const Tensor there = Tensor::zeros({2, 16}, DType::bf16, device),
                 matrix = Tensor::zeros({8, 16}, DType::bf16, device);
    EXPECT_EQ(error_text([&] { linear_fp8(there, matrix, {}, linear.fp8, true); }),
              str("linear_fp8: its scaling is on cpu, input ", there.description(),
                  ". Move the model after use_fp8(), or call that again"));
  }
}

}  // namespace
}  // namespace weft::nn::fp8_tests
