// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

Context& context_of(CUcontext handle) {
  require(handle != nullptr, cudaErrorDeviceUninitialized);
  return *reinterpret_cast<Context*>(handle);
}

}  // namespace

CUresult cuInit(unsigned flags) {
  return call([&] {
    require(flags == 0);
    Device::get(0);
  });
}
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult code, const char** name) {
  // The driver's names are those of cuda.h.
  switch (code) {
#define NAME(code) \
  case code:       \
    *name = #code; \
    return CUDA_SUCCESS;
#include "emulator/cuda/driver/error_names.inc"
#undef NAME
    default:
      *name = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuGetErrorString(CUresult code, const char** text) {
  *text = error_string(int(code));
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* handle) {
  return call([&] {
    void* const added = add_log_callback(reinterpret_cast<LogCallback>(callback), data);
    if (handle) *handle = static_cast<CUlogsCallbackHandle>(added);
  });
}
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  return call([&] { remove_log_callback(handle); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call([&] { *device = Device::get(ordinal).ordinal(); });
}
CUresult cuDeviceGetCount(int* count) {
  return call([&] { *count = Device::count(); });
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return call([&] {
    require(length > 0);
    const std::string_view text = Device::get(device).gpu().name;
    name[text.copy(name, size_t(length) - 1)] = 0;
  });
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return call([&] {
    const auto bytes = Device::get(device).uuid();
    std::memcpy(uuid->bytes, bytes.data(), bytes.size());
  });
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return call([&] {
    cudaDeviceProp properties;
    device_properties(Device::get(device), properties);
    *bytes = properties.totalGlobalMem;
  });
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call([&] {
    switch (int(attribute)) {
      // The driver's own, which the runtime does not number.
      case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
        *value = Device::get(device).gpu().major >= 9;
        return;
      case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
        *value = 1;
        return;
      default:
        require(device_attribute(Device::get(device), int(attribute), *value));
    }
  });
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return call([&] {
    *major = Device::get(device).gpu().major;
    *minor = Device::get(device).gpu().minor;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call([&] {
    Device::get(device).active = true;
    *context = reinterpret_cast<CUcontext>(primary_context(device));
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return call([&] { Device::get(device); });
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return call([&] { device_reset(device); });
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return call([&] { Device::get(device).flags = flags; });
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call([&] {
    *flags = Device::get(device).flags;
    *active = Device::get(device).active;
  });
}
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags, CUdevice device) {
  return call([&] {
    static uint64_t created = 1000;
    auto* const made = new Context{Device::get(device).ordinal(), flags, false, ++created};
    context_stack().push_back(made);
    *context = reinterpret_cast<CUcontext>(made);
  });
}
#undef cuCtxCreate
WEFT_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v4(context, nullptr, flags, device);
}
CUresult cuCtxDestroy(CUcontext handle) {
  return call([&] {
    Context& context = context_of(handle);
    require(!context.primary, cudaErrorDeviceUninitialized);
    {
      Lock lock = lock_state();
      device_synchronize(lock, context.device);
    }
    std::erase(context_stack(), &context);
    delete &context;
  });
}
CUresult cuCtxPushCurrent(CUcontext context) {
  return call([&] { context_stack().push_back(&context_of(context)); });
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  return call([&] {
    require(!context_stack().empty(), cudaErrorDeviceUninitialized);
    if (context) *context = reinterpret_cast<CUcontext>(context_stack().back());
    context_stack().pop_back();
  });
}
CUresult cuCtxSetCurrent(CUcontext context) {
  return call([&] {
    auto& stack = context_stack();
    if (!context) {
      if (!stack.empty()) stack.pop_back();
    } else if (stack.empty()) {
      stack.push_back(&context_of(context));
    } else {
      stack.back() = &context_of(context);
    }
  });
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  return call(
      [&] { *context = context_stack().empty() ? nullptr : reinterpret_cast<CUcontext>(context_stack().back()); });
}
CUresult cuCtxGetDevice(CUdevice* device) {
  return call([&] {
    require(!context_stack().empty(), cudaErrorDeviceUninitialized);
    *device = current_device();
  });
}
CUresult cuCtxGetFlags(unsigned* flags) {
  return call([&] { *flags = Device::current().flags; });
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return call([&] {
    *id = context ? context_of(context).number
                  : (context_stack().empty() ? primary_context(0) : context_stack().back())->number;
  });
}
CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  return call([&] { *version = 3020; });
}
#undef cuCtxSynchronize
CUresult cuCtxSynchronize() {
  return call([] { device_synchronize(); });
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return call([&] {
    require(limit < CU_LIMIT_MAX, cudaErrorUnsupportedLimit);
    Device::current().limits[size_t(limit)] = value;
  });
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return call([&] {
    require(limit < CU_LIMIT_MAX, cudaErrorUnsupportedLimit);
    *value = Device::current().limits[size_t(limit)];
  });
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return call([&] { *config = CU_FUNC_CACHE_PREFER_NONE; });
}
CUresult cuCtxSetCacheConfig(CUfunc_cache) {
  return call([] {});
}
CUresult cuCtxResetPersistingL2Cache() {
  return call([] {});
}
WEFT_EXPORT CUresult cuProfilerStart() {
  return call([] {});
}
WEFT_EXPORT CUresult cuProfilerStop() {
  return call([] {});
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  return call([&] {
    require(Device::get(device).ordinal() != Device::get(peer).ordinal(), cudaErrorInvalidDevice);
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
  });
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}
CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags) {
  return call([&] {
    require(flags == 0);
    const Lock lock = lock_state();
    require(Device::current().peers.insert(context_of(context).device).second, cudaErrorPeerAccessAlreadyEnabled);
  });
}
CUresult cuCtxDisablePeerAccess(CUcontext context) {
  return call([&] {
    const Lock lock = lock_state();
    require(Device::current().peers.erase(context_of(context).device) == 1, cudaErrorPeerAccessNotEnabled);
  });
}
