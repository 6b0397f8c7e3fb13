// SPDX-License-Identifier: Apache-2.0
#include "core/autocast.h"

#include "core/autograd.h"
#include "core/ops/copy.h"

namespace weft {
namespace {
thread_local std::optional<DType> active;
}

Autocast::Autocast(DType dtype) : previous_(active) {
  WEFT_CHECK(dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32,
             "autocast: expected bf16, f16 or f32 (off), got ", dtype);
  active = dtype == DType::f32 ? std::nullopt : std::optional(dtype);
}
Autocast::~Autocast() { active = previous_; }

std::optional<DType> autocast_dtype() { return active; }

Tensor autocast_low(const Tensor& x) {
  if (!active || !x.defined() || x.dtype() != DType::f32) return x;
  const AutogradMeta* meta = x.impl()->autograd.get();
  if (meta && meta->compute_copy.defined() && meta->compute_copy.dtype() == *active &&
      meta->compute_version == x.storage()->version())
    return recorded_cast(meta->compute_copy.detach(), x);
  return x.to(*active);
}

Tensor autocast_full(const Tensor& x) {
  if (!active || !x.defined() || (x.dtype() != DType::bf16 && x.dtype() != DType::f16)) return x;
  return x.to(DType::f32);
}

}  // namespace weft
