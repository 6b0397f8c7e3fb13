// SPDX-License-Identifier: Apache-2.0
// A part of cusolverDn.h: the entry points.
#include "emulator/cusolver/factorisations.h"

using namespace emulator;
using namespace emulator::solver;

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
