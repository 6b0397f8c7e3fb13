// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "emulator/cuda/graph.h"
#include "emulator/cuda/stream.h"

namespace emulator::cuda {

/// Streams that record their work into one graph.
struct Capture {
  uint64_t number = 0;
  std::shared_ptr<Graph> graph;
  bool own_graph = true;  ///< else: of cudaStreamBeginCaptureToGraph
  cudaStreamCaptureMode mode{};
  std::thread::id thread;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  std::vector<Node*> left;  ///< the last nodes of streams that were destroyed: the origin must wait for these too
  bool invalid = false, ended = false;
};

// Checks that calls make first; all under the state's lock.

/// A call on the legacy stream while a blocking stream captures: cudaErrorStreamCaptureImplicit. An invalidated
/// capture: cudaErrorStreamCaptureInvalidated.
void refuse_implicit(Stream& stream);
/// cudaErrorStreamCaptureUnsupported, and the capture is lost.
void refuse_while_capturing(Stream& stream);
/// Calls that may wait for all work (cudaMalloc, cudaEventQuery, …): by the modes of this thread and of the captures.
void refuse_unsafe(const Lock& lock);
/// The thread's mode becomes `mode`; returns the one before.
cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode);

void capture_work(Stream& stream, std::shared_ptr<const Work> work);
/// True: the stream captures and the call has been recorded.
bool capture_record(Stream& stream, Event& event, cudaEvent_t handle, unsigned flags);
bool capture_wait(Stream& stream, Event& event, cudaEvent_t handle, unsigned flags);
/// The stream is destroyed.
void abandon_capture(Stream& stream);

// The calls; they take the lock.
void begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
void begin_capture_to(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                      cudaStreamCaptureMode mode);
/// `wanted`: the program takes the graph; otherwise no graph may remain without an owner.
cudaGraph_t end_capture(cudaStream_t stream, bool wanted = true);
cudaStreamCaptureStatus capture_status(cudaStream_t stream);
struct CaptureInfo {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  size_t count = 0;

  /// Writes what a program asks for: pointers may be null, but for the status's.
  template <class Status, class Id, class Edge>
  void write(Status* to_status, Id* to_id, cudaGraph_t* to_graph, const cudaGraphNode_t** to_dependencies,
             const Edge** to_edges, size_t* to_count) const {
    *to_status = Status(status);
    if (to_id) *to_id = id;
    if (to_graph) *to_graph = graph;
    if (to_dependencies) *to_dependencies = dependencies;
    if (to_edges) *to_edges = nullptr;
    if (to_count) *to_count = count;
  }
};
CaptureInfo capture_info(cudaStream_t stream);
void update_capture(cudaStream_t stream, const cudaGraphNode_t* dependencies, size_t count, unsigned flags);

}  // namespace emulator::cuda
