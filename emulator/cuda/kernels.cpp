// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/kernels.h"

#include <unordered_set>

#include "emulator/cuda/cubin.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::cuda {
namespace {

struct Registry {
  std::vector<std::unique_ptr<Image>> images;
  std::unordered_map<const void*, Kernel*> stubs;
  std::unordered_map<const void*, HostVariable> variables;
  std::unordered_set<Kernel*> kernels;
  std::unordered_set<Function*> functions;
};

Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

using Guard = std::lock_guard<std::recursive_mutex>;

}  // namespace

std::recursive_mutex& kernels_mutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

int Function::most_dynamic_shared() const {
  constexpr int kWithoutAsking = 48 << 10;
  if (max_dynamic_shared >= 0) return max_dynamic_shared;
  return kWithoutAsking - std::min(int(code->static_shared), kWithoutAsking);
}

Function& Kernel::on(int device) {
  const Guard guard(kernels_mutex());
  std::unique_ptr<Function>& function = functions_[device];
  if (!function) {
    ptx::Module& module = image->on(device);
    const ptx::Kernel* code = nullptr;
    if (module.has_kernel(name)) code = module.kernel(name);
    if (!code) {
      functions_.erase(device);
      fail(cudaErrorInvalidDeviceFunction, cat("there is no kernel ", name, " in the PTX for this GPU"));
    }
    function = std::make_unique<Function>();
    function->kernel = this;
    function->device = device;
    function->code = code;
    if (ptx::timed()) {
      const auto registers = registers_of_cubin(image->fatbin.machine_code_for(Device::get(device).gpu().capability()));
      if (const auto found = registers.find(name); found != registers.end()) function->registers = found->second;
    }
    note_handle(function.get());
  }
  return *function;
}

ptx::Module& Image::on(int device) {
  const Guard guard(kernels_mutex());
  std::unique_ptr<ptx::Module>& module = modules_[device];
  if (!module) {
    const Gpu& gpu = Device::get(device).gpu();
    int target = 0;
    std::string text = fatbin.ptx_for(gpu.capability(), &target);
    if (text.empty()) {
      std::string who = name.empty() ? "this module" : name;
      if (name.empty() && !kernels.empty()) who = cat("the module of ", kernels.begin()->first);
      fail(cudaErrorNoKernelImageForDevice,
           cat("no PTX for this GPU in ", who, " (", fatbin.describe(), "; the GPU is sm_", gpu.capability(),
               "): build with code=compute_", gpu.capability(), gpu.major >= 9 ? "a" : "", " or an older compute_…"));
    }
    static std::once_flag told;
    if (target > gpu.capability())
      std::call_once(told, [&] {
        std::fputs(cat("weft-emulate: a module has machine code for ", gpu.name, " and PTX for compute_", target,
                       ", which runs in its place\n")
                       .c_str(),
                   stderr);
      });
    module = std::make_unique<ptx::Module>(std::move(text), device, std::max(gpu.capability(), target));
    for (auto& [host, variable] : registry().variables) {
      if (variable.image != this || !variable.managed || *variable.pointer) continue;
      *variable.pointer = module->variable(variable.name);
    }
  }
  return *module;
}

Kernel& Image::kernel(const std::string& wanted, cudaError_t missing) {
  const Guard guard(kernels_mutex());
  std::unique_ptr<Kernel>& kernel = kernels[wanted];
  if (!kernel) {
    if (!on(current_device()).has_kernel(wanted)) {
      kernels.erase(wanted);
      fail(missing);
    }
    kernel = std::make_unique<Kernel>();
    kernel->image = this;
    kernel->name = wanted;
    note_handle(kernel.get());
  }
  return *kernel;
}

void Image::unload(int device) {
  const Guard guard(kernels_mutex());
  modules_.erase(device);
}

Image* register_image(const void* wrapper, size_t bytes) {
  const Guard guard(kernels_mutex());
  auto image = std::make_unique<Image>();
  image->fatbin = read_image(wrapper, bytes);
  registry().images.push_back(std::move(image));
  return registry().images.back().get();
}

void unregister_image(Image*) {
  // Programs do this while they end; work in streams may still use the code, and the process's end frees it anyway.
}

void register_kernel(Image* image, const void* host, const char* name) {
  const Guard guard(kernels_mutex());
  std::unique_ptr<Kernel>& kernel = image->kernels[name];
  if (!kernel) {
    kernel = std::make_unique<Kernel>();
    kernel->image = image;
    kernel->name = name;
    kernel->host = host;
    note_handle(kernel.get());
  }
  registry().stubs[host] = kernel.get();
}

void register_variable(Image* image, const void* host, const char* name, size_t bytes, bool managed, void** pointer) {
  const Guard guard(kernels_mutex());
  registry().variables[host] = {image, name, bytes, managed, pointer};
}

void note_handle(Kernel* kernel) { registry().kernels.insert(kernel); }
void note_handle(Function* function) { registry().functions.insert(function); }

void forget_handles(Image& image) {
  const Guard guard(kernels_mutex());
  std::erase_if(registry().functions, [&](const Function* function) { return function->kernel->image == &image; });
  std::erase_if(registry().kernels, [&](const Kernel* kernel) { return kernel->image == &image; });
}

Kernel& kernel_of(const void* handle) {
  const Guard guard(kernels_mutex());
  Registry& all = registry();
  if (const auto found = all.stubs.find(handle); found != all.stubs.end()) return *found->second;
  auto* const pointer = const_cast<void*>(handle);
  if (all.kernels.contains(static_cast<Kernel*>(pointer))) return *static_cast<Kernel*>(pointer);
  if (all.functions.contains(static_cast<Function*>(pointer))) return *static_cast<Function*>(pointer)->kernel;
  fail(cudaErrorInvalidDeviceFunction);
}

Function& function_of(const void* handle) {
  const Guard guard(kernels_mutex());
  auto* const pointer = static_cast<Function*>(const_cast<void*>(handle));
  if (registry().functions.contains(pointer)) return *pointer;
  return kernel_of(handle).on(current_device());
}

char* symbol_address(const void* symbol, size_t* bytes) {
  const Guard guard(kernels_mutex());
  const auto found = registry().variables.find(symbol);
  require(found != registry().variables.end(), cudaErrorInvalidSymbol);
  const HostVariable& variable = found->second;
  uint64_t size = 0;
  char* const address = variable.image->on(current_device()).variable(variable.name, &size);
  require(address != nullptr, cudaErrorInvalidSymbol);
  if (bytes) *bytes = size ? size : variable.bytes;
  return address;
}

char* in_symbol(const void* symbol, size_t offset, size_t count) {
  size_t bytes = 0;
  char* const address = symbol_address(symbol, &bytes);
  require(offset <= bytes && count <= bytes - offset);
  return address + offset;
}

void load_managed() {
  const Guard guard(kernels_mutex());
  for (auto& [host, variable] : registry().variables)
    if (variable.managed && !*variable.pointer) variable.image->on(0);
}

void unload_all(int device) {
  const Guard guard(kernels_mutex());
  Registry& all = registry();
  std::erase_if(all.functions, [&](const Function* function) { return function->device == device; });
  for (Kernel* kernel : all.kernels) kernel->forget(device);
  for (const auto& image : all.images) image->unload(device);
}

cudaFuncAttributes function_attributes(Function& function) {
  const Guard guard(kernels_mutex());
  const ptx::Kernel& code = *function.code;
  cudaFuncAttributes a{};
  a.sharedSizeBytes = code.static_shared;
  a.localSizeBytes = code.local_bytes;
  a.maxThreadsPerBlock = code.max_threads;
  a.numRegs = code.registers_per_thread > 0 ? code.registers_per_thread : 32;
  a.ptxVersion = function.code->module->text().target;
  a.binaryVersion = Device::get(function.device).gpu().capability();
  a.maxDynamicSharedSizeBytes = function.most_dynamic_shared();
  a.preferredShmemCarveout = function.carveout;
  a.clusterDimMustBeSet = code.cluster[0] != 0;
  a.requiredClusterWidth = code.cluster[0] ? code.cluster[0] : function.cluster[0];
  a.requiredClusterHeight = code.cluster[0] ? code.cluster[1] : function.cluster[1];
  a.requiredClusterDepth = code.cluster[0] ? code.cluster[2] : function.cluster[2];
  a.clusterSchedulingPolicyPreference = function.cluster_policy;
  a.nonPortableClusterSizeAllowed = function.non_portable_cluster;
  return a;
}

void set_function_attribute(Function& function, int attribute, int value) {
  const Guard guard(kernels_mutex());
  const Gpu& gpu = Device::get(function.device).gpu();
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      require(value >= 0 && value + int(function.code->static_shared) <= gpu.shared_per_block_optin);
      function.max_dynamic_shared = value;
      return;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      require(value >= -1 && value <= 100);
      function.carveout = value;
      return;
    case cudaFuncAttributeClusterDimMustBeSet:
      return;
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
      require(value >= 0 && function.code->cluster[0] == 0);
      function.cluster[attribute - cudaFuncAttributeRequiredClusterWidth] = value;
      return;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      function.non_portable_cluster = value != 0;
      return;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      function.cluster_policy = value;
      return;
    default:
      fail(cudaErrorInvalidValue);
  }
}

}  // namespace emulator::cuda
