// SPDX-License-Identifier: Apache-2.0
#include "optim/lamb.h"

#include "kernels/optimizer.h"

namespace weft::optim {

LAMB::LAMB(const std::vector<NamedTensor>& parameters, const LambOptions& options)
    : LAMB(std::vector<ParameterGroup>{{parameters}}, options) {}

LAMB::LAMB(const std::vector<ParameterGroup>& groups, const LambOptions& options)
    : ByParameter("LAMB", groups, options.lr, options.weight_decay, {"exp_avg", "exp_avg_sq"}, options.always_adapt),
      options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    WEFT_CHECK(beta >= 0 && beta < 1, "LAMB: expected betas in [0, 1), got ", beta);
  WEFT_CHECK(options.eps >= 0, "LAMB: expected an eps of at least 0, got ", options.eps);
}

void LAMB::update_all() {
  const kernels::LambArguments rule{.beta1 = options_.beta1,
                                    .beta2 = options_.beta2,
                                    .eps = options_.eps,
                                    .clip_trust = options_.clip_trust,
                                    .maximize = options_.maximize};
  const Tensor moves = empty_like(flat()->master());
  for (int group = 0; group < groups(); ++group) {
    kernels::LambArguments arguments = rule;
    arguments.weight_decay = weight_decay(group);
    const Range all = whole_range(group);
    kernels::lamb_direction(all.w.queue(), moves, all.states[0], all.states[1], all.w, all.g, all.scalars,
                            chunks(group), arguments);
  }
  const Tensor norms = squares({flat()->master(), moves});
  for (int group = 0; group < groups(); ++group) {
    const Range all = whole_range(group);
    const bool adapt = adapts(group);
    kernels::lamb_step(all.w.queue(), all.w, all.compute_copy, moves, all.scalars, chunks(group),
                       adapt ? norms.select(0, 0) : Tensor(), adapt ? norms.select(0, 1) : Tensor(), rule);
  }
}

}  // namespace weft::optim
