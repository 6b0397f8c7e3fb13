// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/not_finite.h"

#include <cmath>

#include "core/autograd.h"
#include "core/ops/sum.h"
#include "kernels/kernel_trace.h"

namespace weft::train_image {

std::string explain_not_finite(const std::vector<NamedTensor>& parameters, const std::function<void()>& step) {
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

}  // namespace weft::train_image
