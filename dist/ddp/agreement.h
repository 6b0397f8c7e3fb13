// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/flat_parameters.h"
#include "dist/group/process_group.h"
#include "nn/module.h"

namespace weft::dist {

/// Makes sure that all ranks have built the same model: names, shapes, dtypes and devices' kinds of parameters and
/// buffers, in the same order, the same of them frozen. All ranks call it. Errors (on every rank): the first entry that
/// differs, and on which ranks; `who` begins the text.
void check_same_model(ProcessGroup& group, nn::Module& model, const std::string& who);

/// Makes sure that no rank of `group` holds other parts of the model's partitioned modules than this one. Errors: the
/// rank and a module; `who` begins the text.
void check_replicas(const ProcessGroup& group, nn::Module& model, const std::string& who);
/// As above, of parts and stages of parameters that TensorParallel or Pipeline has divided.
void check_replicas(const ProcessGroup& group, const FlatParameters& flat, const std::string& who);

/// Makes parameters, buffers and counters of all ranks those of rank `root`. All ranks call it.
void broadcast_model(ProcessGroup& group, nn::Module& model, int root = 0);

/// Checks that all ranks train the same parameters, after a change on each of them. Errors (on every rank): the first
/// difference and the ranks. The next collective of a rank without a change names this call, except on nccl.
void check_same_trained(ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                        const std::vector<bool>& trained, const std::string& who);

}  // namespace weft::dist
