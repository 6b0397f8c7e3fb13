// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/cuda/stream.h"

namespace emulator::cuda {
namespace {

std::unordered_set<const void*>& live_events() {
  static auto* const all = new std::unordered_set<const void*>;
  return *all;
}

}  // namespace

Event& event_of(cudaEvent_t handle) {
  require(live_events().contains(handle), cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Event*>(handle);
}

cudaEvent_t event_create(unsigned flags) {
  const Lock lock = lock_state();
  require((flags & ~7u) == 0);
  if (flags & cudaEventInterprocess) fail(cudaErrorNotSupported, "events for other processes are not emulated");
  auto* const event = new Event{flags, current_device(), nullptr, nullptr, {}};
  live_events().insert(event);
  return reinterpret_cast<cudaEvent_t>(event);
}

void event_destroy(cudaEvent_t handle) {
  const Lock lock = lock_state();
  Event& event = event_of(handle);
  live_events().erase(handle);
  delete &event;
}

void event_record(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  Lock lock = lock_state();
  Stream& stream = stream_of(stream_handle);
  Event& event = event_of(handle);
  require((flags & ~unsigned{cudaEventRecordExternal}) == 0);
  require(event.device == stream.device, cudaErrorInvalidResourceHandle);
  refuse_implicit(stream);
  if (capture_record(stream, event, handle, flags)) return;
  event.capture.reset();
  event.nodes.clear();
  // Work in streams may keep the old recording: who waits for it has it already.
  event.recorded = issue(lock, stream, Operation::Kind::marker, nullptr);
}

void event_query(cudaEvent_t handle) {
  Lock lock = lock_state();
  refuse_unsafe(lock);
  Event& event = event_of(handle);
  require(!event.capture, cudaErrorCapturedEvent);
  const int device = event.device;
  const Op op = event.recorded;
  require(Scheduler::get().query(lock, op), cudaErrorNotReady);
  require(!Device::get(device).faulted(), Device::get(device).fault());
}

void event_synchronize(cudaEvent_t handle) {
  Lock lock = lock_state();
  refuse_unsafe(lock);
  Event& event = event_of(handle);
  require(!event.capture, cudaErrorCapturedEvent);
  const int device = event.device;
  const Op op = event.recorded;
  Scheduler::get().wait(lock, op);
  require(!Device::get(device).faulted(), Device::get(device).fault());
}

float event_elapsed(cudaEvent_t start_handle, cudaEvent_t end_handle) {
  const Lock lock = lock_state();
  const Event &start = event_of(start_handle), &end = event_of(end_handle);
  for (const Event* event : {&start, &end}) {
    require(!event->capture, cudaErrorCapturedEvent);
    require(!(event->flags & cudaEventDisableTiming) && event->recorded, cudaErrorInvalidResourceHandle);
    require(event->recorded->done, cudaErrorNotReady);
    if (stream_check::on()) stream_check::known_to_host(*event->recorded);
  }
  return std::chrono::duration<float, std::milli>(end.recorded->ended - start.recorded->ended).count();
}

}  // namespace emulator::cuda
