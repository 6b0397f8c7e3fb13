// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/fsdp/fsdp.h"

namespace weft::dist {

// Full state: the names, shapes and values of one process, independent of the strategy and the number of ranks. Call
// all functions between steps, on all ranks.

/// The ranks that get a full state: rank 0, or all.
enum class Receivers : uint8_t { first, all };

/// Module::state_dict() of the unsharded model, on the CPU, as copies; on rank 0 (the other ranks get nothing), or on
/// all ranks. It gathers unit by unit: a device holds its shards and one gathered unit at a time.
StateDict full_state_dict(FSDP& fsdp, Receivers receivers = Receivers::first);

/// Loads a full state dict into the shards. Collective: every rank passes it (all have read the same file). Rules and
/// errors are those of Module::load_state_dict(): a `module.` before all names is stripped; an error changes nothing.
/// Errors (on every rank): state dicts that differ.
nn::LoadReport load_full_state_dict(FSDP& fsdp, const StateDict& dict, nn::LoadOptions options = {});

/// The optimizer's state_dict() of one process, from this rank's `optimizer.state_dict()` (an optimizer over
/// fsdp.parameters()). The result is on the CPU, in the order of the model. Errors: not the state of such an
/// optimizer.
StateDict full_optimizer_state(FSDP& fsdp, const StateDict& sharded, Receivers receivers = Receivers::first);

/// This rank's part of a full optimizer state, for `optimizer.load_state_dict()`. Not collective. Errors: a tensor that
/// belongs to no trained parameter, or of another shape.
StateDict shard_optimizer_state(FSDP& fsdp, const StateDict& full);

}  // namespace weft::dist
