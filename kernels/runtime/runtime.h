// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "kernels/device.h"

namespace weft::kernels {

/// Memory, streams and events of one kind of device. One object per kind: cpu/runtime.cpp and cuda/runtime.cu. Errors:
/// weft::Error with the device's own text.
class Runtime {
 public:
  virtual ~Runtime() = default;

  /// 0 without a device or a driver. Errors: the driver cannot be used (e.g. too old for this build).
  virtual int device_count() = 0;
  /// `NVIDIA H200, 132 SMs, 139 GiB` / `emulated GPU on 2 threads` / the CPU's model name.
  virtual std::string describe(int index) = 0;
  /// `GPU-5aa0c5b1-…` as nvidia-smi prints it: the same in every process, whatever the device's index there. Empty for
  /// the CPU and the emulated GPU, which any number of processes may share.
  virtual std::string identity(int index) = 0;
  /// Free and total bytes of the device's memory.
  virtual void memory_info(int index, size_t& free_bytes, size_t& total_bytes) = 0;

  /// Allocates memory, at least 256-byte aligned (64 on the CPU). Returns nullptr if out of memory.
  virtual void* allocate(int index, size_t bytes) = 0;
  /// Never throws, like all functions that release: destructors call them during error handling. A failed device
  /// reports its error at the next call.
  virtual void release(int index, void* memory) noexcept = 0;
  /// Host memory that the device can copy from and to without staging.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  /// Enqueues a copy between any of host, pinned and this device's memory.
  virtual void copy(int index, void* destination, const void* source, size_t bytes, void* stream) = 0;
  /// Whether a copy from pageable host memory has read the source when the call returns. A GPU that uses the host's
  /// page tables (GH200) may read later.
  virtual bool stages_pageable_memory(int index) = 0;
  virtual void fill_bytes(int index, void* destination, int byte, size_t bytes, void* stream) = 0;

  /// `priority`: streams with lower numbers run first, 0 is the default; an unsupported priority is replaced by the
  /// nearest.
  virtual void* create_stream(int index, int priority = 0) = 0;
  virtual void destroy_stream(int index, void* stream) noexcept = 0;
  virtual void synchronize_stream(int index, void* stream) = 0;
  virtual void synchronize_device(int index) = 0;

  virtual void* create_event(int index, bool timing) = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record_event(void* event, int index, void* stream) = 0;
  /// Later work on `stream` waits for the event.
  virtual void wait_event(int index, void* stream, void* event) = 0;
  virtual bool query_event(void* event) = 0;
  virtual void synchronize_event(void* event) = 0;
  /// Milliseconds between two recorded timing events.
  virtual float elapsed_ms(void* start, void* stop) = 0;

  /// Starts a capture: work on `stream` (not the default stream) is recorded instead of run, and this thread must not
  /// wait for the device. Other threads are unaffected. Errors: the device has no graphs (the CPU).
  virtual void begin_capture(int index, void* stream) = 0;
  /// Ends the capture and instantiates its graph. Errors: some operation cannot be captured.
  virtual void* end_capture(int index, void* stream) = 0;
  /// Ends a failed capture.
  virtual void abandon_capture(int index, void* stream) noexcept = 0;
  virtual void launch_graph(int index, void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;
};

Runtime& runtime(DeviceKind kind);
/// Replaces the kind's runtime, for tests of the host's calls; nullptr restores the original. A CachingAllocator keeps
/// the runtime with which it was constructed.
void replace_runtime(DeviceKind kind, Runtime* runtime);

namespace cpu {
Runtime& runtime();
}
namespace cuda {
Runtime& runtime();
}

}  // namespace weft::kernels
