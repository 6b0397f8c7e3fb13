// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/attention_call.h"

namespace weft::kernels::vendor {

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
