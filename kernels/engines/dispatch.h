// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/attention.h"
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/matmul.h"
#include "kernels/runtime/engine.h"

// Where the contracts of matmul, conv2d and attention turn to NVIDIA's libraries. The functions below are called in
// kernels/cuda, after the checks of the contract: false means that the caller's own kernel shall run.

namespace weft::kernels::vendor {

bool run_matmul(const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
                const MatmulArguments& arguments);
bool run_matmul_fused(const Queue& queue, const View& y, const View& pre, const View& a, const View& b,
                      const View& bias, const View& residual, const MatmulFusedArguments& arguments);
/// y = a @ b, row_sums[m] = sum over k of a[m, k]: linear_backward_weight as a matmul.
bool run_linear_backward_weight(const Queue& queue, const View& y, const View& row_sums, const View& a, const View& b);
bool run_conv2d_forward(const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
                        const Conv2dArguments& arguments);
bool run_conv2d_norm(const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
                     const View& mean, const View& var, const View& weight, const View& norm_bias, const View& residual,
                     const Conv2dNormArguments& arguments);
bool run_conv2d_statistics(const Queue& queue, const View& y, const View& part, const View& x, const View& w,
                           const View& bias, const Conv2dArguments& arguments);
bool run_conv2d_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w,
                               const Conv2dArguments& arguments);
bool run_conv2d_backward_weight(const Queue& queue, const View& dw, const View& dy, const View& x,
                                const Conv2dArguments& arguments);
bool run_attention_forward(const Queue& queue, const View& y, const View& lse, const View& q, const View& k,
                           const View& v, const View& key_lengths, const View& key_mask,
                           const AttentionArguments& arguments);
bool run_attention_backward(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                            const View& q, const View& k, const View& v, const View& y, const View& lse,
                            const View& key_lengths, const View& key_mask, const AttentionArguments& arguments);

inline bool is_asked(const Queue& queue) { return engine() != Engine::own && queue.device.kind == DeviceKind::cuda; }

inline bool matmul(const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
                   const MatmulArguments& arguments) {
  return is_asked(queue) && run_matmul(queue, y, a, b, bias, arguments);
}
inline bool matmul_fused(const Queue& queue, const View& y, const View& pre, const View& a, const View& b,
                         const View& bias, const View& residual, const MatmulFusedArguments& arguments) {
  return is_asked(queue) && run_matmul_fused(queue, y, pre, a, b, bias, residual, arguments);
}
inline bool linear_backward_weight(const Queue& queue, const View& y, const View& row_sums, const View& a,
                                   const View& b) {
  return is_asked(queue) && run_linear_backward_weight(queue, y, row_sums, a, b);
}
inline bool conv2d_forward(const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
                           const Conv2dArguments& arguments) {
  return is_asked(queue) && run_conv2d_forward(queue, y, x, w, bias, arguments);
}
inline bool conv2d_norm(const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
                        const View& mean, const View& var, const View& weight, const View& norm_bias,
                        const View& residual, const Conv2dNormArguments& arguments) {
  return is_asked(queue) && run_conv2d_norm(queue, y, x, w, bias, mean, var, weight, norm_bias, residual, arguments);
}
inline bool conv2d_statistics(const Queue& queue, const View& y, const View& part, const View& x, const View& w,
                              const View& bias, const Conv2dArguments& arguments) {
  return is_asked(queue) && run_conv2d_statistics(queue, y, part, x, w, bias, arguments);
}
inline bool conv2d_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w,
                                  const Conv2dArguments& arguments) {
  return is_asked(queue) && run_conv2d_backward_input(queue, dx, dy, w, arguments);
}
inline bool conv2d_backward_weight(const Queue& queue, const View& dw, const View& dy, const View& x,
                                   const Conv2dArguments& arguments) {
  return is_asked(queue) && run_conv2d_backward_weight(queue, dw, dy, x, arguments);
}
inline bool attention_forward(const Queue& queue, const View& y, const View& lse, const View& q, const View& k,
                              const View& v, const View& key_lengths, const View& key_mask,
                              const AttentionArguments& arguments) {
  return is_asked(queue) && run_attention_forward(queue, y, lse, q, k, v, key_lengths, key_mask, arguments);
}
inline bool attention_backward(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                               const View& q, const View& k, const View& v, const View& y, const View& lse,
                               const View& key_lengths, const View& key_mask, const AttentionArguments& arguments) {
  return is_asked(queue) &&
         run_attention_backward(queue, dq, dk, dv, dy, q, k, v, y, lse, key_lengths, key_mask, arguments);
}

}  // namespace weft::kernels::vendor
