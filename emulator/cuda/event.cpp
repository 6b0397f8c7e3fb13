// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <thread>
#include <unordered_set>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/ipc.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/timeline.h"

namespace emulator::cuda {
namespace {

std::unordered_set<const void*>& live_events() {
  static auto* const all = new std::unordered_set<const void*>;
  return *all;
}

/// Other processes see its number. Perhaps nothing here waits for it, so a thread of its own does.
void record_shared(Lock& lock, Stream& stream, Event& event) {
  SharedEvent::State& state = *event.shared->state;
  state.recorder.store(getpid());
  event.own_recording = ++state.begun;
  event.recorded = issue(lock, stream, Operation::Kind::device, [shared = event.shared, own = event.own_recording] {
    uint64_t before = shared->state->ended.load();
    while (before < own && !shared->state->ended.compare_exchange_weak(before, own)) {
    }
  });
  std::thread([op = event.recorded] {
    Lock inner = lock_state();
    scheduler().wait(inner, op);
  }).detach();
}

/// The last recording when another process has made it; 0: this process made it, or none did.
uint64_t recording_of_others(const Event& event) {
  const uint64_t last = event.shared ? event.shared->state->begun.load(std::memory_order_acquire) : 0;
  return last == event.own_recording || event.shared->has_ended(last) ? 0 : last;
}

}  // namespace

Event& event_of(cudaEvent_t handle) {
  require(live_events().contains(handle), cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Event*>(handle);
}

cudaEvent_t event_create(unsigned flags) {
  const Lock lock = lock_state();
  require((flags & ~7u) == 0);
  const bool shared = (flags & cudaEventInterprocess) != 0;
  require(!shared || (flags & cudaEventDisableTiming) != 0);
  auto* const event = new Event{flags, current_device(), nullptr, nullptr, {}, shared ? make_shared_event() : nullptr, 0};
  live_events().insert(event);
  return reinterpret_cast<cudaEvent_t>(event);
}

cudaEvent_t event_open(std::shared_ptr<SharedEvent> shared, int device) {
  const Lock lock = lock_state();
  require(device < Device::count(), cudaErrorInvalidDevice);
  auto* const event =
      new Event{cudaEventInterprocess | cudaEventDisableTiming, device, nullptr, nullptr, {}, std::move(shared), 0};
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
  // Work in streams may keep the old recording: waiters already hold it.
  if (event.shared) return record_shared(lock, stream, event);
  event.recorded = issue(lock, stream, Operation::Kind::marker, nullptr);
}

void event_query(cudaEvent_t handle) {
  Lock lock = lock_state();
  refuse_unsafe(lock);
  Event& event = event_of(handle);
  require(!event.capture, cudaErrorCapturedEvent);
  require(recording_of_others(event) == 0, cudaErrorNotReady);
  const int device = event.device;
  const Op op = event.recorded;
  require(scheduler().query(lock, op), cudaErrorNotReady);
  require(!Device::get(device).faulted(), Device::get(device).fault());
}

void event_synchronize(cudaEvent_t handle) {
  Lock lock = lock_state();
  refuse_unsafe(lock);
  Event& event = event_of(handle);
  require(!event.capture, cudaErrorCapturedEvent);
  const int device = event.device;
  const Op op = event.recorded;
  if (const uint64_t recording = recording_of_others(event)) {
    const std::shared_ptr<SharedEvent> shared = event.shared;
    lock.unlock();
    shared->wait(recording);
    return;
  }
  scheduler().wait(lock, op);
  require(!Device::get(device).faulted(), Device::get(device).fault());
}

std::function<void()> wait_for_others(const Event& event) {
  const uint64_t recording = recording_of_others(event);
  if (recording == 0) return nullptr;
  return [shared = event.shared, recording] { shared->wait(recording); };
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
  if (timeline::on()) return static_cast<float>(1e3 * (end.recorded->ends - start.recorded->ends));
  return std::chrono::duration<float, std::milli>(end.recorded->ended - start.recorded->ended).count();
}

}  // namespace emulator::cuda
