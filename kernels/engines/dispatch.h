// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/engines/calls.h"
#include "kernels/runtime/engine.h"

// Where the contracts of matmul, conv2d and attention turn to NVIDIA's libraries.

namespace weft::kernels::vendor {

bool run(const MatmulCall& call);
bool run(const Conv2dCall& call);
bool run(const AttentionCall& call);

/// Called in kernels/cuda after the checks of the contract. False: the caller's own kernel shall run. Errors:
/// WEFT_ENGINE=vendor without the library.
template <class Call>
bool takes(const Call& call) {
  return engine() != Engine::own && call.queue.device.kind == DeviceKind::cuda && run(call);
}

}  // namespace weft::kernels::vendor
