// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace weft::profile {

enum class Category : uint8_t {
  part,        ///< a part of the program: TraceScope
  op,          ///< forward or backward of an op: OpScope
  kernel,      ///< a kernel contract, a transfer, or a graph's replay
  collective,  ///< a process group's, on the row of its communication thread
};

/// One thing that took time. Times are nanoseconds since the recording began.
struct Span {
  Category category = Category::part;
  bool backward = false;  ///< in the backward of an op
  int track = 0;          ///< index into Recording::tracks
  const char* name = "";
  const char* variant = "";  ///< a kernel's, see kernels/runtime/kernel_variant.h
  const char* op = "";       ///< a kernel's: the op that called it
  int64_t start = 0, end = 0;
  int64_t bytes = 0;  ///< a kernel's, see kernels/runtime/kernel_cost.h
  double flop = 0;

  /// `conv2d_forward`; `conv2d_forward_sm90` where other kernels than the plain ones of kernels/cuda computed it.
  std::string kernel() const { return *variant ? std::string(name) + '_' + variant : name; }
};

/// One line of the image. On one track spans nest or follow each other.
struct Track {
  std::string process;  ///< `threads`, or the device
  std::string name;     ///< the thread's or stream's
};

/// The bytes that a device's allocator held after one change.
struct MemorySample {
  Device device;
  int64_t time = 0;
  int64_t live = 0, cached = 0;  ///< bytes
};

/// A Profiler's events.
struct Recording {
  std::vector<Track> tracks;
  std::vector<Span> spans;  ///< in the order of their ends, track by track
  std::vector<MemorySample> memory;
  int64_t duration = 0;  ///< nanoseconds
};

}  // namespace weft::profile
