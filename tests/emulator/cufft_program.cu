// SPDX-License-Identifier: Apache-2.0
// An ordinary program of cuFFT: transforms beside their definition in f64, and back. `fault NAME` makes one mistake on
// purpose.
#include <cuda_runtime.h>
#include <cufft.h>
#include <cufftXt.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/emulator/library_program.h"

#define FFT(call) CHECK((call) == CUFFT_SUCCESS)

namespace {

using library_program::Memory;
using Complex = std::complex<double>;
using Shape = std::vector<int>;

/// The numbers of a type, as they lie on the device.
template <class R>
std::vector<R> parts(const std::vector<Complex>& values, bool real) {
  std::vector<R> all;
  for (const Complex& x : values) {
    all.push_back(static_cast<R>(x.real()));
    if (!real) all.push_back(static_cast<R>(x.imag()));
  }
  return all;
}

size_t product(const Shape& shape) {
  size_t all = 1;
  for (const int n : shape) all *= static_cast<size_t>(n);
  return all;
}

/// The definition, one dimension after the other.
std::vector<Complex> transformed(std::vector<Complex> values, const Shape& shape, double sign) {
  size_t step = product(shape);
  for (const int size : shape) {
    const auto n = static_cast<size_t>(size);
    step /= n;
    std::vector<Complex> next(values.size());
    for (size_t at = 0; at < values.size(); ++at) {
      const size_t k = at / step % n, first = at - k * step;
      for (size_t j = 0; j < n; ++j)
        next[at] += values[first + j * step] * std::polar(1.0, sign * 2 * M_PI * static_cast<double>(j * k % n) / size);
    }
    values = next;
  }
  return values;
}

std::vector<Complex> noise(size_t count, bool real) {
  static std::mt19937 generator(3);
  std::uniform_real_distribution<float> range(-1, 1);
  std::vector<Complex> all(count);
  for (Complex& x : all) x = {range(generator), real ? 0 : range(generator)};
  return all;
}

/// A transform of n numbers of size 1 has errors near eps log2(n) sqrt(n).
template <class R>
void agree(const std::vector<R>& got, const std::vector<R>& want, size_t n) {
  CHECK(got.size() == want.size());
  const double bound = 4 * std::numeric_limits<R>::epsilon() * std::log2(n + 1.0) * std::sqrt(static_cast<double>(n));
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= bound)) {
      std::fprintf(stderr, "number %zu of %zu: %g, expected %g\n", i, got.size(), double(got[i]), double(want[i]));
      std::exit(1);
    }
}

cufftHandle plan(const Shape& shape, cufftType type) {
  cufftHandle made = 0;
  if (shape.size() == 1) FFT(cufftPlan1d(&made, shape[0], type, 1));
  if (shape.size() == 2) FFT(cufftPlan2d(&made, shape[0], shape[1], type));
  if (shape.size() == 3) FFT(cufftPlan3d(&made, shape[0], shape[1], shape[2], type));
  return made;
}

template <class R>
void complex_transforms(const Shape& shape) {
  using C = std::conditional_t<sizeof(R) == 4, cufftComplex, cufftDoubleComplex>;
  const cufftHandle p = plan(shape, sizeof(R) == 4 ? CUFFT_C2C : CUFFT_Z2Z);
  const auto in = noise(product(shape), false);
  Memory<R> from(parts<R>(in, false)), to(2 * in.size());
  for (const int direction : {CUFFT_FORWARD, CUFFT_INVERSE}) {
    if constexpr (sizeof(R) == 4)
      FFT(cufftExecC2C(p, reinterpret_cast<C*>(from.device), reinterpret_cast<C*>(to.device), direction));
    else
      FFT(cufftExecZ2Z(p, reinterpret_cast<C*>(from.device), reinterpret_cast<C*>(to.device), direction));
    agree(to.get(), parts<R>(transformed(in, shape, direction), false), in.size());
  }
  FFT(cufftXtExec(p, from.device, from.device, CUFFT_FORWARD));
  agree(from.get(), parts<R>(transformed(in, shape, -1), false), in.size());
  FFT(cufftDestroy(p));
}

/// Both ways, in place and not. In place a row of n numbers has the room of n / 2 + 1 complex ones.
template <class R>
void real_transforms(const Shape& shape) {
  const cufftHandle forward = plan(shape, sizeof(R) == 4 ? CUFFT_R2C : CUFFT_D2Z),
                    back = plan(shape, sizeof(R) == 4 ? CUFFT_C2R : CUFFT_Z2D);
  const auto in = noise(product(shape), true), all = transformed(in, shape, -1);
  const auto n = static_cast<size_t>(shape.back()), kept = n / 2 + 1, rows = in.size() / n;
  std::vector<Complex> half, padded;
  for (size_t row = 0; row < rows; ++row) {
    half.insert(half.end(), all.begin() + row * n, all.begin() + row * n + kept);
    padded.insert(padded.end(), in.begin() + row * n, in.begin() + (row + 1) * n);
    padded.resize((row + 1) * 2 * kept);
  }
  Memory<R> from(parts<R>(in, true)), spectrum(2 * half.size()), again(in.size()), place(parts<R>(padded, true));
  FFT(cufftXtExec(forward, from.device, spectrum.device, CUFFT_FORWARD));
  agree(spectrum.get(), parts<R>(half, false), in.size());
  FFT(cufftXtExec(back, spectrum.device, again.device, CUFFT_INVERSE));
  auto scaled = again.get();
  for (R& x : scaled) x /= static_cast<R>(in.size());
  agree(scaled, parts<R>(in, true), in.size());
  FFT(cufftXtExec(forward, place.device, place.device, CUFFT_FORWARD));
  agree(place.get(), parts<R>(half, false), in.size());
  FFT(cufftXtExec(back, place.device, place.device, CUFFT_INVERSE));
  const auto rows_again = place.get();
  std::vector<R> first;
  for (size_t row = 0; row < rows; ++row)
    for (size_t k = 0; k < n; ++k) first.push_back(rows_again[row * 2 * kept + k] / static_cast<R>(in.size()));
  agree(first, parts<R>(in, true), in.size());
  FFT(cufftDestroy(forward));
  FFT(cufftDestroy(back));
}

/// Three columns of a matrix of 16 rows and 4 columns; the fourth is not touched.
void columns() {
  int n = 16, embed = 16;
  const auto in = noise(64, false);
  cufftHandle p = 0;
  FFT(cufftPlanMany(&p, 1, &n, &embed, 4, 1, &embed, 4, 1, CUFFT_C2C, 3));
  Memory<float> memory(parts<float>(in, false));
  auto* const at = reinterpret_cast<cufftComplex*>(memory.device);
  FFT(cufftExecC2C(p, at, at, CUFFT_FORWARD));
  std::vector<Complex> want = in;
  for (int column = 0; column < 3; ++column) {
    std::vector<Complex> line;
    for (int i = 0; i < 16; ++i) line.push_back(in[4 * i + column]);
    line = transformed(line, {16}, -1);
    for (int i = 0; i < 16; ++i) want[4 * i + column] = line[i];
  }
  agree(memory.get(), parts<float>(want, false), 16);
  FFT(cufftDestroy(p));
  // A batch of rows.
  FFT(cufftPlan1d(&p, 16, CUFFT_C2C, 4));
  Memory<float> rows(parts<float>(in, false));
  auto* const first = reinterpret_cast<cufftComplex*>(rows.device);
  FFT(cufftExecC2C(p, first, first, CUFFT_INVERSE));
  for (int row = 0; row < 4; ++row) {
    const auto line = transformed({in.begin() + 16 * row, in.begin() + 16 * row + 16}, {16}, 1);
    std::copy(line.begin(), line.end(), want.begin() + 16 * row);
  }
  agree(rows.get(), parts<float>(want, false), 16);
  FFT(cufftDestroy(p));
}

void statuses() {
  cufftHandle p = 0;
  size_t bytes = 0;
  CHECK(cufftPlan1d(&p, 0, CUFFT_C2C, 1) == CUFFT_INVALID_SIZE);
  CHECK(cufftExecC2C(12345, nullptr, nullptr, CUFFT_FORWARD) == CUFFT_INVALID_PLAN);
  FFT(cufftCreate(&p));
  FFT(cufftMakePlan2d(p, 8, 8, CUFFT_C2C, &bytes));
  CHECK(bytes == 8 * 8 * sizeof(cufftComplex));
  CHECK(cufftExecR2C(p, nullptr, nullptr) == CUFFT_INVALID_VALUE);
  FFT(cufftDestroy(p));
  CHECK(cufftDestroy(p) == CUFFT_INVALID_PLAN);
}

__global__ void fill_kernel(float* to) { to[threadIdx.x] = 1; }

int fault(const std::string& name) {
  cufftHandle p = 0;
  FFT(cufftPlan1d(&p, 64, CUFFT_R2C, 1));
  Memory<float> in(parts<float>(noise(64, true), true)), out(66), small(64), fresh(64);
  CUDA(cudaDeviceSynchronize());
  const auto run = [&](const Memory<float>& from, const Memory<float>& to) {
    return cufftExecR2C(p, from.device, reinterpret_cast<cufftComplex*>(to.device));
  };
  if (name == "beyond") std::printf("result %d\n", run(in, small));
  if (name == "uninitialised") FFT(run(fresh, out));
  if (name == "not_emulated") std::printf("result %d\n", cufftXtSetCallback(p, nullptr, CUFFT_CB_LD_REAL, nullptr));
  if (name == "unordered" || name == "ordered") {
    cudaStream_t one = nullptr, two = nullptr;
    cudaEvent_t event = nullptr;
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    FFT(cufftSetStream(p, two));
    fill_kernel<<<1, 64, 0, one>>>(in.device);
    CUDA(cudaEventRecord(event, one));
    if (name == "ordered") CUDA(cudaStreamWaitEvent(two, event));
    FFT(run(in, out));
  }
  CUDA(cudaDeviceSynchronize());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) return fault(argv[2]);
  for (const Shape& shape : {Shape{1}, {16}, {60}, {53}, {106}, {6, 10}, {7, 9}, {4, 6, 10}, {3, 5, 7}}) {
    complex_transforms<float>(shape);
    complex_transforms<double>(shape);
    real_transforms<float>(shape);
    real_transforms<double>(shape);
  }
  columns();
  statuses();
  std::puts("right");
}
