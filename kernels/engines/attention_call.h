// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/attention.h"
#include "kernels/engines/problem.h"

namespace weft::kernels::vendor {

/// A call of attention_forward (dy, dq, dk, dv: none) or of attention_backward, whose arguments the contract has
/// checked.
struct AttentionCall {
  const Queue& queue;
  const View &y, &lse, &q, &k, &v, &key_lengths, &key_mask;
  const AttentionArguments& arguments;
  View dy{}, dq{}, dk{}, dv{};
  bool backward = false;

  const char* op() const { return backward ? "attention_backward" : "attention_forward"; }
};

/// What distinguishes the calls: everything but addresses and the scale.
Problem problem_of(const AttentionCall& call);

}  // namespace weft::kernels::vendor
