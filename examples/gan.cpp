// SPDX-License-Identifier: Apache-2.0
// A Wasserstein GAN that draws bright squares. Its critic's slope is held at 1 by a gradient penalty (Gulrajani et al.
// 2017): a loss of a gradient, which is differentiated again.
//   gan [DEVICE] [STEPS]
#include <weft/weft.h>

#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace weft;

constexpr int64_t kNoise = 16, kSide = 8;

/// Images [N, 8, 8, 1] from noise [N, 16].
struct Generator : nn::Module {
  nn::Linear in{kNoise, 2 * 2 * 32};
  nn::BatchNorm2d norm1{32}, norm2{16};
  nn::ConvTranspose2d up1{32, 16, 4, {.stride = 2, .padding = 1}}, up2{16, 1, 4, {.stride = 2, .padding = 1}};

  Tensor forward(const Tensor& noise) const override {
    const Tensor x = relu(norm1(in(noise).reshape({-1, 2, 2, 32})));
    return tanh(up2(relu(norm2(up1(x)))));
  }
  void fields(nn::Visitor& v) override {
    v("in", in);
    v("norm1", norm1);
    v("up1", up1);
    v("norm2", norm2);
    v("up2", up2);
  }
};

/// A score [N] of each image: high for what looks real.
struct Critic : nn::Module {
  nn::Conv2d down1{1, 16, 4, {.stride = 2, .padding = 1}}, down2{16, 32, 4, {.stride = 2, .padding = 1}};
  nn::Linear out{2 * 2 * 32, 1};

  Tensor forward(const Tensor& x) const override {
    return out(leaky_relu(down2(leaky_relu(down1(x), 0.2)), 0.2).flatten(1)).squeeze(1);
  }
  void fields(nn::Visitor& v) override {
    v("down1", down1);
    v("down2", down2);
    v("out", out);
  }
};

/// How far the slope of the score is from 1, halfway between real and fake images: `share` [N, 1, 1, 1] of the first.
Tensor penalty(const Critic& critic, const Tensor& real, const Tensor& fake, const Tensor& share) {
  const Tensor x = (share * real + (1 - share) * fake).detach().requires_grad_();
  const Tensor slope = autograd::grad({sum(critic(x))}, {x}, {.create_graph = true})[0];
  return mean(square(norm(slope.flatten(1), {1}) - 1));
}

Tensor critic_loss(const Critic& critic, const Tensor& real, const Tensor& fake, const Tensor& share) {
  return mean(critic(fake)) - mean(critic(real)) + 10 * penalty(critic, real, fake, share);
}

/// Images of -1 with a square of 3 x 3 pixels of 1.
Tensor squares(int64_t count, std::mt19937& random, Device device) {
  std::vector<float> pixels(static_cast<size_t>(count * kSide * kSide), -1);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t top = random() % 6, left = random() % 6;
    for (int64_t i = 0; i < 9; ++i)
      pixels[static_cast<size_t>((n * kSide + top + i / 3) * kSide + left + i % 3)] = 1;
  }
  return Tensor::from(pixels, {count, kSide, kSide, 1}, device);
}

int main(int argc, char** argv) {
  return train::guarded_main("gan", [&] {
    manual_seed(1);
    const Device device = choose_device(argc > 1 ? argv[1] : "auto");
    const int steps = argc > 2 ? std::stoi(argv[2]) : 300;
    const int64_t count = 32;
    std::mt19937 random(1);
    Generator generator;
    Critic critic;
    generator.to(device);
    critic.to(device);
    optim::Adam paints(generator.parameters(), {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
    optim::Adam judges(critic.parameters(), {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
    const auto noise = [&] { return normal({count, kNoise}, 0, 1, DType::f32, device); };
    for (int step = 0; step <= steps; ++step) {
      for (int round = 0; round < 3; ++round) {
        const Tensor real = squares(count, random, device), fake = generator(noise()).detach();
        const Tensor loss = critic_loss(critic, real, fake, uniform({count, 1, 1, 1}, 0, 1, DType::f32, device));
        judges.zero_grad();
        loss.backward();
        judges.step();
      }
      const Tensor fake = generator(noise()), loss = -mean(critic(fake));
      paints.zero_grad();
      loss.backward();
      paints.step();
      if (step % 50 > 0) continue;
      // Real images have 9 of 64 pixels of 1: the mean is -0.72.
      const NoGrad no_grad;
      std::cout << "step " << step << " loss " << abs(mean(fake) + 0.71875).item() << '\n';
    }

    generator.eval();
    const NoGrad no_grad;
    const Tensor drawn = generator(noise());
    std::cout << "bright pixels " << mean((drawn > 0).to(DType::f32)).item() << ", of real images " << 9. / 64 << '\n';
    return train::kExitOk;
  });
}
