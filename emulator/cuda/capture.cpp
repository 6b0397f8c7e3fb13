// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/capture.h"

#include <algorithm>
#include <unordered_set>

#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"

namespace emulator::cuda {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::set<std::shared_ptr<Capture>>& live_captures() {
  static auto* const all = new std::set<std::shared_ptr<Capture>>;
  return *all;
}

[[noreturn]] void lose(Capture& capture, cudaError_t code) {
  capture.invalid = true;
  fail(code);
}

void join(Stream& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  capture->streams.insert(&stream);
}

void unite(std::vector<Node*>& nodes, const std::vector<Node*>& more) {
  for (Node* node : more)
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
}

/// Ends the capture for all streams.
void finish(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (Stream* stream : capture->streams) {
    stream->capture.reset();
    stream->tail.clear();
  }
  capture->streams.clear();
  live_captures().erase(capture);
}

void begin(Stream& stream, cudaStreamCaptureMode mode, std::shared_ptr<Graph> graph, bool own) {
  static uint64_t number = 0;
  require(stream.role != Stream::Role::legacy, cudaErrorStreamCaptureUnsupported);
  require(!stream.capture, cudaErrorIllegalState);
  require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed);
  auto capture = std::make_shared<Capture>();
  capture->number = ++number;
  capture->graph = std::move(graph);
  capture->own_graph = own;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  live_captures().insert(capture);
  join(stream, capture);
  stream.tail.clear();
}

}  // namespace

void refuse_implicit(Stream& stream) {
  if (stream.capture) {
    require(!stream.capture->invalid, cudaErrorStreamCaptureInvalidated);
    return;
  }
  if (stream.role != Stream::Role::legacy) return;
  for (const Stream* other : Device::get(stream.device).streams)
    if (other->capture && other->blocking()) lose(*other->capture, cudaErrorStreamCaptureImplicit);
}

void refuse_while_capturing(Stream& stream) {
  if (stream.capture) {
    require(!stream.capture->invalid, cudaErrorStreamCaptureInvalidated);
    lose(*stream.capture, cudaErrorStreamCaptureUnsupported);
  }
  refuse_implicit(stream);
}

void refuse_unsafe(const Lock&) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return;
  for (const std::shared_ptr<Capture>& capture : live_captures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    if ((own && capture->mode != cudaStreamCaptureModeRelaxed) ||
        (!own && thread_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal)) {
      lose(*capture, cudaErrorStreamCaptureUnsupported);
    }
  }
}

cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode) {
  require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed);
  return std::exchange(thread_mode, mode);
}

void capture_work(Stream& stream, std::shared_ptr<const Work> work) {
  Node* const node = stream.capture->graph->add(std::move(work), stream.tail);
  stream.tail = {node};
}

bool capture_record(Stream& stream, Event& event, cudaEvent_t handle, unsigned flags) {
  if (!stream.capture) {
    require(!(flags & cudaEventRecordExternal), cudaErrorIllegalState);
    return false;
  }
  if (flags & cudaEventRecordExternal) {
    capture_work(stream, make_work(RecordWork{handle}, stream.device));
    return true;
  }
  event.recorded.reset();
  event.capture = stream.capture;
  event.nodes = stream.tail;
  return true;
}

bool capture_wait(Stream& stream, Event& event, cudaEvent_t handle, unsigned flags) {
  if (stream.capture && (flags & cudaEventWaitExternal)) {
    capture_work(stream, make_work(WaitWork{handle}, stream.device));
    return true;
  }
  require(!(flags & cudaEventWaitExternal), cudaErrorIllegalState);
  if (!event.capture) {
    if (!stream.capture) return false;
    if (!event.recorded) return true;  // never recorded: there is nothing to wait for
    lose(*stream.capture, cudaErrorStreamCaptureIsolation);
  }
  if (event.capture->ended) {
    if (stream.capture) lose(*stream.capture, cudaErrorStreamCaptureIsolation);
    fail(cudaErrorCapturedEvent);
  }
  require(!event.capture->invalid, cudaErrorStreamCaptureInvalidated);
  if (!stream.capture) {
    if (stream.role == Stream::Role::legacy) lose(*event.capture, cudaErrorStreamCaptureImplicit);
    join(stream, event.capture);
    stream.tail = event.nodes;
    return true;
  }
  if (stream.capture != event.capture) {
    event.capture->invalid = true;
    lose(*stream.capture, cudaErrorStreamCaptureMerge);
  }
  unite(stream.tail, event.nodes);
  return true;
}

void abandon_capture(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  capture->streams.erase(&stream);
  stream.capture.reset();
  if (capture->origin != &stream) {
    capture->left.insert(capture->left.end(), stream.tail.begin(), stream.tail.end());
    return;
  }
  capture->invalid = true;
  finish(capture);
}

void begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Lock lock = lock_state();
  begin(stream_of(handle), mode, make_graph(), true);
}

void begin_capture_to(cudaStream_t handle, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                      cudaStreamCaptureMode mode) {
  const Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  std::vector<Node*> tail;
  for (size_t i = 0; i < count; ++i) tail.push_back(&node_of(dependencies[i]));
  begin(stream, mode, graph_of(graph).shared_from_this(), false);
  stream.tail = std::move(tail);
}

cudaGraph_t end_capture(cudaStream_t handle, bool wanted) {
  const Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  require(stream.capture != nullptr, cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream.capture;
  require(wanted || !capture->own_graph);  // it would be nobody's
  if (capture->origin != &stream) lose(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    fail(cudaErrorStreamCaptureWrongThread);
  }
  // All nodes that the origin has waited for, directly or not.
  std::unordered_set<const Node*> reached;
  std::vector<Node*> open = stream.tail;
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    if (reached.insert(node).second) open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  bool joined = true;
  for (const Stream* other : capture->streams)
    for (const Node* node : other->tail) joined = joined && reached.contains(node);
  for (const Node* node : capture->left) joined = joined && reached.contains(node);
  const bool invalid = capture->invalid;
  finish(capture);
  require(!invalid, cudaErrorStreamCaptureInvalidated);
  require(joined, cudaErrorStreamCaptureUnjoined);
  return capture->own_graph ? adopt(capture->graph) : handle_of(*capture->graph);
}

cudaStreamCaptureStatus capture_status(cudaStream_t handle) {
  const Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  if (stream.role == Stream::Role::legacy) refuse_implicit(stream);
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

CaptureInfo capture_info(cudaStream_t handle) {
  CaptureInfo info;
  info.status = capture_status(handle);
  if (info.status == cudaStreamCaptureStatusNone) return info;
  const Lock lock = lock_state();
  const Stream& stream = stream_of(handle);
  info.id = stream.capture->number;
  info.graph = handle_of(*stream.capture->graph);
  info.dependencies = reinterpret_cast<const cudaGraphNode_t*>(stream.tail.data());
  info.count = stream.tail.size();
  return info;
}

void update_capture(cudaStream_t handle, const cudaGraphNode_t* dependencies, size_t count, unsigned flags) {
  const Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  require(stream.capture != nullptr, cudaErrorIllegalState);
  require(!stream.capture->invalid, cudaErrorStreamCaptureInvalidated);
  require(flags <= cudaStreamSetCaptureDependencies);
  std::vector<Node*> nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(&node_of(dependencies[i]));
    require(nodes.back()->graph == stream.capture->graph.get());
  }
  if (flags == cudaStreamSetCaptureDependencies) stream.tail.clear();
  unite(stream.tail, nodes);
}

}  // namespace emulator::cuda
