// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "dist/fsdp/fsdp.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"

namespace weft::dist::testing {

/// x + fc2(gelu(fc1(norm(x)))): the shape of a transformer's block.
struct Block : nn::Module {
  nn::LayerNorm norm;
  nn::Linear fc1, fc2;
  bool checkpointed = false;
  explicit Block(int64_t width) : norm(width), fc1(width, 2 * width), fc2(2 * width, width) {}
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
};

/// stem, `blocks` blocks, norm, head.
struct Tower : nn::Module {
  nn::Linear stem;
  std::vector<std::shared_ptr<Block>> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  bool checkpoint_blocks = false;  ///< recompute each block, so that units run inside checkpoint()
  bool twice = false;              ///< the blocks are gone through two times
  Tower(int64_t in, int64_t width, int blocks, int64_t out);
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
};

/// A training run: each rank's data, and one process' result with all data.
struct ShardedTraining {
  std::function<std::shared_ptr<nn::Module>()> make;
  std::vector<std::vector<int64_t>> parts;  ///< samples by micro-batch and rank
  Shape sample{6};                          ///< sizes of one sample
  int64_t outputs = 4;
  bool replicas = false;  ///< DDP, else FSDP with these options
  FsdpOptions options = {};
  DType dtype = DType::f64;
  Device device = {};
  int micro_batches = 1;     ///< per step
  bool unsharded = false;    ///< micro-batches but the last run under no_sync()
  bool evaluation = false;   ///< Module::eval(): norms by fixed statistics
  bool adam = false;         ///< AdamW with weight decay on matrices only; else SGD with momentum
  bool layer_decay = false;  ///< AdamW with rates by depth
  std::string by_norms = {};  ///< lars or lamb, of matrices only
  bool averaged = false;     ///< the weights in the result are their averages over the steps
  double clip = 0;           ///< norm at which gradients are clipped; 0: not at all
  std::string backend = "threads";
  /// Called on every rank with its model before it is sharded.
  std::function<void(nn::Module&, const ProcessGroupPtr&)> prepare = {};
};

struct ShardedResult {
  std::vector<double> losses;   ///< loss of the global batch, by micro-batch
  std::vector<double> norms;    ///< norms of the gradient, by step, where clipped
  std::vector<double> weights;  ///< all values of the full state dict
};

/// `steps` micro-batches of `each` samples per rank.
std::vector<std::vector<int64_t>> equal_parts(int steps, int ranks, int64_t each);
/// Parts of all sizes.
std::vector<std::vector<int64_t>> unequal_parts(int steps, int ranks);

/// Each call gives the same model.
std::shared_ptr<nn::Module> make_model(const ShardedTraining& t);
/// Runs one rank; all know the losses, rank 0 the norms and weights.
ShardedResult train_rank(const ShardedTraining& t, const std::shared_ptr<nn::Module>& model,
                         const ProcessGroupPtr& group);
ShardedResult train_sharded(const ShardedTraining& t, int ranks);
ShardedResult train_whole(const ShardedTraining& t);

/// The error that n ranks may differ from one by: each weight's gradient is a sum over samples, added up in another
/// order, over all steps.
double allowed_error(const ShardedTraining& t);
void expect_equal(const ShardedResult& got, const ShardedResult& want, const ShardedTraining& t);

/// Input and target of micro-batch `batch` of all ranks.
std::pair<Tensor, Tensor> data_of(const ShardedTraining& t, size_t batch);
Tensor loss_of(const Tensor& y, const Tensor& target);

}  // namespace weft::dist::testing
