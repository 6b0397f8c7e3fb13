// SPDX-License-Identifier: Apache-2.0
// A call of cuSOLVER: its arguments' checks, and its way into the handle's stream.
#pragma once
#pragma GCC visibility push(default)
#include <cusolverDn.h>
#pragma GCC visibility pop

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "emulator/cuda/library_stream.h"
#include "emulator/cusolver/lapack.h"
#include "emulator/machine/findings.h"

struct cusolverDnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
struct cusolverDnParams {};
struct gesvdjInfo {};
struct syevjInfo {};
namespace emulator::solver {

using lapack::Int;

struct Failure {
  cusolverStatus_t status;
  std::string text;
};
template <class... T>
void require(bool right, const T&... text) {
  if (!right) throw Failure{CUSOLVER_STATUS_INVALID_VALUE, cat(text...)};
}
/// For what the emulator lacks: the exit code changes.
template <class... T>
void offer(bool offered, const T&... text) {
  if (offered) return;
  count_fault();
  throw Failure{CUSOLVER_STATUS_NOT_SUPPORTED, cat(text...)};
}

inline std::mutex mutex;
inline std::set<cusolverDnHandle_t>& handles() {
  static auto& all = *new std::set<cusolverDnHandle_t>;
  return all;
}
inline cusolverDnContext& context_of(cusolverDnHandle_t handle) {
  const std::lock_guard lock(mutex);
  if (handles().count(handle) == 0)
    throw Failure{CUSOLVER_STATUS_NOT_INITIALIZED, "the handle is none, or was destroyed"};
  return *handle;
}

/// One line on stderr, once.
inline void say(const std::string& text) {
  static auto& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "weft-emulate: %s\n", text.c_str());
}

template <class F>
cusolverStatus_t call(const char* name, F&& body) noexcept {
  try {
    body();
    return CUSOLVER_STATUS_SUCCESS;
  } catch (const Failure& failure) {
    say(cat(name, ": ", failure.text, " (status ", failure.status, " of cuSOLVER)"));
    return failure.status;
  } catch (const cuda::LibraryMisuse&) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  } catch (const std::bad_alloc&) {
    return CUSOLVER_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    say(cat(name, ": ", error.what()));
    return CUSOLVER_STATUS_INTERNAL_ERROR;
  }
}

/// Calls body(T()) for the type of real numbers.
template <class F>
void with_type(cudaDataType type, const F& body) {
  offer(type == CUDA_R_32F || type == CUDA_R_64F, "data type ", type,
        " is not emulated: CUDA_R_32F and CUDA_R_64F are");
  if (type == CUDA_R_32F)
    body(0.0F);
  else
    body(0.0);
}
inline void same_types(std::initializer_list<cudaDataType> types) {
  for (const cudaDataType type : types)
    offer(type == *types.begin(), "data types ", *types.begin(), " and ", type, " in one call are not emulated");
}

inline Int size(const char* name, int64_t value) {
  require(value >= 0, name, " is ", value);
  offer(value <= INT32_MAX, name, " is ", value, ", and LAPACK takes up to 2^31 - 1");
  return static_cast<Int>(value);
}
inline Int step(const char* name, int64_t value, int64_t rows) {
  require(value >= std::max<int64_t>(rows, 1), "the leading dimension of ", name, " is ", value, ", and a column has ",
          rows, " elements");
  return size("a leading dimension", value);
}

/// The elements of a matrix that a call reads or writes.
enum class Part { all, lower, upper };
inline Part part_of(cublasFillMode_t fill) {
  require(fill == CUBLAS_FILL_MODE_LOWER || fill == CUBLAS_FILL_MODE_UPPER, "fill mode ", fill, ": no such value");
  return fill == CUBLAS_FILL_MODE_LOWER ? Part::lower : Part::upper;
}
enum class Use { read, write, update };

/// A call on its way into the handle's stream.
template <class T>
class Request {
 public:
  Request(cusolverDnHandle_t handle, const char* name, int64_t m, int64_t n)
      : context_(context_of(handle)),
        call_{"cuSOLVER", cat(name, " of ", m, 'x', n, sizeof(T) == 4 ? " f32" : " f64")} {}

  void matrix(const char* name, const void* at, Use use, int64_t rows, int64_t columns, int64_t ld, Part part = {},
              int64_t count = 1) {
    std::vector<cuda::LibraryRange> ranges;
    for (int64_t j = 0; j < columns * count; ++j) {
      const int64_t first = part == Part::lower ? std::min(j % columns, rows) : 0,
                    end = part == Part::upper ? std::min(j % columns + 1, rows) : rows;
      const auto column = reinterpret_cast<uintptr_t>(at) + static_cast<uintptr_t>(j * ld) * sizeof(T);
      if (first < end)
        ranges.push_back(
            {column + static_cast<uintptr_t>(first) * sizeof(T), column + static_cast<uintptr_t>(end) * sizeof(T)});
    }
    operands_.push_back(cuda::library_operand(name, at, use != Use::read, sizeof(T), std::move(ranges)));
    operands_.back().read_too = use == Use::update;
  }
  void memory(const char* name, const void* at, Use use, size_t bytes) {
    operands_.push_back(cuda::library_operand(name, at, use != Use::read, bytes));
  }
  /// The last operand may lie where `name` does.
  void may_be(const char* name) { operands_.back().may_be.emplace_back(name); }

  void workspace(const void* device, size_t bytes, size_t needed) {
    require(bytes >= needed, "the workspace has ", bytes, " bytes, and the call needs ", needed);
    if (needed > 0) memory("the workspace", device, Use::write, needed);
  }
  void host_workspace(const void* host, size_t bytes, size_t needed) {
    require(bytes >= needed, "the host's workspace has ", bytes, " bytes, and the call needs ", needed);
    if (needed > 0) require(host != nullptr, "the host's workspace is NULL");
    if (needed > 0) cuda::require_host(call_, "the host's workspace", host);
  }

  /// compute(LAPACK's functions, b) returns info of matrix b.
  void run(int* info, std::function<Int(const lapack::Functions<T>&, int64_t)> compute, int64_t count = 1) {
    memory("info", info, Use::write, static_cast<size_t>(count) * sizeof(int));
    cudaError_t code = cuda::require_stream(call_, context_.stream, context_.device);
    if (code == cudaSuccess) {
      cuda::require_operands(call_, operands_, context_.device);
      code = cuda::enqueue_library_call(context_.stream, call_, std::move(operands_), [=] {
        for (int64_t b = 0; b < count; ++b) info[b] = compute(lapack::library().of<T>(), b);
      });
    }
    if (code != cudaSuccess)
      throw Failure{CUSOLVER_STATUS_EXECUTION_FAILED, cat("the stream: ", cudaGetErrorString(code))};
  }

 private:
  const cusolverDnContext& context_;
  cuda::LibraryCall call_;
  std::vector<cuda::LibraryOperand> operands_;
};

/// Bytes of workspaces are this library's: NVIDIA's differ.
inline size_t bytes_of_work(cudaDataType type, int64_t n) {
  return static_cast<size_t>(std::max<int64_t>(n, 1)) * (type == CUDA_R_32F ? 4 : 8);
}
template <class T>
size_t bytes_of(int count) {
  return static_cast<size_t>(std::max(count, 0)) * sizeof(T);
}
inline void tell(size_t* device, size_t bytes, size_t* host, size_t host_bytes) {
  require(device && host, "a result is NULL");
  *device = bytes;
  *host = host_bytes;
}
inline cusolverStatus_t tell(const char* name, cusolverDnHandle_t handle, cudaDataType type, int64_t n, size_t* device,
                             size_t* host, bool needs_host) {
  return call(name, [&] {
    context_of(handle);
    size("n", n);
    with_type(type, [](auto) {});
    tell(device, bytes_of_work(type, n), host, needs_host ? bytes_of_work(type, n) : 0);
  });
}

}  // namespace emulator::solver
