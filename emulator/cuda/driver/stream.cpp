// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

/// The host's threads, other streams and kernels change the value without notice, so it is polled.
template <class T>
bool reached(const T* where, T value, unsigned flags) {
  const T now = std::atomic_ref<const T>(*where).load(std::memory_order_acquire);
  switch (flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH}) {
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return ~(now | value) != 0;
    default:
      return std::make_signed_t<T>(now - value) >= 0;
  }
}

template <class T>
CUresult wait_value(CUstream handle, CUdeviceptr where, T value, unsigned flags) {
  return call([&] {
    require(where % sizeof(T) == 0);
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    // On a thread of its own: the write may come from another stream of this device.
    HostWork host;
    host.call = [=] {
      while (!reached(static_cast<T*>(pointer(where)), value, flags)) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    };
    submit(lock, stream, make_work(std::move(host), stream.device));
  });
}

template <class T>
CUresult write_value(CUstream handle, CUdeviceptr where, T value) {
  return call([&] {
    require(where % sizeof(T) == 0);
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    const auto write = [=] {
      std::atomic_ref<T>(*static_cast<T*>(pointer(where))).store(value, std::memory_order_release);
    };
    submit(lock, stream, make_work(CallWork{write}, stream.device));
  });
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return call([&] { *stream = stream_create(flags, 0); });
}
WEFT_EXPORT CUresult(cuStreamGetCtx)(CUstream handle, CUcontext* context) {
  return call([&] {
    const Lock lock = lock_state();
    *context = reinterpret_cast<CUcontext>(primary_context(stream_of(handle).device));
  });
}
CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  return call([&] {
    require(callback != nullptr && flags == 0);
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    refuse_while_capturing(stream);
    HostWork host;
    host.call = [=] { callback(handle, CUDA_SUCCESS, data); };
    submit(lock, stream, make_work(std::move(host), stream.device));
  });
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr where, cuuint32_t value, unsigned flags) {
  return wait_value<uint32_t>(stream, where, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr where, cuuint64_t value, unsigned flags) {
  return wait_value<uint64_t>(stream, where, value, flags);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr where, cuuint32_t value, unsigned) {
  return write_value<uint32_t>(stream, where, value);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr where, cuuint64_t value, unsigned) {
  return write_value<uint64_t>(stream, where, value);
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return call([&] { *event = event_create(flags); });
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return call([&] { begin_capture(stream, cudaStreamCaptureMode(mode)); });
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return call([&] {
    *graph = nullptr;
    *graph = end_capture(stream);
  });
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call([&] { *status = CUstreamCaptureStatus(capture_status(stream)); });
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  return call([&] { capture_info(stream).write(status, id, graph, dependencies, edges, count); });
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call([&] { *mode = CUstreamCaptureMode(exchange_mode(cudaStreamCaptureMode(*mode))); });
}

/// Before CUDA 12.3 there were no data of edges.
WEFT_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                               CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
