// SPDX-License-Identifier: Apache-2.0
// Unit 12 of the course: four GPUs of one process. docs/course/12_many_gpus.md reads the output.
//   ranks ring      an all-reduce by sends and receives, with each rank's values after each step.
//   ranks ddp       gradients that are added up during the next layer's backward; -DEVENT=0 leaves an order out.
//   ranks fsdp      weights of which each rank keeps a part, beside ddp
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "exercises/chain.h"
#include "exercises/ranks.h"

#ifndef EVENT
#define EVENT 1
#endif

constexpr int kRanks = 4, kN = 1 << 10, kLayers = 12, kPart = kN / kRanks;

__global__ void add(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

__global__ void fill(float* to, float value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = value;
}

/// The model of a layer's backward, which needs its weights.
__global__ void backward(float* gradient, const float* w, float x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) gradient[i] = w[i] * x;
}

__global__ void step(float* w, const float* gradient, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) w[i] -= gradient[i];
}

void order(cudaStream_t first, cudaStream_t then) {
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(then, event);
  cudaEventDestroy(event);
}

thread_local int allocated;  // numbers, of this rank

float* memory(int n) {
  allocated += n;
  float* data;
  cudaMalloc(&data, n * sizeof(float));
  return data;
}

/// Rank r begins with 10^r in all parts: the digits of a number say whose numbers it holds.
void ring() {
  std::string lines[kRanks];
  on_ranks(kRanks, [&](const Rank& r) {
    float *data = memory(kN), *scratch = memory(kPart);
    fill<<<kN / 256, 256, 0, r.compute>>>(data, std::pow(10.0f, static_cast<float>(r.rank)), kN);
    const auto part = [&](int p) { return data + (p + kRanks) % kRanks * kPart; };
    for (int s = 0; s < 2 * (kRanks - 1); ++s) {
      const bool adds = s < kRanks - 1;  // a reduce-scatter, then an all-gather
      const int out = adds ? r.rank - s : r.rank + kRanks - s;
      ncclGroupStart();
      ncclSend(part(out), kPart, ncclFloat, (r.rank + 1) % kRanks, r.comm, r.compute);
      ncclRecv(adds ? scratch : part(out - 1), kPart, ncclFloat, (r.rank + kRanks - 1) % kRanks, r.comm, r.compute);
      ncclGroupEnd();
      if (adds) add<<<kPart / 256, 256, 0, r.compute>>>(part(out - 1), scratch, kPart);
      cudaStreamSynchronize(r.compute);
      char text[80];
      float has[kRanks];
      for (int p = 0; p < kRanks; ++p) cudaMemcpy(&has[p], part(p), sizeof(float), cudaMemcpyDeviceToHost);
      std::snprintf(text, sizeof(text), "rank %d, step %d: %04.0f %04.0f %04.0f %04.0f\n", r.rank, s + 1, has[0],
                    has[1], has[2], has[3]);
      if (s % (kRanks - 1) == 0 || s == kRanks - 2 || s == 2 * kRanks - 3) lines[r.rank] += text;
    }
  });
  for (const std::string& text : lines) std::fputs(text.c_str(), stdout);
  std::printf("each rank has sent %.2f n numbers\n", static_cast<double>(numbers_sent[0]) / kN);
}

/// Each rank has all weights and gradients. Returns its weights after a step.
std::vector<float> replicas(const Rank& r, bool overlaps, int* chain) {
  allocated = 0;
  float *w = memory(kLayers * kN), *gradients = memory(kLayers * kN);
  fill<<<kLayers * kN / 256, 256, 0, r.compute>>>(w, 1, kLayers * kN);
  const cudaStream_t network = overlaps ? r.network : r.compute;
  const auto enqueue = [&] {
    for (int l = kLayers - 1; l >= 0; --l) {
      float* const gradient = gradients + l * kN;
      backward<<<kN / 256, 256, 0, r.compute>>>(gradient, w + l * kN, l + r.rank + 1, kN);
      if (EVENT || l == kLayers - 1) order(r.compute, network);
      ncclAllReduce(gradient, gradient, kN, ncclFloat, ncclSum, r.comm, network);
    }
    order(network, r.compute);
    step<<<kLayers * kN / 256, 256, 0, r.compute>>>(w, gradients, kLayers * kN);
  };
  *chain = chain_of(r.compute, enqueue).longest;
  enqueue();
  cudaStreamSynchronize(r.compute);
  std::vector<float> result(kLayers * kN);
  cudaMemcpy(result.data(), w, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  return result;
}

/// Each rank has a part of each layer's weights and gradient, and two layers as a whole. Returns its parts after a
/// step.
std::vector<float> shards(const Rank& r, int* chain) {
  allocated = 0;
  float *w = memory(kLayers * kPart), *gradient = memory(kLayers * kPart), *whole = memory(2 * kN),
        *whole_gradient = memory(2 * kN);
  fill<<<kLayers * kPart / 256, 256, 0, r.compute>>>(w, 1, kLayers * kPart);
  cudaEvent_t gathered[2];
  for (cudaEvent_t& event : gathered) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  const auto gather = [&](int l) {
    ncclAllGather(w + l * kPart, whole + l % 2 * kN, kPart, ncclFloat, r.comm, r.network);
    cudaEventRecord(gathered[l % 2], r.network);
  };
  const auto enqueue = [&] {
    order(r.compute, r.network);
    gather(kLayers - 1);
    for (int l = kLayers - 1; l >= 0; --l) {
      cudaStreamWaitEvent(r.compute, gathered[l % 2]);
      if (l > 0) gather(l - 1);  // its memory is free: network has waited for the backward of layer l + 1
      backward<<<kN / 256, 256, 0, r.compute>>>(whole_gradient + l % 2 * kN, whole + l % 2 * kN, l + r.rank + 1, kN);
      order(r.compute, r.network);
      ncclReduceScatter(whole_gradient + l % 2 * kN, gradient + l * kPart, kPart, ncclFloat, ncclSum, r.comm,
                        r.network);
    }
    order(r.network, r.compute);
    step<<<kLayers * kPart / 256, 256, 0, r.compute>>>(w, gradient, kLayers * kPart);
  };
  *chain = chain_of(r.compute, enqueue).longest;
  enqueue();
  cudaStreamSynchronize(r.compute);
  std::vector<float> result(kLayers * kPart);
  cudaMemcpy(result.data(), w, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
  return result;
}

void ddp() {
  int chains[2][kRanks], wrong[kRanks] = {};
  on_ranks(kRanks, [&](const Rank& r) {
    for (const bool overlaps : {false, true}) {
      const std::vector<float> w = replicas(r, overlaps, &chains[overlaps][r.rank]);
      for (int i = 0; i < kLayers * kN; ++i) wrong[r.rank] += w[i] != 1 - (4 * (i / kN) + 10);
    }
  });
  std::printf("%d layers, in a chain: %d operations in one stream, %d in two; %d weights wrong\n", kLayers,
              chains[0][0], chains[1][0], wrong[0]);
}

void fsdp() {
  int whole[kRanks], part[kRanks], chains[2][kRanks], differ[kRanks] = {};
  on_ranks(kRanks, [&](const Rank& r) {
    const std::vector<float> all = replicas(r, true, &chains[0][r.rank]);
    whole[r.rank] = allocated;
    const std::vector<float> own = shards(r, &chains[1][r.rank]);
    part[r.rank] = allocated;
    for (int i = 0; i < kLayers * kPart; ++i)
      differ[r.rank] += own[i] != all[i / kPart * kN + r.rank * kPart + i % kPart];
  });
  std::printf("a rank keeps: ddp %d n numbers, fsdp %d n\n", whole[0] / kN, part[0] / kN);
  std::printf("in a chain: ddp %d operations, fsdp %d; %d weights differ\n", chains[0][0], chains[1][0],
              differ[0] + differ[3]);
}

int main(int, char** argv) {
  if (std::strcmp(argv[1], "ring") == 0) ring();
  if (std::strcmp(argv[1], "ddp") == 0) ddp();
  if (std::strcmp(argv[1], "fsdp") == 0) fsdp();
  return 0;
}
