// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/wrong_index.h"

namespace weft::kernels::cuda {

/// Where a kernel reports a wrong index, and what the host's text says beside it.
struct WrongIndexReport {
  WrongIndex* record;
  WrongIndex what;

  /// The first report stays until the host has read it. The record is pinned memory of the host: other than of this
  /// device, nobody writes it meanwhile.
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
