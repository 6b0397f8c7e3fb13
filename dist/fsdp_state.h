// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/fsdp.h"

namespace weft::dist {

// State in full form: the names, shapes and values that one process would have, whatever the strategy and the number of
// ranks. All functions here are collective and to be called between steps.

enum class Receivers : uint8_t { first, all };

/// What Module::state_dict() of the unsharded model would give, on the CPU, as copies; on rank 0, or on all ranks (the
/// others get nothing). Unit by unit: a device holds one gathered unit at a time beside its shards.
StateDict full_state_dict(FSDP& fsdp, Receivers receivers = Receivers::first);

/// Takes a full state dict into the shards; every rank gives it (all have read the same file). Rules and errors are
/// those of Module::load_state_dict(): a `module.` before all names is stripped; nothing has been changed after an
/// error.
nn::LoadReport load_full_state_dict(FSDP& fsdp, const StateDict& dict, nn::LoadOptions options = {});

/// What the optimizer's state_dict() would be in one process, from that of this rank (`optimizer.state_dict()` of an
/// optimizer over fsdp.parameters()), on the CPU, in the order of the model. Errors: not the state of such an
/// optimizer.
StateDict full_optimizer_state(FSDP& fsdp, const StateDict& sharded, Receivers receivers = Receivers::first);

/// This rank's part of a full optimizer state, for `optimizer.load_state_dict()`. Not collective. Errors: a tensor that
/// belongs to no trained parameter, or of another shape.
StateDict shard_optimizer_state(FSDP& fsdp, const StateDict& full);

}  // namespace weft::dist
