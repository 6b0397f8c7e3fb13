// SPDX-License-Identifier: Apache-2.0
// Compiled in a build without CUDA, where no queue is on the device cuda.
#include "kernels/engines/dispatch.h"
#include "kernels/engines/recurrent.h"

namespace weft::kernels::vendor {

bool run(const MatmulCall&) { return false; }
bool run(const Conv2dCall&) { return false; }
bool run(const AttentionCall&) { return false; }
bool chooses_cudnn(const RecurrentCall&, const std::function<void()>&) { return false; }
int64_t recurrent_reserve(const RecurrentCall&) { return 0; }
void recurrent(const RecurrentCall& call) { fail(call.op(), ": this build has no CUDA"); }

}  // namespace weft::kernels::vendor
