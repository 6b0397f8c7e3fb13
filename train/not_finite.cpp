// SPDX-License-Identifier: Apache-2.0
#include "train/not_finite.h"

#include <cmath>

#include "core/autograd.h"
#include "core/ops/reduce.h"
#include "dist/ddp/sync_batch_norm.h"
#include "kernels/kernel_trace.h"

namespace weft::train {

namespace {

/// Without `step` only the weights are looked at.
std::string explain(const std::vector<NamedTensor>& parameters, const std::function<void()>& step) {
  const NoGrad no_grad;
  for (const NamedTensor& parameter : parameters)
    if (!std::isfinite(sum(parameter.tensor.to(DType::f64)).item()))
      return "the weights are not finite, first in '" + parameter.name +
             "': an earlier step made them so. Lower --lr, add --warmup or --clip-norm";
  if (!step) return "the weights that this rank holds are finite. --parallel ddp, or one rank, can tell more";
  const kernels::KernelChecks before = kernels::kernel_checks();
  std::string found = "the same step is finite when it is repeated: the batch order or dropout decides";
  try {
    kernels::set_kernel_checks({.synchronize = true, .not_finite = true});
    step();
  } catch (const Error& error) {
    found = str("it begins in ", error.what());
  }
  kernels::set_kernel_checks(before);
  return found;
}

}  // namespace

void fail_not_finite(const dist::World& world, nn::Module& model, Strategy& strategy, const BadStep& bad) {
  std::string reason;
  if (bad.here) {
    // The forward of this rank alone: what asks other ranks would wait for them.
    dist::convert_sync_batch_norm(model, nullptr);
    reason = explain(strategy.parameters(), strategy.is_sharded() || strategy.pipeline() ? nullptr : bad.forward);
  }
  const std::vector<std::string> reasons = world.texts(reason, "loss that is not finite");
  std::string where;
  for (size_t rank = reasons.size(); rank-- > 0;)
    if (!reasons[rank].empty()) {
      reason = reasons[rank];
      where = world.size() > 1 ? str(" on rank ", rank) : "";
    }
  fail("loss is not finite (", bad.loss, ")", where, " at epoch ", bad.epoch, ", step ", bad.step, ": ", reason,
       ". The last good checkpoint is kept");
}

}  // namespace weft::train
