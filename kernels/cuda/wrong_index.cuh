// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/runtime/wrong_index.h"

namespace weft::kernels::cuda {

/// The record to which a kernel reports a wrong index, and the context for the host's message.
struct WrongIndexReport {
  WrongIndex* record;
  WrongIndex what;

  /// Keeps the first report until the host has read it. The record is pinned host memory; meanwhile only this device
  /// writes it.
  __device__ void operator()(int64_t value, int64_t at) const {
    if (atomicCAS(&record->state, WrongIndex::kNone, WrongIndex::kClaimed) != WrongIndex::kNone) return;
    record->text = what.text;
    record->op = what.op;
    record->dtype = what.dtype;
    record->value = value;
    record->at = at;
    record->limit = what.limit;
    record->rows = what.rows;
    __threadfence_system();
    atomicExch(&record->state, WrongIndex::kComplete);
  }
};

}  // namespace weft::kernels::cuda
