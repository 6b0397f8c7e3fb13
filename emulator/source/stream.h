// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulator/machine/scheduler.h"
#include "emulator/source/runtime_api.h"

namespace emulator::source::api {

struct Stream {
  bool blocking = true;      ///< ordered with the default stream
  uint64_t number = 0;       ///< in order of creation; 0: the default stream
  Op last;                   ///< all that was issued has ended when this one has
  Graph* capture = nullptr;  ///< the graph of its work while it is captured
  std::vector<size_t> tail;  ///< while it is captured: the nodes that its next one follows
};

struct Event {
  bool timing = true;
  Op recorded;                ///< nullptr: never
  uint64_t capture = 0;       ///< the capture that it was last recorded in, where there is nothing to wait for
  std::vector<size_t> nodes;  ///< of that capture
};

/// Remembers the error for cudaGetLastError.
cudaError_t record_error(cudaError_t error);

}  // namespace emulator::source::api

namespace emulator::source {

using Task = std::function<void()>;

/// Do calls return before their work has ended? Then the machine's scheduler runs it, by set_stream_order().
bool asynchronous();
/// Does the work now, or puts it into its stream. cudaErrorLaunchFailure when it is known to have failed.
/// `wait`: returns when it has ended, and reports other errors, too.
api::cudaError_t submit(api::cudaStream_t stream, Operation::Kind kind, Task work, bool wait = false);
/// A kernel, with copies of its arguments; `where` follows its name in errors.
Task kernel_task(const Launch& launch, const char* where);
/// Runs `work`; keeps the text of its failure for cudaGetErrorString.
api::cudaError_t run_now(const Task& work);
/// Failures since the last report, kept for cudaGetErrorString.
api::cudaError_t told();
/// Of the calling thread.
const std::string& failure_text();
/// The operation that new work in the stream follows.
std::vector<Op> everything_before(api::Stream& stream);
api::Stream& stream_of(api::cudaStream_t stream);
Scheduler& scheduler();
/// Returns when all that was issued has ended.
void finish_streams();

// Checks that the calls of runtime_api.cpp and stream.cpp make first (graph_api.cpp). As on the device, a
// call that a capture does not allow breaks it: cudaStreamEndCapture will fail, too.

/// Work for `stream`: cudaSuccess to run it now, or the error it meets.
api::cudaError_t may_run_on(api::cudaStream_t stream);
/// A call outside a stream's work, which cannot be recorded: cudaMalloc, cudaFree, waiting.
api::cudaError_t may_call_unsafe();

/// Whether the stream's work is recorded at present.
inline bool is_captured(api::cudaStream_t stream) { return stream && stream->capture; }
void capture(api::Stream& stream, Operation::Kind kind, Task work);
void capture_record(api::Stream& stream, api::Event& event);
/// Takes an event of a capture into the stream, and the stream into the capture.
api::cudaError_t capture_wait(api::cudaStream_t stream, const api::Event& event);
void break_capture(api::cudaStream_t stream);
/// The stream is about to go.
void leave_capture(api::Stream& stream);

}  // namespace emulator::source
