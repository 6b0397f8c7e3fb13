// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/runtime/queue.h"

namespace weft::kernels::cuda {

/// 10 major + minor of the queue's device: 80 for an A100, 90 for an H100. Errors: weft::Error with the device's text.
int compute_capability(const Queue& queue);

/// Whether the kernels of *_sm90.cu run: TMA, wgmma and clusters of compute capability 9.0. They are compiled for
/// sm_90a, which runs on no other device, also not on later ones.
bool has_wgmma(const Queue& queue);

/// SMs of the queue's device, for persistent grids: results must not depend on it.
int multiprocessors(const Queue& queue);

}  // namespace weft::kernels::cuda
