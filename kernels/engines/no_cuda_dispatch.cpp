// SPDX-License-Identifier: Apache-2.0
// Compiled in a build without CUDA, where no queue is on the device cuda.
#include "kernels/engines/dispatch.h"
#include "kernels/engines/recurrent.h"

namespace weft::kernels::vendor {

bool run_matmul(const Queue&, const View&, const View&, const View&, const View&, const MatmulArguments&) {
  return false;
}
bool run_matmul_fused(const Queue&, const View&, const View&, const View&, const View&, const View&, const View&,
                      const MatmulFusedArguments&) {
  return false;
}
bool run_linear_backward_weight(const Queue&, const View&, const View&, const View&, const View&) { return false; }
bool run_conv2d_forward(const Queue&, const View&, const View&, const View&, const View&, const Conv2dArguments&) {
  return false;
}
bool run_conv2d_norm(const Queue&, const View&, const View&, const View&, const View&, const View&, const View&,
                     const View&, const View&, const View&, const Conv2dNormArguments&) {
  return false;
}
bool run_conv2d_statistics(const Queue&, const View&, const View&, const View&, const View&, const View&,
                           const Conv2dArguments&) {
  return false;
}
bool run_conv2d_backward_input(const Queue&, const View&, const View&, const View&, const Conv2dArguments&) {
  return false;
}
bool run_conv2d_backward_weight(const Queue&, const View&, const View&, const View&, const Conv2dArguments&) {
  return false;
}
bool run_attention_forward(const Queue&, const View&, const View&, const View&, const View&, const View&, const View&,
                           const View&, const AttentionArguments&) {
  return false;
}
bool run_attention_backward(const Queue&, const View&, const View&, const View&, const View&, const View&, const View&,
                            const View&, const View&, const View&, const View&, const View&,
                            const AttentionArguments&) {
  return false;
}
bool chooses_cudnn(const RecurrentCall&, const std::function<void()>&) { return false; }
int64_t recurrent_reserve(const RecurrentCall&) { return 0; }
void recurrent(const RecurrentCall& call) { fail(call.op(), ": this build has no CUDA"); }

}  // namespace weft::kernels::vendor
