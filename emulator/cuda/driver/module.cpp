// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, kernels and their launch.
#include <fstream>
#include <iterator>

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

LoadedModule& module_of(CUmodule handle) {
  require(handle != nullptr, cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<LoadedModule*>(handle);
}
Image& library_of(CUlibrary handle) {
  require(handle != nullptr, cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Image*>(handle);
}
Function& function_of_handle(CUfunction handle) { return function_of(handle); }

Image* load_file(const char* name) {
  std::ifstream file(name, std::ios::binary);
  require(bool(file), cudaErrorFileNotFound);
  auto* const text = new std::string(std::istreambuf_iterator<char>(file), {});  // the image refers to it for ever
  Image* const image = register_image(text->data(), text->size());
  image->name = name;
  return image;
}

CUmodule loaded(Image* image) {
  image->on(current_device());
  return reinterpret_cast<CUmodule>(new LoadedModule{std::shared_ptr<Image>(image, [](Image*) {}), current_device()});
}

void variable(Image& image, int device, CUdeviceptr* where, size_t* bytes, const char* name) {
  uint64_t size = 0;
  char* const found = image.on(device).variable(name, &size);
  require(found != nullptr, cudaErrorSymbolNotFound);
  if (where) *where = address(found);
  if (bytes) *bytes = size;
}

void attribute(int* value, CUfunction_attribute which, Function& function) {
  const cudaFuncAttributes a = function_attributes(function);
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = a.maxThreadsPerBlock;
      return;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = int(a.sharedSizeBytes);
      return;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = int(a.constSizeBytes);
      return;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = int(a.localSizeBytes);
      return;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = a.numRegs;
      return;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = a.ptxVersion;
      return;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = a.binaryVersion;
      return;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *value = a.cacheModeCA;
      return;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = a.maxDynamicSharedSizeBytes;
      return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = a.preferredShmemCarveout;
      return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *value = a.clusterDimMustBeSet;
      return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = a.requiredClusterWidth;
      return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = a.requiredClusterHeight;
      return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = a.requiredClusterDepth;
      return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = a.nonPortableClusterSizeAllowed;
      return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = a.clusterSchedulingPolicyPreference;
      return;
    default:
      fail(cudaErrorInvalidValue);
  }
}

CUresult launch(LaunchRequest request, CUstream stream) {
  return call([&] { launch_kernel(request, stream); });
}

LaunchRequest of_config(CUfunction function, const CUlaunchConfig& config) {
  LaunchRequest request;
  request.handle = function;
  request.grid = dim3(config.gridDimX, config.gridDimY, config.gridDimZ);
  request.block = dim3(config.blockDimX, config.blockDimY, config.blockDimZ);
  request.shared = config.sharedMemBytes;
  // The runtime's attributes are the driver's under other names (driver_types.h).
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  read_attributes(reinterpret_cast<const cudaLaunchAttribute*>(config.attrs), config.numAttrs, request);
  return request;
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* name) {
  return call([&] { *module = loaded(load_file(name)); });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return call([&] { *module = loaded(register_image(image)); });
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }
CUresult cuModuleUnload(CUmodule module) {
  return call([&] {
    LoadedModule& loaded_module = module_of(module);
    forget_handles(*loaded_module.image);
    delete &loaded_module;
  });
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return call([&] {
    const LoadedModule& module = module_of(handle);
    *function = reinterpret_cast<CUfunction>(&module.image->kernel(name, cudaErrorSymbolNotFound).on(module.device));
  });
}
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return call([&] {
    const LoadedModule& module = module_of(handle);
    *count = unsigned(module.image->on(module.device).kernel_names().size());
  });
}
CUresult cuModuleGetGlobal(CUdeviceptr* where, size_t* bytes, CUmodule handle, const char* name) {
  return call([&] {
    const LoadedModule& module = module_of(handle);
    variable(*module.image, module.device, where, bytes, name);
  });
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
  return call([&] { *library = reinterpret_cast<CUlibrary>(register_image(code)); });
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* name, CUjit_option*, void**, unsigned, CUlibraryOption*,
                               void**, unsigned) {
  return call([&] { *library = reinterpret_cast<CUlibrary>(load_file(name)); });
}
CUresult cuLibraryUnload(CUlibrary library) {
  return call([&] { forget_handles(library_of(library)); });
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return call(
      [&] { *kernel = reinterpret_cast<CUkernel>(&library_of(library).kernel(name, cudaErrorSymbolNotFound)); });
}
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return call([&] { *count = unsigned(library_of(library).on(current_device()).kernel_names().size()); });
}
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return call([&] { *module = loaded(&library_of(library)); });
}
CUresult cuLibraryGetGlobal(CUdeviceptr* where, size_t* bytes, CUlibrary library, const char* name) {
  return call([&] { variable(library_of(library), current_device(), where, bytes, name); });
}
CUresult cuLibraryGetManaged(CUdeviceptr* where, size_t* bytes, CUlibrary library, const char* name) {
  return cuLibraryGetGlobal(where, bytes, library, name);
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return call([&] { *function = reinterpret_cast<CUfunction>(&kernel_of(kernel).on(current_device())); });
}
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return call([&] { *library = reinterpret_cast<CUlibrary>(kernel_of(kernel).image); });
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return call([&] { *name = kernel_of(kernel).name.c_str(); });
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute which, CUkernel kernel, CUdevice device) {
  return call([&] { attribute(value, which, kernel_of(kernel).on(device)); });
}
CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice device) {
  return call([&] { set_function_attribute(kernel_of(kernel).on(device), which, value); });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  return call([&] { attribute(value, which, function_of_handle(function)); });
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  return call([&] { set_function_attribute(function_of_handle(function), which, value); });
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return call([&] { function_of_handle(function); });
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  return call([&] { *name = function_of_handle(function).kernel->name.c_str(); });
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return call([&] { *module = loaded(function_of_handle(function).kernel->image); });
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return call([&] {
    const ptx::Kernel& code = *function_of_handle(function).code;
    require(index < code.parameters.size());
    *offset = code.parameters[index].offset;
    if (bytes) *bytes = code.parameters[index].bytes;
  });
}
CUresult cuFuncLoad(CUfunction function) {
  return call([&] { function_of_handle(function); });
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** arguments, void** extra) {
  return launch({.handle = function,
                 .grid = dim3(gx, gy, gz),
                 .block = dim3(bx, by, bz),
                 .shared = shared,
                 .arguments = arguments,
                 .extra = extra},
                stream);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream, void** arguments) {
  return launch({.handle = function,
                 .grid = dim3(gx, gy, gz),
                 .block = dim3(bx, by, bz),
                 .shared = shared,
                 .arguments = arguments,
                 .cooperative = true},
                stream);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  return call([&] {
    require(config != nullptr);
    LaunchRequest request = of_config(function, *config);
    request.arguments = arguments;
    request.extra = extra;
    launch_kernel(request, config->hStream);
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads, size_t shared) {
  return call([&] { *blocks = blocks_per_processor(function_of_handle(function), threads, shared); });
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                                          size_t shared, int limit) {
  return call([&] {
    Function& function = function_of_handle(handle);
    int best = 0;
    for (int threads = 1024; threads >= 32; threads -= 32) {
      if (limit > 0 && threads > limit) continue;
      const int blocks = blocks_per_processor(function, threads, shared_of ? shared_of(threads) : shared);
      if (blocks * threads > best) {
        best = blocks * threads;
        *block = threads;
        *grid = blocks * Device::get(function.device).gpu().processors;
      }
    }
    require(best > 0);
  });
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks, int threads) {
  return call([&] { *bytes = available_dynamic_shared(function_of_handle(function), blocks, threads); });
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  return call([&] { *clusters = active_clusters(function_of_handle(function), of_config(function, *config)); });
}
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig*) {
  return call([&] { *size = function_of_handle(function).non_portable_cluster ? 16 : 8; });
}
