// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/ipc.h"

#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  return runtime_call([&] { *handle = ipc_export(static_cast<const void*>(memory)); });
}
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags) {
  return runtime_call([&] { *memory = ipc_open(handle, flags); });
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return runtime_call([&] { ipc_close(memory); });
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return runtime_call([&] { *handle = ipc_export(event); });
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return runtime_call([&] { *event = ipc_open(handle); });
}
