// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/runtime/queue.h"
#include "kernels/view.h"

// kernels/contracts/attention.h's guarantees about lengths, for engines with their own attention kernels. Defined in
// attention_lengths.cu; arguments are those of the contract, already checked.

namespace weft::kernels::cuda {

/// Writes 2 B numbers: N for each batch element, then its number of keys, key_lengths clamped to 0 … M.
void attention_lengths(const Queue& queue, int32_t* queries_and_keys, const View& key_lengths, int64_t N, int64_t M);
/// Sets y = 0 and lse = -infinity for batch elements without keys.
void attention_clear_results(const Queue& queue, const View& y, const View& lse, const View& key_lengths);
/// Sets dk and dv of keys beyond a length, and dq of batch elements without keys, to 0.
void attention_clear_gradients(const Queue& queue, const View& dq, const View& dk, const View& dv,
                               const View& key_lengths);

}  // namespace weft::kernels::cuda
