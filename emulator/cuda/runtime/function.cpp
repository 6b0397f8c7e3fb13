// SPDX-License-Identifier: Apache-2.0
// Attributes of kernels, occupancy, libraries, and the way to the driver's entry points.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);

/// cuGetProcAddress_v2 of the libcuda.so.1 that lies beside this library.
GetProcAddress driver() {
  static const auto found = [] {
    Dl_info self{};
    void* library = nullptr;
    if (dladdr(reinterpret_cast<void*>(&cudaGetLastError), &self) && self.dli_fname) {
      std::string path = self.dli_fname;
      path.resize(path.find_last_of('/') + 1);
      library = dlopen((path + "libcuda.so.1").c_str(), RTLD_NOW);
    }
    if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
    return library ? reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
  }();
  return found;
}

cudaError_t entry_point(const char* symbol, void** function, int version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* status) {
  return runtime_call([&] {
    require(symbol != nullptr && function != nullptr);
    *function = nullptr;
    require(driver() != nullptr, cudaErrorInsufficientDriver);
    int found = 0;
    const int code = driver()(symbol, function, version, flags, &found);
    if (status) {
      *status = cudaDriverEntryPointQueryResult(found);
      return;
    }
    require(code == 0 && *function != nullptr, cudaErrorSymbolNotFound);
  });
}

Image& library_of(cudaLibrary_t handle) {
  require(handle != nullptr, cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Image*>(handle);
}

LaunchRequest of_config(const void* kernel, const cudaLaunchConfig_t& config) {
  LaunchRequest request;
  request.handle = kernel;
  request.grid = config.gridDim;
  request.block = config.blockDim;
  request.shared = config.dynamicSmemBytes;
  read_attributes(config.attrs, config.numAttrs, request);
  return request;
}

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return runtime_call([&] { *attributes = function_attributes(function_of(kernel)); });
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return runtime_call([&] { set_function_attribute(function_of(kernel), attribute, value); });
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  return runtime_call([&] { set_function_attribute(kernel_of(kernel).on(device), attribute, value); });
}
cudaError_t cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache) {
  return runtime_call([&] { kernel_of(kernel); });
}
cudaError_t cudaFuncSetSharedMemConfig(const void* kernel, cudaSharedMemConfig) {
  return runtime_call([&] { kernel_of(kernel); });
}
cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  return runtime_call([&] { *name = kernel_of(kernel).name.c_str(); });
}
cudaError_t cudaFuncGetParamInfo(const void* kernel, size_t index, size_t* offset, size_t* bytes) {
  return runtime_call([&] {
    const ptx::Kernel& code = *function_of(kernel).code;
    require(index < code.parameters.size());
    *offset = code.parameters[index].offset;
    if (bytes) *bytes = code.parameters[index].bytes;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t shared) {
  return runtime_call([&] {
    require(threads > 0);
    *blocks = blocks_per_processor(function_of(kernel), threads, shared);
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* kernel, int blocks, int threads) {
  return runtime_call([&] { *bytes = available_dynamic_shared(function_of(kernel), blocks, threads); });
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config) {
  return runtime_call([&] { *clusters = active_clusters(function_of(kernel), of_config(kernel, *config)); });
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* kernel, const cudaLaunchConfig_t*) {
  return runtime_call([&] { *size = function_of(kernel).non_portable_cluster ? 16 : 8; });
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, kRuntimeVersion, flags, status);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, int(version), flags, status);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return runtime_call([&] { *library = reinterpret_cast<cudaLibrary_t>(register_image(code)); });
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* name, cudaJitOption*, void**, unsigned,
                                    cudaLibraryOption*, void**, unsigned) {
  return runtime_call([&] {
    std::ifstream file(name, std::ios::binary);
    require(bool(file), cudaErrorFileNotFound);
    auto* const text = new std::string(std::istreambuf_iterator<char>(file), {});  // the image refers to it for ever
    Image* const image = register_image(text->data(), text->size());
    image->name = name;
    *library = reinterpret_cast<cudaLibrary_t>(image);
  });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return runtime_call([&] { forget_handles(library_of(library)); });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return runtime_call(
      [&] { *kernel = reinterpret_cast<cudaKernel_t>(&library_of(library).kernel(name, cudaErrorSymbolNotFound)); });
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return runtime_call([&] { *count = unsigned(library_of(library).on(current_device()).kernel_names().size()); });
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return runtime_call([&] {
    Image& image = library_of(library);
    for (const std::string_view name : image.on(current_device()).kernel_names()) {
      if (count-- == 0) return;
      *kernels++ = reinterpret_cast<cudaKernel_t>(&image.kernel(std::string(name), cudaErrorSymbolNotFound));
    }
  });
}
cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return runtime_call([&] {
    uint64_t size = 0;
    char* const found = library_of(library).on(current_device()).variable(name, &size);
    require(found != nullptr, cudaErrorSymbolNotFound);
    if (address) *address = found;
    if (bytes) *bytes = size;
  });
}
cudaError_t cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return cudaLibraryGetGlobal(address, bytes, library, name);
}
