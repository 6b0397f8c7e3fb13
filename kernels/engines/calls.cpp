// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/calls.h"

#include "kernels/runtime/f32_products.h"

namespace weft::kernels::vendor {

const char* op_of(Direction direction) {
  constexpr const char* kOps[] = {"conv2d_forward", "conv2d_backward_input", "conv2d_backward_weight"};
  return kOps[static_cast<int>(direction)];
}

const char* op_of(const Conv2dCall& call) {
  return call.norm ? "conv2d_norm" : call.part ? "conv2d_statistics" : op_of(call.direction);
}

Conv2dCall convolution_of(const Conv2dCall& call) {
  return {call.direction, call.queue, call.x, call.w, call.y, call.bias, call.arguments};
}

int64_t alignment_of(const View& view) {
  const auto address = reinterpret_cast<uintptr_t>(view.data) | 16;
  return static_cast<int64_t>(address & -address);
}

bool may_use_tf32(DType dtype) { return dtype == DType::f32 && allow_tf32(); }

Problem problem_of(const MatmulCall& call) {
  const auto& [queue, y, a, b, bias, arguments, activation, residual, row_sums] = call;
  Problem problem("matmul");
  problem.add("in", a.dtype).add("out", y.dtype);
  problem.add("B", y.sizes[0]).add("M", y.sizes[1]).add("N", y.sizes[2]).add("K", a.sizes[2]);
  problem.add("a0", a.strides[0]).add("a1", a.strides[1]).add("a2", a.strides[2]);
  problem.add("b0", b.strides[0]).add("b1", b.strides[1]).add("b2", b.strides[2]);
  problem.add("y0", y.strides[0]);
  if (y.sizes[1] > 1 && y.strides[1] != y.sizes[2]) problem.add("y1", y.strides[1]);
  if (bias)
    problem.add("bias", bias.dtype).add("bias_align", alignment_of(bias));
  else
    problem.add("bias", int64_t{0}).add("bias_align", int64_t{0});
  problem.add("accumulate", arguments.grad == Grad::accumulate);
  problem.add("activation", static_cast<int64_t>(activation));
  problem.add("residual_align", residual ? alignment_of(residual) : 0);
  problem.add("row_sums_align", row_sums ? alignment_of(row_sums) : 0);
  if (may_use_tf32(a.dtype)) problem.add("tf32", int64_t{1});
  return problem.add("y_align", alignment_of(y)).add("a_align", alignment_of(a)).add("b_align", alignment_of(b));
}

Problem problem_of(const Conv2dCall& call) {
  const auto& [direction, queue, x, w, y, bias, arguments, norm, part] = call;
  Problem problem(op_of(call));
  problem.add("x", x.dtype).add("w", w.dtype);
  problem.add("N", x.sizes[0]).add("H", x.sizes[1]).add("W", x.sizes[2]).add("C", x.sizes[3]);
  problem.add("O", w.sizes[0]).add("R", w.sizes[1]).add("S", w.sizes[2]);
  problem.add("stride_h", arguments.stride.h).add("stride_w", arguments.stride.w);
  problem.add("padding_h", arguments.padding.h).add("padding_w", arguments.padding.w);
  problem.add("dilation_h", arguments.dilation.h).add("dilation_w", arguments.dilation.w);
  if (may_use_tf32(x.dtype)) problem.add("tf32", int64_t{1});
  problem.add("groups", arguments.groups).add("bias", int64_t{bias ? 1 : 0});
  problem.add("x_align", alignment_of(x)).add("w_align", alignment_of(w)).add("y_align", alignment_of(y));
  problem.add("bias_align", bias ? alignment_of(bias) : 0);
  if (norm) problem.add("residual_align", norm->residual ? alignment_of(norm->residual) : 0);
  return problem;
}

Problem problem_of(const AttentionCall& call) {
  Problem problem(call.op());
  problem.add("in", call.q.dtype).add("B", call.q.sizes[0]).add("N", call.q.sizes[1]).add("M", call.k.sizes[1]);
  problem.add("H", call.q.sizes[2]).add("D", call.q.sizes[3]);
  problem.add("causal", call.arguments.causal).add("lengths", call.key_lengths ? 1 : 0);
  problem.add("mask", call.key_mask ? 1 : 0).add("dropout", call.arguments.dropout > 0);
  const auto strides = [&](const View& view, const char* b, const char* n, const char* h) {
    problem.add(b, view.strides[0]).add(n, view.strides[1]).add(h, view.strides[2]);
  };
  strides(call.q, "q0", "q1", "q2");
  strides(call.k, "k0", "k1", "k2");
  strides(call.v, "v0", "v1", "v2");
  strides(call.y, "y0", "y1", "y2");
  if (!call.backward) return problem;
  strides(call.dy, "dy0", "dy1", "dy2");
  strides(call.dq, "dq0", "dq1", "dq2");
  strides(call.dk, "dk0", "dk1", "dk2");
  strides(call.dv, "dv0", "dv1", "dv2");
  return problem;
}

}  // namespace weft::kernels::vendor
