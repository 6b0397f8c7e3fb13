// SPDX-License-Identifier: Apache-2.0
#include "nn/copy_of.h"

#include "core/autograd.h"

namespace weft::nn {

void copy_state(Module& from, Module& to) {
  const auto modules = from.modules(), copies = to.modules();
  WEFT_CHECK(modules.size() == copies.size(), "copy_state: expected ", modules.size(), " modules, got ", copies.size());
  to.load_state_dict(from.state_dict());  // holds names and sizes against each other; converts
  const auto convert = [](const std::vector<NamedTensor>& sources, const std::vector<NamedTensor>& targets) {
    const NoGrad no_grad;
    for (size_t i = 0; i < sources.size(); ++i) {
      const Tensor &source = sources[i].tensor, &copy = targets[i].tensor;
      if (copy.dtype() != source.dtype() || copy.device() != source.device()) copy.set_data(source.detach().clone());
      if (copy.requires_grad() != source.requires_grad()) copy.requires_grad_(source.requires_grad());
    }
  };
  convert(from.parameters(), to.parameters());
  convert(from.buffers(), to.buffers());
  // Parents come first.
  for (size_t i = 0; i < modules.size(); ++i) copies[i].second->train(modules[i].second->is_training());
}

}  // namespace weft::nn
