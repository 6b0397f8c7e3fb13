// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/cuda/fatbin.h"
#include "emulator/ptx/run/kernel.h"

namespace emulator::cuda {

struct Image;
struct Kernel;

/// A kernel on one device. A CUfunction or cudaFunction_t points at it.
struct Function {
  Kernel* kernel = nullptr;
  int device = 0;
  const ptx::Kernel* code = nullptr;
  int registers = 0;            ///< per thread, from a cubin for this GPU, with --time; 0: unknown
  int max_dynamic_shared = -1;  ///< the program's request; -1: none
  int carveout = -1;
  bool non_portable_cluster = false;
  int cluster[3] = {0, 0, 0};  ///< required by cudaFuncAttributeRequiredCluster…
  int cluster_policy = 0;

  int most_dynamic_shared() const;  ///< limit of a launch
};

/// A kernel of an image, for all devices. A CUkernel or cudaKernel_t points at it.
struct Kernel {
  Image* image = nullptr;
  std::string name;
  const void* host = nullptr;  ///< the stub that `<<<>>>` calls, or nullptr
  /// Compiles it for the device unless that is done. Errors: Error.
  Function& on(int device);
  void forget(int device) { functions_.erase(device); }

 private:
  std::map<int, std::unique_ptr<Function>> functions_;
};

/// A variable of a module that the host knows by an address of its own.
struct HostVariable {
  Image* image = nullptr;
  std::string name;
  size_t bytes = 0;
  bool managed = false;
  void** pointer = nullptr;  ///< for a managed variable: the place where the program looks up its address
};

/// A fat binary or a PTX text, loaded on each device at its first use there. A CUlibrary or cudaLibrary_t points at an
/// Image.
struct Image {
  Fatbin fatbin;
  std::string name;
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels;

  /// Errors: Error.
  ptx::Module& on(int device);
  /// Errors: `missing` when there is no such kernel.
  Kernel& kernel(const std::string& name, cudaError_t missing);
  void unload(int device);

 private:
  std::map<int, std::unique_ptr<ptx::Module>> modules_;
};

/// A CUmodule points at this.
struct LoadedModule {
  std::shared_ptr<Image> image;
  int device = 0;
};

/// One lock for images, kernels and their attributes; never held together with the state's.
std::recursive_mutex& kernels_mutex();

// Programs register these when they start. `bytes`: read_image's.
Image* register_image(const void* wrapper, size_t bytes = SIZE_MAX);
void unregister_image(Image* image);
void register_kernel(Image* image, const void* host, const char* name);
void register_variable(Image* image, const void* host, const char* name, size_t bytes, bool managed, void** pointer);

/// Looks up a host stub, a cudaKernel_t or a CUfunction. Errors: cudaErrorInvalidDeviceFunction.
Kernel& kernel_of(const void* handle);
Function& function_of(const void* handle);
/// Handles that the program made by loading a library or asking for a kernel.
void note_handle(Kernel* kernel);
void note_handle(Function* function);
void forget_handles(Image& image);

/// Where a variable is on the current device. Errors: cudaErrorInvalidSymbol.
char* symbol_address(const void* symbol, size_t* bytes);
/// Where `count` bytes from `offset` on are. Errors: cudaErrorInvalidValue beyond its end.
char* in_symbol(const void* symbol, size_t offset, size_t count);
/// Loads the images that have managed variables, so that the host may read them.
void load_managed();
/// All modules of the device go (cudaDeviceReset).
void unload_all(int device);

cudaFuncAttributes function_attributes(Function& function);
void set_function_attribute(Function& function, int attribute, int value);

}  // namespace emulator::cuda
