// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime_api.h>

#include "kernels/error.h"

namespace weft::kernels::vendor {

/// Makes the device that of this thread's CUDA calls.
inline void select_device(int index) {
  const cudaError_t status = cudaSetDevice(index);
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the next call starts clean
  fail("cudaSetDevice: cuda:", index, ": ", cudaGetErrorString(status));
}

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
