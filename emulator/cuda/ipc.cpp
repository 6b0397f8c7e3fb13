// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/ipc.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <type_traits>

#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda {
namespace {

constexpr uint64_t kMemoryMark = 0x797265776d656d00, kEventMark = 0x797265776d657600;

struct MemoryHandle {
  uint64_t mark;
  SharedMemory memory;
};
struct EventHandle {
  uint64_t mark;
  SharedFile file;
  int32_t device;
};
static_assert(sizeof(MemoryHandle) <= CUDA_IPC_HANDLE_SIZE && sizeof(EventHandle) <= CUDA_IPC_HANDLE_SIZE);

template <class To, class From>
To packed(const From& from) {
  To to{};
  static_assert(std::is_trivially_copyable_v<To>);
  std::memcpy(static_cast<void*>(&to), &from, std::min(sizeof(to), sizeof(from)));
  return to;
}

/// Open handles, under the state's lock: the same handle gives the same address again.
struct Opened {
  void* memory;
  int count;
};
std::map<std::pair<uint64_t, uint64_t>, Opened>& opened() {
  static auto* const all = new std::map<std::pair<uint64_t, uint64_t>, Opened>;
  return *all;
}

std::shared_ptr<SharedEvent> map_event(const SharedFile& file, int descriptor) {
  auto event = std::make_shared<SharedEvent>();
  event->file = file;
  event->state = static_cast<SharedEvent::State*>(map_file(descriptor, sizeof(SharedEvent::State)));
  require(event->state != nullptr, cudaErrorMapBufferObjectFailed);
  return event;
}

}  // namespace

SharedEvent::~SharedEvent() {
  if (state != nullptr) munmap(state, sizeof(State));
  if (file.process == getpid()) close(file.file);
}

void SharedEvent::wait(uint64_t recording) const {
  while (!has_ended(recording)) {
    const int recorder = state->recorder.load(std::memory_order_acquire);
    if (kill(recorder, 0) != 0 && errno == ESRCH && !has_ended(recording))
      throw Fault(FaultCode::launch_failure,
                  cat("a wait for an event that process ", recorder, " has recorded, which ended before"));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

std::shared_ptr<SharedEvent> make_shared_event() {
  const SharedFile file = create_shared_file(sizeof(SharedEvent::State));
  require(file.file >= 0, cudaErrorMemoryAllocation);
  return map_event(file, file.file);
}

cudaIpcMemHandle_t ipc_export(const void* memory) {
  Allocation found;
  require(find_allocation(reinterpret_cast<uintptr_t>(memory), found) && found.kind == MemoryKind::device);
  {
    Lock lock = lock_state();
    for (int device = 0; device < Device::count(); ++device) device_synchronize(lock, device);  // the pages move
  }
  MemoryHandle handle{kMemoryMark, {}};
  require(share(memory, handle.memory), cudaErrorMemoryAllocation);
  return packed<cudaIpcMemHandle_t>(handle);
}

void* ipc_open(const cudaIpcMemHandle_t& packed_handle, unsigned flags) {
  const auto handle = packed<MemoryHandle>(packed_handle);
  require(handle.mark == kMemoryMark && flags == cudaIpcMemLazyEnablePeerAccess);
  require(handle.memory.device < Device::count(), cudaErrorInvalidDevice);
  if (handle.memory.file.process == getpid())
    fail(cudaErrorDeviceUninitialized, "cudaIpcOpenMemHandle in the process that has made the handle");
  const Lock lock = lock_state();
  Opened& open = opened()[{handle.memory.file.number, handle.memory.offset}];
  if (open.count == 0) open.memory = import_shared(handle.memory);
  if (open.memory == nullptr) {
    opened().erase({handle.memory.file.number, handle.memory.offset});
    fail(cudaErrorMapBufferObjectFailed, cat("cudaIpcOpenMemHandle: process ", handle.memory.file.process,
                                             ", which has made the handle, has freed the memory or has ended"));
  }
  ++open.count;
  return open.memory;
}

void ipc_close(void* memory) {
  Lock lock = lock_state();
  for (auto open = opened().begin(); open != opened().end(); ++open) {
    if (open->second.memory != memory) continue;
    if (open->second.count > 1) return static_cast<void>(--open->second.count);
    for (int device = 0; device < Device::count(); ++device) device_synchronize(lock, device);
    opened().erase(open);
    require(release(memory, MemoryKind::imported));
    return;
  }
  fail(cudaErrorInvalidValue);
}

cudaIpcEventHandle_t ipc_export(cudaEvent_t handle) {
  const Lock lock = lock_state();
  const Event& event = event_of(handle);
  require(event.shared != nullptr, cudaErrorInvalidResourceHandle);
  return packed<cudaIpcEventHandle_t>(EventHandle{kEventMark, event.shared->file, event.device});
}

cudaEvent_t ipc_open(const cudaIpcEventHandle_t& packed_handle) {
  const auto handle = packed<EventHandle>(packed_handle);
  require(handle.mark == kEventMark);
  const int file = open_shared_file(handle.file);
  if (file < 0)
    fail(cudaErrorMapBufferObjectFailed, cat("cudaIpcOpenEventHandle: process ", handle.file.process,
                                             ", which has made the handle, has destroyed the event or has ended"));
  const std::shared_ptr<SharedEvent> shared = map_event(handle.file, file);
  close(file);
  return event_open(shared, handle.device);
}

}  // namespace emulator::cuda
