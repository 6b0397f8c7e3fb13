// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"

namespace weft::kernels::cuda {

/// 10 major + minor of the queue's device: 80 for an A100, 90 for an H100. Errors: weft::Error with the device's text.
int compute_capability(const Queue& queue);

/// True where kernels of *_sm90.cu run: TMA, wgmma and clusters as of compute capability 9.0. They are compiled for
/// sm_90a, which no other device runs, later ones included.
bool has_wgmma(const Queue& queue);

/// Multiprocessors of the queue's device, for grids whose blocks stay: results must not depend on it.
int multiprocessors(const Queue& queue);

}  // namespace weft::kernels::cuda
