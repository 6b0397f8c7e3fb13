// SPDX-License-Identifier: Apache-2.0
#include "optim/sgd.h"

#include "kernels/optimizer.h"

namespace weft::optim {

SGD::SGD(const std::vector<NamedTensor>& parameters, const SgdOptions& options)
    : SGD(std::vector<ParameterGroup>{{parameters}}, options) {}

SGD::SGD(const std::vector<ParameterGroup>& groups, const SgdOptions& options)
    : Optimizer("SGD", groups, options.lr, options.weight_decay,
                options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
      options_(options) {
  WEFT_CHECK(options.momentum >= 0, "SGD: expected a momentum of at least 0, got ", options.momentum);
  WEFT_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
             "SGD: nesterov expects a momentum and no dampening, got momentum ", options.momentum, ", dampening ",
             options.dampening);
}

void SGD::update(const Range& range) {
  kernels::sgd_step(range.w.queue(), range.w, range.states.empty() ? Tensor() : range.states[0], range.compute_copy,
                    range.g, range.scalars,
                    {.momentum = options_.momentum,
                     .dampening = options_.dampening,
                     .weight_decay = range.weight_decay,
                     .nesterov = options_.nesterov,
                     .maximize = options_.maximize});
}

}  // namespace weft::optim
