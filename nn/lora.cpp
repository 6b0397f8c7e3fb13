// SPDX-License-Identifier: Apache-2.0
#include "nn/lora.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/linear.h"
#include "core/ops/matmul.h"

namespace weft::nn {
namespace {

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";

void add_adapter_(const Tensor& weight, const Tensor& a, const Tensor& b, double scale) {
  const NoGrad no_grad;
  weight.add_(matmul(b, a).to(weight.dtype()), scale);
}

}  // namespace

Tensor AdaptedLinear::forward(const Tensor& x) const {
  const Tensor y = Linear::forward(x);
  if (!lora_a.defined()) return y;
  return y + linear(linear(x, lora_a) * lora_scale, lora_b);
}

void AdaptedLinear::fields(Visitor& v) {
  Linear::fields(v);
  v("lora_A.weight", lora_a);
  v("lora_B.weight", lora_b);
}

int64_t add_lora(Module& module, LoraOptions options) {
  WEFT_CHECK(options.rank > 0, "add_lora: expected a rank of at least 1, got ", options.rank);
  std::vector<AdaptedLinear*> layers;
  for (const auto& [name, child] : module.modules())
    if (auto* const linear = dynamic_cast<AdaptedLinear*>(child)) layers.push_back(linear);
  WEFT_CHECK(!layers.empty(), "add_lora: expected a module with layers that take adapters, such as Decoder, got ",
             module.kind());
  for (const AdaptedLinear* const linear : layers)
    WEFT_CHECK(!linear->lora_a.defined(), "add_lora: the module has adapters already. merge_lora() comes first");
  for (const NamedTensor& parameter : module.parameters()) parameter.tensor.requires_grad_(false);
  for (AdaptedLinear* const linear : layers) {
    const Tensor& weight = linear->weight;
    linear->lora_a = Tensor::empty({options.rank, weight.size(1)}, weight.dtype(), weight.device());
    init_weight_(linear->lora_a, Init::kaiming_uniform);
    linear->lora_b = Tensor::zeros({weight.size(0), options.rank}, weight.dtype(), weight.device());
    linear->lora_a.requires_grad_();
    linear->lora_b.requires_grad_();
    linear->lora_scale = options.scale();
  }
  return static_cast<int64_t>(layers.size());
}

void merge_lora(Module& module) {
  for (const auto& [name, child] : module.modules()) {
    auto* const linear = dynamic_cast<AdaptedLinear*>(child);
    if (linear == nullptr || !linear->lora_a.defined()) continue;
    add_adapter_(linear->weight.detach(), linear->lora_a, linear->lora_b, linear->lora_scale);
    linear->lora_a = linear->lora_b = Tensor();
  }
}

StateDict merged_lora(StateDict state, double scale) {
  for (NamedTensor& entry : state.tensors) {
    if (!entry.name.ends_with(".weight") || is_lora(entry.name)) continue;
    const std::string layer = entry.name.substr(0, entry.name.rfind('.'));
    const auto found = [&](std::string_view part) {
      return std::find_if(state.tensors.begin(), state.tensors.end(),
                          [&](const NamedTensor& other) { return other.name == layer + std::string(part); });
    };
    const auto a = found(kA), b = found(kB);
    if (a == state.tensors.end() || b == state.tensors.end()) continue;
    entry.tensor = entry.tensor.clone();
    add_adapter_(entry.tensor, a->tensor, b->tensor, scale);
  }
  std::erase_if(state.tensors, [](const NamedTensor& entry) { return is_lora(entry.name); });
  return state;
}

bool is_lora(const std::string& name) { return name.ends_with(kA) || name.ends_with(kB); }

}  // namespace weft::nn
