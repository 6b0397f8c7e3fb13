// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

struct LayerDecayOptions {
  double lr = 1e-3;
  double factor = 0.75;  ///< ratio of a layer's learning rate to that of the layer above
  double weight_decay = 0;
  bool decay_vectors = false;  ///< weight decay of biases and norms too
};

/// Parameter groups by depth (Clark et al. 2020; Bao et al. 2022, BEiT), for L numbered blocks. Parameters after the
/// blocks (last norm, head) have the rate lr; block i has lr factor^(L - i). Parameters before the blocks (embeddings)
/// have lr factor^(L + 1). `parameters` are in the model's order; a block's number is in its names
/// (`blocks.3.attn.qkv.weight`, `encoder.layer.3.…`). Per depth one group, or two if vectors do not decay. Parameters
/// of a pipeline's stage count the whole model's blocks. Errors: a factor outside (0, 1]; no parameter of a numbered
/// block, or several lists of them (a ResNet's stages).
std::vector<ParameterGroup> by_layer(const std::vector<NamedTensor>& parameters, const LayerDecayOptions& options);

/// The trained parameters, group after group. If FlatParameters::of flattens them in this order before data parallelism
/// is set up, each group is one range. The optimizer's step then is a launch per group.
std::vector<NamedTensor> in_order(const std::vector<ParameterGroup>& groups);

}  // namespace weft::optim
