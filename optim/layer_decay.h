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

/// Parameter groups by depth (Clark et al. 2020; Bao et al. 2022, BEiT): of a model with L numbered blocks, what lies
/// behind them (last norm, head) has the rate lr, block i has lr factor^(L - i), what lies before them (embeddings)
/// has lr factor^(L + 1). `parameters` are a model's in its order; blocks are known by the number in their names
/// (`blocks.3.attn.qkv.weight`, `encoder.layer.3.…`). Per depth one group, or two where vectors do not decay.
/// Errors: a factor outside (0, 1]; no parameter of a numbered block, or several lists of them (a ResNet's stages).
std::vector<ParameterGroup> by_layer(const std::vector<NamedTensor>& parameters, const LayerDecayOptions& options);

/// The trained parameters, group after group. Made flat in this order before data parallelism is set up
/// (FlatParameters::of), a group is one range, and an optimizer's step one launch for each.
std::vector<NamedTensor> in_order(const std::vector<ParameterGroup>& groups);

}  // namespace weft::optim
