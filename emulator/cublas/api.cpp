// SPDX-License-Identifier: Apache-2.0
// Handles, and the other functions of cublas_api.h that compute nothing.
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include <cuda_runtime_api.h>

#include <mutex>
#include <new>
#include <set>
#include <string_view>

#include "emulator/cublas/request.h"
#include "emulator/machine/findings.h"

using namespace emulator;
using namespace emulator::blas;

namespace {

std::mutex handles_mutex;
std::set<cublasHandle_t>& handles() {
  static auto& all = *new std::set<cublasHandle_t>;
  return all;
}

const char* status_name(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
    default:
      return "<unknown>";
  }
}

void check(cudaError_t code) {
  if (code != cudaSuccess) throw Failure{CUBLAS_STATUS_MAPPING_ERROR, cudaGetErrorString(code)};
}

/// Elements of `size` bytes, `from_step` and `to_step` elements apart.
void copy_lines(int64_t length, int64_t lines, int64_t size, const void* from, int64_t from_step, void* to,
                int64_t to_step, cudaMemcpyKind kind, const cudaStream_t* stream) {
  require(length >= 0 && lines >= 0 && size > 0, "sizes ", length, ", ", lines, " and elements of ", size, " bytes");
  require(from_step >= length && to_step >= length && from_step > 0 && to_step > 0, "steps ", from_step, " and ",
          to_step, " for lines of ", length);
  if (length == 0 || lines == 0) return;
  const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * size); };
  if (from_step == length && to_step == length) length *= lines, lines = 1, from_step = to_step = length;
  if (stream)
    check(cudaMemcpy2DAsync(to, bytes(to_step), from, bytes(from_step), bytes(length), static_cast<size_t>(lines), kind,
                            *stream));
  else
    check(cudaMemcpy2D(to, bytes(to_step), from, bytes(from_step), bytes(length), static_cast<size_t>(lines), kind));
}

cublasLogCallback log_callback = nullptr;

}  // namespace

namespace emulator::blas {

cublasContext& context_of(cublasHandle_t handle) {
  const std::lock_guard lock(handles_mutex);
  if (!handles().contains(handle)) throw Failure{CUBLAS_STATUS_NOT_INITIALIZED, "the handle is none, or was destroyed"};
  return *handle;
}

void say(const std::string& text) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "weft-emulate: %s\n", text.c_str());
}

cublasStatus_t status_of_exception(const char* name) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    say(cat(name, ": ", failure.text, " (", status_name(failure.status), ')'));
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

int refuse(const char* name) noexcept {
  const std::string_view text = name;
  say(cat(text.ends_with("_v2") ? text.substr(0, text.size() - 3) : text,
          " is not emulated (CUBLAS_STATUS_NOT_SUPPORTED)"));
  count_fault();
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace emulator::blas

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return call("cublasCreate", [&] {
    require(handle, "the handle is NULL");
    auto* const made = new cublasContext;
    if (const cudaError_t code = cudaGetDevice(&made->device); code != cudaSuccess) {
      delete made;
      throw Failure{CUBLAS_STATUS_NOT_INITIALIZED, cat("cudaGetDevice: ", cudaGetErrorString(code))};
    }
    *handle = made;
    const std::lock_guard lock(handles_mutex);
    handles().insert(made);
  });
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return call("cublasDestroy", [&] {
    context_of(handle);
    cudaDeviceSynchronize();  // as the documentation says; the handle's stream may be gone
    const std::lock_guard lock(handles_mutex);
    handles().erase(handle);
    delete handle;
  });
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  return call("cublasGetVersion", [&] {
    require(version, "the version is NULL");
    *version = CUBLAS_VERSION;
  });
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return call("cublasGetProperty", [&] {
    require(value && (type == MAJOR_VERSION || type == MINOR_VERSION || type == PATCH_LEVEL), "no such property");
    *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  });
}
size_t cublasGetCudartVersion() { return CUDART_VERSION; }
const char* cublasGetStatusName(cublasStatus_t status) { return status_name(status); }
const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an invalid value was passed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the work failed to execute";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality is not supported";
    default:
      return status_name(status);
  }
}

#define EMULATOR_PROPERTY(name, type, member, right, symbol_get, symbol_set) \
  cublasStatus_t symbol_get(cublasHandle_t handle, type* value) {            \
    return call("cublasGet" #name, [&] {                                     \
      const cublasContext& context = context_of(handle);                     \
      require(value, "the result is NULL");                                  \
      *value = static_cast<type>(context.member);                            \
    });                                                                      \
  }                                                                          \
  cublasStatus_t symbol_set(cublasHandle_t handle, type value) {             \
    return call("cublasSet" #name, [&] {                                     \
      cublasContext& context = context_of(handle);                           \
      require(right, "no such value");                                       \
      context.member = value;                                                \
    });                                                                      \
  }
EMULATOR_PROPERTY(PointerMode, cublasPointerMode_t, pointer_mode,
                  value == CUBLAS_POINTER_MODE_HOST || value == CUBLAS_POINTER_MODE_DEVICE, cublasGetPointerMode_v2,
                  cublasSetPointerMode_v2)
EMULATOR_PROPERTY(AtomicsMode, cublasAtomicsMode_t, atomics,
                  value == CUBLAS_ATOMICS_NOT_ALLOWED || value == CUBLAS_ATOMICS_ALLOWED, cublasGetAtomicsMode,
                  cublasSetAtomicsMode)
// Emulated f32 and f64 may be as exact as the plain ones, and are so here.
EMULATOR_PROPERTY(MathMode, cublasMath_t, math_mode,
                  (value & 0xf) <= CUBLAS_FP32_EMULATED_BF16X9_MATH ||
                      (value & 0xf) == CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH,
                  cublasGetMathMode, cublasSetMathMode)
EMULATOR_PROPERTY(SmCountTarget, int, processors, value >= 0, cublasGetSmCountTarget, cublasSetSmCountTarget)
EMULATOR_PROPERTY(Stream, cudaStream_t, stream, true, cublasGetStream_v2, cublasSetStream_v2)
#undef EMULATOR_PROPERTY

// Products here need no workspace, but NVIDIA's may use it.
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  return call("cublasSetWorkspace", [&] {
    const cublasContext& context = context_of(handle);
    if (bytes > 0)
      cuda::require_operands({"cuBLAS", "cublasSetWorkspace"},
                             {cuda::library_operand("the workspace", workspace, true, bytes)}, context.device);
  });
}

// Refusals go to stderr at every level: there is nothing else to log.
cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback) {
  log_callback = callback;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
  return call("cublasGetLoggerCallback", [&] {
    require(callback, "the callback is NULL");
    *callback = log_callback;
  });
}

#define EMULATOR_COPIES(Int, suffix)                                                                                  \
  cublasStatus_t cublasSetVector##suffix(Int n, Int size, const void* x, Int x_step, void* y, Int y_step) {           \
    return call("cublasSetVector",                                                                                    \
                [&] { copy_lines(1, n, size, x, x_step, y, y_step, cudaMemcpyHostToDevice, nullptr); });              \
  }                                                                                                                   \
  cublasStatus_t cublasGetVector##suffix(Int n, Int size, const void* x, Int x_step, void* y, Int y_step) {           \
    return call("cublasGetVector",                                                                                    \
                [&] { copy_lines(1, n, size, x, x_step, y, y_step, cudaMemcpyDeviceToHost, nullptr); });              \
  }                                                                                                                   \
  cublasStatus_t cublasSetVectorAsync##suffix(Int n, Int size, const void* x, Int x_step, void* y, Int y_step,        \
                                              cudaStream_t stream) {                                                  \
    return call("cublasSetVectorAsync",                                                                               \
                [&] { copy_lines(1, n, size, x, x_step, y, y_step, cudaMemcpyHostToDevice, &stream); });              \
  }                                                                                                                   \
  cublasStatus_t cublasGetVectorAsync##suffix(Int n, Int size, const void* x, Int x_step, void* y, Int y_step,        \
                                              cudaStream_t stream) {                                                  \
    return call("cublasGetVectorAsync",                                                                               \
                [&] { copy_lines(1, n, size, x, x_step, y, y_step, cudaMemcpyDeviceToHost, &stream); });              \
  }                                                                                                                   \
  cublasStatus_t cublasSetMatrix##suffix(Int rows, Int columns, Int size, const void* a, Int lda, void* b, Int ldb) { \
    return call("cublasSetMatrix",                                                                                    \
                [&] { copy_lines(rows, columns, size, a, lda, b, ldb, cudaMemcpyHostToDevice, nullptr); });           \
  }                                                                                                                   \
  cublasStatus_t cublasGetMatrix##suffix(Int rows, Int columns, Int size, const void* a, Int lda, void* b, Int ldb) { \
    return call("cublasGetMatrix",                                                                                    \
                [&] { copy_lines(rows, columns, size, a, lda, b, ldb, cudaMemcpyDeviceToHost, nullptr); });           \
  }                                                                                                                   \
  cublasStatus_t cublasSetMatrixAsync##suffix(Int rows, Int columns, Int size, const void* a, Int lda, void* b,       \
                                              Int ldb, cudaStream_t stream) {                                         \
    return call("cublasSetMatrixAsync",                                                                               \
                [&] { copy_lines(rows, columns, size, a, lda, b, ldb, cudaMemcpyHostToDevice, &stream); });           \
  }                                                                                                                   \
  cublasStatus_t cublasGetMatrixAsync##suffix(Int rows, Int columns, Int size, const void* a, Int lda, void* b,       \
                                              Int ldb, cudaStream_t stream) {                                         \
    return call("cublasGetMatrixAsync",                                                                               \
                [&] { copy_lines(rows, columns, size, a, lda, b, ldb, cudaMemcpyDeviceToHost, &stream); });           \
  }
EMULATOR_COPIES(int, )
EMULATOR_COPIES(int64_t, _64)
#undef EMULATOR_COPIES

}  // extern "C"
