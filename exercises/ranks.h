// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks for exercises on collectives: a GPU and a thread each, in one process. Sent and reduced numbers are counted,
// where this is included before check.h, which includes the exercise.
#include <nccl.h>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

struct Rank {
  int rank, size;
  ncclComm_t comm;
  cudaStream_t compute, network;
};

inline std::atomic<size_t> numbers_sent[16];  // sent by ncclSend, per rank
inline std::atomic<int> reductions[16];       // calls of ncclAllReduce

inline int rank_of(ncclComm_t comm) {
  int rank = 0;
  ncclCommUserRank(comm, &rank);
  return rank;
}
inline ncclResult_t counted_send(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                 cudaStream_t stream) {
  numbers_sent[rank_of(comm)] += count;
  return ncclSend(from, count, type, peer, comm, stream);
}
inline ncclResult_t counted_all_reduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                       ncclComm_t comm, cudaStream_t stream) {
  ++reductions[rank_of(comm)];
  return ncclAllReduce(from, to, count, type, op, comm, stream);
}
#define ncclSend counted_send
#define ncclAllReduce counted_all_reduce

/// Calls body(rank) on each of `size` ranks at the same time, and waits for all that they have enqueued.
inline void on_ranks(int size, const std::function<void(const Rank&)>& body) {
  std::vector<ncclComm_t> comms(size);
  ncclCommInitAll(comms.data(), size, nullptr);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    numbers_sent[r] = 0;
    reductions[r] = 0;
    threads.emplace_back([&, r] {
      cudaSetDevice(r);
      Rank one{r, size, comms[r]};
      cudaStreamCreateWithFlags(&one.compute, cudaStreamNonBlocking);
      cudaStreamCreateWithFlags(&one.network, cudaStreamNonBlocking);
      body(one);
      cudaDeviceSynchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ncclComm_t comm : comms) ncclCommDestroy(comm);
}
