// SPDX-License-Identifier: Apache-2.0
// A part of cusolverDn.h: the factorisations of real matrices, computed by LAPACK on this machine, in stream order.
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

using namespace emulator;
using lapack::Int;

struct cusolverDnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
struct cusolverDnParams {};
struct gesvdjInfo {};
struct syevjInfo {};

namespace {

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

std::mutex mutex;
std::set<cusolverDnHandle_t>& handles() {
  static auto& all = *new std::set<cusolverDnHandle_t>;
  return all;
}
cusolverDnContext& context_of(cusolverDnHandle_t handle) {
  const std::lock_guard lock(mutex);
  if (handles().count(handle) == 0)
    throw Failure{CUSOLVER_STATUS_NOT_INITIALIZED, "the handle is none, or was destroyed"};
  return *handle;
}

/// One line on stderr, once.
void say(const std::string& text) {
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
void same_types(std::initializer_list<cudaDataType> types) {
  for (const cudaDataType type : types)
    offer(type == *types.begin(), "data types ", *types.begin(), " and ", type, " in one call are not emulated");
}

Int size(const char* name, int64_t value) {
  require(value >= 0, name, " is ", value);
  offer(value <= INT32_MAX, name, " is ", value, ", and LAPACK takes up to 2^31 - 1");
  return static_cast<Int>(value);
}
Int step(const char* name, int64_t value, int64_t rows) {
  require(value >= std::max<int64_t>(rows, 1), "the leading dimension of ", name, " is ", value, ", and a column has ",
          rows, " elements");
  return size("a leading dimension", value);
}

/// The elements of a matrix that a call reads or writes.
enum class Part { all, lower, upper };
Part part_of(cublasFillMode_t fill) {
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
size_t bytes_of_work(cudaDataType type, int64_t n) {
  return static_cast<size_t>(std::max<int64_t>(n, 1)) * (type == CUDA_R_32F ? 4 : 8);
}
template <class T>
size_t bytes_of(int count) {
  return static_cast<size_t>(std::max(count, 0)) * sizeof(T);
}
void tell(size_t* device, size_t bytes, size_t* host, size_t host_bytes) {
  require(device && host, "a result is NULL");
  *device = bytes;
  *host = host_bytes;
}
cusolverStatus_t tell(const char* name, cusolverDnHandle_t handle, cudaDataType type, int64_t n, size_t* device,
                      size_t* host, bool needs_host) {
  return call(name, [&] {
    context_of(handle);
    size("n", n);
    with_type(type, [](auto) {});
    tell(device, bytes_of_work(type, n), host, needs_host ? bytes_of_work(type, n) : 0);
  });
}

/// LAPACK's call, first for its best workspace.
template <class T, class F>
void with_work(const F& run) {
  T best = 0;
  Int count = -1;
  run(&best, &count);
  count = std::max(static_cast<Int>(best), 1);
  std::vector<T> work(static_cast<size_t>(count));
  run(work.data(), &count);
}

/// LAPACK's syevd.
template <class T>
Int eigen(const lapack::Functions<T>& lapack, cusolverEigMode_t job, Part part, Int n, T* a, Int lda, T* w) {
  Int info = 0, count = 1 + 6 * n + 2 * n * n, int_count = 3 + 5 * n;
  std::vector<T> work(static_cast<size_t>(count));
  std::vector<Int> ints(static_cast<size_t>(int_count));
  lapack.syevd(job == CUSOLVER_EIG_MODE_VECTOR ? "V" : "N", part == Part::lower ? "L" : "U", &n, a, &lda, w,
               work.data(), &count, ints.data(), &int_count, &info, 1, 1);
  return info;
}

cusolverStatus_t jacobi_size(const char* name, cusolverDnHandle_t handle, int n, int* numbers, int count) {
  return call(name, [&] {
    context_of(handle);
    require(numbers, "the result is NULL");
    require(n >= 0 && count >= 0, "a size is negative");
    *numbers = std::max(n * count, 1);
  });
}

template <class T>
cusolverStatus_t syevj(const char* name, cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t fill, int n,
                       T* a, int lda, T* w, T* work, int numbers, int* info, syevjInfo_t options, int count) {
  return call(name, [&] {
    require(n >= 0 && count >= 0 && options, "a size is negative, or the options are NULL");
    step("A", lda, n);
    const Part part = part_of(fill);
    Request<T> request(handle, name, n, n);
    request.matrix("A", a, Use::write, n, n, lda, Part::all, count);
    request.may_be("the triangles of A");
    request.matrix("the triangles of A", a, Use::read, n, n, lda, part, count);
    request.memory("W", w, Use::write, static_cast<size_t>(n) * static_cast<size_t>(count) * sizeof(T));
    request.workspace(work, static_cast<size_t>(numbers) * sizeof(T),
                      static_cast<size_t>(std::max(n * count, 1)) * sizeof(T));
    request.run(
        info,
        [=](const lapack::Functions<T>& lapack, int64_t b) {
          return eigen(lapack, job, part, n, a + b * lda * n, lda, w + b * n);
        },
        count);
  });
}

template <class T>
cusolverStatus_t gesvdj(const char* name, cusolverDnHandle_t handle, cusolverEigMode_t job, int m, int n, T* a, int lda,
                        T* s, T* u, int ldu, T* v, int ldv, T* work, int numbers, int* info, gesvdjInfo_t options,
                        int count) {
  return call(name, [&] {
    require(m <= 32 && n <= 32, "A is ", m, 'x', n, ", and has at most 32 rows and columns");
    require(m >= 0 && n >= 0 && count >= 0 && options, "a size is negative, or the options are NULL");
    offer(job == CUSOLVER_EIG_MODE_VECTOR, "values without vectors are not emulated");
    step("A", lda, m), step("U", ldu, m), step("V", ldv, n);
    const Int K = std::min(m, n);
    Request<T> request(handle, name, m, n);
    request.matrix("A", a, Use::update, m, n, lda, Part::all, count);
    request.memory("S", s, Use::write, static_cast<size_t>(K) * static_cast<size_t>(count) * sizeof(T));
    request.matrix("U", u, Use::write, m, m, ldu, Part::all, count);
    request.matrix("V", v, Use::write, n, n, ldv, Part::all, count);
    request.workspace(work, static_cast<size_t>(numbers) * sizeof(T),
                      static_cast<size_t>(std::max(n * count, 1)) * sizeof(T));
    request.run(
        info,
        [=](const lapack::Functions<T>& lapack, int64_t b) {
          Int code = 0;
          std::vector<T> vt(static_cast<size_t>(n * n));
          with_work<T>([&](T* own, const Int* size) {
            lapack.gesvd("A", "A", &m, &n, a + b * lda * n, &lda, s + b * K, u + b * ldu * m, &ldu, vt.data(), &n, own,
                         size, &code, 1, 1);
          });
          for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) v[b * ldv * n + j * ldv + i] = vt[static_cast<size_t>(i * n + j)];
          return code;
        },
        count);
  });
}

template <class T>
void potrf(const char* name, cusolverDnHandle_t handle, cublasFillMode_t fill, int64_t n, T* a, int64_t lda, void* work,
           size_t bytes, int* info) {
  const Int count = size("n", n), columns = step("A", lda, n);
  const Part part = part_of(fill);
  Request<T> request(handle, name, n, n);
  request.matrix("A", a, Use::update, n, n, lda, part);
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    lapack.potrf(part == Part::lower ? "L" : "U", &count, a, &columns, &code, 1);
    return code;
  });
}

/// Pivots of 64 bits in the calls of all types, else of 32.
template <class T, class Pivot>
void getrf(const char* name, cusolverDnHandle_t handle, int64_t m, int64_t n, T* a, int64_t lda, Pivot* pivots,
           void* work, size_t bytes, int* info) {
  offer(pivots != nullptr, "a factorisation without pivots is not emulated");
  const Int rows = size("m", m), columns = size("n", n), ld = step("A", lda, m);
  const auto count = static_cast<size_t>(std::min(m, n));
  Request<T> request(handle, name, m, n);
  request.matrix("A", a, Use::update, m, n, lda);
  request.memory("the pivots", pivots, Use::write, count * sizeof(Pivot));
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    std::vector<Int> own(count);
    lapack.getrf(&rows, &columns, a, &ld, own.data(), &code);
    std::copy(own.begin(), own.end(), pivots);
    return code;
  });
}

template <class T, class Pivot>
void getrs(const char* name, cusolverDnHandle_t handle, cublasOperation_t op, int64_t n, int64_t columns, const T* a,
           int64_t lda, const Pivot* pivots, T* b, int64_t ldb, int* info) {
  offer(pivots != nullptr, "a solution without pivots is not emulated");
  require(op >= CUBLAS_OP_N && op <= CUBLAS_OP_C, "operation ", op, ": no such value");
  const Int order = size("n", n), right = size("nrhs", columns), ld = step("A", lda, n), ld_b = step("B", ldb, n);
  Request<T> request(handle, name, n, columns);
  request.matrix("A", a, Use::read, n, n, lda);
  request.memory("the pivots", pivots, Use::read, static_cast<size_t>(n) * sizeof(Pivot));
  request.matrix("B", b, Use::update, n, columns, ldb);
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    std::vector<Int> own(pivots, pivots + n);
    lapack.getrs(op == CUBLAS_OP_N ? "N" : "T", &order, &right, a, &ld, own.data(), b, &ld_b, &code, 1);
    return code;
  });
}

template <class T>
void geqrf(const char* name, cusolverDnHandle_t handle, int64_t m, int64_t n, T* a, int64_t lda, T* tau, void* work,
           size_t bytes, int* info) {
  const Int rows = size("m", m), columns = size("n", n), ld = step("A", lda, m);
  Request<T> request(handle, name, m, n);
  request.matrix("A", a, Use::update, m, n, lda);
  request.memory("tau", tau, Use::write, static_cast<size_t>(std::min(m, n)) * sizeof(T));
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    with_work<T>([&](T* own, const Int* count) { lapack.geqrf(&rows, &columns, a, &ld, tau, own, count, &code); });
    return code;
  });
}

/// Calls before_run(request) at its end, for operands that only one of its callers has.
template <class T, class F>
void gesvd(const char* name, cusolverDnHandle_t handle, signed char job_u, signed char job_vt, int64_t m, int64_t n,
           T* a, int64_t lda, T* s, T* u, int64_t ldu, T* vt, int64_t ldvt, void* work, size_t bytes, int* info,
           const F& before_run) {
  require(m >= n, "A has ", m, " rows and ", n, " columns: it must have no more columns than rows");
  for (const signed char job : {job_u, job_vt})
    require(job == 'A' || job == 'S' || job == 'O' || job == 'N', "job ", static_cast<int>(job),
            ": expected A, S, O or N");
  require(job_u != 'O' || job_vt != 'O', "both jobs are O, and A has room for one result");
  const bool has_u = job_u == 'A' || job_u == 'S', has_vt = job_vt == 'A' || job_vt == 'S';
  const Int rows = size("m", m), columns = size("n", n), ld = step("A", lda, m);
  const Int ld_u = step("U", ldu, has_u ? m : 1), ld_vt = step("VT", ldvt, has_vt ? n : 1);
  const char left[] = {static_cast<char>(job_u), 0}, right[] = {static_cast<char>(job_vt), 0};
  const std::string jobs = cat(left, right);
  Request<T> request(handle, name, m, n);
  request.matrix("A", a, Use::update, m, n, lda);
  request.memory("S", s, Use::write, static_cast<size_t>(n) * sizeof(T));
  if (has_u) request.matrix("U", u, Use::write, m, job_u == 'A' ? m : n, ldu);
  if (has_vt) request.matrix("VT", vt, Use::write, n, n, ldvt);
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  before_run(request);
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    with_work<T>([&](T* own, const Int* count) {
      lapack.gesvd(&jobs[0], &jobs[1], &rows, &columns, a, &ld, s, u, &ld_u, vt, &ld_vt, own, count, &code, 1, 1);
    });
    return code;
  });
}

template <class T>
cusolverStatus_t orgqr(const char* name, cusolverDnHandle_t handle, int m, int n, int k, T* a, int lda, const T* tau,
                       T* work, int count, int* info) {
  return call(name, [&] {
    require(m >= n && n >= k && k >= 0, "expected m >= n >= k, got ", m, ", ", n, ", ", k);
    step("A", lda, m);
    Request<T> request(handle, name, m, n);
    request.matrix("A", a, Use::write, m, n, lda);
    request.may_be("the reflectors");
    request.matrix("the reflectors", a, Use::read, m, k, lda, Part::lower);
    request.memory("tau", tau, Use::read, static_cast<size_t>(k) * sizeof(T));
    request.workspace(work, static_cast<size_t>(count) * sizeof(T), static_cast<size_t>(std::max(n, 1)) * sizeof(T));
    request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
      Int code = 0;
      with_work<T>([&](T* own, const Int* size) { lapack.orgqr(&m, &n, &k, a, &lda, tau, own, size, &code); });
      return code;
    });
  });
}
cusolverStatus_t count_size(const char* name, cusolverDnHandle_t handle, int n, int* count) {
  return call(name, [&] {
    context_of(handle);
    require(count, "the result is NULL");
    *count = std::max(n, 1);
  });
}

}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  return call("cusolverDnCreate", [&] {
    require(handle, "the handle is NULL");
    if (!lapack::library().complete)
      throw Failure{CUSOLVER_STATUS_NOT_INITIALIZED,
                    "the emulator computes by LAPACK, which is not installed. On Debian: apt-get install liblapack3"};
    cusolverDnContext made;
    if (const cudaError_t code = cudaGetDevice(&made.device); code != cudaSuccess)
      throw Failure{CUSOLVER_STATUS_NOT_INITIALIZED, cat("cudaGetDevice: ", cudaGetErrorString(code))};
    const std::lock_guard lock(mutex);
    handles().insert(*handle = new cusolverDnContext(made));
  });
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  return call("cusolverDnDestroy", [&] {
    context_of(handle);
    const std::lock_guard lock(mutex);
    handles().erase(handle);
    delete handle;
  });
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  return call("cusolverDnSetStream", [&] { context_of(handle).stream = stream; });
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  return call("cusolverDnGetStream", [&] {
    require(stream, "the result is NULL");
    *stream = context_of(handle).stream;
  });
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) {
  return call("cusolverDnCreateParams", [&] {
    require(params, "the result is NULL");
    *params = new cusolverDnParams;
  });
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
  delete params;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t, cusolverDnFunction_t, cusolverAlgMode_t) {
  return CUSOLVER_STATUS_SUCCESS;  // LAPACK has one algorithm
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t, int64_t n,
                                             cudaDataType type, const void*, int64_t, cudaDataType, size_t* device,
                                             size_t* host) {
  return tell("cusolverDnXpotrf_bufferSize", handle, type, n, device, host, false);
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t fill, int64_t n,
                                  cudaDataType type, void* a, int64_t lda, cudaDataType compute, void* work,
                                  size_t bytes, void*, size_t, int* info) {
  return call("cusolverDnXpotrf", [&] {
    same_types({type, compute});
    with_type(type, [&]<class T>(T) {
      potrf("cusolverDnXpotrf", handle, fill, n, static_cast<T*>(a), lda, work, bytes, info);
    });
  });
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t, int64_t n,
                                             cudaDataType type, const void*, int64_t, cudaDataType, size_t* device,
                                             size_t* host) {
  return tell("cusolverDnXgetrf_bufferSize", handle, type, n, device, host, false);
}
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* a, int64_t lda, int64_t* pivots, cudaDataType compute,
                                  void* work, size_t bytes, void*, size_t, int* info) {
  return call("cusolverDnXgetrf", [&] {
    same_types({type, compute});
    with_type(type, [&]<class T>(T) {
      getrf("cusolverDnXgetrf", handle, m, n, static_cast<T*>(a), lda, pivots, work, bytes, info);
    });
  });
}
cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasOperation_t op, int64_t n,
                                  int64_t columns, cudaDataType type, const void* a, int64_t lda, const int64_t* pivots,
                                  cudaDataType type_b, void* b, int64_t ldb, int* info) {
  return call("cusolverDnXgetrs", [&] {
    same_types({type, type_b});
    with_type(type, [&]<class T>(T) {
      getrs("cusolverDnXgetrs", handle, op, n, columns, static_cast<const T*>(a), lda, pivots, static_cast<T*>(b), ldb,
            info);
    });
  });
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t, int64_t n,
                                             cudaDataType type, const void*, int64_t, cudaDataType, const void*,
                                             cudaDataType, size_t* device, size_t* host) {
  return tell("cusolverDnXgeqrf_bufferSize", handle, type, n, device, host, false);
}
cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* a, int64_t lda, cudaDataType type_tau, void* tau,
                                  cudaDataType compute, void* work, size_t bytes, void*, size_t, int* info) {
  return call("cusolverDnXgeqrf", [&] {
    same_types({type, type_tau, compute});
    with_type(type, [&]<class T>(T) {
      geqrf("cusolverDnXgeqrf", handle, m, n, static_cast<T*>(a), lda, static_cast<T*>(tau), work, bytes, info);
    });
  });
}
cusolverStatus_t cusolverDnSorgqr_bufferSize(cusolverDnHandle_t handle, int, int n, int, const float*, int,
                                             const float*, int* count) {
  return count_size("cusolverDnSorgqr_bufferSize", handle, n, count);
}
cusolverStatus_t cusolverDnDorgqr_bufferSize(cusolverDnHandle_t handle, int, int n, int, const double*, int,
                                             const double*, int* count) {
  return count_size("cusolverDnDorgqr_bufferSize", handle, n, count);
}
cusolverStatus_t cusolverDnSorgqr(cusolverDnHandle_t handle, int m, int n, int k, float* a, int lda, const float* tau,
                                  float* work, int count, int* info) {
  return orgqr("cusolverDnSorgqr", handle, m, n, k, a, lda, tau, work, count, info);
}
cusolverStatus_t cusolverDnDorgqr(cusolverDnHandle_t handle, int m, int n, int k, double* a, int lda, const double* tau,
                                  double* work, int count, int* info) {
  return orgqr("cusolverDnDorgqr", handle, m, n, k, a, lda, tau, work, count, info);
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t,
                                             cublasFillMode_t, int64_t n, cudaDataType type, const void*, int64_t,
                                             cudaDataType, const void*, cudaDataType, size_t* device, size_t* host) {
  return tell("cusolverDnXsyevd_bufferSize", handle, type, n, device, host, true);
}
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t job,
                                  cublasFillMode_t fill, int64_t n, cudaDataType type, void* a, int64_t lda,
                                  cudaDataType type_w, void* w, cudaDataType compute, void* work, size_t bytes,
                                  void* host, size_t host_bytes, int* info) {
  return call("cusolverDnXsyevd", [&] {
    same_types({type, type_w, compute});
    require(job == CUSOLVER_EIG_MODE_NOVECTOR || job == CUSOLVER_EIG_MODE_VECTOR, "mode ", job, ": no such value");
    const Int order = size("n", n), ld = step("A", lda, n);
    offer(n <= 32000, "n is ", n, ", and LAPACK's workspace has up to 2^31 - 1 numbers");
    const Part part = part_of(fill);
    with_type(type, [&]<class T>(T) {
      Request<T> request(handle, "cusolverDnXsyevd", n, n);
      request.matrix("A", a, Use::write, n, n, lda);
      request.may_be("the triangle of A");
      request.matrix("the triangle of A", a, Use::read, n, n, lda, part);
      request.memory("W", w, Use::write, static_cast<size_t>(n) * sizeof(T));
      request.workspace(work, bytes, bytes_of_work(type, n));
      request.host_workspace(host, host_bytes, bytes_of_work(type, n));
      request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
        return eigen(lapack, job, part, order, static_cast<T*>(a), ld, static_cast<T*>(w));
      });
    });
  });
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, signed char, signed char,
                                             int64_t m, int64_t n, cudaDataType type, const void*, int64_t,
                                             cudaDataType, const void*, cudaDataType, const void*, int64_t,
                                             cudaDataType, const void*, int64_t, cudaDataType, size_t* device,
                                             size_t* host) {
  const cusolverStatus_t status = tell("cusolverDnXgesvd_bufferSize", handle, type, n, device, host, true);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  return call("cusolverDnXgesvd_bufferSize", [&] {
    require(m >= n, "A has ", m, " rows and ", n, " columns: it must have no more columns than rows");
  });
}
cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t, signed char job_u, signed char job_vt,
                                  int64_t m, int64_t n, cudaDataType type, void* a, int64_t lda, cudaDataType type_s,
                                  void* s, cudaDataType type_u, void* u, int64_t ldu, cudaDataType type_vt, void* vt,
                                  int64_t ldvt, cudaDataType compute, void* work, size_t bytes, void* host,
                                  size_t host_bytes, int* info) {
  return call("cusolverDnXgesvd", [&] {
    same_types({type, type_s, type_u, type_vt, compute});
    with_type(type, [&]<class T>(T) {
      gesvd("cusolverDnXgesvd", handle, job_u, job_vt, m, n, static_cast<T*>(a), lda, static_cast<T*>(s),
            static_cast<T*>(u), ldu, static_cast<T*>(vt), ldvt, work, bytes, info,
            [&](auto& request) { request.host_workspace(host, host_bytes, bytes_of_work(type, n)); });
    });
  });
}

// The calls of one type each: their workspaces are numbers, not bytes.
#define OF_ONE_TYPE(X, T)                                                                                             \
  cusolverStatus_t cusolverDn##X##potrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n, T*, int,       \
                                                   int* count) {                                                      \
    return count_size("cusolverDn" #X "potrf_bufferSize", handle, n, count);                                          \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##potrf(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, T* a, int lda,       \
                                        T* work, int count, int* info) {                                              \
    return call("cusolverDn" #X "potrf",                                                                              \
                [&] { potrf("cusolverDn" #X "potrf", handle, fill, n, a, lda, work, bytes_of<T>(count), info); });    \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##getrf_bufferSize(cusolverDnHandle_t handle, int, int n, T*, int, int* count) {      \
    return count_size("cusolverDn" #X "getrf_bufferSize", handle, n, count);                                          \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##getrf(cusolverDnHandle_t handle, int m, int n, T* a, int lda, T* work, int* pivots, \
                                        int* info) {                                                                  \
    return call("cusolverDn" #X "getrf", [&] {                                                                        \
      getrf("cusolverDn" #X "getrf", handle, m, n, a, lda, pivots, work, bytes_of<T>(std::max(n, 1)), info);          \
    });                                                                                                               \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##getrs(cusolverDnHandle_t handle, cublasOperation_t op, int n, int columns,          \
                                        const T* a, int lda, const int* pivots, T* b, int ldb, int* info) {           \
    return call("cusolverDn" #X "getrs",                                                                              \
                [&] { getrs("cusolverDn" #X "getrs", handle, op, n, columns, a, lda, pivots, b, ldb, info); });       \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##geqrf_bufferSize(cusolverDnHandle_t handle, int, int n, T*, int, int* count) {      \
    return count_size("cusolverDn" #X "geqrf_bufferSize", handle, n, count);                                          \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##geqrf(cusolverDnHandle_t handle, int m, int n, T* a, int lda, T* tau, T* work,      \
                                        int count, int* info) {                                                       \
    return call("cusolverDn" #X "geqrf",                                                                              \
                [&] { geqrf("cusolverDn" #X "geqrf", handle, m, n, a, lda, tau, work, bytes_of<T>(count), info); });  \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##gesvd_bufferSize(cusolverDnHandle_t handle, int, int n, int* count) {               \
    return count_size("cusolverDn" #X "gesvd_bufferSize", handle, n, count);                                          \
  }                                                                                                                   \
  cusolverStatus_t cusolverDn##X##gesvd(cusolverDnHandle_t handle, signed char job_u, signed char job_vt, int m,      \
                                        int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt, T* work,          \
                                        int count, T*, int* info) {                                                   \
    return call("cusolverDn" #X "gesvd", [&] {                                                                        \
      gesvd("cusolverDn" #X "gesvd", handle, job_u, job_vt, m, n, a, lda, s, u, ldu, vt, ldvt, work,                  \
            bytes_of<T>(count), info, [](auto&) {});                                                                  \
    });                                                                                                               \
  }
OF_ONE_TYPE(S, float)
OF_ONE_TYPE(D, double)
#undef OF_ONE_TYPE

// LAPACK's iterations have neither of these options; values are sorted.
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* options) {
  return call("cusolverDnCreateGesvdjInfo", [&] {
    require(options, "the result is NULL");
    *options = new gesvdjInfo;
  });
}
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t options) {
  delete options;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXgesvdjSetTolerance(gesvdjInfo_t, double) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXgesvdjSetSortEig(gesvdjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* options) {
  return call("cusolverDnCreateSyevjInfo", [&] {
    require(options, "the result is NULL");
    *options = new syevjInfo;
  });
}
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t options) {
  delete options;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t, double) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnSsyevjBatched_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t,
                                                    int n, const float*, int, const float*, int* numbers, syevjInfo_t,
                                                    int count) {
  return jacobi_size("cusolverDnSsyevjBatched_bufferSize", handle, n, numbers, count);
}
cusolverStatus_t cusolverDnSsyevjBatched(cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t fill, int n,
                                         float* a, int lda, float* w, float* work, int numbers, int* info,
                                         syevjInfo_t options, int count) {
  return syevj("cusolverDnSsyevjBatched", handle, job, fill, n, a, lda, w, work, numbers, info, options, count);
}
cusolverStatus_t cusolverDnSgesvdjBatched_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, int, int n,
                                                     const float*, int, const float*, const float*, int, const float*,
                                                     int, int* numbers, gesvdjInfo_t, int count) {
  return jacobi_size("cusolverDnSgesvdjBatched_bufferSize", handle, n, numbers, count);
}
cusolverStatus_t cusolverDnSgesvdjBatched(cusolverDnHandle_t handle, cusolverEigMode_t job, int m, int n, float* a,
                                          int lda, float* s, float* u, int ldu, float* v, int ldv, float* work,
                                          int numbers, int* info, gesvdjInfo_t options, int count) {
  return gesvdj("cusolverDnSgesvdjBatched", handle, job, m, n, a, lda, s, u, ldu, v, ldv, work, numbers, info, options,
                count);
}
cusolverStatus_t cusolverDnDsyevjBatched_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t,
                                                    int n, const double*, int, const double*, int* numbers, syevjInfo_t,
                                                    int count) {
  return jacobi_size("cusolverDnDsyevjBatched_bufferSize", handle, n, numbers, count);
}
cusolverStatus_t cusolverDnDsyevjBatched(cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t fill, int n,
                                         double* a, int lda, double* w, double* work, int numbers, int* info,
                                         syevjInfo_t options, int count) {
  return syevj("cusolverDnDsyevjBatched", handle, job, fill, n, a, lda, w, work, numbers, info, options, count);
}
cusolverStatus_t cusolverDnDgesvdjBatched_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, int, int n,
                                                     const double*, int, const double*, const double*, int,
                                                     const double*, int, int* numbers, gesvdjInfo_t, int count) {
  return jacobi_size("cusolverDnDgesvdjBatched_bufferSize", handle, n, numbers, count);
}
cusolverStatus_t cusolverDnDgesvdjBatched(cusolverDnHandle_t handle, cusolverEigMode_t job, int m, int n, double* a,
                                          int lda, double* s, double* u, int ldu, double* v, int ldv, double* work,
                                          int numbers, int* info, gesvdjInfo_t options, int count) {
  return gesvdj("cusolverDnDgesvdjBatched", handle, job, m, n, a, lda, s, u, ldu, v, ldv, work, numbers, info, options,
                count);
}

cusolverStatus_t cusolverGetVersion(int* version) {
  return call("cusolverGetVersion", [&] {
    require(version, "the version is NULL");
    *version = CUSOLVER_VERSION;
  });
}
cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int* value) {
  return call("cusolverGetProperty", [&] {
    require(value && type >= MAJOR_VERSION && type <= PATCH_LEVEL, "no such property");
    *value = type == MAJOR_VERSION   ? CUSOLVER_VER_MAJOR
             : type == MINOR_VERSION ? CUSOLVER_VER_MINOR
                                     : CUSOLVER_VER_PATCH;
  });
}

}  // extern "C"

namespace emulator::solver {
int refuse_call(const char* name) noexcept {
  return call(name, [] { offer(false, "this call is not emulated"); });
}
}  // namespace emulator::solver
