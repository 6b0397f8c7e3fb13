// SPDX-License-Identifier: Apache-2.0
// An ordinary program of cuRAND. Its expected numbers are those of NVIDIA's generator on the host (CUDA 13.0), which
// needs no GPU. `fault NAME` makes one mistake on purpose.
#include <cuda_runtime.h>
#include <curand.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/emulator/library_program.h"

#define RAND(call) CHECK((call) == CURAND_STATUS_SUCCESS)

namespace {

using library_program::Memory;

curandGenerator_t generator(curandRngType_t type, bool on_host = false) {
  curandGenerator_t made = nullptr;
  RAND(on_host ? curandCreateGeneratorHost(&made, type) : curandCreateGenerator(&made, type));
  RAND(curandSetPseudoRandomGeneratorSeed(made, 1234));
  return made;
}

struct Known {
  curandRngType_t type;
  unsigned first[8], at_4096, at_99999;
  double uniform_double;
  float normal[2];
};
constexpr Known kKnown[] = {
    {CURAND_RNG_PSEUDO_XORWOW,
     {624778773, 3522650202, 2363946744, 1266286439, 3928747533, 3732235839, 1382638835, 3362343509},
     1867875844,
     1286219390,
     (0x6f558604ull << 21 ^ 0x253d5e15) % (1ull << 53) * 0x1p-53,
     {0.78097355f, -1.8015782f}},
    {CURAND_RNG_PSEUDO_PHILOX4_32_10,
     {546353992, 3665621163, 1140953199, 3419031310, 3507855656, 1392278645, 3354607383, 253049307},
     2053518784,
     3491112293,
     (0xda7cf0abull << 21 ^ 0x2090b348) % (1ull << 53) * 0x1p-53,
     {-1.6164905f, 1.2291554f}}};

template <class T, class F>
std::vector<T> numbers(curandRngType_t type, size_t count, F&& draw) {
  Memory<T> memory(count);
  curandGenerator_t from = generator(type);
  RAND(draw(from, memory.device, count));
  RAND(curandDestroyGenerator(from));
  return memory.get();
}

void known_numbers(const Known& known) {
  constexpr size_t kCount = 300000;
  const auto all = numbers<unsigned>(known.type, kCount, curandGenerate);
  for (int i = 0; i < 8; ++i) CHECK(all[i] == known.first[i]);
  CHECK(all[4096] == known.at_4096 && all[99999] == known.at_99999);
  const auto uniform = numbers<float>(known.type, kCount, curandGenerateUniform);
  for (size_t i = 0; i < kCount; ++i)
    CHECK(uniform[i] == all[i] * 0x1p-32f + 0x1p-33f && uniform[i] > 0 && uniform[i] <= 1);
  const auto fine = numbers<double>(known.type, 10, curandGenerateUniformDouble);
  CHECK(std::abs(fine[0] - known.uniform_double) <= 0x1p-53);
  const auto normal = numbers<float>(
      known.type, 10, [](auto from, float* to, size_t n) { return curandGenerateNormal(from, to, n, 0, 1); });
  for (int i = 0; i < 2; ++i) CHECK(std::abs(normal[i] - known.normal[i]) <= 2e-7f * std::abs(known.normal[i]));
}

/// A sequence is the same in one piece, in pieces, from an offset, and on the host.
void one_sequence(const Known& known) {
  const auto all = numbers<unsigned>(known.type, 300000, curandGenerate);
  curandGenerator_t pieces = generator(known.type), later = generator(known.type), host = generator(known.type, true);
  Memory<unsigned> a(10), b(5000), c(1000);
  std::vector<unsigned> d(5010);
  RAND(curandGenerate(pieces, a.device, 10));
  RAND(curandGenerate(pieces, b.device, 5000));
  RAND(curandSetGeneratorOffset(later, 273123));
  RAND(curandGenerate(later, c.device, 1000));
  RAND(curandGenerate(host, d.data(), d.size()));
  const auto a1 = a.get(), b1 = b.get(), c1 = c.get();
  for (size_t i = 0; i < 5010; ++i) CHECK((i < 10 ? a1[i] : b1[i - 10]) == all[i] && d[i] == all[i]);
  for (size_t i = 0; i < 1000; ++i) CHECK(c1[i] == all[273123 + i]);
  for (curandGenerator_t each : {pieces, later, host}) RAND(curandDestroyGenerator(each));
}

/// Mean and variance lie within six standard errors.
template <class T>
void has_moments(const std::vector<T>& all, double mean, double variance, double kurtosis) {
  double sum = 0, squares = 0;
  for (const T x : all) sum += x;
  const double count = static_cast<double>(all.size()), average = sum / count;
  for (const T x : all) squares += (x - average) * (x - average);
  CHECK(std::abs(average - mean) <= 6 * std::sqrt(variance / count));
  CHECK(std::abs(squares / count - variance) <= 6 * variance * std::sqrt((kurtosis - 1) / count));
}

void distributions(const Known& known) {
  constexpr size_t kCount = 200000;
  has_moments(numbers<float>(known.type, kCount, curandGenerateUniform), 0.5, 1.0 / 12, 1.8);
  has_moments(numbers<double>(known.type, kCount, curandGenerateUniformDouble), 0.5, 1.0 / 12, 1.8);
  const auto normal = [](auto from, float* to, size_t n) { return curandGenerateNormal(from, to, n, 3, 2); };
  const auto fine = [](auto from, double* to, size_t n) { return curandGenerateNormalDouble(from, to, n, 3, 2); };
  has_moments(numbers<float>(known.type, kCount, normal), 3, 4, 3);
  has_moments(numbers<double>(known.type, kCount, fine), 3, 4, 3);
  auto logs = numbers<float>(
      known.type, kCount, [](auto from, float* to, size_t n) { return curandGenerateLogNormal(from, to, n, 1, 0.5f); });
  for (float& x : logs) x = std::log(x);
  has_moments(logs, 1, 0.25, 3);
  for (const double mean : {3.0, 5000.0}) {
    const auto poisson = [&](auto from, unsigned* to, size_t n) { return curandGeneratePoisson(from, to, n, mean); };
    has_moments(numbers<unsigned>(known.type, kCount, poisson), mean, mean, 3 + 1 / mean);
  }
}

void statuses() {
  Memory<float> memory(8);
  curandGenerator_t from = generator(CURAND_RNG_PSEUDO_DEFAULT);
  CHECK(curandGenerateNormal(from, memory.device, 7, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  CHECK(curandGenerateUniform(nullptr, memory.device, 7) == CURAND_STATUS_NOT_INITIALIZED);
  CHECK(curandSetGeneratorOrdering(from, CURAND_ORDERING_QUASI_DEFAULT) == CURAND_STATUS_OUT_OF_RANGE);
  RAND(curandDestroyGenerator(from));
  CHECK(curandDestroyGenerator(from) == CURAND_STATUS_NOT_INITIALIZED);
}

__global__ void read_kernel(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }

int fault(const std::string& name) {
  curandGenerator_t from = generator(CURAND_RNG_PSEUDO_XORWOW), other = nullptr;
  Memory<float> memory(64), copy(64);
  if (name == "beyond") std::printf("status %d\n", curandGenerateUniform(from, memory.device, 65));
  if (name == "not_emulated") std::printf("status %d\n", curandCreateGenerator(&other, CURAND_RNG_PSEUDO_MTGP32));
  if (name == "unordered" || name == "ordered") {
    cudaStream_t one = nullptr, two = nullptr;
    cudaEvent_t event = nullptr;
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    RAND(curandSetStream(from, two));
    read_kernel<<<1, 64, 0, one>>>(memory.device, copy.device);
    CUDA(cudaEventRecord(event, one));
    if (name == "ordered") CUDA(cudaStreamWaitEvent(two, event));
    RAND(curandGenerateUniform(from, memory.device, 64));
    CUDA(cudaDeviceSynchronize());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) return fault(argv[2]);
  for (const Known& known : kKnown) {
    known_numbers(known);
    one_sequence(known);
    distributions(known);
  }
  statuses();
  std::puts("right");
}
