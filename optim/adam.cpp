// SPDX-License-Identifier: Apache-2.0
#include "optim/adam.h"

#include "kernels/optimizer.h"

namespace weft::optim {

Adam::Adam(const std::vector<NamedTensor>& parameters, const AdamOptions& options)
    : Adam(std::vector<ParameterGroup>{{parameters}}, options) {}

Adam::Adam(const std::vector<ParameterGroup>& groups, const AdamOptions& options)
    : Adam("Adam", groups, options, /*decoupled=*/false) {}

Adam::Adam(const char* name, const std::vector<ParameterGroup>& groups, const AdamOptions& options, bool decoupled)
    : Optimizer(name, groups, options.lr, options.weight_decay,
                options.amsgrad ? std::vector<std::string>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
                                : std::vector<std::string>{"exp_avg", "exp_avg_sq"}),
      options_(options),
      decoupled_(decoupled) {
  for (const double beta : {options.beta1, options.beta2})
    WEFT_CHECK(beta >= 0 && beta < 1, name, ": expected betas in [0, 1), got ", beta);
  WEFT_CHECK(options.eps >= 0, name, ": expected an eps of at least 0, got ", options.eps);
}

void Adam::update(const Range& range) {
  kernels::adam_step(range.w.queue(), range.w, range.states[0], range.states[1],
                     options_.amsgrad ? range.states[2] : Tensor(), range.compute_copy, range.g, range.scalars,
                     {.beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .eps = options_.eps,
                      .weight_decay = range.weight_decay,
                      .decoupled = decoupled_,
                      .maximize = options_.maximize});
}

AdamW::AdamW(const std::vector<NamedTensor>& parameters, const AdamWOptions& options)
    : AdamW(std::vector<ParameterGroup>{{parameters}}, options) {}

AdamW::AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options)
    : Adam("AdamW", groups,
           {.lr = options.lr,
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .eps = options.eps,
            .weight_decay = options.weight_decay,
            .maximize = options.maximize,
            .amsgrad = options.amsgrad},
           /*decoupled=*/true) {}

}  // namespace weft::optim
