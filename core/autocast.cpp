// SPDX-License-Identifier: Apache-2.0
#include "core/autocast.h"

#include "core/autograd.h"
#include "core/autograd_meta.h"
#include "core/ops/copy.h"

namespace weft {
namespace {

thread_local std::optional<DType> active;

/// Whether x has a copy in `dtype` that is not older than x.
bool has_copy(const Tensor& x, DType dtype) {
  const AutogradMeta* const meta = x.impl()->autograd.get();
  return meta && meta->compute_copy.defined() && meta->compute_copy.dtype() == dtype &&
         meta->compute_version == x.storage()->version();
}

}  // namespace

Autocast::Autocast(DType dtype) : previous_(active) {
  WEFT_CHECK(dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32,
             "autocast: expected bf16, f16 or f32 (off), got ", dtype);
  active = dtype == DType::f32 ? std::nullopt : std::optional(dtype);
}
Autocast::~Autocast() { active = previous_; }

LowCopies::LowCopies(const std::vector<Tensor>& parameters) {
  if (!active) return;
  const NoGrad no_grad;
  for (const Tensor& x : parameters) {
    if (x.dtype() != DType::f32 || x.raw_data() == nullptr || has_copy(x, *active)) continue;
    AutogradMeta& meta = meta_of(x.impl());
    try {
      const Tensor low = x.detach().to(*active);
      replaced_.push_back({x, meta.compute_copy, meta.compute_version});
      meta.compute_copy = low;
      meta.compute_version = x.storage()->version();
    } catch (...) {  // no memory: nothing is kept
      put_back();
      throw;
    }
  }
}
LowCopies::~LowCopies() { put_back(); }

void LowCopies::put_back() {
  for (const auto& [parameter, copy, version] : replaced_) {
    AutogradMeta& meta = *parameter.impl()->autograd;
    meta.compute_copy = copy;
    meta.compute_version = version;
  }
  replaced_.clear();
}

std::optional<DType> autocast_dtype() { return active; }

Tensor autocast_low(const Tensor& x) {
  if (!active || !x.defined() || x.dtype() != DType::f32) return x;
  if (has_copy(x, *active)) return recorded_cast(x.impl()->autograd->compute_copy.detach(), x);
  return x.to(*active);
}

Tensor autocast_full(const Tensor& x) {
  if (!active || !x.defined() || (x.dtype() != DType::bf16 && x.dtype() != DType::f16)) return x;
  return x.to(DType::f32);
}

}  // namespace weft
