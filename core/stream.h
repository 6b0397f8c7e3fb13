// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/runtime/queue.h"

namespace weft {

/// The stream on which this thread's work for `device` is enqueued; null (the device's default stream) at first.
void* current_stream(Device device);
kernels::Queue current_queue(Device device);

/// Waits for everything enqueued on the device's current stream of this thread. Errors, as of every wait for a device:
/// a kernel met a label or position out of range meanwhile (kernels/runtime/wrong_index.h).
void synchronize(Device device);

/// A stream of its own on a device (nothing on the CPU) until the object goes; another Stream may get the device's
/// stream then. The device's stream is never destroyed: the allocator queries the stream while tensors that used it
/// live.
class Stream {
 public:
  /// `priority`: work of a stream of a lower number starts first where both could; 0 is usual, GPUs offer -5 to 0.
  explicit Stream(Device device, int priority = 0);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Device device() const { return device_; }
  void* handle() const { return handle_; }
  void synchronize() const;

 private:
  Device device_;
  int priority_;
  void* handle_ = nullptr;
};

/// Makes `stream` the thread's current one for its device until the guard goes.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  void* previous_;
};

/// A mark in a stream: other streams and the host can wait for it. With `timing`, elapsed_ms works.
class Event {
 public:
  explicit Event(Device device, bool timing = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(void* stream);       ///< after all work that the stream has so far
  void block(void* stream) const;  ///< later work on `stream` waits for this event
  void synchronize() const;
  bool done() const;  ///< asks without waiting
  /// Milliseconds from this event to `later`; both with timing, both done.
  float elapsed_ms(const Event& later) const;

 private:
  Device device_;
  void* handle_ = nullptr;
};

}  // namespace weft
