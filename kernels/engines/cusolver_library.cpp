// SPDX-License-Identifier: Apache-2.0
#include <cusolverDn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/contracts/copy.h"
#include "kernels/cuda/linalg_checks.h"
#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/cusolver.h"
#include "kernels/engines/vendor_library.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/kernel_variant.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/transfer.h"

namespace weft::kernels::vendor::cusolver {
namespace {

// clang-format off
#define WEFT_CUSOLVER_FUNCTIONS(X)                                                                        \
  X(Create) X(Destroy) X(CreateParams) X(DestroyParams) X(SetStream)                                      \
  X(CreateGesvdjInfo) X(DestroyGesvdjInfo) X(XgesvdjSetSortEig)                                           \
  X(CreateSyevjInfo) X(DestroySyevjInfo) X(XsyevjSetSortEig)                                              \
  X(Xpotrf_bufferSize) X(Xpotrf) X(Xgetrf_bufferSize) X(Xgetrf) X(Xgetrs) X(Xgeqrf_bufferSize) X(Xgeqrf)  \
  X(Xsyevd_bufferSize) X(Xsyevd) X(Xgesvd_bufferSize) X(Xgesvd)
#define WEFT_CUSOLVER_TYPED(X)                                                                            \
  X(orgqr_bufferSize) X(orgqr) X(syevjBatched_bufferSize) X(syevjBatched)                                 \
  X(gesvdjBatched_bufferSize) X(gesvdjBatched)
#define WEFT_CUBLAS_FUNCTIONS(X) X(Create_v2) X(Destroy_v2) X(SetStream_v2) X(Strsm_v2) X(Dtrsm_v2)
// clang-format on

/// The functions that Weft calls, found when the first is needed.
struct Library {
#define WEFT_CUSOLVER_MEMBER(name) decltype(&cusolverDn##name) name = nullptr;
  WEFT_CUSOLVER_FUNCTIONS(WEFT_CUSOLVER_MEMBER)
#undef WEFT_CUSOLVER_MEMBER
#define WEFT_CUSOLVER_MEMBERS(name)               \
  decltype(&cusolverDnS##name) S##name = nullptr; \
  decltype(&cusolverDnD##name) D##name = nullptr;
  WEFT_CUSOLVER_TYPED(WEFT_CUSOLVER_MEMBERS)
#undef WEFT_CUSOLVER_MEMBERS
#define WEFT_CUBLAS_MEMBER(name) decltype(&cublas##name) blas##name = nullptr;
  WEFT_CUBLAS_FUNCTIONS(WEFT_CUBLAS_MEMBER)
#undef WEFT_CUBLAS_MEMBER
  std::string missing;
};

Library load() {
  constexpr const char* kRelease = "that of the CUDA toolkit";
  const auto open = [&](const std::string& file) {
    return VendorLibrary(file, WEFT_CUSOLVER_FOLDER, kRelease, why_not_under_emulator(file, "The host computes there"));
  };
  VendorLibrary solver = open(str("libcusolver.so.", CUSOLVER_VER_MAJOR));  // another major version has another ABI
  VendorLibrary blas = open(str("libcublas.so.", CUBLAS_VER_MAJOR));
  Library library;
#define WEFT_CUSOLVER_FIND(name) solver.find(library.name, "cusolverDn" #name);
  WEFT_CUSOLVER_FUNCTIONS(WEFT_CUSOLVER_FIND)
#undef WEFT_CUSOLVER_FIND
#define WEFT_CUSOLVER_FIND(name)                     \
  solver.find(library.S##name, "cusolverDnS" #name); \
  solver.find(library.D##name, "cusolverDnD" #name);
  WEFT_CUSOLVER_TYPED(WEFT_CUSOLVER_FIND)
#undef WEFT_CUSOLVER_FIND
#define WEFT_CUBLAS_FIND(name) blas.find(library.blas##name, "cublas" #name);
  WEFT_CUBLAS_FUNCTIONS(WEFT_CUBLAS_FIND)
#undef WEFT_CUBLAS_FIND
  library.missing = solver.missing.empty() ? blas.missing : solver.missing;
  if (library.missing.starts_with("cannot load"))
    library.missing += ". cuSOLVER needs the toolkit's cuBLAS, cuSPARSE and nvJitLink there, too";
  if (!library.missing.empty()) return library;
  cusolverDnHandle_t handle = nullptr;
  if (library.Create(&handle) == CUSOLVER_STATUS_NOT_INITIALIZED)
    library.missing = solver.file + " cannot start (cusolverDnCreate gave status 1)";
  if (handle) library.Destroy(handle);
  return library;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

// Calls of both precisions by one name.
#define WEFT_CUSOLVER_CALL(name)                  \
  template <class T, class... Arguments>          \
  cusolverStatus_t name(Arguments... arguments) { \
    if constexpr (std::is_same_v<T, float>)       \
      return library().S##name(arguments...);     \
    else                                          \
      return library().D##name(arguments...);     \
  }
WEFT_CUSOLVER_TYPED(WEFT_CUSOLVER_CALL)
#undef WEFT_CUSOLVER_CALL

void check(const char* op, const char* call, cusolverStatus_t status) {
  WEFT_CHECK(status == CUSOLVER_STATUS_SUCCESS, op, ": cusolverDn", call, " gave status ", static_cast<int>(status),
             status == CUSOLVER_STATUS_ALLOC_FAILED ? ", no memory" : "");
}
void check(const char* op, const char* call, cublasStatus_t status) {
  WEFT_CHECK(status == CUBLAS_STATUS_SUCCESS, op, ": cublas", call, " gave status ", static_cast<int>(status),
             status == CUBLAS_STATUS_ALLOC_FAILED ? ", no memory" : "");
}

/// Both libraries' handles. They own memory that kernels in flight use: one call at a time has them.
struct Handles {
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
  gesvdjInfo_t svd_options = nullptr;
  syevjInfo_t eigen_options = nullptr;
  cublasHandle_t blas = nullptr;

  /// False: no memory, or the libraries cannot start.
  bool make() {
    if (library().Create(&solver) == CUSOLVER_STATUS_SUCCESS &&
        library().CreateParams(&params) == CUSOLVER_STATUS_SUCCESS &&
        library().CreateGesvdjInfo(&svd_options) == CUSOLVER_STATUS_SUCCESS &&
        library().XgesvdjSetSortEig(svd_options, 1) == CUSOLVER_STATUS_SUCCESS &&
        library().CreateSyevjInfo(&eigen_options) == CUSOLVER_STATUS_SUCCESS &&
        library().XsyevjSetSortEig(eigen_options, 1) == CUSOLVER_STATUS_SUCCESS &&
        library().blasCreate_v2(&blas) == CUBLAS_STATUS_SUCCESS)
      return true;
    destroy();
    return false;
  }
  void destroy() {
    if (blas) library().blasDestroy_v2(blas);
    if (eigen_options) library().DestroySyevjInfo(eigen_options);
    if (svd_options) library().DestroyGesvdjInfo(svd_options);
    if (params) library().DestroyParams(params);
    if (solver) library().Destroy(solver);
    *this = {};
  }
};

/// Handles of devices that no call uses.
struct IdleHandles {
  std::mutex mutex;
  std::map<int, std::vector<Handles>> of_device;
  static IdleHandles& all() {
    static auto& idle = *new IdleHandles;  // stays at the end, when the driver may have gone
    return idle;
  }
};

/// Matrix b of a dense batch.
void* at(const View& view, int64_t b) {
  const int64_t elements = view.numel() / view.sizes[0];
  return static_cast<std::byte*>(view.data) + static_cast<size_t>(b * elements) * size_of(view.dtype);
}

/// A batch x [B, M, N] on its way through the libraries, with codes that the device finds for each matrix.
class Batch {
 public:
  const char* const op;
  const Queue& queue;
  const View& x;
  const int64_t B, M, N, K;
  const cudaDataType type;

  Batch(const char* name, const Queue& on, const View& matrices)
      : op(name),
        queue(on),
        x(matrices),
        B(x.sizes[0]),
        M(x.sizes[1]),
        N(x.sizes[2]),
        K(std::min(M, N)),
        type(x.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F) {
    codes_.emplace(queue, bytes_of_codes(), op);
    runtime(DeviceKind::cuda).fill_bytes(queue.device.index, codes_->data(), 0, bytes_of_codes(), queue.stream);
    obtain_handles();
  }
  /// The handles are idle again, unless an error leaves their work in flight.
  ~Batch() {
    if (in_flight_) {
      handles_.destroy();
      return;
    }
    IdleHandles& idle = IdleHandles::all();
    const std::lock_guard lock(idle.mutex);
    idle.of_device[queue.device.index].push_back(handles_);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Codes on the device: whether x and the right-hand side have inf or NaN; the library's of each matrix.
  int32_t* wrong() const { return codes_->as<int32_t>(); }
  int32_t* wrong_right_side() const { return wrong() + B; }
  int* info(int64_t b = 0) const { return wrong() + 2 * B + b; }

  /// Waits for the device, then calls check(b, its code, whether its right-hand side is finite) for each matrix b.
  /// Errors: inf or NaN in x; those of `check`.
  template <class Check>
  void wait(const Check& check) {
    std::vector<int32_t> codes(static_cast<size_t>(3 * B));
    transfer(queue, "copy_to_host", codes.data(), codes_->data(), bytes_of_codes());
    runtime(DeviceKind::cuda).synchronize_stream(queue.device.index, queue.stream);
    in_flight_ = false;
    const auto code = [&](int64_t kind, int64_t b) { return codes[static_cast<size_t>(kind * B + b)]; };
    for (int64_t b = 0; b < B; ++b) {
      check_finite(op, code(0, b) == 0, b, x);
      check(b, code(2, b), code(1, b) == 0);
    }
    note_kernel_variant("cusolver");
  }

  /// For a call that takes its handles itself.
  const Handles& start() {
    in_flight_ = true;
    return handles_;
  }

  /// Runs cuSOLVER's `call` for each matrix b, with workspaces of the bytes that `size` says. arguments(b): a tuple of
  /// those that both take.
  template <class Size, class Call, class Arguments>
  void each(const char* name, const Size& size, const Call& call, const Arguments& arguments) {
    const Handles& with = start();
    size_t bytes = 0, host_bytes = 0;
    const auto sized = [&](auto... both) { return size(with.solver, with.params, both..., &bytes, &host_bytes); };
    check(op, name, std::apply(sized, arguments(0)));
    std::optional<Workspace> work;
    if (bytes > 0) work.emplace(queue, bytes, op);
    std::vector<std::byte> host(host_bytes);
    for (int64_t b = 0; b < B; ++b) {
      const auto called = [&](auto... both) {
        return call(with.solver, with.params, both..., work ? work->data() : nullptr, bytes, host.data(), host_bytes,
                    info(b));
      };
      check(op, name, std::apply(called, arguments(b)));
    }
  }

 private:
  size_t bytes_of_codes() const { return static_cast<size_t>(3 * B) * sizeof(int32_t); }

  void obtain_handles() {
    {
      IdleHandles& idle = IdleHandles::all();
      const std::lock_guard lock(idle.mutex);
      std::vector<Handles>& here = idle.of_device[queue.device.index];
      if (!here.empty()) {
        handles_ = here.back();
        here.pop_back();
      }
    }
    if (!handles_.solver && !handles_.make()) {
      CachingAllocator::of(queue.device).empty_cache();  // NVIDIA's libraries allocate by themselves
      select_device(queue.device.index);
      WEFT_CHECK(handles_.make(), op, ": cuSOLVER or cuBLAS makes no handle. Is the GPU's memory full?");
    }
    const auto stream = static_cast<cudaStream_t>(queue.stream);
    check(op, "SetStream", library().SetStream(handles_.solver, stream));
    check(op, "SetStream", library().blasSetStream_v2(handles_.blas, stream));
  }

  Handles handles_;
  std::optional<Workspace> codes_;
  bool in_flight_ = false;
};

View transposed(View view) {
  std::swap(view.sizes[1], view.sizes[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

/// Memory for dense matrices [B, columns, rows]. The libraries count by columns: for them it is [B, rows, columns].
class ByColumns {
 public:
  ByColumns(const Batch& batch, int64_t rows, int64_t columns)
      : memory_(batch.queue, static_cast<size_t>(batch.B * rows * columns) * size_of(batch.x.dtype), batch.op),
        view_(View::dense(memory_.data(), batch.x.dtype, {batch.B, columns, rows})) {}
  const View& view() const { return view_; }

 private:
  Workspace memory_;
  View view_;
};

/// P a = l u for a [B, N, N] by columns, in place; `pivots` [B, N].
void factorise(Batch& batch, const View& a, int64_t* pivots) {
  const int64_t N = batch.N;
  const cudaDataType type = batch.type;
  int64_t* next = pivots;  // the one argument that only the call takes
  const auto call = [&](auto handle, auto params, auto m, auto n, auto a_type, auto data, auto lda, auto... rest) {
    int64_t* const own = next;
    next += N;
    return library().Xgetrf(handle, params, m, n, a_type, data, lda, own, rest...);
  };
  batch.each("Xgetrf", library().Xgetrf_bufferSize, call,
             [&](int64_t b) { return std::tuple{N, N, type, at(a, b), N, type}; });
}

size_t bytes_of_pivots(const Batch& batch) { return static_cast<size_t>(batch.B * batch.N) * sizeof(int64_t); }

/// Does one call of Jacobi's iteration take all matrices? It is made for many small ones.
bool fits_jacobi(const Batch& batch) {
  constexpr int64_t kLargest = 32;  // gesvdjBatched's
  return batch.B > 1 && batch.B <= INT32_MAX && std::max(batch.M, batch.N) <= kLargest;
}

/// Runs call(workspace, its numbers) after size(&its numbers).
template <class T, class Size, class Call>
void with_numbers(const Batch& batch, const char* name, const Size& size, const Call& call) {
  int count = 0;
  check(batch.op, name, size(&count));
  const Workspace work(batch.queue, static_cast<size_t>(std::max(count, 1)) * sizeof(T), batch.op);
  check(batch.op, name, call(work.as<T>(), count));
}

/// The library counts by columns, and sees x^T = left diag(s) right^T.
void svd_by_jacobi(Batch& batch, const View& u, const View& s, const View& vh) {
  const ByColumns a(batch, batch.N, batch.M), left(batch, batch.N, batch.N), right(batch, batch.M, batch.M);
  cuda::copy(batch.queue, a.view(), batch.x);
  with_dtype<float, double>(batch.x.dtype, "svd", [&]<class T>() {
    const Handles& with = batch.start();
    const auto m = static_cast<int>(batch.N), n = static_cast<int>(batch.M), count = static_cast<int>(batch.B);
    T *const A = a.view().as<T>(), *const S = s.as<T>(), *const U = left.view().as<T>(),
             *const V = right.view().as<T>();
    with_numbers<T>(
        batch, "gesvdjBatched",
        [&](int* numbers) {
          return gesvdjBatched_bufferSize<T>(with.solver, CUSOLVER_EIG_MODE_VECTOR, m, n, A, m, S, U, m, V, n, numbers,
                                             with.svd_options, count);
        },
        [&](T* work, int numbers) {
          return gesvdjBatched<T>(with.solver, CUSOLVER_EIG_MODE_VECTOR, m, n, A, m, S, U, m, V, n, work, numbers,
                                  batch.info(), with.svd_options, count);
        });
  });
  View first_of_left = left.view(), first_of_right = transposed(right.view());
  first_of_left.sizes[1] = first_of_right.sizes[2] = batch.K;
  cuda::copy(batch.queue, vh, first_of_left);
  cuda::copy(batch.queue, u, first_of_right);
}

/// Xgesvd takes no more columns than rows. A wide x counts as x^T = vh^T diag(s) u^T, which it is by columns.
void svd_of_each(Batch& batch, const View& u, const View& s, const View& vh) {
  const bool is_wide = batch.N >= batch.M;
  const int64_t K = batch.K, rows = std::max(batch.M, batch.N);
  const cudaDataType type = batch.type;
  const ByColumns a(batch, rows, K);
  std::optional<ByColumns> own_left, own_right;
  const View& left = is_wide ? vh : own_left.emplace(batch, rows, K).view();
  const View& right = is_wide ? u : own_right.emplace(batch, K, K).view();
  cuda::copy(batch.queue, a.view(), is_wide ? batch.x : transposed(batch.x));
  batch.each("Xgesvd", library().Xgesvd_bufferSize, library().Xgesvd, [&](int64_t b) {
    constexpr signed char kReduced = 'S';
    return std::tuple{kReduced, kReduced, rows,        K,    type, at(a.view(), b), rows, type,
                      at(s, b), type,     at(left, b), rows, type, at(right, b),    K,    type};
  });
  if (is_wide) return;
  cuda::copy(batch.queue, u, transposed(left));
  cuda::copy(batch.queue, vh, transposed(right));
}

}  // namespace

const std::string& missing() { return library().missing; }

void svd(const Queue& queue, const View& u, const View& s, const View& vh, const View& x) {
  if (!has_matrices("svd", x, {&u, &s, &vh})) return;
  Batch batch("svd", queue, x);
  cuda::find_not_finite(queue, batch.wrong(), x, MatrixPart::all);
  batch.wait([](int64_t, int, bool) {});  // the iteration may not end with NaN
  fits_jacobi(batch) ? svd_by_jacobi(batch, u, s, vh) : svd_of_each(batch, u, s, vh);
  batch.wait([](int64_t b, int info, bool) { check_convergence("svd", info, b); });
}

void eigh(const Queue& queue, const View& w, const View& v, const View& x) {
  if (!has_matrices("eigh", x, {&w, &v})) return;
  Batch batch("eigh", queue, x);
  cuda::find_not_finite(queue, batch.wrong(), x, MatrixPart::lower);
  batch.wait([](int64_t, int, bool) {});
  const int64_t N = batch.N;
  const cudaDataType type = batch.type;
  const ByColumns a(batch, N, N);
  cuda::copy(queue, a.view(), x);
  constexpr cusolverEigMode_t kVectors = CUSOLVER_EIG_MODE_VECTOR;
  constexpr cublasFillMode_t kUpper = CUBLAS_FILL_MODE_UPPER;  // the lower triangle by rows
  if (!fits_jacobi(batch))
    batch.each("Xsyevd", library().Xsyevd_bufferSize, library().Xsyevd, [&](int64_t b) {
      return std::tuple{kVectors, kUpper, N, type, at(a.view(), b), N, type, at(w, b), type};
    });
  else
    with_dtype<float, double>(x.dtype, "eigh", [&]<class T>() {
      const Handles& with = batch.start();
      const auto n = static_cast<int>(N), count = static_cast<int>(batch.B);
      T *const A = a.view().as<T>(), *const W = w.as<T>();
      with_numbers<T>(
          batch, "syevjBatched",
          [&](int* numbers) {
            return syevjBatched_bufferSize<T>(with.solver, kVectors, kUpper, n, A, n, W, numbers, with.eigen_options,
                                              count);
          },
          [&](T* work, int numbers) {
            return syevjBatched<T>(with.solver, kVectors, kUpper, n, A, n, W, work, numbers, batch.info(),
                                   with.eigen_options, count);
          });
    });
  cuda::copy(queue, v, transposed(a.view()));
  batch.wait([](int64_t b, int info, bool) { check_convergence("eigh", info, b); });
}

void qr(const Queue& queue, const View& q, const View& r, const View& x) {
  if (!has_matrices("qr", x, {&q, &r})) return;
  Batch batch("qr", queue, x);
  cuda::find_not_finite(queue, batch.wrong(), x, MatrixPart::all);
  const int64_t M = batch.M, N = batch.N, K = batch.K;
  const cudaDataType type = batch.type;
  const ByColumns a(batch, M, N), tau(batch, K, 1);
  cuda::copy(queue, a.view(), transposed(x));
  batch.each("Xgeqrf", library().Xgeqrf_bufferSize, library().Xgeqrf,
             [&](int64_t b) { return std::tuple{M, N, type, at(a.view(), b), M, type, at(tau.view(), b), type}; });
  View upper = transposed(a.view());
  upper.sizes[1] = K;
  cuda::copy(queue, r, upper);
  cuda::keep_part(queue, r, MatrixPart::upper);
  with_dtype<float, double>(x.dtype, "qr", [&]<class T>() {
    const cusolverDnHandle_t solver = batch.start().solver;
    const auto m = static_cast<int>(M), k = static_cast<int>(K);
    T *const A = a.view().as<T>(), *const taus = tau.view().as<T>();
    with_numbers<T>(
        batch, "orgqr", [&](int* numbers) { return orgqr_bufferSize<T>(solver, m, k, k, A, m, taus, numbers); },
        [&](T* work, int numbers) {
          cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
          for (int64_t b = 0; b < batch.B && status == CUSOLVER_STATUS_SUCCESS; ++b)
            status = orgqr<T>(solver, m, k, k, A + b * M * N, m, taus + b * K, work, numbers, batch.info(b));
          return status;
        });
  });
  View columns = transposed(a.view());
  columns.sizes[2] = K;
  cuda::copy(queue, q, columns);
  batch.wait([](int64_t, int info, bool) { check_parameters("qr", info); });
}

void cholesky(const Queue& queue, const View& l, const View& x) {
  if (!has_matrices("cholesky", x, {&l})) return;
  Batch batch("cholesky", queue, x);
  cuda::find_not_finite(queue, batch.wrong(), x, MatrixPart::lower);
  const int64_t N = batch.N;
  const cudaDataType type = batch.type;
  cuda::copy(queue, l, x);  // the lower triangle by rows is the upper one by columns, and so is l of l^T
  batch.each("Xpotrf", library().Xpotrf_bufferSize, library().Xpotrf,
             [&](int64_t b) { return std::tuple{CUBLAS_FILL_MODE_UPPER, N, type, at(l, b), N, type}; });
  cuda::keep_part(queue, l, MatrixPart::lower);
  batch.wait([](int64_t b, int info, bool) { check_positive(info, b); });
}

void lu(const Queue& queue, const View& lu, const View& parity, const View& x) {
  if (!has_matrices("lu", x, {&lu, &parity})) return;
  Batch batch("lu", queue, x);
  cuda::find_not_finite(queue, batch.wrong(), x, MatrixPart::all);
  const ByColumns a(batch, batch.N, batch.N);
  const Workspace pivots(queue, bytes_of_pivots(batch), "lu");
  cuda::copy(queue, a.view(), transposed(x));
  factorise(batch, a.view(), pivots.as<int64_t>());
  cuda::copy(queue, lu, transposed(a.view()));
  cuda::parity_of_pivots(queue, parity, pivots.as<int64_t>(), batch.N);
  batch.wait([](int64_t, int info, bool) { check_parameters("lu", info); });  // positive: u has a 0, no error here
}

void solve(const Queue& queue, const View& y, const View& a, const View& b) {
  if (!has_matrices("solve", a, {&y, &b})) return;
  Batch batch("solve", queue, a);
  cuda::find_not_finite(queue, batch.wrong(), a, MatrixPart::all);
  const int64_t N = batch.N, K = b.sizes[2];
  const ByColumns factors(batch, N, N), right(batch, N, K);
  const Workspace pivots(queue, bytes_of_pivots(batch), "solve");
  cuda::copy(queue, factors.view(), transposed(a));
  factorise(batch, factors.view(), pivots.as<int64_t>());
  if (K > 0) {
    cuda::find_not_finite(queue, batch.wrong_right_side(), b, MatrixPart::all);
    cuda::copy(queue, right.view(), transposed(b));
    const Handles& with = batch.start();
    const Workspace unused(queue, sizeof(int), "solve");  // its code tells of wrong parameters, as the status does
    for (int64_t i = 0; i < batch.B; ++i)
      check("solve", "Xgetrs",
            library().Xgetrs(with.solver, with.params, CUBLAS_OP_N, N, K, batch.type, at(factors.view(), i), N,
                             pivots.as<int64_t>() + i * N, batch.type, at(right.view(), i), N, unused.as<int>()));
    cuda::copy(queue, y, transposed(right.view()));
  }
  batch.wait([&](int64_t i, int info, bool is_finite) {
    check_invertible(info, i);
    check_finite("solve", is_finite, i, b);
  });
}

void triangular_solve(const Queue& queue, const View& y, const View& a, const View& b, bool upper) {
  if (!has_matrices("triangular_solve", a, {&y, &b})) return;
  Batch batch("triangular_solve", queue, a);
  cuda::find_not_finite(queue, batch.wrong(), a, upper ? MatrixPart::upper : MatrixPart::lower);
  const auto N = static_cast<int>(batch.N), K = static_cast<int>(b.sizes[2]);
  if (K > 0) {
    cuda::find_not_finite(queue, batch.wrong_right_side(), b, MatrixPart::all);
    cuda::find_zero_on_diagonal(queue, batch.info(), a);
    cuda::copy(queue, y, b);
    // cuBLAS counts by columns, and sees y^T a^T = b^T.
    const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    const cublasHandle_t blas = batch.start().blas;
    with_dtype<float, double>(a.dtype, "triangular_solve", [&]<class T>() {
      const auto call = [&](auto... arguments) {
        if constexpr (std::is_same_v<T, float>)
          return library().blasStrsm_v2(arguments...);
        else
          return library().blasDtrsm_v2(arguments...);
      };
      const T one = 1;
      for (int64_t i = 0; i < batch.B; ++i)
        check("triangular_solve", "trsm",
              call(blas, CUBLAS_SIDE_RIGHT, fill, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, K, N, &one,
                   static_cast<const T*>(at(a, i)), N, static_cast<T*>(at(y, i)), K));
    });
  }
  batch.wait([&](int64_t i, int info, bool is_finite) {
    check_finite("triangular_solve", is_finite, i, b);
    check_diagonal(info, i);
  });
}

}  // namespace weft::kernels::vendor::cusolver
