// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/recurrent.h"

#include "kernels/engines/calls.h"

namespace weft::kernels::vendor {

Problem problem_of(const RecurrentCall& call) {
  Problem problem(call.op());
  problem.add("in", call.x.dtype).add("T", call.x.sizes[0]).add("B", call.x.sizes[1]).add("I", call.x.sizes[2]);
  problem.add("H", call.h.sizes[1]).add("bias", call.weights[2] ? 1 : 0).add("pass", static_cast<int64_t>(call.pass));
  if (may_use_tf32(call.x.dtype)) problem.add("tf32", int64_t{1});
  return problem;
}

}  // namespace weft::kernels::vendor
