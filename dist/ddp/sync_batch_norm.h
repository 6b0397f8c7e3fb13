// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/batch_norm.h"
#include "dist/group/process_group.h"
#include "nn/module.h"

namespace weft::dist {

/// batch_norm() in training with the statistics of all ranks' batches together, which may be of different sizes: each
/// rank sends the mean, the sum of squared distances and the number of its rows, and all join them (Chan, Golub and
/// LeVeque 1979). Forward takes an all_gather of 2 C + 1 numbers, backward an all_reduce of 2 C.
///
/// Gradients fit DDP's average: a rank's loss is the mean over its samples and weighs n_r / N among the ranks. So with
/// the weights of DDP they are the gradients of batch_norm() on the whole batch. All ranks call forward and
/// backward.
///
/// `stand_in`: x is none of the batch's rows, and this rank has none. It counts 0 rows, is normalised by the other
/// ranks' statistics, and has no gradient. Were its rows in the statistics, the loss would depend on them, but DDP
/// weighs that part of the gradient by 0: the rest is the gradient of no function. The gradient of a scale-invariant
/// loss is orthogonal to the weights before the norm. The rest is not, so its steps change their length. Errors: those
/// of batch_norm(); a rank without rows.
Tensor sync_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                       const Tensor& running_var, const BatchNormOptions& options, const ProcessGroupPtr& group,
                       bool stand_in = false);

/// Every BatchNorm2d of the model takes its statistics over the ranks of `group` in training from now on; parameters,
/// names and evaluation stay as they are. Returns how many there are. A null group undoes it. DDP and FSDP report dummy
/// batches to them (set_samples(0)).
/// Backward waits for these collectives, so they should not queue after DDP's buckets: give them a group of their own
/// (`group->split(0, group->rank(), "batch_norm")`) on mpi, gloo and threads.
int convert_sync_batch_norm(nn::Module& model, const ProcessGroupPtr& group);

/// `, 3 batch norms over all ranks`; "": none was converted.
std::string describe_norms(nn::Module& model);

/// The next forward passes of this rank are (no longer) of a dummy batch, for the norms that
/// convert_sync_batch_norm() has converted.
void set_stand_in(nn::Module& model, bool stand_in);

}  // namespace weft::dist
