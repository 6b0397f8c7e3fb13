// SPDX-License-Identifier: Apache-2.0
#include "optim/lars.h"

#include "kernels/optimizer.h"

namespace weft::optim {

LARS::LARS(const std::vector<NamedTensor>& parameters, const LarsOptions& options)
    : LARS(std::vector<ParameterGroup>{{parameters}}, options) {}

LARS::LARS(const std::vector<ParameterGroup>& groups, const LarsOptions& options)
    : ByParameter("LARS", groups, options.lr, options.weight_decay, {"momentum_buffer"}, options.always_adapt),
      options_(options) {
  for (const double value : {options.momentum, options.trust, options.eps})
    WEFT_CHECK(value >= 0, "LARS: expected a momentum, trust and eps of at least 0, got ", value);
}

void LARS::update_all() {
  const Tensor norms = squares({flat()->master(), flat()->gradient()});
  for (int group = 0; group < groups(); ++group) {
    const Range all = whole_range(group);
    const bool adapt = adapts(group);
    kernels::lars_step(all.w.queue(), all.w, all.states[0], all.compute_copy, all.g, all.scalars, chunks(group),
                       adapt ? norms.select(0, 0) : Tensor(), adapt ? norms.select(0, 1) : Tensor(),
                       {.momentum = options_.momentum,
                        .weight_decay = all.weight_decay,
                        .nesterov = options_.nesterov,
                        .maximize = options_.maximize,
                        .trust = options_.trust,
                        .eps = options_.eps});
  }
}

}  // namespace weft::optim
