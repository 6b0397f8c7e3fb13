// SPDX-License-Identifier: Apache-2.0
#include "core/stream.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/capture.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/wrong_index.h"

namespace weft {
namespace {

constexpr int kMaxDevices = 64;

using Streams = std::array<std::array<void*, kMaxDevices>, 3>;

/// A thread's streams by kind and index; null: it has set none. Not the array itself: a library's thread-local memory
/// must fit into what the loader keeps for libraries that come late, 1,664 bytes in glibc.
thread_local Streams* own_streams = nullptr;

struct StreamsOwner {
  std::unique_ptr<Streams> streams = std::make_unique<Streams>();
  ~StreamsOwner() { own_streams = nullptr; }
};

void set_current_stream(Device device, void* stream) {
  if (!own_streams) {
    thread_local const StreamsOwner owner;
    own_streams = owner.streams.get();
  }
  (*own_streams)[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index)] = stream;
}

/// Streams that no Stream has now.
class SpareStreams {
 public:
  void* take(Device device, int priority) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<void*>& spare = spare_[{device.kind, device.index, priority}];
      if (!spare.empty()) {
        void* const handle = spare.back();
        spare.pop_back();
        return handle;
      }
    }
    return kernels::runtime(device.kind).create_stream(device.index, priority);
  }
  void put(Device device, int priority, void* handle) {
    const std::lock_guard lock(mutex_);
    spare_[{device.kind, device.index, priority}].push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<DeviceKind, int, int>, std::vector<void*>> spare_;
};

SpareStreams& spare_streams() {
  static SpareStreams& spare = *new SpareStreams;  // outlives every static object that holds a Stream
  return spare;
}

}  // namespace

void* current_stream(Device device) {
  WEFT_CHECK(device.index >= 0 && device.index < kMaxDevices, "stream: no such device: ", device);
  if (device.kind == DeviceKind::cpu || !own_streams) return nullptr;
  return (*own_streams)[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index)];
}

kernels::Queue current_queue(Device device) { return {device, current_stream(device)}; }

void synchronize(Device device) {
  refuse_while_capturing("synchronize", device);
  if (device.kind == DeviceKind::cpu) return;
  kernels::runtime(device.kind).synchronize_stream(device.index, current_stream(device));
  kernels::check_wrong_index(device);
}

Stream::Stream(Device device, int priority) : device_(device), priority_(priority) {
  if (device.kind != DeviceKind::cpu) handle_ = spare_streams().take(device, priority);
}
Stream::~Stream() {
  if (handle_) spare_streams().put(device_, priority_, handle_);
}
void Stream::synchronize() const {
  refuse_while_capturing("synchronize", device_);
  if (!handle_) return;
  kernels::runtime(device_.kind).synchronize_stream(device_.index, handle_);
  kernels::check_wrong_index(device_);
}

StreamGuard::StreamGuard(const Stream& stream) : device_(stream.device()), previous_(current_stream(device_)) {
  set_current_stream(device_, stream.handle());
}
StreamGuard::~StreamGuard() { set_current_stream(device_, previous_); }

Event::Event(Device device, bool timing) : device_(device) {
  if (device.kind != DeviceKind::cpu) handle_ = kernels::runtime(device.kind).create_event(device.index, timing);
}
Event::~Event() {
  if (handle_) kernels::runtime(device_.kind).destroy_event(handle_);
}
void Event::record(void* stream) {
  if (handle_) kernels::runtime(device_.kind).record_event(handle_, device_.index, stream);
}
void Event::block(void* stream) const {
  if (handle_) kernels::runtime(device_.kind).wait_event(device_.index, stream, handle_);
}
void Event::synchronize() const {
  refuse_while_capturing("synchronize", device_);
  if (!handle_) return;
  kernels::runtime(device_.kind).synchronize_event(handle_);
  kernels::check_wrong_index(device_);
}
bool Event::done() const { return !handle_ || kernels::runtime(device_.kind).query_event(handle_); }
float Event::elapsed_ms(const Event& later) const {
  WEFT_CHECK(handle_ && later.handle_, "event: timing needs a cuda device, got ", device_);
  return kernels::runtime(device_.kind).elapsed_ms(handle_, later.handle_);
}

}  // namespace weft
