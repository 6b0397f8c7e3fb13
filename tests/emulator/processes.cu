// SPDX-License-Identifier: Apache-2.0
// Memory and events that two processes share. The parent makes them and sends their handles through a pipe to a child,
// which is started before any call of CUDA.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "promises.h"

namespace {

constexpr int kN = 1000;

__global__ void add_to(int* data, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kN) data[i] += value;
}

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t filled, answered;
};

void send(int pipe, const void* bytes, size_t count) {
  if (write(pipe, bytes, count) != static_cast<ssize_t>(count)) std::exit(1);
}
void receive(int pipe, void* bytes, size_t count) {
  if (read(pipe, bytes, count) != static_cast<ssize_t>(count)) std::exit(1);
}

bool holds(const int* device, int base) {
  std::vector<int> host(kN);
  MUST(cudaMemcpy(host.data(), device, kN * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kN; ++i)
    if (host[static_cast<size_t>(i)] != i + base) {
      std::printf("FAILED element %d is %d, expected %d\n", i, host[static_cast<size_t>(i)], i + base);
      return false;
    }
  return true;
}

/// Waits on the device for the parent's kernel, adds, and records that it has. Both addresses of a handle are equal.
int child(int from_parent, int to_parent) {
  Handles handles;
  receive(from_parent, &handles, sizeof(handles));
  cudaEvent_t filled, answered;
  int *data, *again;
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaIpcOpenEventHandle(&filled, handles.filled));
  MUST(cudaIpcOpenEventHandle(&answered, handles.answered));
  MUST(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&data), handles.memory, cudaIpcMemLazyEnablePeerAccess));
  MUST(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&again), handles.memory, cudaIpcMemLazyEnablePeerAccess));
  if (data != again) return std::printf("FAILED one handle has two addresses\n"), 1;
  MUST(cudaIpcCloseMemHandle(again));
  MUST(cudaStreamWaitEvent(stream, filled, 0));
  add_to<<<4, 256, 0, stream>>>(data, 1000);
  MUST(cudaEventRecord(answered, stream));
  send(to_parent, "r", 1);
  char done;
  receive(from_parent, &done, 1);
  MUST(cudaStreamSynchronize(stream));
  if (cudaFree(data) == cudaSuccess) return std::printf("FAILED cudaFree of another process's memory\n"), 1;
  MUST(cudaIpcCloseMemHandle(data));
  // The parent has freed it.
  cudaGetLastError();
  if (cudaIpcOpenMemHandle(reinterpret_cast<void**>(&data), handles.memory, cudaIpcMemLazyEnablePeerAccess) ==
      cudaSuccess)
    return std::printf("FAILED a handle of memory that was freed\n"), 1;
  return 0;
}

int parent(int to_child, int from_child) {
  std::vector<int> host(kN);
  for (int i = 0; i < kN; ++i) host[static_cast<size_t>(i)] = i;
  int* data;
  Handles handles;
  cudaEvent_t filled, answered, plain;
  MUST(cudaMalloc(&data, kN * sizeof(int)));
  MUST(cudaMemcpy(data, host.data(), kN * sizeof(int), cudaMemcpyHostToDevice));
  MUST(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming | cudaEventInterprocess));
  MUST(cudaEventCreateWithFlags(&answered, cudaEventDisableTiming | cudaEventInterprocess));
  MUST(cudaEventCreate(&plain));
  if (cudaIpcGetEventHandle(&handles.filled, plain) == cudaSuccess)
    return std::printf("FAILED a handle of a plain event\n"), 1;
  cudaGetLastError();
  // The memory keeps its content when it gets a handle.
  MUST(cudaIpcGetMemHandle(&handles.memory, data));
  MUST(cudaIpcGetEventHandle(&handles.filled, filled));
  MUST(cudaIpcGetEventHandle(&handles.answered, answered));
  add_to<<<4, 256>>>(data, 7);
  MUST(cudaEventRecord(filled));
  send(to_child, &handles, sizeof(handles));
  char recorded;
  receive(from_child, &recorded, 1);
  MUST(cudaEventSynchronize(answered));
  const bool right = holds(data, 1007);
  MUST(cudaFree(data));
  send(to_child, "d", 1);
  int status = 1;
  wait(&status);
  std::printf("%s shares_memory_and_events\n", right && status == 0 ? "ok" : "FAILED");
  return right && status == 0 ? 0 : 1;
}

}  // namespace

int main() {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return 1;
  return fork() == 0 ? child(down[0], up[1]) : parent(down[1], up[0]);
}
