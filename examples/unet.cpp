// SPDX-License-Identifier: Apache-2.0
// A U-Net that finds discs in noise: down by strides, up by transposed convolutions, the skipped images beside them.
//   unet [DEVICE] [STEPS]
#include <weft/weft.h>

#include <iostream>
#include <random>
#include <string>

using namespace weft;

/// Two convolutions of 3x3 over images [N, H, W, in], each with group norm and SiLU.
struct Twice : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::GroupNorm norm1, norm2;

  Twice(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, {3, 3}, {.stride = {stride, stride}, .padding = {1, 1}}),
        conv2(out, out, {3, 3}, {.padding = {1, 1}}),
        norm1(4, out),
        norm2(4, out) {}
  Tensor forward(const Tensor& x) const override { return silu(norm2(conv2(silu(norm1(conv1(x)))))); }
  void fields(nn::Visitor& v) override {
    v("conv1", conv1);
    v("norm1", norm1);
    v("conv2", conv2);
    v("norm2", norm2);
  }
};

struct UNet : nn::Module {
  Twice top{1, 8, 1}, middle{8, 16, 2}, bottom{16, 32, 2};
  nn::ConvTranspose2d up1{32, 16, {2, 2}, {.stride = {2, 2}}}, up2{16, 8, {2, 2}, {.stride = {2, 2}}};
  Twice join1{32, 16, 1}, join2{16, 8, 1};
  nn::Conv2d last{8, 1, {1, 1}};

  /// Logits [N, H, W, 1] of images [N, H, W, 1], H and W multiples of 4.
  Tensor forward(const Tensor& x) const override {
    const Tensor a = top(x), b = middle(a);
    const Tensor c = join1(concat({b, up1(bottom(b))}, -1));
    return last(join2(concat({a, up2(c)}, -1)));
  }
  void fields(nn::Visitor& v) override {
    v("top", top);
    v("middle", middle);
    v("bottom", bottom);
    v("up1", up1);
    v("join1", join1);
    v("up2", up2);
    v("join2", join2);
    v("last", last);
  }
};

/// 1 - 2 |A and B| / (|A| + |B|), smoothed, of each image's probabilities and mask (Milletari et al. 2016).
Tensor dice_loss(const Tensor& logits, const Tensor& mask) {
  const Tensor p = sigmoid(logits);
  const std::vector<int64_t> image{1, 2, 3};
  return mean(1.0 - (2.0 * sum(p * mask, image) + 1.0) / (sum(p, image) + sum(mask, image) + 1.0));
}

struct Sample {
  Tensor image, mask;  // [32, 32, 1]
  void fields(auto& v) { v("image", image), v("mask", mask); }
};

/// A disc in noise, drawn again in each epoch.
struct Discs {
  int64_t size() const { return 64; }
  Sample get(int64_t, data::Draw& draw) const {
    std::vector<float> image, mask;
    const double cx = 8 + 16 * draw.uniform(), cy = 8 + 16 * draw.uniform(), r = 4 + 4 * draw.uniform();
    for (int i = 0; i < 32 * 32; ++i) {
      const double dx = i % 32 - cx, dy = i / 32 - cy;
      mask.push_back(dx * dx + dy * dy < r * r ? 1.0F : 0.0F);
      image.push_back(0.5F * mask.back() + static_cast<float>(draw.uniform()));
    }
    return {Tensor::from(image, {32, 32, 1}), Tensor::from(mask, {32, 32, 1})};
  }
};

int main(int argc, char** argv) {
  return train::guarded_main("unet", [&] {
    const Device device = choose_device(argc > 1 ? argv[1] : "auto");
    const int steps = argc > 2 ? std::stoi(argv[2]) : 60;
    manual_seed(1);
    const auto discs = std::make_shared<const Discs>();
    data::Loader loader(discs, data::Sampler(discs->size()), {.batch_size = 8, .device = device});
    UNet model;
    model.to(device);
    optim::AdamW adam(model.parameters(), {.lr = 5e-3});
    int step = 0;
    for (int64_t epoch = 0; step <= steps; ++epoch) {
      loader.start(epoch);
      while (const auto batch = step <= steps ? loader.next() : std::nullopt) {
        const Tensor logits = model(batch->tensors[0]), mask = batch->tensors[1];
        const Tensor loss = bce_with_logits(logits, mask) + dice_loss(logits, mask);
        adam.zero_grad();
        loss.backward();
        adam.step();
        if (step % 10 == 0) {
          const Tensor found = gt(logits, 0.0), there = gt(mask, 0.5);
          const double both = sum(logical_and(found, there)).item(), any = sum(logical_or(found, there)).item();
          std::cout << "step " << step << " loss " << loss.item() << " overlap " << both / any << '\n';
        }
        ++step;
      }
    }
    return train::kExitOk;
  });
}
