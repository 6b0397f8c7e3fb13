// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>

#include "kernels/simt/runtime_api.h"

namespace weft::emulator::api {

struct Stream {
  bool blocking = true;      ///< ordered with the default stream
  Graph* capture = nullptr;  ///< what its work goes into while it is captured
};

struct Event {
  bool timing = true;
  bool recorded = false;
  bool captured = false;  ///< last recorded in a captured stream: nothing to wait for
  std::chrono::steady_clock::time_point time{};
};

/// Remembers the error for cudaGetLastError.
cudaError_t record_error(cudaError_t error);

}  // namespace weft::emulator::api

namespace weft::emulator {

// What the calls of runtime_api.cpp ask before they do their work (graph_api.cpp). As on the device, a call that a
// capture does not allow breaks it: cudaStreamEndCapture will say so too.

/// Work for `stream`: cudaSuccess to run it now, or the error it meets.
api::cudaError_t may_run_on(api::cudaStream_t stream);
/// A call that is no part of a stream's work and cannot be recorded: cudaMalloc, cudaFree, waiting.
api::cudaError_t may_call_unsafe();

/// Whether the stream's work is recorded at present.
inline bool is_captured(api::cudaStream_t stream) { return stream && stream->capture; }
void capture_launch(const Launch& launch);
void capture_copy(api::cudaStream_t stream, void* destination, const void* source, size_t bytes);
void capture_fill(api::cudaStream_t stream, void* destination, int byte, size_t bytes);
void break_capture(api::cudaStream_t stream);

}  // namespace weft::emulator
