// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

struct LayerDecayOptions {
  double lr = 1e-3;
  double factor = 0.75;  ///< of the learning rate from one layer to the one below
  double weight_decay = 0;
  bool decay_vectors = false;  ///< weight decay of biases and norms too
};

/// Parameter groups by depth (Clark et al. 2020; Bao et al. 2022, BEiT): of a model with L numbered blocks,
/// parameters after the blocks (last norm, head) have the rate lr, block i has lr factor^(L - i), parameters before the
/// blocks (embeddings) have lr factor^(L + 1). `parameters` are in the model's order; a block's number is in its names
/// (`blocks.3.attn.qkv.weight`, `encoder.layer.3.…`). Per depth one group, or two if vectors do not decay.
/// Errors: a factor outside (0, 1]; no parameter of a numbered block, or several lists of them (a ResNet's stages).
std::vector<ParameterGroup> by_layer(const std::vector<NamedTensor>& parameters, const LayerDecayOptions& options);

/// The trained parameters, group after group. If FlatParameters::of flattens them in this order before data
/// parallelism is set up, a group is one range, and an optimizer's step one launch per group.
std::vector<NamedTensor> in_order(const std::vector<ParameterGroup>& groups);

}  // namespace weft::optim
