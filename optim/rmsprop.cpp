// SPDX-License-Identifier: Apache-2.0
#include "optim/rmsprop.h"

#include "kernels/optimizer.h"

namespace weft::optim {

RMSprop::RMSprop(const std::vector<NamedTensor>& parameters, const RMSpropOptions& options)
    : RMSprop(std::vector<ParameterGroup>{{parameters}}, options) {}

namespace {

std::vector<std::string> states(const RMSpropOptions& options) {
  std::vector<std::string> names{"square_avg"};
  if (options.momentum > 0) names.emplace_back("momentum_buffer");
  if (options.centered) names.emplace_back("grad_avg");
  return names;
}

}  // namespace

RMSprop::RMSprop(const std::vector<ParameterGroup>& groups, const RMSpropOptions& options)
    : Optimizer("RMSprop", groups, options.lr, options.weight_decay, states(options)), options_(options) {
  WEFT_CHECK(options.alpha >= 0 && options.alpha <= 1, "RMSprop: expected alpha in [0, 1], got ", options.alpha);
  WEFT_CHECK(options.eps >= 0, "RMSprop: expected an eps of at least 0, got ", options.eps);
  WEFT_CHECK(options.momentum >= 0, "RMSprop: expected a momentum of at least 0, got ", options.momentum);
}

void RMSprop::update(const Range& range) {
  const bool has_momentum = options_.momentum > 0;
  kernels::rmsprop_step(range.w.queue(), range.w, range.states.front(), has_momentum ? range.states[1] : Tensor(),
                        options_.centered ? range.states.back() : Tensor(), range.compute_copy, range.g, range.scalars,
                        {.alpha = options_.alpha,
                         .eps = options_.eps,
                         .weight_decay = range.weight_decay,
                         .momentum = options_.momentum,
                         .maximize = options_.maximize});
}

}  // namespace weft::optim
