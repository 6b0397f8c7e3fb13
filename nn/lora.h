// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/state_dict.h"
#include "nn/linear.h"

namespace weft::nn {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;  ///< the adapter's result is multiplied by alpha / rank

  double scale() const { return alpha / static_cast<double>(rank); }
};

/// A Linear that may have an adapter (Hu et al. 2021, "LoRA"): y = x W^T + b + scale (x A^T) B^T with A [rank, in] and
/// B [out, rank], which is 0 at first. Their names are those of Hugging Face's PEFT: `lora_A.weight`, `lora_B.weight`.
struct AdaptedLinear : Linear {
  Tensor lora_a, lora_b;  ///< undefined: no adapter
  double lora_scale = 0;

  using Linear::Linear;
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// Every AdaptedLinear of `module` and below gets an adapter; all parameters that were there are frozen. Before DDP or
/// FSDP, and after the weights were loaded. Returns how many there are. Errors: none; a rank below 1;
/// adapters that are there already; then nothing is changed.
int64_t add_lora(Module& module, LoraOptions options = {});

/// Adds the adapters to their weights and removes them.
void merge_lora(Module& module);
/// A model's state dict with its adapters, of this scale, added to their weights.
StateDict merged_lora(StateDict state, double scale);

/// Whether a name of a state dict is one of an adapter.
bool is_lora(const std::string& name);

}  // namespace weft::nn
