// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/tensor_parallel.h"

namespace weft::dist {

// State in full form: the names, shapes and values that one process would have, whatever the grid. To be called between
// steps.

/// What Module::state_dict() of the model in one process would give, on the CPU, as copies, on rank 0; the other ranks
/// get nothing. Collective.
StateDict full_state_dict(TensorParallel& parallel);

/// Takes such a state; every rank gives it (all have read the same file). Rules and errors are those of
/// Module::load_state_dict(); shapes in errors are those of whole tensors.
nn::LoadReport load_full_state_dict(TensorParallel& parallel, const StateDict& full, nn::LoadOptions options = {});

/// What the optimizer's state_dict() would be in one process, from that of this rank (an optimizer over
/// parallel.parameters()); on rank 0. Collective. Errors: not the state of such an optimizer.
StateDict full_optimizer_state(TensorParallel& parallel, const StateDict& own);

/// This rank's part of a full optimizer state, for `optimizer.load_state_dict()`. Not collective. Errors: a tensor that
/// belongs to no parameter, or of another shape.
StateDict part_of_optimizer_state(const TensorParallel& parallel, const StateDict& full);

}  // namespace weft::dist
