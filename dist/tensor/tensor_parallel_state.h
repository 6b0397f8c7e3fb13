// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/fsdp/sharded_checkpoint.h"
#include "dist/tensor/tensor_parallel.h"

namespace weft::dist {

// Full state: the names, shapes and values of one process, independent of the grid. Call these functions between steps.

/// Module::state_dict() of the model in one process, on the CPU, as copies, on rank 0; the other ranks
/// get nothing. Collective.
StateDict full_state_dict(TensorParallel& parallel);

/// Loads such a state; every rank passes it (all have read the same file). Rules and errors are those of
/// Module::load_state_dict(); shapes in errors are those of whole tensors.
nn::LoadReport load_full_state_dict(TensorParallel& parallel, const StateDict& full, nn::LoadOptions options = {});

/// The optimizer's state_dict() of one process, from this rank's (an optimizer over
/// parallel.parameters()); on rank 0. Collective. Errors: not the state of such an optimizer.
StateDict full_optimizer_state(TensorParallel& parallel, const StateDict& own);

/// This rank's pieces of the whole model's tensors, for CheckpointWriter and ShardedCheckpoint. Gathers nothing.
ShardedState sharded_state(TensorParallel& parallel);
/// From the state_dict() of an optimizer over parallel.parameters(), whose memory the pieces share.
ShardedState sharded_state(TensorParallel& parallel, const StateDict& optimizer);

/// This rank's part of a full optimizer state, for `optimizer.load_state_dict()`. Not collective. Errors: a tensor that
/// belongs to no parameter, or of another shape.
StateDict part_of_optimizer_state(const TensorParallel& parallel, const StateDict& full);

}  // namespace weft::dist
