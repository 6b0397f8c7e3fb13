// SPDX-License-Identifier: Apache-2.0
// The emulator's own interfaces to programs: C functions for the count of launches and the seed, and the number of a mutant.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "emulator/exported.h"

namespace {

/// Which warp arrives first, second, ...
__global__ void arrive(unsigned* arrived, unsigned* order) {
  if (threadIdx.x % 32 == 0) order[atomicAdd(arrived, 1)] = threadIdx.x / 32;
}

__global__ void read_mutant(unsigned* to) { asm volatile("mov.u32 %0, %%envreg3;" : "=r"(*to)); }

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

template <class F>
F* find(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  expect(found != nullptr, name);
  return reinterpret_cast<F*>(found);
}

constexpr unsigned kWarps = 32;

/// Whether the warps of one block ran in ascending order.
bool ascends(unsigned* memory) {
  cudaMemset(memory, 0, sizeof(unsigned));
  arrive<<<1, 32 * kWarps>>>(memory, memory + 1);
  unsigned order[kWarps];
  cudaMemcpy(order, memory + 1, sizeof order, cudaMemcpyDeviceToHost);
  bool ascending = true;
  for (unsigned k = 0; k < kWarps; ++k) ascending = ascending && order[k] == k;
  return ascending;
}

}  // namespace

int main() {
  const auto launches = find<decltype(weft_emulator_launches)>("weft_emulator_launches");
  const auto set_seed = find<decltype(weft_emulator_set_seed)>("weft_emulator_set_seed");
  unsigned* memory = nullptr;
  cudaMalloc(&memory, 2 * kWarps * sizeof(unsigned));

  set_seed(0);
  expect(ascends(memory), "seed 0 has a fixed order");
  int other = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    set_seed(seed);
    other += !ascends(memory);
  }
  expect(other >= 4, "seeds have orders of their own");
  set_seed(0);
  expect(ascends(memory), "seed 0 has the fixed order again");

  const int64_t before = launches();
  expect(before == 10, "10 kernels have run");
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < 2; ++i) arrive<<<1, 32, 0, stream>>>(memory, memory + 1);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaStreamSynchronize(stream);
  expect(launches() == before, "a capture runs no kernel");
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  expect(launches() == before + 6, "three graphs of two kernels run six");

  read_mutant<<<1, 1>>>(memory);
  unsigned mutant = 0;
  cudaMemcpy(&mutant, memory, sizeof mutant, cudaMemcpyDeviceToHost);
  const char* const text = std::getenv("WEFT_MUTANT");
  expect(mutant == (text ? std::strtoul(text, nullptr, 10) : 0), "%envreg3 is WEFT_MUTANT");
  expect(cudaGetLastError() == cudaSuccess, "no call has failed");
  return 0;
}
