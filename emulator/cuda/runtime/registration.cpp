// SPDX-License-Identifier: Apache-2.0
// nvcc's host code calls these before main() and around `<<<>>>` (crt/host_runtime.h, crt/device_functions.h).
#include <utility>

#include "emulator/cuda/runtime/call.h"
#include "emulator/machine/call_site.h"
#include "emulator/machine/per_thread.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
using Configurations = std::vector<Configuration>;
/// The next launch is that of `<<<>>>`, which returns no error.
thread_local bool of_syntax = false;

std::string described(const void* kernel, dim3 grid, dim3 block, size_t shared) {
  std::string name = "a function that is no kernel";
  const cudaError_t found = code_of([&] { name = function_name(kernel_of(kernel).name.c_str()); });
  return found == cudaSuccess ? cat(name, "<<<(", grid.x, ",", grid.y, ",", grid.z, "), (", block.x, ",", block.y, ",",
                                    block.z, "), ", shared, ">>>")
                              : name;
}

cudaError_t launch(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream,
                   bool cooperative) {
  const bool unreturned = std::exchange(of_syntax, false);
  const cudaError_t code = runtime_call([&] {
    LaunchRequest request;
    request.handle = kernel;
    request.grid = grid;
    request.block = block;
    request.shared = shared;
    request.arguments = arguments;
    request.cooperative = cooperative;
    launch_kernel(request, stream);
  });
  // A context that died, and an instruction that is not emulated, have been reported.
  if (unreturned && code != cudaSuccess && code != cudaErrorNotSupported && sticky_error() == cudaSuccess)
    remember_unreturned(code, described(kernel, grid, block, shared));
  return code;
}

}  // namespace

WEFT_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  try {
    return reinterpret_cast<void**>(register_image(wrapper));
  } catch (...) {
    code_of_exception();
    return nullptr;
  }
}
WEFT_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
WEFT_EXPORT void __cudaUnregisterFatBinary(void** handle) { unregister_image(reinterpret_cast<Image*>(handle)); }
/// The host is about to touch a managed variable: its module must be there, for the variable to have an address.
WEFT_EXPORT char __cudaInitModule(void**) {
  try {
    load_managed();
    return 1;
  } catch (...) {
    remember(code_of_exception());
    return 0;
  }
}

WEFT_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                                        dim3*, dim3*, int*) {
  if (handle) register_kernel(reinterpret_cast<Image*>(handle), host, name);
}
WEFT_EXPORT void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int, int) {
  if (handle) register_variable(reinterpret_cast<Image*>(handle), host, name, bytes, false, nullptr);
}
// `pointer` is a variable of the host that shall hold the memory's address: __cudaInitModule fills it in.
WEFT_EXPORT void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name, int, size_t bytes,
                                          int, int) {
  if (handle) register_variable(reinterpret_cast<Image*>(handle), pointer, name, bytes, true, pointer);
}
WEFT_EXPORT void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
WEFT_EXPORT void __cudaRegisterUnifiedTable(void**, void*) {}

WEFT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  per_thread<Configurations>().push_back({grid, block, shared, stream});
  return 0;
}
WEFT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  Configurations& configurations = per_thread<Configurations>();
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration& top = configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  configurations.pop_back();
  of_syntax = true;
  return cudaSuccess;
}

WEFT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return runtime_call([&] { *kernel = reinterpret_cast<cudaKernel_t>(&kernel_of(host)); });
}
WEFT_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                           cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream, false);
}
WEFT_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                size_t shared, cudaStream_t stream) {
  const PerThreadDefault scope;
  return launch(kernel, grid, block, arguments, shared, stream, false);
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream, false);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                        cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream, true);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  return runtime_call([&] {
    require(config != nullptr);
    LaunchRequest request;
    request.handle = kernel;
    request.grid = config->gridDim;
    request.block = config->blockDim;
    request.shared = config->dynamicSmemBytes;
    request.arguments = arguments;
    read_attributes(config->attrs, config->numAttrs, request);
    launch_kernel(request, config->stream);
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return runtime_call([&] { *address = symbol_address(symbol, nullptr); });
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return runtime_call([&] { symbol_address(symbol, bytes); });
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return runtime_call([&] { *function = reinterpret_cast<cudaFunction_t>(&function_of(symbol)); });
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return runtime_call([&] { *kernel = reinterpret_cast<cudaKernel_t>(&kernel_of(symbol)); });
}
