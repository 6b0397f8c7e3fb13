// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/matmul.h"

#include <algorithm>
#include <memory>

#include "emulator/cublaslt/multiply.h"
#include "emulator/cublaslt/number.h"
#include "emulator/cuda/library_stream.h"
#include "emulator/machine/fault.h"

namespace emulator::lt {
namespace {

constexpr const char* kLibrary = "cuBLASLt";
constexpr size_t kWorkspaceAlignment = 256;

void require(bool right, const std::string& text) {
  if (!right) fail(CUBLAS_STATUS_INVALID_VALUE, text);
}

void require_own_stream(const cuda::LibraryCall& call, cudaStream_t stream, int device) {
  if (const cudaError_t code = cuda::require_stream(call, stream, device); code != cudaSuccess)
    fail(CUBLAS_STATUS_EXECUTION_FAILED, cat("the stream: ", cudaGetErrorString(code)));
}

Scalar scalar_of(const void* pointer, cudaDataType_t type, bool on_device) {
  const auto* const at = static_cast<const std::byte*>(pointer);
  if (on_device) return {at, 0};
  return {nullptr, value_of({at, 0}, type)};
}

/// The memory that the call touches. C is left out while device scalars decide only later whether it is read.
std::vector<Operand> operands_of(const Call& call, const Algorithm& algorithm, const Arguments& arguments) {
  const Problem& p = call.problem;
  const MatmulDescriptor& w = p.what;
  const size_t scalar = size_of(p.types.scale);
  const auto aligned = [&](const Matrix& x) { return alignment_of(algorithm, x.type); };
  const auto vector = [&](const char* name, const void* at, bool written, cudaDataType_t type, int64_t length,
                          int64_t stride) {
    return operand(name, at, written, size_of(type), {type, length, 1, 1, length, stride}, p.batches);
  };
  std::vector<Operand> all{operand("A", call.a, false, aligned(p.a), p.a, p.batches),
                           operand("B", call.b, false, aligned(p.b), p.b, p.batches),
                           operand("D", call.d, true, aligned(p.d), p.d, p.batches)};
  if (p.scalars_on_host() || p.alpha_is_vector()) {
    if (call.beta.value != 0) all.push_back(operand("C", call.c, false, aligned(p.c), p.c, p.batches));
  } else {
    all.push_back(cuda::library_operand("beta", arguments.beta, false, scalar));
  }
  if (p.alpha_is_vector())
    all.push_back(vector("the alpha vector", arguments.alpha, false, p.types.scale, p.m, w.alpha_stride));
  else if (!p.scalars_on_host())
    all.push_back(cuda::library_operand("alpha", arguments.alpha, false, scalar));
  if (p.epilogue.has_vector())
    all.push_back(vector(p.epilogue.bias ? "the bias" : "the bias gradient", w.bias, p.epilogue.writes_vector(),
                         p.vector_type, p.vector_length(), w.bias_stride));
  if (p.epilogue.aux_is_bits())  // whole bytes of bits
    all.push_back(operand("the aux buffer", w.aux, p.epilogue.writes_aux(), 1,
                          {CUDA_R_8I, (p.m + 7) / 8, p.n, 1, w.aux_ld / 8, w.aux_stride / 8}, p.batches));
  else if (p.epilogue.aux)
    all.push_back(operand("the aux buffer", w.aux, p.epilogue.writes_aux(), size_of(p.aux_type),
                          {p.aux_type, p.m, p.n, 1, w.aux_ld, w.aux_stride}, p.batches));
  const std::pair<const char*, const void*> scales[] = {{"A's scale", w.a_scale},
                                                        {"B's scale", w.b_scale},
                                                        {"D's scale", w.d_scale},
                                                        {"the aux buffer's scale", w.aux_scale}};
  for (const auto& [name, at] : scales)
    if (at) all.push_back(cuda::library_operand(name, at, false, sizeof(float)));
  if (w.d_amax) all.push_back(cuda::library_operand("D's maximum", w.d_amax, true, sizeof(float)));
  if (w.aux_amax) all.push_back(cuda::library_operand("the aux buffer's maximum", w.aux_amax, true, sizeof(float)));
  if (const size_t bytes = workspace_bytes(algorithm, p)) {
    all.push_back(cuda::library_operand("the workspace", arguments.workspace, true, bytes));
    all.back().alignment = kWorkspaceAlignment;
  }
  return all;
}

void enqueue(cudaStream_t stream, const cuda::LibraryCall& call, std::vector<Operand> operands,
             std::function<void()> compute) {
  const cudaError_t code = cuda::enqueue_library_call(stream, call, std::move(operands), std::move(compute));
  if (code != cudaSuccess) fail(CUBLAS_STATUS_EXECUTION_FAILED, cat("the stream: ", cudaGetErrorString(code)));
}

/// C, if a scalar on the device makes the call read it.
void examine_c(const cuda::LibraryCall& name, const Call& call, const Algorithm& algorithm) {
  if (call.beta.device && value_of(call.beta, call.problem.types.scale) != 0)
    cuda::examine_late(name, {operand("C", call.c, false, alignment_of(algorithm, call.problem.c.type), call.problem.c,
                                      call.problem.batches)});
}

}  // namespace

void enqueue_matmul(const Problem& p, const Algorithm& algorithm, const Arguments& arguments, int device) {
  const cuda::LibraryCall name{kLibrary, "cublasLtMatmul of " + p.text()};
  require(arguments.alpha && arguments.a && arguments.b && arguments.beta && arguments.d,
          "alpha, beta, A, B or D is NULL");
  Call call;
  call.problem = p;
  call.splits = std::max(algorithm.splits, 1);
  const bool on_device = p.what.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  call.alpha = scalar_of(arguments.alpha, p.types.scale, on_device || p.alpha_is_vector());
  call.beta = scalar_of(arguments.beta, p.types.scale, on_device);
  call.a = static_cast<const std::byte*>(arguments.a), call.b = static_cast<const std::byte*>(arguments.b);
  call.c = static_cast<const std::byte*>(arguments.c), call.d = static_cast<std::byte*>(arguments.d);
  call.workspace = static_cast<std::byte*>(arguments.workspace);
  const bool reads_c = on_device || call.beta.value != 0;
  require(call.c || !reads_c || on_device, "C is NULL, and beta is not 0");
  if (p.what.c_scale && reads_c)
    fail(CUBLAS_STATUS_NOT_SUPPORTED,
         cat("C_SCALE_POINTER for a C of ", name_of(p.types.c), " is not offered while beta may differ from 0"));
  require_own_stream(name, arguments.stream, device);
  const size_t needed = workspace_bytes(algorithm, p);
  require(arguments.workspace_bytes >= needed,
          cat("the workspace has ", arguments.workspace_bytes, " bytes, and algorithm ", algorithm.id,
              " with SPLITK_NUM ", algorithm.splits, " needs ", needed));
  std::vector<Operand> operands = operands_of(call, algorithm, arguments);
  const bool in_place = arguments.c == arguments.d;
  if (reads_c && in_place && !(p.c == p.d)) cuda::misused(name, "C is D, and their layouts differ");
  if (in_place) std::ranges::find(operands, "D", &Operand::name)->may_be = {"C"};
  cuda::require_operands(name, operands, device);
  enqueue(arguments.stream, name, std::move(operands), [name, call = std::make_shared<const Call>(call), algorithm] {
    examine_c(name, *call, algorithm);
    multiply(*call);
  });
}

void enqueue_transform(const TransformDescriptor& what, const void* alpha, const void* a, const Layout* a_layout,
                       const void* beta, const void* b, const Layout* b_layout, void* c, const Layout& c_layout,
                       int device, cudaStream_t stream) {
  struct Term {
    const std::byte* from;
    Matrix matrix;
    Scalar factor;
  };
  const auto type = static_cast<cudaDataType_t>(what.scale);
  const bool on_device = what.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  require(on_device || what.pointer_mode == CUBLASLT_POINTER_MODE_HOST, cat("pointer mode ", what.pointer_mode));
  if (type != CUDA_R_32F && type != CUDA_R_64F)
    fail(CUBLAS_STATUS_NOT_SUPPORTED, cat("scale type ", what.scale, " is not offered"));
  require_layout(c_layout, "C", false);
  const Matrix to = matrix_of(c_layout, CUBLAS_OP_N, "C");
  require(c != nullptr, "C is NULL");
  const cuda::LibraryCall name{kLibrary,
                               cat("cublasLtMatrixTransform of ", to.rows, 'x', to.columns, ' ', name_of(to.type))};
  std::vector<Operand> operands{operand("C", c, true, size_of(to.type), to, c_layout.batches)};
  std::vector<Term> terms;
  const auto add = [&](const char* operand_name, const void* factor, const void* from, const Layout* layout,
                       int operation) {
    require(!from || layout, cat(operand_name, "'s layout is NULL"));
    if (!from) return;
    require(factor != nullptr, cat("the factor of ", operand_name, " is NULL"));
    require_layout(*layout, operand_name, false);
    require(operation >= CUBLAS_OP_N && operation <= CUBLAS_OP_C, cat("operation ", operation, ": no such value"));
    const Matrix matrix = matrix_of(*layout, operation, operand_name);
    require(matrix.rows == to.rows && matrix.columns == to.columns && layout->batches == c_layout.batches,
            cat(operand_name, " is [", matrix.rows, ", ", matrix.columns, "] and C [", to.rows, ", ", to.columns, ']'));
    if (matrix.type != to.type || (to.type == CUDA_R_64F) != (type == CUDA_R_64F))
      fail(CUBLAS_STATUS_NOT_SUPPORTED, cat(operand_name, ' ', name_of(matrix.type), ", C ", name_of(to.type),
                                            " and scale type ", name_of(type), " are not offered together"));
    terms.push_back({static_cast<const std::byte*>(from), matrix, scalar_of(factor, type, on_device)});
    if (on_device)
      operands.push_back(
          cuda::library_operand(operand_name == std::string("A") ? "alpha" : "beta", factor, false, size_of(type)));
    operands.push_back(operand(operand_name, from, false, size_of(matrix.type), matrix, layout->batches));
  };
  add("A", alpha, a, a_layout, what.transpose_a);
  add("B", beta, b, b_layout, what.transpose_b);
  require(!terms.empty(), "A and B are NULL");
  require_own_stream(name, stream, device);
  cuda::require_operands(name, operands, device);
  enqueue(stream, name, std::move(operands), [terms, to, type, c, batches = c_layout.batches] {
    std::vector<double> sums(static_cast<size_t>(to.rows)), line(sums.size());
    const auto at = [](const Matrix& x, int64_t batch, int64_t j) {
      return (batch * x.batch + j * x.column) * static_cast<int64_t>(size_of(x.type));
    };
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t j = 0; j < to.columns; ++j) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (const Term& term : terms) {
          const double factor = value_of(term.factor, type);
          load_line(term.matrix.type, term.from + at(term.matrix, batch, j), term.matrix.row, to.rows, line.data());
          for (size_t i = 0; i < line.size(); ++i) sums[i] += factor * line[i];
        }
        store_line(to.type, static_cast<std::byte*>(c) + at(to, batch, j), to.row, to.rows, sums.data());
      }
  });
}

}  // namespace emulator::lt
