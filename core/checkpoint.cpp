// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/random.h"

// checkpoint(): a function whose intermediate tensors are computed a second time instead of kept.

namespace weft {
namespace {

thread_local bool second_run = false;

/// While it lives, `generator` is rewound to `then`, and recomputing() is true.
class Rewind {
 public:
  Rewind(RandomGenerator& generator, const RandomGenerator& then)
      : generator_(generator), now_(std::exchange(generator, then)), outer_(std::exchange(second_run, true)) {}
  ~Rewind() {
    generator_ = now_;
    second_run = outer_;
  }
  Rewind(const Rewind&) = delete;
  Rewind& operator=(const Rewind&) = delete;

 private:
  RandomGenerator& generator_;
  RandomGenerator now_;
  bool outer_;
};

}  // namespace

bool recomputing() { return second_run; }

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs) {
  WEFT_CHECK(function, "checkpoint: expected a function of the inputs, got none");
  WEFT_CHECK(!inputs.empty() && inputs[0].defined(), "checkpoint: expected at least one defined input tensor");
  const Device device = inputs[0].device();
  if (!grad_enabled()) return function(inputs);
  const RandomGenerator before = generator(device);
  Tensor y;
  {
    const NoGrad no_grad;
    y = function(inputs);
  }
  std::vector<Saved> saved(inputs.begin(), inputs.end());
  std::vector<bool> wanted;
  for (const Tensor& input : inputs) wanted.push_back(input.defined() && input.requires_grad());
  // Parameters inside `function` get their gradients from the inner backward, so the node is recorded even when no
  // input wants a gradient: an extra leaf makes the node reachable.
  std::vector<Tensor> edges = inputs;
  edges.push_back(Tensor::empty({1}, DType::f32, device).requires_grad_());
  const DType low = autocast_dtype().value_or(DType::f32);
  return differentiable(y.detach(), "checkpoint", edges, [=](const Tensor& dy, BackwardContext& context) {
    WEFT_CHECK(context.fills_leaves(),
               "checkpoint: only a backward() without create_graph goes through it. Call the "
               "function itself");
    std::vector<Tensor> again;
    for (size_t i = 0; i < saved.size(); ++i) {
      again.push_back(saved[i].get());
      if (wanted[i]) again.back().requires_grad_();
    }
    Tensor result;
    {
      const Rewind rewind(generator(device), before);
      const Autocast autocast(low);
      const NoGrad with_grad(true);
      result = function(again);
    }
    Grads grads(again.size() + 1);
    if (!result.requires_grad()) return grads;
    result.backward(dy);
    for (size_t i = 0; i < again.size(); ++i)
      if (wanted[i]) grads[i] = again[i].grad();
    return grads;
  });
}

}  // namespace weft
