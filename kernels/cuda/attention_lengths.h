// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"
#include "kernels/view.h"

// What kernels/attention.h promises about lengths, for engines that compute attention in their own way. Defined
// in attention_lengths.cu; the arguments are those of the contract, checked.

namespace weft::kernels::cuda {

/// 2 B numbers: the N queries of each batch entry, then its keys, key_lengths within 0 … M.
void attention_lengths(const Queue& queue, int32_t* queries_and_keys, const View& key_lengths, int64_t N, int64_t M);
/// Of entries without keys: y = 0, lse = -infinity.
void attention_clear_results(const Queue& queue, const View& y, const View& lse, const View& key_lengths);
/// dk and dv of keys that a length hides, and dq of entries without keys, become 0.
void attention_clear_gradients(const Queue& queue, const View& dq, const View& dk, const View& dv,
                               const View& key_lengths);

}  // namespace weft::kernels::cuda
