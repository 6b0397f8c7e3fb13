// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime_api.h>

namespace weft::kernels::vendor {

/// Is a graph captured on the stream?
inline bool is_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status) != cudaSuccess) cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

/// While it lives, this thread may load code and obtain memory although a graph is captured: a library's handle or plan
/// that is made at that moment is no part of the graph.
class UnsafeCallsAllowed {
 public:
  UnsafeCallsAllowed() { exchange(); }
  ~UnsafeCallsAllowed() { exchange(); }
  UnsafeCallsAllowed(const UnsafeCallsAllowed&) = delete;
  UnsafeCallsAllowed& operator=(const UnsafeCallsAllowed&) = delete;

 private:
  void exchange() {
    if (cudaThreadExchangeStreamCaptureMode(&mode_) != cudaSuccess) cudaGetLastError();
  }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace weft::kernels::vendor
