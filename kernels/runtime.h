// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "kernels/device.h"

namespace weft::kernels {

/// A kind of device below the kernels: memory, streams and events. One object per kind;
/// cpu/runtime.cpp and cuda/runtime.cu. Errors: weft::Error with the device's own text.
class Runtime {
 public:
  virtual ~Runtime() = default;

  /// 0 without a device or a driver. Errors: there is a driver that cannot be used (too old for this build, for one).
  virtual int device_count() = 0;
  /// `NVIDIA H200, 132 SMs, 139 GiB` / `emulated GPU on 2 threads` / the CPU's model name.
  virtual std::string describe(int index) = 0;
  /// `GPU-5aa0c5b1-…` as nvidia-smi prints it: the same for every process that sees this device, whatever number it has
  /// there. Empty for the CPU and the emulated GPU, which any number of processes may share.
  virtual std::string identity(int index) = 0;
  /// Free and total bytes of the device's memory.
  virtual void memory_info(int index, size_t& free_bytes, size_t& total_bytes) = 0;

  /// Raw memory, at least 256-byte aligned (64 on the CPU). Returns nullptr when there is none left.
  virtual void* allocate(int index, size_t bytes) = 0;
  /// Throws nothing, like all that releases something: destructors call it while an error is under way. A device that
  /// has failed reports it at the next call.
  virtual void release(int index, void* memory) noexcept = 0;
  /// Host memory that the device can copy from and to without staging.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  /// Enqueues a copy between any of host, pinned and this device's memory.
  virtual void copy(int index, void* destination, const void* source, size_t bytes, void* stream) = 0;
  /// True where a copy from pageable host memory has read it when the call returns. A GPU that reads the host's page
  /// tables itself (GH200) may read later.
  virtual bool stages_pageable_memory(int index) = 0;
  virtual void fill_bytes(int index, void* destination, int byte, size_t bytes, void* stream) = 0;

  /// `priority`: streams of a lower number are served first, 0 is the usual one; a priority that the device lacks is
  /// replaced by the nearest.
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

  /// From here on work on `stream` (not the default one) is recorded instead of run, and this thread must not wait for
  /// the device. Other threads are not touched. Errors: the device has no graphs (the CPU).
  virtual void begin_capture(int index, void* stream) = 0;
  /// Ends the capture and makes its graph ready to be launched. Errors: something was done that cannot be captured.
  virtual void* end_capture(int index, void* stream) = 0;
  /// Ends a capture that has failed.
  virtual void abandon_capture(int index, void* stream) noexcept = 0;
  virtual void launch_graph(int index, void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;
};

Runtime& runtime(DeviceKind kind);
/// Replaces the kind's runtime, for tests of the host's calls; nullptr: its own again. A
/// CachingAllocator keeps the runtime it was made with.
void replace_runtime(DeviceKind kind, Runtime* runtime);

namespace cpu {
Runtime& runtime();
}
namespace cuda {
Runtime& runtime();
}

}  // namespace weft::kernels
