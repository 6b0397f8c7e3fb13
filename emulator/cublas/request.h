// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublas_v2.h>

#include <array>
#include <optional>
#include <span>

#include "emulator/cublas/scalar.h"
#include "emulator/cuda/library_operand.h"
#include "emulator/machine/fault.h"

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
  int math_mode = CUBLAS_DEFAULT_MATH;
  int processors = 0;
};

namespace emulator::blas {

struct Failure {
  cublasStatus_t status;
  std::string text;
};

template <class... T>
void require(bool right, const T&... text) {
  if (!right) throw Failure{CUBLAS_STATUS_INVALID_VALUE, cat(text...)};
}
template <class... T>
void offer(bool offered, const T&... text) {
  if (!offered) throw Failure{CUBLAS_STATUS_NOT_SUPPORTED, cat(text...)};
}

/// The handle's content. Failure: it is none, or was destroyed.
cublasContext& context_of(cublasHandle_t handle);
/// One line on stderr, once.
void say(const std::string& text);
/// For a call that the emulator lacks: a line names the call, and the exit code changes. Returns its status.
int refuse(const char* name) noexcept;
/// The status of the exception in flight, after one line on stderr.
cublasStatus_t status_of_exception(const char* name) noexcept;

/// Runs every call.
template <class F>
cublasStatus_t call(const char* name, F&& body) noexcept {
  try {
    body();
    return CUBLAS_STATUS_SUCCESS;
  } catch (...) {
    return status_of_exception(name);
  }
}

struct Vector {
  const void* at;
  cudaDataType_t type;
  int64_t n, step;  ///< elements; a negative step begins at the end

  const std::byte* element(int64_t i) const {
    return static_cast<const std::byte*>(at) +
           (step < 0 ? (i - n + 1) * step : i * step) * static_cast<int64_t>(bytes_of(type));
  }
  template <class S>
  std::vector<S> load() const {
    std::vector<S> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = blas::load<S>(type, element(i));
    return all;
  }
  template <class S>
  void store(const std::vector<S>& all) const {
    for (int64_t i = 0; i < n; ++i) blas::store(type, const_cast<std::byte*>(element(i)), all[static_cast<size_t>(i)]);
  }
};

/// As it lies in memory, column by column.
struct Matrix {
  const void* at;
  cudaDataType_t type;
  int64_t rows, columns, ld;
  cublasFillMode_t fill = CUBLAS_FILL_MODE_FULL;  ///< LOWER, UPPER: the other triangle is not touched
  bool unit = false;                              ///< a triangle with ones, whose diagonal is not touched

  int64_t first(int64_t j) const { return fill == CUBLAS_FILL_MODE_LOWER ? std::min(j + (unit ? 1 : 0), rows) : 0; }
  int64_t end(int64_t j) const { return fill == CUBLAS_FILL_MODE_UPPER ? std::min(unit ? j : j + 1, rows) : rows; }
  const std::byte* element(int64_t i, int64_t j) const {
    return static_cast<const std::byte*>(at) + (j * ld + i) * static_cast<int64_t>(bytes_of(type));
  }
  Matrix shifted(int64_t elements) const {
    Matrix other = *this;
    other.at = element(elements, 0);
    return other;
  }
};

/// alpha or beta: on the host at the call, on the device when the call runs.
struct Factor {
  cudaDataType_t type{};
  const std::byte* device = nullptr;
  std::array<std::byte, 16> value{};

  template <class S>
  S get() const {
    return load<S>(type, device ? device : value.data());
  }
  bool is_zero() const { return get<std::complex<double>>() == 0.0; }
};

enum class Use { read, write, update };

/// A call on its way into the handle's stream, with its operands.
class Request {
 public:
  /// `text`: `cublasSaxpy of 1024 f32`.
  Request(cublasHandle_t handle, std::string text) : context_(context_of(handle)), call_{"cuBLAS", std::move(text)} {}

  Factor factor(const char* name, const void* at, cudaDataType_t type);
  void vector(const char* name, const Vector& v, Use use, int64_t batches = 1, int64_t batch_step = 0);
  void matrix(const char* name, const Matrix& m, Use use, int64_t batches = 1, int64_t batch_step = 0);
  /// Written, and read unless beta is 0.
  void output(const char* name, const Matrix& m, const Factor& beta, int64_t batches = 1, int64_t batch_step = 0);
  void output(const char* name, const Vector& v, const Factor& beta, int64_t batches = 1, int64_t batch_step = 0);
  void memory(const char* name, const void* at, Use use, size_t bytes);
  /// The last operand may lie where `name` does.
  void may_be(const char* name) { operands_.back().may_be.emplace_back(name); }
  void run(std::function<void()> compute);
  /// `compute` writes a result of `bytes`: to device memory, or to the host, which then waits.
  void result(void* to, size_t bytes, std::function<void(std::byte*)> compute);

  const cuda::LibraryCall& call() const { return call_; }
  const cublasContext& context() const { return context_; }

 private:
  cublasContext& context_;
  cuda::LibraryCall call_;
  std::vector<cuda::LibraryOperand> operands_;
  std::optional<std::pair<Factor, cuda::LibraryOperand>> read_late_;
};

cuda::LibraryOperand operand(const char* name, const Vector& v, Use use, int64_t batches = 1, int64_t batch_step = 0);
cuda::LibraryOperand operand(const char* name, const Matrix& m, Use use, int64_t batches = 1, int64_t batch_step = 0);

}  // namespace emulator::blas
