// SPDX-License-Identifier: Apache-2.0
// A multilayer perceptron that tells two spirals apart, with an op of its own as the activation.
//   mlp [DEVICE]
#include <weft/weft.h>

#include <cmath>
#include <iostream>
#include <random>

using namespace weft;

/// y = x + sin(a x)^2 / a for x [N, C] and a [C] (snake; Ziyin et al. 2020). With s = sin(2 a x) the gradients are dx =
/// (1 + s) dy; da = sum over N of (x s - sin(a x)^2 / a) / a dy.
Tensor snake(const Tensor& x, const Tensor& a) {
  Tensor y;
  {
    const NoGrad no_grad;  // the gradient is below, not from the ops
    y = x + square(sin(a * x)) / a;
  }
  return differentiable(y, "snake", {x, a}, [x = Saved(x), a = Saved(a)](const Tensor& dy) {
    const Tensor s = sin(2.0 * (a * x));
    return Grads{(1.0 + s) * dy, sum((x * s - square(sin(a * x)) / a) / a * dy, {0})};
  });
}

struct Snake : nn::Module {
  Tensor a;

  explicit Snake(int64_t channels) : a(Tensor::ones({channels})) {}
  Tensor forward(const Tensor& x) const override { return snake(x, a); }
  void fields(nn::Visitor& v) override { v("a", a); }
};

struct Mlp : nn::Module {
  nn::Linear hidden1{2, 32}, hidden2{32, 32}, out{32, 2};
  Snake bend1{32}, bend2{32};

  Tensor forward(const Tensor& x) const override { return out(bend2(hidden2(bend1(hidden1(x))))); }
  void fields(nn::Visitor& v) override {
    v("hidden1", hidden1);
    v("bend1", bend1);
    v("hidden2", hidden2);
    v("bend2", bend2);
    v("out", out);
  }
};

struct Points {
  Tensor places;  // [N, 2]
  Tensor kinds;   // [N], 0 or 1: which spiral
};

Points spirals(int64_t count, uint32_t seed, Device device) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> along(0.5F, 7);
  std::normal_distribution<float> noise(0, 0.02F);
  std::vector<float> places;
  std::vector<int64_t> kinds;
  for (int64_t i = 0; i < count; ++i) {
    const float angle = along(random), sign = i % 2 == 0 ? 1.0F : -1.0F;
    places.push_back(sign * angle / 7 * std::cos(angle) + noise(random));
    places.push_back(sign * angle / 7 * std::sin(angle) + noise(random));
    kinds.push_back(i % 2);
  }
  return {Tensor::from(places, {count, 2}, device), Tensor::from(kinds, device)};
}

int main(int argc, char** argv) {
  return train::guarded_main("mlp", [&] {
    manual_seed(1);
    const Device device = choose_device(argc > 1 ? argv[1] : "auto");
    // Compares the gradient by hand with slopes of the op itself.
    check_gradient([](const auto& inputs) { return snake(inputs[0], inputs[1]); },
                   {normal({5, 3}, 0, 1, DType::f64, device).requires_grad_(),
                    uniform({3}, 0.5, 2, DType::f64, device).requires_grad_()});

    Mlp model;
    model.to(device);
    optim::AdamW adam(model.parameters(), {.lr = 0.01});
    const Points points = spirals(400, 1, device);
    for (int step = 0; step <= 200; ++step) {
      const Tensor loss = cross_entropy(model(points.places), points.kinds);
      adam.zero_grad();
      loss.backward();
      adam.step();
      if (step % 50 == 0) std::cout << "step " << step << " loss " << loss.item() << '\n';
    }

    const NoGrad no_grad;
    const Points unseen = spirals(1000, 2, device);
    const Tensor right = eq(argmax(model(unseen.places), 1), unseen.kinds);
    std::cout << "accuracy " << mean(right.to(DType::f32)).item() << '\n';
    return train::kExitOk;
  });
}
