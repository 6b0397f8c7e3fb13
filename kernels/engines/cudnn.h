// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernels/engines/calls.h"
#include "kernels/engines/recurrent.h"

// Convolution and attention by cuDNN's graph API, recurrent layers by their own calls: cudnn_*.cpp, or no_cudnn.cpp in a build without it.

namespace weft::kernels::vendor::cudnn {

/// Empty where cuDNN can be used; else why not, and the cure.
const std::string& missing();
/// `cuDNN 91900`.
std::string version();

/// False for what cuDNN has no engine for, whatever the sizes: our own kernel computes it then.
bool supports(const Conv2dCall& call);

/// Plans that the heuristic offers for a supported call and that keep the contract, at most four. Errors: the
/// library's; no engine of this cuDNN computes the problem on this GPU.
int variants(const Conv2dCall& call);
/// Enqueues the call. Errors: as variants; there is no such variant.
void conv2d(const Conv2dCall& call, int variant);

/// Why cuDNN cannot compute a call of attention, whatever the GPU; empty where it can. Our own kernel computes it else.
std::string refusal(const AttentionCall& call);
/// As those of conv2d, of a call without a refusal.
int variants(const AttentionCall& call);
void attention(const AttentionCall& call, int variant);

/// The reason for a recurrent layer, which has one variant.
std::string refusal(const RecurrentCall& call);
int variants(const RecurrentCall& call);
int64_t reserve(const RecurrentCall& call);
void recurrent(const RecurrentCall& call);

}  // namespace weft::kernels::vendor::cudnn
