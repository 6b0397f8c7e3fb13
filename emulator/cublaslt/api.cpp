// SPDX-License-Identifier: Apache-2.0
// The functions of cublasLt.h.
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <mutex>
#include <new>
#include <set>

#include "emulator/cublaslt/matmul.h"
#include "emulator/machine/fault.h"

struct cublasLtContext {
  int device;
};

using namespace emulator;
using namespace emulator::lt;

namespace {

std::mutex handles_mutex;
std::set<cublasLtHandle_t>& handles() {
  static auto& all = *new std::set<cublasLtHandle_t>;
  return all;
}

int device_of(cublasLtHandle_t handle) {
  const std::lock_guard lock(handles_mutex);
  if (!handles().contains(handle)) fail(CUBLAS_STATUS_NOT_INITIALIZED, "the handle is none, or was destroyed");
  return handle->device;
}

/// One line on stderr, once.
void say(const std::string& text) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "weft-emulate: %s\n", text.c_str());
}

/// Runs every call: an exception becomes its status and one line on stderr.
template <class F>
cublasStatus_t call(const char* name, F&& body) noexcept {
  try {
    body();
    return CUBLAS_STATUS_SUCCESS;
  } catch (const Failure& failure) {
    if (!failure.text.empty()) say(cat(name, ": ", failure.text, " (", cublasLtGetStatusName(failure.status), ')'));
    return failure.status;
  } catch (const cuda::LibraryMisuse&) {
    return CUBLAS_STATUS_INVALID_VALUE;
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    say(cat(name, ": ", error.what()));
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
}

void require(bool right, const char* text) {
  if (!right) fail(CUBLAS_STATUS_INVALID_VALUE, text);
}

int device_attribute(int device, cudaDeviceAttr attribute) {
  int value = 0;
  if (const cudaError_t code = cudaDeviceGetAttribute(&value, attribute, device); code != cudaSuccess)
    fail(CUBLAS_STATUS_EXECUTION_FAILED, cat("cudaDeviceGetAttribute: ", cudaGetErrorString(code)));
  return value;
}

template <class D, class Opaque>
cublasStatus_t create(const char* name, Opaque** result, const D& made) {
  return call(name, [&] {
    require(result, "the descriptor is NULL");
    new (*result = new Opaque{}) D(made);
  });
}
template <class D, class Opaque>
cublasStatus_t init(const char* name, Opaque* memory, size_t bytes, const D& made) {
  return call(name, [&] {
    require(memory, "the descriptor is NULL");
    if (bytes < sizeof(D)) fail(CUBLAS_STATUS_ALLOC_FAILED, cat(bytes, " bytes for a descriptor of ", sizeof(D)));
    new (memory) D(made);
  });
}
template <class D, class Opaque>
cublasStatus_t destroy(const char* name, Opaque* opaque) {
  if (!opaque) return CUBLAS_STATUS_SUCCESS;
  return call(name, [&] {
    descriptor<D>(opaque, "the descriptor").magic = 0;
    delete opaque;
  });
}
template <class D, class Opaque>
cublasStatus_t set(const char* name, Opaque* opaque, int attribute, const void* value, size_t bytes) {
  return call(
      name, [&] { set_attribute(&descriptor<D>(opaque, "the descriptor"), attributes<D>(), attribute, value, bytes); });
}
template <class D, class Opaque>
cublasStatus_t get(const char* name, const Opaque* opaque, int attribute, void* value, size_t bytes, size_t* written) {
  return call(name, [&] {
    get_attribute(&descriptor<D>(opaque, "the descriptor"), attributes<D>(), attribute, value, bytes, written);
  });
}

Layout layout(cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  Layout made;
  made.type = type;
  made.rows = rows, made.columns = columns;
  made.ld = ld;
  return made;
}
MatmulDescriptor matmul(cublasComputeType_t compute, cudaDataType_t scale) {
  MatmulDescriptor made;
  made.compute = compute;
  made.scale = scale;
  return made;
}
TransformDescriptor transform(cudaDataType_t scale) {
  TransformDescriptor made;
  made.scale = scale;
  return made;
}

/// C's layout defaults to D's. Features that this GPU lacks are not supported.
Problem problem_of(int device, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  const auto of = [](cublasLtMatrixLayout_t x, const char* name) { return descriptor<Layout>(x, name); };
  const Problem problem = make_problem(descriptor<MatmulDescriptor>(what, "the descriptor"), of(a, "A's layout"),
                                       of(b, "B's layout"), of(c ? c : d, "C's layout"), of(d, "D's layout"));
  const int capability = device_attribute(device, cudaDevAttrComputeCapabilityMajor) * 10 +
                         device_attribute(device, cudaDevAttrComputeCapabilityMinor);
  const cudaDataType_t type = problem.types.a;
  if ((type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2) && capability < 89)
    fail(CUBLAS_STATUS_NOT_SUPPORTED,
         cat("FP8 matrices need compute capability 8.9, and this GPU has ", capability / 10, '.', capability % 10));
  return problem;
}

int processors_of(int device, const Problem& problem) {
  return problem.what.processors ? problem.what.processors : device_attribute(device, cudaDevAttrMultiProcessorCount);
}

/// The result of an implicit query: no workspace; the pointers' alignment is known.
Algorithm implicit_algorithm(const Problem& problem, const Arguments& given, int processors) {
  Preference preference;
  const void* const pointers[] = {given.a, given.b, given.c ? given.c : given.d, given.d};
  for (int i = 0; i < 4; ++i) {
    const auto address = reinterpret_cast<uintptr_t>(pointers[i]);
    preference.alignments[i] = address ? uint32_t{1} << std::min(std::countr_zero(address), 8) : 256;
  }
  const auto found = find_algorithms(problem, preference, processors);
  return found.empty() ? make_algorithm(Method::any, problem.types) : found.front();
}

std::atomic<size_t> cache_capacity = 8192;
std::atomic<unsigned> instructions_mask = 0;

cublasStatus_t refuse(const char* name) {
  return call(name, [] { fail(CUBLAS_STATUS_NOT_SUPPORTED, "the emulator does not have this call"); });
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return call("cublasLtCreate", [&] {
    require(handle, "the handle is NULL");
    int device = 0;
    if (const cudaError_t code = cudaGetDevice(&device); code != cudaSuccess)
      fail(CUBLAS_STATUS_NOT_INITIALIZED, cat("cudaGetDevice: ", cudaGetErrorString(code)));
    device_attribute(device, cudaDevAttrMultiProcessorCount);
    *handle = new cublasLtContext{device};
    const std::lock_guard lock(handles_mutex);
    handles().insert(*handle);
  });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return call("cublasLtDestroy", [&] {
    require(handle, "the handle is NULL");
    device_of(handle);
    const std::lock_guard lock(handles_mutex);
    handles().erase(handle);
    delete handle;
  });
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
#define STATUS(name, text)   \
  case CUBLAS_STATUS_##name: \
    return "CUBLAS_STATUS_" #name;
#define STATUSES                                                               \
  STATUS(SUCCESS, "success")                                                   \
  STATUS(NOT_INITIALIZED, "the library was not initialized")                   \
  STATUS(ALLOC_FAILED, "memory could not be allocated")                        \
  STATUS(INVALID_VALUE, "an argument has a value that the call does not take") \
  STATUS(ARCH_MISMATCH, "the GPU lacks what the call needs")                   \
  STATUS(MAPPING_ERROR, "the GPU's memory could not be accessed")              \
  STATUS(EXECUTION_FAILED, "the GPU could not execute the call")               \
  STATUS(INTERNAL_ERROR, "an internal operation failed")                       \
  STATUS(NOT_SUPPORTED, "the call's combination of options is not supported")  \
  STATUS(LICENSE_ERROR, "the license could not be checked")
  switch (status) { STATUSES }
#undef STATUS
  return "unrecognized status";
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
#define STATUS(name, text)   \
  case CUBLAS_STATUS_##name: \
    return text;
  switch (status) { STATUSES }
#undef STATUS
#undef STATUSES
  return "unrecognized status";
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

size_t cublasLtGetCudartVersion() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? static_cast<size_t>(version) : 0;
}

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  return call("cublasLtGetProperty", [&] {
    require(value && type >= MAJOR_VERSION && type <= PATCH_LEVEL, "no such property, or the value is NULL");
    *value = CUBLAS_VERSION / (type == MAJOR_VERSION ? 10000 : type == MINOR_VERSION ? 100 : 1) % 100;
  });
}

// The heuristics here need no cache; its capacity is a power of two.
cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t* capacity) {
  return call("cublasLtHeuristicsCacheGetCapacity", [&] {
    require(capacity, "the capacity is NULL");
    *capacity = cache_capacity;
  });
}
cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
  cache_capacity = capacity ? std::bit_ceil(capacity) : 0;
  return CUBLAS_STATUS_SUCCESS;
}
unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask) { return instructions_mask.exchange(mask); }

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t memory, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld) {
  return init("cublasLtMatrixLayoutInit", memory, size, layout(type, rows, columns, ld));
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* result, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  return create("cublasLtMatrixLayoutCreate", result, layout(type, rows, columns, ld));
}
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t memory, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  return init("cublasLtMatmulDescInit", memory, size, matmul(compute, scale));
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* result, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return create("cublasLtMatmulDescCreate", result, matmul(compute, scale));
}
cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t memory, size_t size,
                                                        cudaDataType scale) {
  return init("cublasLtMatrixTransformDescInit", memory, size, transform(scale));
}
cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* result, cudaDataType scale) {
  return create("cublasLtMatrixTransformDescCreate", result, transform(scale));
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t memory, size_t size) {
  return init("cublasLtMatmulPreferenceInit", memory, size, Preference());
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* result) {
  return create("cublasLtMatmulPreferenceCreate", result, Preference());
}
cublasStatus_t cublasLtEmulationDescInit_internal(cublasLtEmulationDesc_t memory, size_t size) {
  return init("cublasLtEmulationDescInit", memory, size, EmulationDescriptor());
}
cublasStatus_t cublasLtEmulationDescCreate(cublasLtEmulationDesc_t* result) {
  return create("cublasLtEmulationDescCreate", result, EmulationDescriptor());
}

// Destroy, SetAttribute and GetAttribute of each descriptor.
#define EMULATOR_DESCRIPTOR(name, type, Attributes, D)                                                         \
  cublasStatus_t cublasLt##name##Destroy(type x) { return destroy<D>("cublasLt" #name "Destroy", x); }         \
  cublasStatus_t cublasLt##name##SetAttribute(type x, Attributes attribute, const void* value, size_t bytes) { \
    return set<D>("cublasLt" #name "SetAttribute", x, attribute, value, bytes);                                \
  }                                                                                                            \
  cublasStatus_t cublasLt##name##GetAttribute(type x, Attributes attribute, void* value, size_t bytes,         \
                                              size_t* written) {                                               \
    return get<D>("cublasLt" #name "GetAttribute", x, attribute, value, bytes, written);                       \
  }
EMULATOR_DESCRIPTOR(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, Layout)
EMULATOR_DESCRIPTOR(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, MatmulDescriptor)
EMULATOR_DESCRIPTOR(MatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t,
                    TransformDescriptor)
EMULATOR_DESCRIPTOR(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, Preference)
EMULATOR_DESCRIPTOR(EmulationDesc, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t, EmulationDescriptor)
#undef EMULATOR_DESCRIPTOR

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  return call("cublasLtMatmulAlgoGetHeuristic", [&] {
    const int device = device_of(handle);
    require(asked > 0 && results && count, "no results are asked for, or their memory is NULL");
    *count = 0;
    const Preference& wanted = descriptor<Preference>(preference, "the preference");
    const Problem problem = problem_of(device, what, a, b, c, d);
    const int processors = processors_of(device, problem);
    auto found = find_algorithms(problem, wanted, processors);
    if (wanted.search == CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID) {
      const int id = descriptor<Algorithm>(&results[0].algo, "the algorithm to limit the search").id;
      std::erase_if(found, [&](const Algorithm& one) { return one.id != id; });
    } else if (wanted.search != CUBLASLT_SEARCH_BEST_FIT) {
      fail(CUBLAS_STATUS_NOT_SUPPORTED, cat("search mode ", wanted.search));
    }
    if (found.empty())
      fail(CUBLAS_STATUS_NOT_SUPPORTED, cat("no algorithm for ", problem.text(), " that the preference allows"));
    for (const Algorithm& one : found) {
      if (*count == asked) break;
      cublasLtMatmulHeuristicResult_t& result = results[(*count)++] = {};
      new (&result.algo) Algorithm(one);
      result.workspaceSize = workspace_bytes(one, problem);
      result.state = CUBLAS_STATUS_SUCCESS;
      result.wavesCount = waves_of(one, problem, processors);
    }
  });
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                        cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d,
                                        int asked, int ids[], int* count) {
  return call("cublasLtMatmulAlgoGetIds", [&] {
    device_of(handle);
    require(asked > 0 && ids && count, "no ids are asked for, or their memory is NULL");
    *count = is_offered({compute, scale, a, b, c, d}) ? std::min(asked, kMethods) : 0;
    for (int i = 0; i < *count; ++i) ids[i] = i;
  });
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t* algorithm) {
  return call("cublasLtMatmulAlgoInit", [&] {
    device_of(handle);
    require(algorithm && id >= 0 && id < kMethods, "no such algorithm, or its memory is NULL");
    const Types types{compute, scale, a, b, c, d};
    if (!is_offered(types)) fail(CUBLAS_STATUS_NOT_SUPPORTED, "these types are no row of cublasLtMatmul's table");
    *algorithm = {};
    new (algorithm) Algorithm(make_algorithm(static_cast<Method>(id), types));
  });
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  return call("cublasLtMatmulAlgoCheck", [&] {
    const int device = device_of(handle);
    require(result, "the result is NULL");
    const Problem problem = problem_of(device, what, a, b, c, d);
    const auto& one = descriptor<Algorithm>(algorithm, "the algorithm");
    require_fit(one, problem);
    result->workspaceSize = workspace_bytes(one, problem);
    result->state = CUBLAS_STATUS_SUCCESS;
    result->wavesCount = waves_of(one, problem, processors_of(device, problem));
  });
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute, void* value, size_t bytes,
                                                 size_t* written) {
  return call("cublasLtMatmulAlgoCapGetAttribute", [&] {
    get_capability(descriptor<Algorithm>(algorithm, "the algorithm"), attribute, value, bytes, written);
  });
}
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  return call("cublasLtMatmulAlgoConfigSetAttribute", [&] {
    auto& one = descriptor<Algorithm>(algorithm, "the algorithm");
    require(attribute != CUBLASLT_ALGO_CONFIG_ID, "CUBLASLT_ALGO_CONFIG_ID is set by cublasLtMatmulAlgoInit alone");
    set_attribute(&one, attributes<Algorithm>(), attribute, value, bytes);
  });
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    size_t bytes, size_t* written) {
  return get<Algorithm>("cublasLtMatmulAlgoConfigGetAttribute", algorithm, attribute, value, bytes, written);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  return call("cublasLtMatmul", [&] {
    const int device = device_of(handle);
    const Problem problem = problem_of(device, what, a_layout, b_layout, c_layout, d_layout);
    const Arguments given{alpha, a, b, beta, c, d, workspace, workspace_bytes, stream};
    const Algorithm one = algorithm ? descriptor<Algorithm>(algorithm, "the algorithm")
                                    : implicit_algorithm(problem, given, processors_of(device, problem));
    require_fit(one, problem);
    enqueue_matmul(problem, one, given, device);
  });
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t what, const void* alpha,
                                       const void* a, cublasLtMatrixLayout_t a_layout, const void* beta, const void* b,
                                       cublasLtMatrixLayout_t b_layout, void* c, cublasLtMatrixLayout_t c_layout,
                                       cudaStream_t stream) {
  return call("cublasLtMatrixTransform", [&] {
    const auto of = [](cublasLtMatrixLayout_t x, const char* name) {
      return x ? &descriptor<Layout>(x, name) : nullptr;
    };
    const int device = device_of(handle);
    enqueue_transform(descriptor<TransformDescriptor>(what, "the descriptor"), alpha, a, of(a_layout, "A's layout"),
                      beta, b, of(b_layout, "B's layout"), c, descriptor<Layout>(c_layout, "C's layout"), device,
                      stream);
  });
}

// Refusals go to stderr at every logger level: there is nothing else to log.
cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerOpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetLevel(int level) {
  return level >= 0 && level <= 5 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }

#define REFUSED(name) \
  __attribute__((visibility("default"))) cublasStatus_t name() { return refuse(#name); }
#include "emulator/cublaslt/refused.inc"

}  // extern "C"
