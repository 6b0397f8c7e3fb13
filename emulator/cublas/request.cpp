// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublas/request.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <utility>

#include "emulator/cuda/library_stream.h"

namespace emulator::blas {
namespace {

void check(cudaError_t code) {
  if (code != cudaSuccess) throw Failure{CUBLAS_STATUS_EXECUTION_FAILED, cat("the stream: ", cudaGetErrorString(code))};
}

cuda::LibraryOperand with(cuda::LibraryOperand x, Use use) {
  x.read_too = use == Use::update;
  return x;
}

}  // namespace

cuda::LibraryOperand operand(const char* name, const Vector& v, Use use, int64_t batches, int64_t batch_step) {
  const auto size = static_cast<int64_t>(bytes_of(v.type));
  const int64_t step = std::abs(v.step);
  const bool solid = step == 1;
  if (step == 0)  // one element, read n times
    return with(cuda::library_operand(name, v.at, use != Use::read, static_cast<size_t>(size), size, 1, 0, batches,
                                      batch_step * size),
                use);
  return with(cuda::library_operand(name, v.at, use != Use::read, static_cast<size_t>(size), solid ? v.n * size : size,
                                    solid ? 1 : v.n, step * size, batches, batch_step * size),
              use);
}

cuda::LibraryOperand operand(const char* name, const Matrix& m, Use use, int64_t batches, int64_t batch_step) {
  const auto size = static_cast<int64_t>(bytes_of(m.type));
  const bool written = use != Use::read;
  if (m.fill == CUBLAS_FILL_MODE_FULL && batch_step == 0 && !written) batches = 1;
  if (m.fill == CUBLAS_FILL_MODE_FULL)
    return with(cuda::library_operand(name, m.at, written, static_cast<size_t>(size), m.rows * size, m.columns,
                                      m.ld * size, batches, batch_step * size),
                use);
  std::vector<cuda::LibraryRange> ranges;
  for (int64_t j = 0; j < m.columns; ++j)
    if (m.first(j) < m.end(j))
      ranges.push_back(
          {reinterpret_cast<uintptr_t>(m.element(m.first(j), j)), reinterpret_cast<uintptr_t>(m.element(m.end(j), j))});
  return with(cuda::library_operand(name, m.at, written, static_cast<size_t>(size), std::move(ranges)), use);
}

Factor Request::factor(const char* name, const void* at, cudaDataType_t type) {
  offer(bytes_of(type) != 0, name, " of data type ", type, " is not offered");
  Factor factor{type, nullptr, {}};
  if (context_.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    memory(name, at, Use::read, bytes_of(type));
    operands_.back().alignment = std::min<size_t>(bytes_of(type), 8);
    factor.device = static_cast<const std::byte*>(at);
  } else {
    require(at != nullptr, name, " is NULL");
    cuda::require_host(call_, name, at);
    std::memcpy(factor.value.data(), at, bytes_of(type));
  }
  return factor;
}

void Request::vector(const char* name, const Vector& v, Use use, int64_t batches, int64_t batch_step) {
  operands_.push_back(operand(name, v, use, batches, batch_step));
}
void Request::matrix(const char* name, const Matrix& m, Use use, int64_t batches, int64_t batch_step) {
  operands_.push_back(operand(name, m, use, batches, batch_step));
}

void Request::output(const char* name, const Matrix& m, const Factor& beta, int64_t batches, int64_t batch_step) {
  const bool known = !beta.device;
  matrix(name, m, known && !beta.is_zero() ? Use::update : Use::write, batches, batch_step);
  if (!known) read_late_ = {beta, operand(name, m, Use::read, batches, batch_step)};
}
void Request::output(const char* name, const Vector& v, const Factor& beta, int64_t batches, int64_t batch_step) {
  const bool known = !beta.device;
  vector(name, v, known && !beta.is_zero() ? Use::update : Use::write, batches, batch_step);
  if (!known) read_late_ = {beta, operand(name, v, Use::read, batches, batch_step)};
}

void Request::memory(const char* name, const void* at, Use use, size_t bytes) {
  operands_.push_back(with(cuda::library_operand(name, at, use != Use::read, bytes), use));
}

void Request::run(std::function<void()> compute) {
  check(cuda::require_stream(call_, context_.stream, context_.device));
  cuda::require_operands(call_, operands_, context_.device);
  if (read_late_)
    compute = [late = std::move(*read_late_), call = call_, compute = std::move(compute)] {
      if (!late.first.is_zero()) cuda::examine_late(call, {late.second});
      compute();
    };
  check(cuda::enqueue_library_call(context_.stream, call_, std::move(operands_), std::move(compute)));
}

void Request::result(void* to, size_t bytes, std::function<void(std::byte*)> compute) {
  offer(bytes != 0, "the result's data type is not offered");
  if (context_.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    memory("the result", to, Use::write, bytes);
    return run([to, compute = std::move(compute)] { compute(static_cast<std::byte*>(to)); });
  }
  require(to != nullptr, "the result is NULL");
  cuda::require_host(call_, "the result", to);
  const auto value = std::make_shared<std::array<std::byte, 16>>();  // a failed wait leaves the call in the stream
  run([value, compute = std::move(compute)] { compute(value->data()); });
  check(cudaStreamSynchronize(context_.stream));
  std::memcpy(to, value->data(), bytes);
}

}  // namespace emulator::blas
