// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return runtime_call([&] { *stream = stream_create(0, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return runtime_call([&] { *stream = stream_create(flags, 0); });
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  return runtime_call([] {});
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    Stream &a = stream_of(to), &b = stream_of(from);
    a.policy = b.policy;
    a.window = b.window;
    a.domain = b.domain;
    a.priority = b.priority;
  });
}
cudaError_t cudaStreamGetAttribute(cudaStream_t handle, cudaStreamAttrID attribute, cudaStreamAttrValue* value) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    switch (attribute) {
      case cudaLaunchAttributeAccessPolicyWindow:
        *value = stream.window;
        return;
      case cudaLaunchAttributeSynchronizationPolicy:
        *value = stream.policy;
        return;
      case cudaLaunchAttributeMemSyncDomain:
        *value = stream.domain;
        return;
      case cudaLaunchAttributePriority:
        value->priority = stream.priority;
        return;
      default:
        fail(cudaErrorInvalidValue);
    }
  });
}
cudaError_t cudaStreamSetAttribute(cudaStream_t handle, cudaStreamAttrID attribute, const cudaStreamAttrValue* value) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    switch (attribute) {
      case cudaLaunchAttributeAccessPolicyWindow:
        stream.window = *value;
        return;
      case cudaLaunchAttributeSynchronizationPolicy:
        stream.policy = *value;
        return;
      case cudaLaunchAttributeMemSyncDomain:
        stream.domain = *value;
        return;
      case cudaLaunchAttributePriority:
        stream.priority = value->priority;
        return;
      default:
        fail(cudaErrorInvalidValue);
    }
  });
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t handle, void* memory, size_t, unsigned) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    stream_of(handle);
    require(pointer_attributes(memory).type != cudaMemoryTypeDevice);
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data, unsigned flags) {
  return runtime_call([&] {
    require(callback != nullptr && flags == 0);
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    refuse_while_capturing(stream);
    HostWork host;
    host.call = [=] { callback(handle, cudaSuccess, data); };
    submit(lock, stream, make_work(std::move(host), stream.device));
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return runtime_call([&] { begin_capture(stream, mode); });
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData*, size_t count, cudaStreamCaptureMode mode) {
  return runtime_call([&] { begin_capture_to(stream, graph, dependencies, count, mode); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return runtime_call([&] {
    if (graph) *graph = nullptr;
    const cudaGraph_t captured = end_capture(stream, graph != nullptr);
    if (graph) *graph = captured;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return runtime_call([&] { *status = capture_status(stream); });
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return runtime_call([&] { capture_info(stream).write(status, id, graph, dependencies, edges, count); });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return runtime_call([&] { *mode = exchange_mode(*mode); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return runtime_call([&] { *event = event_create(0); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return runtime_call([&] { *event = event_create(flags); });
}
