// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "dist/fsdp/wrap_policy.h"

namespace weft::nn {
class DeferredInit;
}

namespace weft::dist {

/// The state that is sharded, and how long parameters stay gathered (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023).
enum class Sharding : uint8_t {
  full_shard,     ///< parameters, gradients, optimizer state; parameters are gathered for each use
  shard_grad_op,  ///< as full_shard, but parameters stay gathered from forward to backward
  hybrid_shard,   ///< full_shard inside groups of `shard_size` ranks, replicas across them
  no_shard,       ///< every rank holds everything, as in DDP
};

/// `full_shard`, `shard_grad_op`, `hybrid_shard`, `no_shard`.
constexpr std::string_view name(Sharding strategy) {
  constexpr std::string_view names[] = {"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"};
  return names[static_cast<int>(strategy)];
}

/// The state in host memory, where the optimizer then runs.
enum class Offload : uint8_t {
  none,
  optimizer,   ///< f32 weights, gradients, optimizer state; the device keeps its shard as it is gathered
  parameters,  ///< and each gather copies the shard to the device
};

/// `none`, `optimizer`, `parameters`.
constexpr std::string_view name(Offload offload) {
  constexpr std::string_view names[] = {"none", "optimizer", "parameters"};
  return names[static_cast<int>(offload)];
}

/// The dtypes of a step. Weights and optimizer state stay f32 in the shards. With `param` bf16 (or f16) the parameters
/// of the named kinds of modules are gathered as such, which halves the bytes. The model runs under Autocast(param).
/// All other parameters (norms, which take f32 weights here, and modules of your own) are gathered in f32.
struct MixedPrecision {
  DType param = DType::f32;
  std::optional<DType> reduce = {};  ///< dtype of those parameters' gradients in collectives; left out: param
  DType buffer = DType::f32;         ///< dtype of floating buffers of the named kinds
  bool cast_forward_inputs = true;   ///< a floating input of the model is cast to `param`
  /// Modules that use their parameters in matmul-like ops only (those that autocast knows); `Embedding` may join them.
  std::vector<std::string> kinds = {"Linear", "Conv2d", "ColumnParallelLinear", "RowParallelLinear"};
};

/// An event of a unit; for tests, logs and profiles.
struct FsdpEvent {
  enum class Kind : uint8_t { gather, prefetch, use, free, reduce } kind;
  std::string_view unit;
};

/// `gather`, `prefetch`, `use`, `free`, `reduce`.
constexpr std::string_view name(FsdpEvent::Kind kind) {
  constexpr std::string_view names[] = {"gather", "prefetch", "use", "free", "reduce"};
  return names[static_cast<int>(kind)];
}

struct FsdpOptions {
  Sharding strategy = Sharding::full_shard;
  WrapPolicy policy = {};
  MixedPrecision precision = {};
  Offload offload = Offload::none;
  int shard_size = 0;  ///< hybrid_shard: ranks per shard group, usually those of a host; divides the world size
  /// How many units (without the root) prefetching may hold gathered: 2 is the unit in use and the next one, 1 disables
  /// prefetching. Units that a step needs at once (a unit inside another one) are always gathered.
  int max_gathered = 2;
  /// After each reduced backward in training all ranks have the buffers of rank 0 (running statistics), in one
  /// broadcast that overlaps backward.
  bool broadcast_buffers = true;
  bool same_dropout = false;          ///< with equal seeds all ranks drop the same elements, see DdpOptions
  std::optional<Device> device = {};  ///< device of the shards, which move unit by unit; left out: the model's
  bool sharded_accumulation = false;  ///< FSDP::no_sync() has no effect: gradients add up in the shards
  /// Weights that were left unwritten. Each rank reads its part of those that a file holds; rank 0 writes the others,
  /// on the host, just before their unit is sent to all. The constructor alone uses the notes.
  nn::DeferredInit* deferred = nullptr;
  std::function<void(const FsdpEvent&)> on_event = {};
};

}  // namespace weft::dist
