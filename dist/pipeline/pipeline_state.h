// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/pipeline/pipeline.h"

namespace weft::dist {

// Full state: the names, shapes and values of one process, independent of the grid. Call these functions between steps.

/// Module::state_dict() of the model in one process, on the CPU, as copies, on rank 0; the other ranks get nothing.
/// Collective.
StateDict full_state_dict(Pipeline& pipeline);

/// Loads such a state; every rank passes it (all have read the same file). Rules and errors are those of
/// load_full_state_dict(TensorParallel&); a name that no stage has is unexpected on all.
void load_full_state_dict(Pipeline& pipeline, const StateDict& full);

/// The optimizer's state_dict() of one process, from this rank's (an optimizer over pipeline.parameters()); on
/// rank 0. Collective.
StateDict full_optimizer_state(Pipeline& pipeline, const StateDict& own);

/// This rank's pieces of the whole model's tensors, for CheckpointWriter and ShardedCheckpoint; tensors of other stages
/// are elsewhere. Gathers nothing.
ShardedState sharded_state(Pipeline& pipeline);
/// From the state_dict() of an optimizer over pipeline.parameters(), whose memory the pieces share.
ShardedState sharded_state(Pipeline& pipeline, const StateDict& optimizer);

/// This rank's part of a full optimizer state, for `optimizer.load_state_dict()`. Not collective. Errors: a tensor that
/// belongs to no parameter of the model, or of another shape.
StateDict part_of_optimizer_state(const Pipeline& pipeline, const StateDict& full);

}  // namespace weft::dist
