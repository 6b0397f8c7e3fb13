// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/ddp/strategy.h"
#include "dist/group/world.h"
#include "dist/pipeline/pipeline.h"
#include "io/weights/weights_file.h"
#include "nn/init.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace weft::train {

struct StrategyOptions {
  std::string kind = "auto";   ///< `none`, `ddp`, `fsdp`; `auto`: ddp on several ranks, else none
  double bucket_mb = 25;       ///< see dist::DdpOptions
  bool compress_bf16 = false;  ///< gradients travel in bf16
  bool sync_batch_norm = false;
  std::string strategy = "full_shard";  ///< a name of dist::Sharding
  int64_t min_num_params = 0;           ///< see dist::wrap_policy(); 0: each transformer block is a unit
  std::string offload = "none";         ///< a name of dist::Offload
  int64_t shard_size = 0;               ///< see dist::FsdpOptions
  std::vector<NamedTensor> order = {};  ///< ddp: how the parameters lie in flat buffers; left out: as in the model
  bool low_precision = false;           ///< the model runs in bf16: sharded weights are gathered in it
  bool sharded_accumulation = false;    ///< fsdp: each backward reduces; gradients add up in the shards
  std::shared_ptr<nn::DeferredInit> deferred = {};  ///< fsdp: the weights that were left for later
  std::optional<Device> device = {};  ///< where the model goes, under fsdp unit by unit; left out: it is there
};

using dist::Strategy;

/// As dist/fsdp/ reads them, with a pointer to `options.deferred`. Errors: an unknown strategy or offload.
dist::FsdpOptions fsdp_options(const StrategyOptions& options, nn::Module& model);

/// The model has its first weights. Errors: an unknown strategy, those of DDP and FSDP.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, std::shared_ptr<nn::Module> model,
                                        const dist::World& ranks);

/// Fills this rank's parts of a state, an optimizer's or an average's, in place: of tensors NAME + `ending` from the
/// file's tensors NAME, and of each only the rank's elements. Errors: names and sizes that do not fit; the file's.
void read_parts(Strategy& strategy, const WeightsFile& file, const std::string& ending, const StateDict& state);

/// Gradients are averaged by the optimizer alone, as Horovod does (dist/ddp/distributed_optimizer.h): each rank's batch
/// counts the same. One backward pass per step.
std::unique_ptr<Strategy> make_averaging_strategy(std::shared_ptr<nn::Module> model, optim::Optimizer& optimizer,
                                                  const dist::World& ranks);

/// Tensor parallelism over a grid of ranks (dist/tensor/tensor_parallel.h), and a pipeline where the grid has stages
/// (dist/pipeline/pipeline.h); `options` say whether its data ranks replicate or shard the parts.
std::unique_ptr<Strategy> make_grid_strategy(std::shared_ptr<nn::Module> model, const dist::Grid& grid,
                                             const dist::PipelineOptions& options);

}  // namespace weft::train
