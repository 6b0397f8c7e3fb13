// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: a captured stream records launches, copies and fills with their arguments, a launched graph runs them in
// the order in which they were recorded. One stream per capture: a fork into another stream by an event is refused.

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "kernels/error.h"
#include "kernels/simt/include/nvtx3/nvToolsExt.h"
#include "kernels/simt/runtime_api.h"
#include "kernels/simt/stream.h"
#include "kernels/simt/worker.h"

namespace weft::emulator {
namespace {

constexpr std::align_val_t kArgumentAlignment{64};  // of the strictest type that a kernel takes by value

struct FreeArguments {
  void operator()(void* bytes) const { ::operator delete(bytes, kArgumentAlignment); }
};

struct LaunchNode {
  Launch launch;
  std::string name;
  std::shared_ptr<void> arguments;
};
struct CopyNode {
  void* destination;
  const void* source;
  size_t bytes;
};
struct FillNode {
  void* destination;
  int byte;
  size_t bytes;
};
using Node = std::variant<LaunchNode, CopyNode, FillNode>;

thread_local api::cudaStreamCaptureMode thread_mode = api::cudaStreamCaptureModeGlobal;

}  // namespace

namespace api {

struct Graph {
  std::vector<Node> nodes;
  Stream* stream = nullptr;  // while it is captured
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool broken = false;
};

struct GraphExec {
  std::vector<Node> nodes;
};

}  // namespace api

namespace {

thread_local std::vector<api::Graph*> captures;  // of this thread, under way

api::cudaError_t run(const Node& node) {
  if (const auto* copy = std::get_if<CopyNode>(&node))
    return api::cudaMemcpy(copy->destination, copy->source, copy->bytes, api::cudaMemcpyDefault);
  if (const auto* fill = std::get_if<FillNode>(&node))
    return api::cudaMemset(fill->destination, fill->byte, fill->bytes);
  const auto& kernel = std::get<LaunchNode>(node);
  try {
    run_grid(kernel.launch);
  } catch (const Error& e) {
    const api::dim3 g = kernel.launch.grid, b = kernel.launch.block;
    fail(kernel.name, " in a graph: grid (", g.x, ",", g.y, ",", g.z, "), block (", b.x, ",", b.y, ",", b.z,
         "): ", e.what());
  }
  return api::cudaSuccess;
}

}  // namespace

api::cudaError_t may_run_on(api::cudaStream_t stream) {
  if (is_captured(stream)) return stream->capture->broken ? api::cudaErrorStreamCaptureInvalidated : api::cudaSuccess;
  if (stream) return api::cudaSuccess;
  // The default stream waits for blocking streams, which cannot be done while one is captured.
  for (api::Graph* graph : captures)
    if (graph->stream->blocking) {
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

void capture_launch(const Launch& launch) {
  std::shared_ptr<void> arguments(::operator new(launch.arguments_bytes, kArgumentAlignment), FreeArguments{});
  std::memcpy(arguments.get(), launch.arguments, launch.arguments_bytes);
  Launch kept = launch;
  kept.arguments = arguments.get();
  static_cast<api::Stream*>(launch.stream)
      ->capture->nodes.push_back(LaunchNode{kept, range_name, std::move(arguments)});
}

void capture_copy(api::cudaStream_t stream, void* destination, const void* source, size_t bytes) {
  stream->capture->nodes.push_back(CopyNode{destination, source, bytes});
}

void capture_fill(api::cudaStream_t stream, void* destination, int byte, size_t bytes) {
  stream->capture->nodes.push_back(FillNode{destination, byte, bytes});
}

namespace api {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (!stream) return record_error(cudaErrorStreamCaptureUnsupported);  // the default stream
  if (stream->capture) return record_error(cudaErrorInvalidValue);
  stream->capture = new Graph{{}, stream, mode, std::this_thread::get_id(), false};
  captures.push_back(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!is_captured(stream)) return record_error(cudaErrorStreamCaptureUnmatched);
  Graph* const captured = stream->capture;
  if (captured->mode != cudaStreamCaptureModeRelaxed && captured->thread != std::this_thread::get_id())
    return record_error(cudaErrorStreamCaptureWrongThread);
  stream->capture = nullptr;
  std::erase(captures, captured);
  captured->stream = nullptr;
  if (captured->broken) {
    delete captured;
    return record_error(cudaErrorStreamCaptureInvalidated);
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
  *exec = new GraphExec{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec) return record_error(cudaErrorInvalidValue);
  if (is_captured(stream)) {  // a child graph, which Weft has no use for
    break_capture(stream);
    return record_error(cudaErrorNotSupported);
  }
  for (const Node& node : exec->nodes)
    if (const cudaError_t status = run(node); status != cudaSuccess) return status;
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
}  // namespace weft::emulator
