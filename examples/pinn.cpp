// SPDX-License-Identifier: Apache-2.0
// A physics-informed net (Raissi et al. 2019): u(x) with u'' + pi^2 sin(pi x) = 0 on [-1, 1] and u(-1) = u(1) = 0, from
// the equation alone. u' and u'' are derivatives of the net, and the loss is differentiated once more.
//   pinn [DEVICE] [STEPS]
#include <weft/weft.h>

#include <cmath>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

using namespace weft;

struct Net : nn::Module {
  nn::Linear hidden1{1, 32}, hidden2{32, 32}, out{32, 1};

  Tensor forward(const Tensor& x) const override { return out(tanh(hidden2(tanh(hidden1(x))))); }
  void fields(nn::Visitor& v) override {
    v("hidden1", hidden1);
    v("hidden2", hidden2);
    v("out", out);
  }
};

/// The slope of u [N, 1] in x [N, 1], with its history. Row i of u depends on row i of x alone.
Tensor slope(const Tensor& u, const Tensor& x) { return autograd::grad({sum(u)}, {x}, {.create_graph = true})[0]; }

/// How far the net is from the equation at `places` [N, 1], and from 0 at both ends.
Tensor residual(const Net& net, const Tensor& places) {
  const double pi = std::numbers::pi;
  const Tensor x = places.detach().requires_grad_();
  const Tensor second = slope(slope(net(x), x), x);
  const Tensor ends = Tensor::from(std::vector<double>{-1, 1}, {2, 1}, x.device()).to(x.dtype());
  return mean(square(second + pi * pi * sin(pi * x))) + 100.0 * mean(square(net(ends)));
}

int main(int argc, char** argv) {
  return train::guarded_main("pinn", [&] {
    manual_seed(1);
    const Device device = choose_device(argc > 1 ? argv[1] : "auto");
    const int steps = argc > 2 ? std::stoi(argv[2]) : 600;
    Net net;
    net.to(DType::f64);
    net.to(device);
    optim::Adam adam(net.parameters(), {.lr = 3e-3});
    for (int step = 0; step <= steps; ++step) {
      adam.set_lr(1.5e-3 * (1 + std::cos(std::numbers::pi * step / steps)));
      const Tensor loss = residual(net, uniform({64, 1}, -1, 1, DType::f64, device));
      adam.zero_grad();
      loss.backward();
      adam.step();
      if (step % 100 == 0) std::cout << "step " << step << " loss " << loss.item() << '\n';
    }

    const Tensor x = Tensor::arange(101, DType::f64, device, -1, 0.02).unsqueeze(1);
    const auto u = [&](const Tensor& t) { return net(t); };
    const NoGrad no_grad;
    std::cout << "largest error " << max(abs(net(x) - sin(std::numbers::pi * x))).item() << '\n';
    // Forward mode: the derivative of u along a direction, here u' at all places at once.
    const Tensor along = Tensor::ones(x.sizes(), DType::f64, device);
    const Tensor error = autograd::jvp(u, x, along).second - std::numbers::pi * cos(std::numbers::pi * x);
    std::cout << "largest error of the slope " << max(abs(error)).item() << '\n';
    return train::kExitOk;
  });
}
