// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/fsdp_unit.h"

#include <algorithm>

namespace weft::dist {

void FsdpUnit::add_gradients(const ProcessGroupPtr& replicas, DType low_reduce) {
  for (const auto& shard : shards_) {
    if (!shard->trained()) continue;
    const DType kept = shard->master().dtype();
    gradients_.push_back(std::make_unique<ShardGradient>(*shard, replicas, shard->dtype() == kept ? kept : low_reduce));
  }
}

void FsdpUnit::start_gather() {
  for (const auto& shard : shards_) shard->start_gather();
}

void FsdpUnit::finish_gather() {
  for (const auto& shard : shards_) shard->finish_gather();
}

void FsdpUnit::free() {
  for (const auto& shard : shards_) shard->free();
  in_use = false;
}

bool FsdpUnit::holds_memory() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const auto& shard) { return shard->holds_memory(); });
}

bool FsdpUnit::is_stale() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const auto& shard) { return shard->is_stale(); });
}

size_t FsdpUnit::gathered_bytes() const {
  size_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->gathered_bytes();
  return bytes;
}

void FsdpUnit::prepare_gradients() {
  for (const auto& gradient : gradients_) gradient->prepare();
}

bool FsdpUnit::gradients_are_complete() const {
  return std::all_of(gradients_.begin(), gradients_.end(), [](const auto& g) { return g->is_complete(); });
}

}  // namespace weft::dist
