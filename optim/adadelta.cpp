// SPDX-License-Identifier: Apache-2.0
#include "optim/adadelta.h"

#include "kernels/optimizer.h"

namespace weft::optim {

Adadelta::Adadelta(const std::vector<NamedTensor>& parameters, const AdadeltaOptions& options)
    : Adadelta(std::vector<ParameterGroup>{{parameters}}, options) {}

Adadelta::Adadelta(const std::vector<ParameterGroup>& groups, const AdadeltaOptions& options)
    : Optimizer("Adadelta", groups, options.lr, options.weight_decay, {"square_avg", "acc_delta"}), options_(options) {
  WEFT_CHECK(options.rho >= 0 && options.rho <= 1, "Adadelta: expected rho in [0, 1], got ", options.rho);
  WEFT_CHECK(options.eps >= 0, "Adadelta: expected an eps of at least 0, got ", options.eps);
}

void Adadelta::update(const Range& range) {
  kernels::adadelta_step(
      range.w.queue(), range.w, range.states[0], range.states[1], range.compute_copy, range.g, range.scalars,
      {.rho = options_.rho, .eps = options_.eps, .weight_decay = range.weight_decay, .maximize = options_.maximize});
}

}  // namespace weft::optim
