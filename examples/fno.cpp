// SPDX-License-Identifier: Apache-2.0
// A Fourier neural operator (Li et al. 2021), the spectral layer of FourCastNet: from a field on a periodic grid the
// field after one step of wind and diffusion. Its weights multiply the lowest frequencies.
//   fno [DEVICE] [STEPS]
#include <weft/weft.h>

#include <cmath>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

using namespace weft;

constexpr int64_t kSide = 16, kModes = 4, kWidth = 8;

/// Fields [N, H, W, C] to fields of the same sizes: a complex matrix [C, C] for each of the lowest frequencies.
struct Spectral : nn::Module {
  Tensor weight = drawn();

  static Tensor drawn() { return normal({2 * kModes, kModes, kWidth, kWidth, 2}, 0, 1.0 / kWidth).requires_grad_(); }

  Tensor forward(const Tensor& x) const override {
    const int64_t H = x.size(1), W = x.size(2);
    const ComplexTensor all = rfft2(x, {.dims = {1, 2}}).slice(2, 0, kModes);
    const ComplexTensor low = concat({all.slice(1, 0, kModes), all.slice(1, H - kModes, kModes)}, 1);
    const ComplexTensor y = einsum("nhwc,hwcd->nhwd", low, view_as_complex(weight));
    const ComplexTensor top = pad(y.slice(1, 0, kModes), 1, 0, H - 2 * kModes);
    return irfft2(concat({top, y.slice(1, kModes, kModes)}, 1), {.lengths = {H, W}, .dims = {1, 2}});
  }
  void fields(nn::Visitor& v) override { v("weight", weight); }
};

struct Operator : nn::Module {
  nn::Linear in{1, kWidth}, skip1{kWidth, kWidth}, skip2{kWidth, kWidth}, out{kWidth, 1};
  Spectral spectral1, spectral2;

  Tensor forward(const Tensor& x) const override {
    Tensor y = in(x);
    y = gelu(spectral1(y) + skip1(y));
    y = gelu(spectral2(y) + skip2(y));
    return out(y);
  }
  void fields(nn::Visitor& v) override {
    v("in", in);
    v("spectral1", spectral1);
    v("skip1", skip1);
    v("spectral2", spectral2);
    v("skip2", skip2);
    v("out", out);
  }
};

/// The field after a step: each frequency turns with the wind and fades by diffusion, which is exact.
Tensor stepped(const Tensor& x) {
  const int64_t H = x.size(1), W = x.size(2);
  const double turn = 2 * std::numbers::pi;
  const Tensor down = turn * fftfreq(H, 1, x.dtype(), x.device()).reshape({H, 1, 1});
  const Tensor across = turn * rfftfreq(W, 1, x.dtype(), x.device()).reshape({W / 2 + 1, 1});
  const ComplexTensor factor = polar(exp(-0.3 * (square(down) + square(across))), -1.5 * across - 0.5 * down);
  return irfft2(rfft2(x, {.dims = {1, 2}}) * factor, {.lengths = {H, W}, .dims = {1, 2}});
}

int main(int argc, char** argv) {
  return train::guarded_main("fno", [&] {
    manual_seed(1);
    const Device device = choose_device(argc > 1 ? argv[1] : "auto");
    const int steps = argc > 2 ? std::stoi(argv[2]) : 300;
    Operator model;
    model.to(device);
    optim::Adam adam(model.parameters(), {.lr = 3e-3});
    for (int step = 0; step <= steps; ++step) {
      const Tensor x = normal({8, kSide, kSide, 1}, 0, 1, DType::f32, device);
      const Tensor loss = mse_loss(model(x), stepped(x));
      adam.zero_grad();
      loss.backward();
      adam.step();
      if (step % 50 == 0) std::cout << "step " << step << " loss " << loss.item() << '\n';
    }
    return train::kExitOk;
  });
}
