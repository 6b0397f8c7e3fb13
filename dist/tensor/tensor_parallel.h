// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dist/ddp/ddp.h"
#include "dist/fsdp/fsdp.h"
#include "dist/group/process_group.h"
#include "dist/tensor/partition.h"

namespace weft::dist {

/// A model that the model ranks of a grid hold together (tensor parallelism; Shoeybi et al. 2019). Its data ranks
/// replicate each part, or shard it by FSDP, and each row has its own part of the batch:
///   Grid grid(world.group(), 4);
///   auto model = …;                                      // of ParallelBlocks over grid.model(), from one seed
///   TensorParallel parallel(model, grid);
///   Adam adam(parallel.parameters(), …);
///   loss = …(parallel(x)); adam.zero_grad(); loss.backward(); parallel.clip_grad_norm(1); adam.step();
/// Gradients are averaged over the data ranks. Nothing is summed over the model ranks: whole parameters
/// (norms, embeddings, biases after a sum) get the whole gradient on each rank, because copy_to_region() sums the
/// gradients that reach it; the bits are the same, so the parameters stay equal. See docs/tensor_parallel.md.
class TensorParallel final : public Strategy {
 public:
  /// All data ranks get the parameters and buffers of data rank 0, then all model ranks whole ones of model rank 0.
  /// Errors: models that differ between the ranks, those of DDP.
  TensorParallel(std::shared_ptr<nn::Module> model, Grid grid, DdpOptions options = {});
  /// Each part is sharded over the data ranks. Errors: as above, and those of FSDP.
  TensorParallel(std::shared_ptr<nn::Module> model, Grid grid, FsdpOptions options);

  /// The model's forward. All ranks of a row must give the same x.
  Tensor operator()(const Tensor& x) { return data_->forward(x); }

  /// This rank's parameters, or its shards of them, for the optimizer.
  std::vector<NamedTensor> parameters() const override { return data_->parameters(); }
  /// The 2-norm of the whole model's gradient, a device scalar. Collective.
  Tensor grad_norm() const override;
  /// Scales all gradients so that this norm is at most `max_norm`; returns the norm before. Collective. Errors:
  /// max_norm not positive.
  Tensor clip_grad_norm(double max_norm);

  /// Copies whole parameters and buffers of model rank 0 to all model ranks. They stay equal as long as all ranks run
  /// the same kernels; if each GPU chooses its own (WEFT_ENGINE=auto), call this regularly. Collective.
  void synchronise() override;

  nn::Module& module() const { return *model_; }
  const Grid& grid() const { return grid_; }
  /// One of the two averages gradients over the data ranks; the other is null.
  DDP* ddp() const { return ddp_; }
  FSDP* fsdp() const { return fsdp_; }
  /// How the parameter of this name is divided; whole for buffers and undivided parameters.
  Partition partition(const std::string& name) const;

  Tensor forward(const Tensor& x) override { return operator()(x); }
  [[nodiscard]] std::shared_ptr<void> no_sync() override { return data_->no_sync(); }
  void stand_in() override { data_->stand_in(); }
  bool is_sharded() const override { return data_->is_sharded(); }
  bool has_pieces() const override { return true; }
  StateDict model_state() override;
  StateDict gathered(const StateDict& part) override;
  StateDict part_of(const StateDict& whole) override;
  void load_model(const std::string& what, const StateDict& model) override;
  ShardedState sharded_model() override;
  ShardedState sharded(const StateDict& part) override;
  int row_size() const override { return grid_.row_size(); }
  std::string describe() const override;

 private:
  void find_partitions();
  /// `data` averages over the data ranks.
  void divide(std::unique_ptr<Strategy> data);
  std::vector<NamedTensor> trained() const;

  std::shared_ptr<nn::Module> model_;
  Grid grid_;
  std::map<std::string, Partition> partitions_;  // for divided parameters
  std::unique_ptr<Strategy> data_;
  DDP* ddp_ = nullptr;
  FSDP* fsdp_ = nullptr;
};

}  // namespace weft::dist
