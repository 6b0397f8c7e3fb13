// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/device.h"

// The parts of a training step use this to work in graphs (core/graph.h).

namespace weft {

/// True while this thread captures a graph on the device: work is recorded, not run.
bool is_capturing(Device device);

/// True once any thread has captured a graph: from then on a replay may read or write memory that looks free to move.
bool has_captured();

/// The number of the graph that this thread captures, on whatever device; 0 outside of a capture.
uint64_t capture_number();

/// Throws `what: needs the host, …` while this thread captures a graph on the device: what a replay could not repeat.
void refuse_while_capturing(const char* what, Device device);

/// Host work that belongs to each run of a step (a counter on the host): done now, or, inside a capture, with each
/// replay of the graph. Objects that `work` uses must outlive the graph.
void on_each_run(std::function<void()> work);

/// Inside a capture: `check` runs ahead of each replay and throws where the step is another one by now. Else nothing.
void check_before_replay(std::function<void()> check);

namespace capture_detail {

/// A capture under way on this thread.
struct Capture {
  Device device;
  std::vector<std::function<void()>> each_run;
  uint64_t number = 0;
  std::vector<std::function<void()>> checks;
};

/// Makes `capture` the thread's own until the guard goes. Errors: there is one already.
class CaptureGuard {
 public:
  explicit CaptureGuard(Capture& capture);
  ~CaptureGuard();
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
};

}  // namespace capture_detail
}  // namespace weft
