// SPDX-License-Identifier: Apache-2.0
// Ranks whose collectives weft-emulate --time predicts; each is a thread with a GPU. Each prints the ms between two events
// around its work:
//   nccl_time RANKS all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|exchange BYTES [late]
//             one call; `late`: rank R runs R kernels before
//   nccl_time RANKS graph BYTES        an all_reduce in a graph that runs twice.
//   nccl_time RANKS step BYTES PARTS   parts of BYTES, each reduced on another stream after its share of 8 kernels.
//   nccl_time RANKS calls BYTES blocking|non_blocking
//             the host's us for each of 10,000 all_reduces; Weft asks as often whether a call is enqueued
#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulator/library_program.h"

#define NCCL(call) CHECK((call) == ncclSuccess, ncclGetLastError(nullptr))

namespace {

__global__ void chain(float* out, int turns) {
  float x = out[threadIdx.x];
  for (int i = 0; i < turns; ++i) x = x * 1.5f + 0.25f;
  out[threadIdx.x] = x;
}

struct Rank {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t compute, other;
  library_program::Memory<float>* values;

  void kernel() const { chain<<<1, 64, 0, compute>>>(values->device, 20'000); }

  void call(const std::string& kind, size_t bytes, cudaStream_t stream) const {
    float* const at = values->device;
    const size_t count = bytes / sizeof(float), block = count / static_cast<size_t>(ranks);
    float* const own = at + static_cast<size_t>(rank) * block;
    if (kind == "all_reduce") NCCL(ncclAllReduce(at, at, count, ncclFloat, ncclSum, comm, stream));
    if (kind == "all_gather") NCCL(ncclAllGather(own, at, block, ncclFloat, comm, stream));
    if (kind == "reduce_scatter") NCCL(ncclReduceScatter(at, own, block, ncclFloat, ncclSum, comm, stream));
    if (kind == "broadcast") NCCL(ncclBroadcast(at, at, count, ncclFloat, 0, comm, stream));
    if (kind == "all_to_all" || kind == "exchange") {  // exchange: with the next rank and the one before
      NCCL(ncclGroupStart());
      for (int r = 0; r < ranks; ++r) {
        const bool next = r == (rank + 1) % ranks, before = (r + 1) % ranks == rank, all = kind == "all_to_all" && r != rank;
        if (next || all) NCCL(ncclSend(own, block, ncclFloat, r, comm, stream));
        if (before || all) NCCL(ncclRecv(at + count + static_cast<size_t>(r) * block, block, ncclFloat, r, comm, stream));
      }
      NCCL(ncclGroupEnd());
    }
  }

  void after(cudaStream_t later, cudaStream_t earlier) const {
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CUDA(cudaEventRecord(event, earlier));
    CUDA(cudaStreamWaitEvent(later, event, 0));
    CUDA(cudaEventDestroy(event));
  }

  void step(size_t bytes, int parts) const {
    constexpr int kKernels = 8;
    for (int part = 0; part < parts; ++part) {
      for (int k = 0; k < kKernels / parts; ++k) kernel();
      after(other, compute);
      call("all_reduce", bytes / static_cast<size_t>(parts), other);
    }
    after(compute, other);
  }

  void graph(size_t bytes) const {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal));
    call("all_reduce", bytes, compute);
    CUDA(cudaStreamEndCapture(compute, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 2; ++i) CUDA(cudaGraphLaunch(executable, compute));
    CUDA(cudaStreamSynchronize(compute));
  }
};

/// Waits on the host until NCCL has enqueued its calls: at once for a blocking communicator.
void settle(ncclComm_t comm, ncclResult_t result) {
  for (int look = 0; result == ncclInProgress; ++look) {
    NCCL(ncclCommGetAsyncError(comm, &result));
    look < 1000 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  NCCL(result);
}

void time_calls(int rank, const ncclUniqueId& id, int ranks, size_t bytes, bool blocking) {
  constexpr int kCalls = 10'000;
  library_program::Memory<float> values(bytes / sizeof(float));
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  ncclComm_t comm = nullptr;
  const ncclResult_t connects = ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
  settle(comm, connects);
  const auto call = [&] {
    settle(comm, ncclAllReduce(values.device, values.device, bytes / sizeof(float), ncclFloat, ncclSum, comm, stream));
  };
  call();
  CUDA(cudaStreamSynchronize(stream));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  CUDA(cudaStreamSynchronize(stream));
  std::printf("rank %d: %.1f us a call\n", rank, took.count() / kCalls);
  settle(comm, ncclCommFinalize(comm));
  NCCL(ncclCommDestroy(comm));
}

void run(int rank, const ncclUniqueId& id, int argc, char** argv) {
  CUDA(cudaSetDevice(rank));
  Rank r{rank, std::atoi(argv[1]), {}, {}, {}, {}};
  const std::string what = argv[2];
  const auto bytes = static_cast<size_t>(std::atoll(argv[3]));
  if (what == "calls") return time_calls(rank, id, r.ranks, bytes, std::string(argv[4]) == "blocking");
  library_program::Memory<float> values(2 * bytes / sizeof(float) + 64);
  r.values = &values;
  CUDA(cudaStreamCreateWithFlags(&r.compute, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&r.other, cudaStreamNonBlocking));
  NCCL(ncclCommInitRank(&r.comm, r.ranks, id, rank));
  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  CUDA(cudaEventRecord(begin, r.compute));
  if (argc > 4 && std::string(argv[4]) == "late")
    for (int k = 0; k < rank; ++k) r.kernel();
  if (what == "step")
    r.step(bytes, std::atoi(argv[4]));
  else if (what == "graph")
    r.graph(bytes);
  else
    r.call(what, bytes, r.compute);
  CUDA(cudaEventRecord(end, r.compute));
  CUDA(cudaEventSynchronize(end));
  float ms = 0;
  CUDA(cudaEventElapsedTime(&ms, begin, end));
  std::printf("rank %d: %.6f ms\n", rank, static_cast<double>(ms));
  NCCL(ncclCommDestroy(r.comm));
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 4);
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  std::vector<std::thread> ranks;
  for (int r = 0; r < std::atoi(argv[1]); ++r) ranks.emplace_back(run, r, id, argc, argv);
  for (std::thread& rank : ranks) rank.join();
}
