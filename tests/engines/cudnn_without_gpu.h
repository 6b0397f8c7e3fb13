// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "kernels/engines/cudnn_engines.h"
#include "kernels/runtime/runtime.h"
#include "tests/support/devices.h"

// cuDNN without a GPU, or next to the emulated GPU, which cuDNN does not see. Since 9.8 it makes plans for a GPU that
// is not here, given its properties: so the real library looks at every graph, its heuristic chooses engines and the
// engines' plans are made, for an A100 and an H200. A function of ours in the place of the last step sees a plan's
// arguments.

namespace weft::tests {

using namespace kernels;          // NOLINT
using namespace kernels::vendor;  // NOLINT

constexpr size_t kDeviceless = 90800;
constexpr auto kJson = static_cast<cudnnBackendAttributeName_t>(2702);
constexpr auto kPropertiesType = static_cast<cudnnBackendDescriptorType_t>(38);
constexpr auto kHeuristicProperties = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanProperties = static_cast<cudnnBackendAttributeName_t>(407);

inline const CudnnLibrary& real() {
  static const CudnnLibrary library = load_cudnn("");
  return library;
}

/// Has cuDNN a driver that loads everything and runs nothing (pretended_driver.c)? Not where the machine has one. Under
/// weft-emulate our own calls go by libcudart, which needs no libcuda.so.1.
inline bool pretended_driver() {
  static const bool pretended = [] {
    if (*WEFT_PRETENDED_DRIVER == '\0' || (!emulated() && dlopen("libcuda.so.1", RTLD_NOW))) return false;
    return dlopen(WEFT_PRETENDED_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr;
  }();
  return pretended;
}

/// Numbers in the memory of the GPU, once its work is done.
template <class T>
std::vector<T> from_gpu(const void* data, size_t count) {
  std::vector<T> values(count);
  runtime(DeviceKind::cuda).synchronize_device(0);
  runtime(DeviceKind::cuda).copy(0, values.data(), data, count * sizeof(T), nullptr);
  runtime(DeviceKind::cuda).synchronize_device(0);
  return values;
}

inline std::string json(const char* name, int version, int processors, int shared, int l2, int clock,
                        int memory_clock) {
  return str(
      R"({"deviceVer":)", version, R"(,"driverVer":13000,"cudaDeviceId":0,"maxGridSize":[2147483647,65535,65535],)",
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":)", processors,
      R"(,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":)", shared,
      R"(,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)",
      R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":)", clock,
      R"(,"memClockRateKHz":)", memory_clock, R"(,"l2CacheSize":)", l2, R"(,"deviceName":")", name,
      R"(","totalGlobalMem":85899345920})");
}

/// An A100 (8.0) or an H200 (9.0).
inline CudnnDescriptor properties(int version) {
  const std::string text = version == 800 ? json("NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040, 1410000, 1593000)
                                          : json("NVIDIA H200", 900, 132, 232448, 62914560, 1980000, 3201000);
  CudnnDescriptor descriptor(real(), kPropertiesType, "device properties");
  descriptor.set(kJson, CUDNN_TYPE_CHAR, static_cast<int64_t>(text.size()), text.data());
  descriptor.finalize();
  return descriptor;
}

class Cudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (emulated()) pretended_driver();  // before cuDNN looks for a driver and finds the emulator's
    if (!real().missing.empty()) GTEST_SKIP() << "needs cuDNN: " << real().missing;
    if (real().GetVersion() < kDeviceless) GTEST_SKIP() << "needs cuDNN 9.8, which makes plans without a GPU";
  }
  static bool sees_a_gpu() { return runs_on(DeviceKind::cuda) && !emulated(); }
};

/// The calls that reach the library between the plans and the real library.
struct Script {
  cudnnBackendDescriptor_t gpu = nullptr;
  std::map<int64_t, std::vector<int64_t>> dims, strides;  ///< for tensors, by their id
  std::vector<int64_t> last_dims, last_strides;
  bool refuses_fusion = false;
  std::vector<cudnnBackendDescriptor_t> fused;  ///< graphs of two operations
  int plans_made = 0;
  cudnnStatus_t executed = CUDNN_STATUS_SUCCESS;
  cudaStream_t stream = nullptr;
  std::vector<int64_t> ids;
  std::map<int64_t, void*> pointers;  ///< addresses in the last variant pack, by tensor
  void* workspace = nullptr;
  std::function<void()> at_execution = [] {};  ///< while what a run points to is there
};
inline Script script;

/// A handle's place is taken by the properties.
inline cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t attribute,
                                   cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (attribute == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
  if (attribute == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
    return real().BackendSetAttribute(descriptor, kPlanProperties, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &script.gpu);
  if (attribute == CUDNN_ATTR_ENGINEHEUR_MODE)
    real().BackendSetAttribute(descriptor, kHeuristicProperties, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &script.gpu);
  const auto* const numbers = static_cast<const int64_t*>(values);
  if (attribute == CUDNN_ATTR_TENSOR_DIMENSIONS) script.last_dims.assign(numbers, numbers + count);
  if (attribute == CUDNN_ATTR_TENSOR_STRIDES) script.last_strides.assign(numbers, numbers + count);
  if (attribute == CUDNN_ATTR_TENSOR_UNIQUE_ID) script.dims[*numbers] = script.last_dims;
  if (attribute == CUDNN_ATTR_TENSOR_UNIQUE_ID) script.strides[*numbers] = script.last_strides;
  if (attribute == CUDNN_ATTR_OPERATIONGRAPH_OPS && count == 2) script.fused.push_back(descriptor);
  if (attribute == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) script.ids.assign(numbers, numbers + count);
  if (attribute == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
    for (size_t i = 0; i < script.ids.size(); ++i)
      script.pointers[script.ids[i]] = static_cast<void* const*>(values)[i];
  if (attribute == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) script.workspace = *static_cast<void* const*>(values);
  if (attribute == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) ++script.plans_made;
  return real().BackendSetAttribute(descriptor, attribute, type, count, values);
}

inline cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
  if (script.refuses_fusion && std::ranges::find(script.fused, descriptor) != script.fused.end()) {
    script.fused.clear();  // the address may come again
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return real().BackendFinalize(descriptor);
}

inline cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  script.at_execution();
  return script.executed;
}

class CudnnRun : public Cudnn {
 protected:
  void SetUp() override {
    Cudnn::SetUp();
    if (IsSkipped()) return;
    gpu.emplace(properties(900));
    script = {};
    script.gpu = gpu->raw();
    library = real();
    library.Create = [](cudnnHandle_t* handle) {
      *handle = reinterpret_cast<cudnnHandle_t>(8);
      return CUDNN_STATUS_SUCCESS;
    };
    library.SetStream = [](cudnnHandle_t, cudaStream_t stream) {
      script.stream = stream;
      return CUDNN_STATUS_SUCCESS;
    };
    library.BackendSetAttribute = set_attribute;
    library.BackendFinalize = finalize;
    library.BackendExecute = execute;
  }
  std::optional<CudnnDescriptor> gpu;
  CudnnLibrary library;
};

}  // namespace weft::tests
