// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/matmul.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>

#include "emulator/cublaslt/multiply.h"
#include "emulator/cublaslt/number.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/fresh.h"

// CUDA 12.8's: an older runtime has none.
extern "C" cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) __attribute__((weak));

namespace emulator::lt {
namespace {

constexpr size_t kWorkspaceAlignment = 256;

void require(bool right, const std::string& text) {
  if (!right) fail(CUBLAS_STATUS_INVALID_VALUE, text);
}

void require_stream(const std::string& call, cudaStream_t stream, int device) {
  const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  int other = device;
  const cudaError_t code =
      is_default || !cudaStreamGetDevice ? cudaGetDevice(&other) : cudaStreamGetDevice(stream, &other);
  if (code != cudaSuccess) fail(CUBLAS_STATUS_EXECUTION_FAILED, cat("the stream: ", cudaGetErrorString(code)));
  if (other != device) undefined(call, cat("the handle is of device ", device, ", the stream of device ", other));
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
    all.push_back(operand("beta", arguments.beta, false, scalar));
  }
  if (p.alpha_is_vector())
    all.push_back(vector("the alpha vector", arguments.alpha, false, p.types.scale, p.m, w.alpha_stride));
  else if (!p.scalars_on_host())
    all.push_back(operand("alpha", arguments.alpha, false, scalar));
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
    if (at) all.push_back(operand(name, at, false, sizeof(float)));
  if (w.d_amax) all.push_back(operand("D's maximum", w.d_amax, true, sizeof(float)));
  if (w.aux_amax) all.push_back(operand("the aux buffer's maximum", w.aux_amax, true, sizeof(float)));
  if (const size_t bytes = workspace_bytes(algorithm, p)) {
    all.push_back(operand("the workspace", arguments.workspace, true, bytes));
    all.back().alignment = kWorkspaceAlignment;
  }
  return all;
}

void mark_written(const std::vector<Operand>& operands) {
  for (const Operand& x : operands)
    if (x.written)
      for (const Range& range : x.ranges)
        emulator::mark_written(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
}

/// The call of an operation that the stream runs: once, or as often as a graph is launched.
void enqueue(cudaStream_t stream, const std::string& name, std::vector<Operand> operands,
             std::function<void()> compute) {
  cuda::LibraryWork work{name, accesses_of(operands), nullptr};
  work.call = [name, operands = std::move(operands), compute = std::move(compute)] {
    examine_at_run(name, operands);
    compute();
    mark_written(operands);
  };
  const cudaError_t code = cuda::enqueue_library_work(stream, std::move(work));
  if (code != cudaSuccess) fail(CUBLAS_STATUS_EXECUTION_FAILED, cat("the stream: ", cudaGetErrorString(code)));
}

/// C, if a scalar on the device makes the call read it.
void examine_c(const std::string& name, const Call& call, const Algorithm& algorithm) {
  if (!call.beta.device || value_of(call.beta, call.problem.types.scale) == 0) return;
  const Operand c =
      operand("C", call.c, false, alignment_of(algorithm, call.problem.c.type), call.problem.c, call.problem.batches);
  examine_at_run(name, {c});
  if (Touched* const touched = cuda::stream_check::touched())
    for (const Range& range : c.ranges) touched->note(range.begin, range.end - range.begin, Touch::read);
}

}  // namespace

void enqueue_matmul(const Problem& p, const Algorithm& algorithm, const Arguments& arguments, int device) {
  const std::string name = "cublasLtMatmul of " + p.text();
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
  require_stream(name, arguments.stream, device);
  const size_t needed = workspace_bytes(algorithm, p);
  require(arguments.workspace_bytes >= needed,
          cat("the workspace has ", arguments.workspace_bytes, " bytes, and algorithm ", algorithm.id,
              " with SPLITK_NUM ", algorithm.splits, " needs ", needed));
  std::vector<Operand> operands = operands_of(call, algorithm, arguments);
  const bool in_place = arguments.c == arguments.d;
  if (reads_c && in_place && !(p.c == p.d)) undefined(name, "C is D, and their layouts differ");
  require_operands(name, operands, device, in_place);
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
  const std::string name = cat("cublasLtMatrixTransform of ", to.rows, 'x', to.columns, ' ', name_of(to.type));
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
      operands.push_back(operand(operand_name == std::string("A") ? "alpha" : "beta", factor, false, size_of(type)));
    operands.push_back(operand(operand_name, from, false, size_of(matrix.type), matrix, layout->batches));
  };
  add("A", alpha, a, a_layout, what.transpose_a);
  add("B", beta, b, b_layout, what.transpose_b);
  require(!terms.empty(), "A and B are NULL");
  require_stream(name, stream, device);
  require_operands(name, operands, device, false);
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
