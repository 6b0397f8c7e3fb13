// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/ipc.h"

#include <cstring>

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

template <class To, class From>
To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
  return call([&] { *handle = bits<CUipcMemHandle>(ipc_export(static_cast<const void*>(pointer(memory)))); });
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* memory, CUipcMemHandle handle, unsigned flags) {
  return call([&] { *memory = address(ipc_open(bits<cudaIpcMemHandle_t>(handle), flags)); });
}
CUresult cuIpcCloseMemHandle(CUdeviceptr memory) {
  return call([&] { ipc_close(pointer(memory)); });
}
CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return call([&] { *handle = bits<CUipcEventHandle>(ipc_export(static_cast<cudaEvent_t>(event))); });
}
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return call([&] { *event = ipc_open(bits<cudaIpcEventHandle_t>(handle)); });
}
