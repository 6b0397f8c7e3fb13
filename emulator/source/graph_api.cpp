// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: captured streams record launches, copies, fills and host functions with their arguments, and the order
// that streams and events give them; a launched graph runs them.
#include <algorithm>
#include <atomic>
#include <thread>

#include "emulator/source/runtime_api.h"
#include "emulator/source/stream.h"

namespace emulator::source {
namespace {

struct Node {
  Operation::Kind kind;
  Task work;
  std::vector<size_t> after;
};

thread_local api::cudaStreamCaptureMode thread_mode = api::cudaStreamCaptureModeGlobal;

}  // namespace

namespace api {

struct Graph {
  uint64_t number;
  std::vector<Stream*> streams;  // while they are captured; the first one began
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  std::vector<Node> nodes{};
  bool broken = false;
};

struct GraphExec {
  std::vector<Node> nodes;
  Op last;  // of its last launch: two of one graph come one after the other
};

}  // namespace api

namespace {

std::vector<api::Graph*>& live_captures() {  // of all threads, under the state's lock
  static auto& all = *new std::vector<api::Graph*>;
  return all;
}
thread_local std::vector<api::Graph*> captures;  // of this thread, under way

void add_to(std::vector<size_t>& tail, const std::vector<size_t>& nodes) {
  for (const size_t node : nodes)
    if (std::ranges::find(tail, node) == tail.end()) tail.push_back(node);
}

/// The nodes that no other one follows.
std::vector<size_t> leaves(const std::vector<Node>& nodes) {
  std::vector<bool> followed(nodes.size());
  for (const Node& node : nodes)
    for (const size_t before : node.after) followed[before] = true;
  std::vector<size_t> found;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!followed[i]) found.push_back(i);
  return found;
}

void end_capture(api::Graph* graph) {
  for (api::Stream* stream : graph->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  graph->streams.clear();
  std::erase(captures, graph);
  std::erase(live_captures(), graph);
}

}  // namespace

api::cudaError_t may_run_on(api::cudaStream_t stream) {
  if (is_captured(stream)) return stream->capture->broken ? api::cudaErrorStreamCaptureInvalidated : api::cudaSuccess;
  if (stream) return api::cudaSuccess;
  // The default stream waits for blocking streams, which cannot be done while one is captured.
  for (api::Graph* graph : captures)
    if (graph->streams.front()->blocking) {
      graph->broken = true;
      return api::cudaErrorStreamCaptureImplicit;
    }
  return api::cudaSuccess;
}

api::cudaError_t may_call_unsafe() {
  if (thread_mode == api::cudaStreamCaptureModeRelaxed) return api::cudaSuccess;
  api::cudaError_t status = api::cudaSuccess;
  for (api::Graph* graph : captures) {
    if (graph->mode == api::cudaStreamCaptureModeRelaxed) continue;
    graph->broken = true;
    status = api::cudaErrorStreamCaptureUnsupported;
  }
  return status;
}

void break_capture(api::cudaStream_t stream) {
  if (is_captured(stream)) stream->capture->broken = true;
}

void capture(api::Stream& stream, Operation::Kind kind, Task work) {
  std::vector<Node>& nodes = stream.capture->nodes;
  nodes.push_back({kind, std::move(work), std::move(stream.tail)});
  stream.tail = {nodes.size() - 1};
}

void capture_record(api::Stream& stream, api::Event& event) {
  event.capture = stream.capture->number;
  event.nodes = stream.tail;
}

api::cudaError_t capture_wait(api::cudaStream_t stream, const api::Event& event) {
  const Lock lock = lock_state();
  const auto found = std::ranges::find(live_captures(), event.capture, &api::Graph::number);
  if (!stream || found == live_captures().end() || (stream->capture && stream->capture != *found)) {
    break_capture(stream);
    return api::cudaErrorNotSupported;
  }
  if (!stream->capture) {
    stream->capture = *found;
    (*found)->streams.push_back(stream);
  }
  add_to(stream->tail, event.nodes);
  return api::cudaSuccess;
}

void leave_capture(api::Stream& stream) {
  api::Graph* const graph = stream.capture;
  if (!graph) return;
  graph->broken = true;
  if (graph->streams.front() == &stream) {
    end_capture(graph);
    delete graph;
  } else {
    std::erase(graph->streams, &stream);
  }
}

namespace api {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (!stream) return record_error(cudaErrorStreamCaptureUnsupported);  // the default stream
  if (stream->capture) return record_error(cudaErrorInvalidValue);
  static std::atomic<uint64_t> captured{0};
  const Lock lock = lock_state();
  stream->capture = new Graph{++captured, {stream}, mode, std::this_thread::get_id()};
  captures.push_back(stream->capture);
  live_captures().push_back(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!is_captured(stream) || stream->capture->streams.front() != stream)
    return record_error(cudaErrorStreamCaptureUnmatched);
  Graph* const captured = stream->capture;
  if (captured->mode != cudaStreamCaptureModeRelaxed && captured->thread != std::this_thread::get_id())
    return record_error(cudaErrorStreamCaptureWrongThread);
  const Lock lock = lock_state();
  const bool joined = std::ranges::all_of(leaves(captured->nodes), [&](size_t leaf) {
    return std::ranges::find(stream->tail, leaf) != stream->tail.end();
  });
  end_capture(captured);
  if (captured->broken || !joined) {
    const bool broken = captured->broken;
    delete captured;
    return record_error(broken ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
  }
  *graph = captured;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = nullptr;
  if (!graph) return record_error(cudaErrorInvalidValue);
  *exec = new GraphExec{graph->nodes, nullptr};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return record_error(cudaErrorInvalidValue);
  if (is_captured(stream)) {  // a child graph, which Weft has no use for
    break_capture(stream);
    return record_error(cudaErrorNotSupported);
  }
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return record_error(status);
  if (!asynchronous()) {
    for (const Node& node : exec->nodes)
      if (const cudaError_t status = run_now(node.work); status != cudaSuccess) return record_error(status);
    return cudaSuccess;
  }
  Lock lock = lock_state();
  Stream& into = stream_of(stream);
  std::vector<Op> before = everything_before(into), ops, ends;
  if (exec->last) before.push_back(exec->last);
  const auto issue = [&](Operation::Kind kind, Task work, const std::vector<Op>& after) {
    return scheduler().issue(lock, 0, into.number, kind, std::move(work), after);
  };
  for (const Node& node : exec->nodes) {
    std::vector<Op> after;
    for (const size_t i : node.after) after.push_back(ops[i]);
    ops.push_back(issue(node.kind, node.work, after.empty() ? before : after));
  }
  for (const size_t leaf : leaves(exec->nodes)) ends.push_back(ops[leaf]);
  exec->last = into.last = issue(Operation::Kind::marker, nullptr, ends.empty() ? before : ends);
  scheduler().step(lock);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (!exec) return record_error(cudaErrorInvalidValue);
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph) return record_error(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

}  // namespace api
}  // namespace emulator::source
