// SPDX-License-Identifier: Apache-2.0
// The programs of examples/ whose losses contain gradients, and the one with Fourier transforms, beside PyTorch (second_derivatives.py).
#include <weft/weft.h>

#include <iostream>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"

#define main example_main
namespace weft::golden::gan {
#include "examples/gan.cpp"
}
namespace weft::golden::pinn {
#include "examples/pinn.cpp"
}
namespace weft::golden::fno {
#include "examples/fno.cpp"
}
#undef main

namespace weft::golden::second_derivatives {
namespace {

constexpr int kSteps = 20;
constexpr int64_t kCount = 6;
constexpr double kExact = 1e-9;  ///< both sides compute in f64

Tensor drawn(int step, int which, const Shape& sizes) {
  const auto seed = static_cast<uint32_t>(4000 + 10 * step + which);
  return Tensor::from(hashed_values(seed, sizes.numel()), sizes).to(DType::f64);
}

void step_on(optim::Optimizer& optimizer, const Tensor& loss) {
  optimizer.zero_grad();
  loss.backward();
  optimizer.step();
}

TEST(SecondDerivatives, AGanWithAGradientPenaltyTrainsAsPyTorchs) {
  gan::Generator generator;
  gan::Critic critic;
  for (nn::Module* model : std::initializer_list<nn::Module*>{&generator, &critic}) {
    model->to(DType::f64);
    fill_parameters(*model);
  }
  optim::Adam paints(generator.parameters(), {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
  optim::Adam judges(critic.parameters(), {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor real = drawn(step, 0, {kCount, 8, 8, 1}), share = drawn(step, 1, {kCount, 1, 1, 1}) / 2 + 0.5;
    const Tensor loss = gan::critic_loss(critic, real, generator(drawn(step, 2, {kCount, 16})).detach(), share);
    step_on(judges, loss);
    const Tensor of_painter = -mean(critic(generator(drawn(step, 3, {kCount, 16}))));
    step_on(paints, of_painter);
    losses.push_back(loss.item());
    losses.push_back(of_painter.item());
  }
  expect_close(losses, File("second_derivatives")["gan"].to_vector<double>(), "losses", kExact);
}

TEST(SecondDerivatives, APhysicsInformedNetTrainsAsPyTorchs) {
  pinn::Net net;
  net.to(DType::f64);
  fill_parameters(net);
  optim::Adam adam(net.parameters(), {.lr = 3e-3});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor loss = pinn::residual(net, drawn(step, 4, {32, 1}));
    step_on(adam, loss);
    losses.push_back(loss.item());
  }
  expect_close(losses, File("second_derivatives")["pinn"].to_vector<double>(), "losses", kExact);
}

TEST(SecondDerivatives, AFourierNeuralOperatorTrainsAsPyTorchs) {
  if (!WEFT_HAVE_KISSFFT) GTEST_SKIP() << "needs a build with kissfft; this one has its stub";
  fno::Operator model;
  model.to(DType::f64);
  fill_parameters(model);
  optim::Adam adam(model.parameters(), {.lr = 3e-3});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x = drawn(step, 5, {2, 16, 16, 1});
    const Tensor loss = mse_loss(model(x), fno::stepped(x));
    step_on(adam, loss);
    losses.push_back(loss.item());
  }
  expect_close(losses, File("second_derivatives")["fno"].to_vector<double>(), "losses", kExact);
}

}  // namespace
}  // namespace weft::golden::second_derivatives
