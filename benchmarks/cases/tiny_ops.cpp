// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/cases.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"

// The cost of an op beside its arithmetic: additions of 16 elements, alone and as a chain of 1000 with its backward.

namespace weft::benchmarks {

namespace {

constexpr int kBlock = 1000;  // additions per step

Work add_16(const Target& target, bool gradients) {
  const Tensor a = normal({16}, 0, 1, DType::f32, target.device), b = normal({16}, 0, 1, DType::f32, target.device);
  a.requires_grad_(gradients);
  return work_on(
      target,
      [=] {
        const NoGrad recording(gradients);
        for (int i = 0; i < kBlock; ++i) add(a, b);
      },
      kBlock);
}

/// y = x + b + b + …, and the gradient of x.
struct Chain {
  Tensor x, b, y, dy;
  explicit Chain(Device device)
      : x(normal({16}, 0, 1, DType::f32, device)),
        b(normal({16}, 0, 1, DType::f32, device)),
        dy(Tensor::ones({16}, DType::f32, device)) {
    x.requires_grad_();
  }
  void forward() {
    y = x;
    for (int i = 0; i < kBlock; ++i) y = add(y, b);
  }
};

Work chain_forward(const Target& target) {
  const auto chain = std::make_shared<Chain>(target.device);
  // The previous step's graph is freed outside of the timing.
  return work_on(
      target, [=] { chain->forward(); }, kBlock, [=] { chain->y = {}; });
}

Work chain_backward(const Target& target) {
  const auto chain = std::make_shared<Chain>(target.device);
  const auto before = [=] {
    chain->x.zero_grad();
    chain->forward();
  };
  return work_on(
      target, [=] { chain->y.backward(chain->dy); }, kBlock, before);
}

}  // namespace

void add_tiny_op_cases(Cases& cases, const Target& target) {
  cases.push_back({"add_16", "ns", [=] { return add_16(target, false); }});
  cases.push_back({"add_16_autograd", "ns", [=] { return add_16(target, true); }});
  cases.push_back({"chain_forward", "ns", [=] { return chain_forward(target); }});
  cases.push_back({"chain_backward", "ns", [=] { return chain_backward(target); }});
}

}  // namespace weft::benchmarks
