// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/handle.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "emulator/machine/fault.h"
#include "emulator/nccl/group.h"

namespace emulator::nccl {
namespace {

struct Entry {
  CommunicatorPtr communicator;
  bool gone = false;
};

struct Handles {
  std::mutex mutex;
  std::map<ncclComm_t, Entry> entries;
};

Handles& handles() {
  static auto& all = *new Handles;  // streams may outlive main
  return all;
}

// How long a parent that does not block keeps its part back at least: a program that does not wait for it is found.
constexpr std::chrono::microseconds kLate{200};

constexpr unsigned kConfigMagic = 0xcafebeef;  // NCCL_CONFIG_INITIALIZER's

/// A member of a communicator that comes of `parent` joins it. `where` finds its rank.
ncclResult_t join_part(const CommunicatorPtr& parent, const CommunicatorPtr& part,
                       const std::function<std::optional<Communicator::Place>()>& where) {
  ncclResult_t result = ncclSuccess;
  try {
    const auto place = where();
    if (place && part) {
      part->place(place->rank, place->size);
      result = part->join(place->id, parent.get());
    }
  } catch (const Stopped&) {
    result = parent->state();
    if (result == ncclSuccess || result == ncclInProgress) result = ncclInternalError;
  }
  if (part) part->end_work(result);
  return result;
}

ncclResult_t start_part(const CommunicatorPtr& parent, bool member, const ncclConfig_t& config, ncclComm_t* result,
                        std::function<std::optional<Communicator::Place>()> where) {
  CommunicatorPtr part;
  *result = nullptr;
  if (member) {
    part = std::make_shared<Communicator>(parent->device(), config);
    part->begin_work();
  }
  const bool blocking = parent->blocking();
  const ncclResult_t started = add_to_group(parent, [parent, part, blocking, result, where = std::move(where)] {
    if (!blocking) std::this_thread::sleep_for(kLate);
    const ncclResult_t code = join_part(parent, part, where);
    *result = part && (code == ncclSuccess || !blocking) ? add_handle(part) : nullptr;
    return code;
  });
  // As NVIDIA's does (2.28, init.cc), although the handle is not there yet.
  return started == ncclInProgress ? ncclSuccess : started;
}

}  // namespace

ncclComm_t add_handle(const CommunicatorPtr& c) {
  const auto handle = reinterpret_cast<ncclComm_t>(c.get());
  const std::lock_guard lock(handles().mutex);
  handles().entries[handle] = {c};
  return handle;
}

CommunicatorPtr find(ncclComm_t handle) {
  if (!handle)
    throw Failure{ncclInvalidArgument,
                  "the communicator is NULL. Where the parent does not block, ncclCommSplit and ncclCommShrink write "
                  "it once ncclCommGetAsyncError of the parent gives ncclSuccess"};
  const std::lock_guard lock(handles().mutex);
  const auto entry = handles().entries.find(handle);
  if (entry == handles().entries.end()) throw Failure{ncclInvalidArgument, "the communicator is none of NCCL's"};
  if (entry->second.gone) throw Failure{ncclInvalidArgument, "the communicator was destroyed or aborted before"};
  return entry->second.communicator;
}

void forget(ncclComm_t handle) {
  const std::lock_guard lock(handles().mutex);
  handles().entries.at(handle).gone = true;
}

ncclConfig_t checked(const ncclConfig_t* config, const ncclConfig_t* inherited) {
  ncclConfig_t result = NCCL_CONFIG_INITIALIZER;
  if (!config && inherited) return *inherited;
  if (config) {
    if (config->magic != kConfigMagic || config->size < offsetof(ncclConfig_t, cgaClusterSize))
      throw Failure{ncclInvalidArgument, "the ncclConfig_t was not set to NCCL_CONFIG_INITIALIZER"};
    std::memcpy(&result, config, std::min(config->size, sizeof result));
  }
  if (result.blocking == NCCL_CONFIG_UNDEF_INT) result.blocking = inherited ? inherited->blocking : 1;
  if (result.blocking != 0 && result.blocking != 1)
    throw Failure{ncclInvalidArgument, cat("ncclConfig_t: blocking ", result.blocking)};
  return result;
}

ncclResult_t make_rank(ncclComm_t* result, int size, const ncclUniqueId& id, int rank, int device,
                       const ncclConfig_t& config) {
  *result = nullptr;
  if (size < 1 || size > Segment::kMaxRanks || rank < 0 || rank >= size)
    throw Failure{ncclInvalidArgument, cat("rank ", rank, " of ", size, " (at most ", Segment::kMaxRanks, " ranks)")};
  const auto c = std::make_shared<Communicator>(device, config);
  c->place(rank, size);
  *result = add_handle(c);
  return add_to_group(c, [c, id, result] {
    const ncclResult_t code = c->join(id, nullptr);
    if (code != ncclSuccess && c->blocking()) {
      forget(*result);
      *result = nullptr;
    }
    return code;
  });
}

ncclResult_t split(ncclComm_t handle, int color, int key, ncclComm_t* result, const ncclConfig_t* config) {
  const CommunicatorPtr parent = find(handle);
  parent->require_ready();
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) throw Failure{ncclInvalidArgument, cat("ncclCommSplit: color ", color)};
  const ncclConfig_t checked_config = checked(config, &parent->config());
  parent->record_call({.kind = Kind::split});
  return start_part(parent, color >= 0, checked_config, result, [parent, color, key] {
    std::vector<int> members;
    for (int r = 0; r < parent->size(); ++r) members.push_back(r);
    return parent->meet(members, parent->next_mark(members), color, key, /*despite_errors=*/false);
  });
}

ncclResult_t shrink(ncclComm_t handle, const int* excluded, int count, ncclComm_t* result, const ncclConfig_t* config,
                    bool abort) {
  const CommunicatorPtr parent = find(handle);
  if (!abort) parent->require_ready();
  if (count < 1 || !excluded || count >= parent->size())
    throw Failure{ncclInvalidArgument, cat("ncclCommShrink: ", count, " of ", parent->size(), " ranks to exclude")};
  std::vector<int> members;
  for (int r = 0; r < parent->size(); ++r)
    if (std::find(excluded, excluded + count, r) == excluded + count) members.push_back(r);
  if (static_cast<int>(members.size()) + count != parent->size() ||
      std::find(members.begin(), members.end(), parent->rank()) == members.end())
    throw Failure{ncclInvalidArgument,
                  cat("ncclCommShrink: the excluded ranks are no ranks of ", parent->size(), ", or the caller's own")};
  const ncclConfig_t checked_config = checked(config, &parent->config());
  if (abort) parent->stop_operations();
  return start_part(parent, true, checked_config, result, [parent, members, abort] {
    return parent->meet(members, parent->next_mark(members), 0, 0, abort);
  });
}

}  // namespace emulator::nccl
