// SPDX-License-Identifier: Apache-2.0
// As stream_faults.cu: faults of order around the collectives of NCCL. A thread acts for two ranks, each of which
// computes on one stream and communicates on another.
#include <nccl.h>

#include <memory>

#include "tests/emulator/stream_faults.h"

namespace {

using namespace stream_faults;

void must(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  std::printf("FAILED %s: %s\n", what, ncclGetErrorString(status));
  std::exit(1);
}
#define NCCL(call) must(call, #call)

constexpr int kRanks = 2;

struct Rank {
  Rank(int number, ncclComm_t communicator) : rank(number), comm(communicator) {}
  int rank;
  ncclComm_t comm;
  Stream compute, network;
  Event before, after;
  float *a = zeros(), *b = zeros(), *c = zeros();

  /// `later` goes on when `earlier` has reached this point.
  void order(const Event& event, cudaStream_t earlier, cudaStream_t later, bool right = true) const {
    event.record(earlier);
    if (right) event.block(later);
  }
  void all_reduce(const float* from, float* to, cudaStream_t stream) const {
    NCCL(ncclAllReduce(from, to, kN, ncclFloat, ncclSum, comm, stream));
  }
  /// In a group: a send to the other rank and a receive from it.
  void swap(const float* out, float* in) const {
    NCCL(ncclSend(out, kN, ncclFloat, 1 - rank, comm, network));
    NCCL(ncclRecv(in, kN, ncclFloat, 1 - rank, comm, network));
  }
};

/// The work of all ranks, whose calls of NCCL form a group.
class Ranks {
 public:
  Ranks() {
    ncclComm_t comms[kRanks];
    NCCL(ncclCommInitAll(comms, kRanks, nullptr));
    for (int rank = 0; rank < kRanks; ++rank) {
      MUST(cudaSetDevice(rank));
      all_[rank].reset(new Rank(rank, comms[rank]));
    }
  }
  ~Ranks() {
    each([](const Rank&) { MUST(cudaDeviceSynchronize()); });
    for (const auto& rank : all_) NCCL(ncclCommDestroy(rank->comm));
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  void each(const std::function<void(Rank&)>& f) const {
    for (const auto& rank : all_) {
      MUST(cudaSetDevice(rank->rank));
      f(*rank);
    }
  }
  void group(const std::function<void(Rank&)>& f) const {
    NCCL(ncclGroupStart());
    each(f);
    NCCL(ncclGroupEnd());
  }

 private:
  std::unique_ptr<Rank> all_[kRanks];
};

/// The gradient is reduced before it is computed.
void input(bool right) {
  const Ranks ranks;
  ranks.each([right](Rank& r) {
    add<<<1, 64, 0, r.compute>>>(r.a, 1, kN);
    r.order(r.before, r.compute, r.network, right);
  });
  ranks.group([](Rank& r) { r.all_reduce(r.a, r.b, r.network); });
}

/// The optimizer does not wait for the gradient.
void result(bool right) {
  const Ranks ranks;
  ranks.group([](Rank& r) { r.all_reduce(r.a, r.b, r.network); });
  ranks.each([right](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    copy<<<1, 64, 0, r.compute>>>(r.b, r.c, kN);
  });
}

/// The gathered weights: a rank receives more than it sends.
void gathered(bool right) {
  const Ranks ranks;
  ranks.group([](Rank& r) { NCCL(ncclAllGather(r.a, r.b, kN / 2, ncclFloat, r.comm, r.network)); });
  ranks.each([right](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    add<<<1, 64, 0, r.compute>>>(r.b + kN / 2, 1, kN / 2);
  });
}

/// A shard of the gradient is written again while the ranks still sum it.
void scattered(bool right) {
  const Ranks ranks;
  ranks.group([](Rank& r) { NCCL(ncclReduceScatter(r.a, r.b, kN / 2, ncclFloat, ncclSum, r.comm, r.network)); });
  ranks.each([right](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    MUST(cudaMemsetAsync(r.a + kN / 2, 0, kBytes / 2, r.compute));
  });
}

/// Only the root of a broadcast sends; the others write the data that it sent.
void broadcast(bool right) {
  const Ranks ranks;
  ranks.each([right](Rank& r) {
    if (r.rank != 0) return;
    add<<<1, 64, 0, r.compute>>>(r.a, 1, kN);
    r.order(r.before, r.compute, r.network, right);
  });
  ranks.group([](Rank& r) { NCCL(ncclBroadcast(r.a, r.b, kN, ncclFloat, 0, r.comm, r.network)); });
  // Rank 1's send buffer is none: its own kernel may write there.
  ranks.each([](Rank& r) {
    if (r.rank != 0) add<<<1, 64, 0, r.compute>>>(r.a, 1, kN);
  });
}

void sent(bool right) {
  const Ranks ranks;
  ranks.group([](Rank& r) { r.swap(r.a, r.b); });
  ranks.each([right](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    add<<<1, 64, 0, r.compute>>>(r.a, 1, kN);
  });
}
void received(bool right) {
  const Ranks ranks;
  ranks.group([](Rank& r) { r.swap(r.a, r.b); });
  ranks.each([right](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    copy<<<1, 64, 0, r.compute>>>(r.b, r.c, kN);
  });
}

void freed(bool right) {
  const Ranks ranks;
  float* bucket[kRanks];
  ranks.each([&bucket](Rank& r) {
    MUST(cudaMallocAsync(&bucket[r.rank], kBytes, r.compute));
    MUST(cudaMemsetAsync(bucket[r.rank], 0, kBytes, r.compute));
    r.order(r.before, r.compute, r.network);
  });
  ranks.group([&bucket](Rank& r) { r.all_reduce(bucket[r.rank], bucket[r.rank], r.network); });
  ranks.each([&bucket, right](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    MUST(cudaFreeAsync(bucket[r.rank], r.compute));
  });
}

/// There is an order, but the wrong one.
void used_after_free(bool right) {
  const Ranks ranks;
  float* bucket[kRanks];
  ranks.each([&bucket, right](Rank& r) {
    MUST(cudaMallocAsync(&bucket[r.rank], kBytes, r.network));
    MUST(cudaMemsetAsync(bucket[r.rank], 0, kBytes, r.network));
    if (!right) MUST(cudaFreeAsync(bucket[r.rank], r.network));
  });
  ranks.group([&bucket](Rank& r) { r.all_reduce(bucket[r.rank], r.b, r.network); });
  ranks.each([&bucket, right](Rank& r) {
    if (right) MUST(cudaFreeAsync(bucket[r.rank], r.network));
  });
}

/// A caching allocator gives a bucket away that is still being reduced: it was told of the other stream's use too
/// early.
void cached(bool right) {
  const Ranks ranks;
  Cache caches[kRanks]{Cache(right), Cache(right)};
  float* bucket[kRanks];
  ranks.each([&](Rank& r) {
    bucket[r.rank] = caches[r.rank].take(r.compute);
    add<<<1, 64, 0, r.compute>>>(bucket[r.rank], 1, kN);
    r.order(r.before, r.compute, r.network);
    caches[r.rank].record_stream(r.network);
  });
  ranks.group([&](Rank& r) { r.all_reduce(bucket[r.rank], bucket[r.rank], r.network); });
  ranks.each([&](Rank& r) {
    caches[r.rank].give(bucket[r.rank]);
    MUST(cudaMemsetAsync(caches[r.rank].take(r.compute), 0, kBytes, r.compute));
  });
}

/// NCCL runs a communicator's work in sequence today, on any streams, without a promise.
void two_streams(bool right) {
  const Ranks ranks;
  ranks.group([](Rank& r) { r.all_reduce(r.a, r.b, r.network); });
  ranks.each([right](Rank& r) { r.order(r.after, r.network, r.compute, right); });
  ranks.group([](Rank& r) { r.all_reduce(r.b, r.c, r.compute); });
}

/// The streams that a group names wait for all of it. A stream that it does not name waits for nothing.
void streams_of_a_group(bool right) {
  const Ranks ranks;
  ranks.each([](Rank& r) { add<<<1, 64, 0, r.compute>>>(r.a, 1, kN); });
  ranks.group([right](Rank& r) {
    r.all_reduce(r.a, r.b, r.network);
    r.all_reduce(r.c, r.c, right ? r.compute : r.network);
  });
  ranks.each([](Rank& r) { add<<<1, 64, 0, r.compute>>>(r.b, 1, kN); });
}

/// A factor in device memory is read when the collective runs.
void factor(bool right) {
  const Ranks ranks;
  ncclRedOp_t scaled[kRanks];
  ranks.each(
      [&](Rank& r) { NCCL(ncclRedOpCreatePreMulSum(&scaled[r.rank], r.c, ncclFloat, ncclScalarDevice, r.comm)); });
  ranks.group([&](Rank& r) { NCCL(ncclAllReduce(r.a, r.b, kN, ncclFloat, scaled[r.rank], r.comm, r.network)); });
  ranks.each([&](Rank& r) {
    r.order(r.after, r.network, r.compute, right);
    add<<<1, 64, 0, r.compute>>>(r.c, 1, 1);
    NCCL(ncclRedOpDestroy(scaled[r.rank], r.comm));
  });
}

/// A collective in a captured step: the branch comes back after the kernel that needs it.
void captured(bool right) {
  const Ranks ranks;
  cudaGraphExec_t steps[kRanks];
  ranks.each([](Rank& r) {
    MUST(cudaStreamBeginCapture(r.compute, cudaStreamCaptureModeThreadLocal));
    add<<<1, 64, 0, r.compute>>>(r.a, 1, kN);
    r.order(r.before, r.compute, r.network);
  });
  ranks.group([](Rank& r) { r.all_reduce(r.a, r.b, r.network); });
  ranks.each([&steps, right](Rank& r) {
    r.after.record(r.network);
    if (right) r.after.block(r.compute);
    copy<<<1, 64, 0, r.compute>>>(r.b, r.c, kN);
    if (!right) r.after.block(r.compute);
    cudaGraph_t graph;
    MUST(cudaStreamEndCapture(r.compute, &graph));
    MUST(cudaGraphInstantiate(&steps[r.rank], graph, 0));
    MUST(cudaGraphDestroy(graph));
  });
  for (int step = 0; step < 2; ++step)
    ranks.each([&steps](Rank& r) { MUST(cudaGraphLaunch(steps[r.rank], r.compute)); });
  ranks.each([&steps](Rank& r) {
    r.compute.wait();
    MUST(cudaGraphExecDestroy(steps[r.rank]));
  });
}

/// A stream reads what a graph's collective writes.
void captured_and_kernel(bool right) {
  const Ranks ranks;
  cudaGraphExec_t steps[kRanks];
  ranks.each([](Rank& r) { MUST(cudaStreamBeginCapture(r.network, cudaStreamCaptureModeThreadLocal)); });
  ranks.group([](Rank& r) { r.all_reduce(r.a, r.b, r.network); });
  ranks.each([&steps](Rank& r) {
    cudaGraph_t graph;
    MUST(cudaStreamEndCapture(r.network, &graph));
    MUST(cudaGraphInstantiate(&steps[r.rank], graph, 0));
    MUST(cudaGraphDestroy(graph));
  });
  ranks.each([&steps, right](Rank& r) {
    MUST(cudaGraphLaunch(steps[r.rank], r.network));
    r.order(r.after, r.network, r.compute, right);
    copy<<<1, 64, 0, r.compute>>>(r.b, r.c, kN);
  });
  ranks.each([&steps](Rank& r) {
    MUST(cudaDeviceSynchronize());
    MUST(cudaGraphExecDestroy(steps[r.rank]));
  });
}

/// ncclCommDestroy waits for the work of all streams: later calls of the host come after this work.
void destroyed_right() {
  float *host = pinned(1), *more = pinned(1);
  {
    ncclComm_t comm;
    NCCL(ncclCommInitAll(&comm, 1, nullptr));
    const Rank one(0, comm);
    one.all_reduce(host, host, one.network);
    one.all_reduce(more, more, one.compute);
    NCCL(ncclCommDestroy(comm));
  }
  add<<<1, 64>>>(host, 1, kN);
  add<<<1, 64>>>(more, 1, kN);
  MUST(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string asked = argc > 1 ? argv[1] : "";
  if (asked == "destroyed_right") return destroyed_right(), 0;
  return run_fault(asked, {{"input", input},
                           {"result", result},
                           {"gathered", gathered},
                           {"scattered", scattered},
                           {"broadcast", broadcast},
                           {"sent", sent},
                           {"received", received},
                           {"freed", freed},
                           {"used_after_free", used_after_free},
                           {"cached", cached},
                           {"two_streams", two_streams},
                           {"streams_of_a_group", streams_of_a_group},
                           {"factor", factor},
                           {"captured", captured},
                           {"captured_and_kernel", captured_and_kernel}});
}
