// SPDX-License-Identifier: Apache-2.0
#include "optim/lion.h"

#include "kernels/optimizer.h"

namespace weft::optim {

Lion::Lion(const std::vector<NamedTensor>& parameters, const LionOptions& options)
    : Lion(std::vector<ParameterGroup>{{parameters}}, options) {}

Lion::Lion(const std::vector<ParameterGroup>& groups, const LionOptions& options)
    : Optimizer("Lion", groups, options.lr, options.weight_decay, {"exp_avg"}), options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    WEFT_CHECK(beta >= 0 && beta < 1, "Lion: expected betas in [0, 1), got ", beta);
}

void Lion::update(const Range& range) {
  kernels::lion_step(range.w.queue(), range.w, range.states[0], range.compute_copy, range.g, range.scalars,
                     {.beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .weight_decay = range.weight_decay,
                      .maximize = options_.maximize});
}

}  // namespace weft::optim
