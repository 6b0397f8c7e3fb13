// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/group/process_group.h"
#include "dist/tensor/partition.h"
#include "nn/linear.h"

namespace weft::dist {

struct ColumnParallelOptions {
  nn::LinearOptions linear = {};
  int64_t stretches = 1;  ///< number of layers stacked in the weight, see Partition
};

/// An nn::Linear whose outputs are divided among the ranks of a group (Shoeybi et al. 2019): x [..., in], the same on
/// all ranks, to this rank's y [..., out / ranks]; weight [out / ranks, in], bias [out / ranks]. The gradient of x is
/// summed over the ranks. Each rank initialises the whole layer and keeps its part, so a seed gives the same model for
/// any number of ranks.
struct ColumnParallelLinear : nn::Module, PartitionedModule {
  Tensor weight, bias;
  ProcessGroupPtr group;
  int64_t stretches;
  bool gathers = false;  ///< x [N, own tokens, in] is this rank's alone: gather_into_region()

  /// Errors: no group, no stretches, the ranks do not divide `out`.
  ColumnParallelLinear(int64_t in, int64_t out, ProcessGroupPtr ranks, ColumnParallelOptions options = {})
      : ColumnParallelLinear(nn::Linear(in, out, options.linear), std::move(ranks), options.stretches) {}
  /// This rank's part of a layer that each rank has whole.
  ColumnParallelLinear(const nn::Linear& whole, ProcessGroupPtr group, int64_t stretches = 1);
  Tensor forward(const Tensor& x) const override { return forward(x, 0); }
  using Module::operator();
  /// With `gathers`: `tokens` of all ranks, without padding.
  Tensor operator()(const Tensor& x, int64_t tokens) const;
  /// gelu(operator()(x, tokens)) in one pass over the result.
  Tensor forward_gelu(const Tensor& x, Gelu approximate = Gelu::erf, int64_t tokens = 0) const;
  void fields(nn::Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
  Partition partition(const std::string&) const override { return {.dim = 0, .stretches = stretches}; }
  const ProcessGroup& holders() const override { return *group; }

 private:
  Tensor forward(const Tensor& x, int64_t tokens) const;
};

/// An nn::Linear whose inputs are divided among the ranks of a group: this rank's part of x [..., in / ranks] to the
/// same y [..., out] on all ranks; weight [out, in / ranks]; bias [out], whole on each rank, is added once, after the
/// sum over the ranks.
struct RowParallelLinear : nn::Module, PartitionedModule {
  Tensor weight, bias;
  ProcessGroupPtr group;
  bool scatters = false;  ///< y [N, own tokens, out] is this rank's alone: scatter_from_region()

  /// Errors: the ranks do not divide `in`.
  RowParallelLinear(int64_t in, int64_t out, ProcessGroupPtr ranks, nn::LinearOptions options = {})
      : RowParallelLinear(nn::Linear(in, out, options), std::move(ranks)) {}
  RowParallelLinear(const nn::Linear& whole, ProcessGroupPtr group);
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
  Partition partition(const std::string& parameter) const override {
    return parameter == "weight" ? Partition{.dim = 1} : Partition{};
  }
  const ProcessGroup& holders() const override { return *group; }
};

}  // namespace weft::dist
