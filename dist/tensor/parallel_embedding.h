// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/losses.h"
#include "dist/group/process_group.h"
#include "dist/tensor/partition.h"
#include "nn/models/gpt.h"

namespace weft::dist {

/// cross_entropy() of logits whose classes are divided among the ranks of a group (Shoeybi et al. 2019, section 3):
/// `logits` [..., own classes] are this rank's share of `classes` (Partition::share), `target` [...] and the result are
/// the same on all ranks. Two all_reduce of f32: [rows] of maxima, and [2, rows] of sums and the targets' logits; none
/// in backward. Errors: those of cross_entropy(), label smoothing, weights of classes, another share.
Tensor parallel_cross_entropy(const Tensor& logits, const Tensor& target, int64_t classes, const ProcessGroupPtr& group,
                              const CrossEntropyOptions& options = {});

/// An nn::Embedding whose rows are divided among the ranks of a group: x [...], the same on all ranks, to the same
/// y [..., size], by one all_reduce. `weight` holds the rows of Partition::share(), and a row of zeros where other
/// ranks have one more. tied_linear() gives this rank's share of the classes, and sums the gradient of its x over the
/// ranks.
struct ParallelEmbedding : nn::Embedding, PartitionedModule {
  ProcessGroupPtr group;
  int64_t rows;  ///< the whole table's

  /// This rank's part of a table that each rank has whole. Errors: no group, fewer rows than ranks, a padding row,
  /// a table that is divided already.
  ParallelEmbedding(const nn::Embedding& whole, ProcessGroupPtr group);
  Tensor forward(const Tensor& x) const override;
  Tensor tied_linear(const Tensor& x) const override;
  Tensor tied_loss(const Tensor& x, const Tensor& targets, const LinearCrossEntropyOptions& options) const override;
  Partition partition(const std::string&) const override { return {.dim = 0, .size = rows}; }
  const ProcessGroup& holders() const override { return *group; }
};

/// Puts a ParallelEmbedding in place of the tokens of a GPT that each rank of the group has whole; positions stay
/// whole. The logits are then this rank's share, for parallel_cross_entropy(). In a group of one rank: does nothing.
/// Errors: those of ParallelEmbedding.
void divide_vocabulary(nn::Gpt& model, const ProcessGroupPtr& group);

}  // namespace weft::dist
