// SPDX-License-Identifier: Apache-2.0
#include "optim/adagrad.h"

#include "kernels/optimizer.h"

namespace weft::optim {

Adagrad::Adagrad(const std::vector<NamedTensor>& parameters, const AdagradOptions& options)
    : Adagrad(std::vector<ParameterGroup>{{parameters}}, options) {}

Adagrad::Adagrad(const std::vector<ParameterGroup>& groups, const AdagradOptions& options)
    : Optimizer("Adagrad", groups, options.lr, options.weight_decay, {"sum"}), options_(options) {
  for (const double value : {options.lr_decay, options.initial_accumulator_value, options.eps})
    WEFT_CHECK(value >= 0, "Adagrad: expected lr_decay, initial_accumulator_value and eps of at least 0, got ", value);
  fill_state(0, options.initial_accumulator_value);
}

void Adagrad::update(const Range& range) {
  kernels::adagrad_step(range.w.queue(), range.w, range.states[0], range.compute_copy, range.g, range.scalars,
                        {.lr_decay = options_.lr_decay,
                         .eps = options_.eps,
                         .weight_decay = range.weight_decay,
                         .maximize = options_.maximize});
}

}  // namespace weft::optim
