// SPDX-License-Identifier: Apache-2.0
// An ordinary program of NCCL: its ranks are threads of one process, then processes. It prints a line for each check
// and ends with the number of failures. `nccl_program speed` times an all-reduce of 64 MiB instead.
// The mistakes that it makes on purpose are such that NVIDIA's NCCL would hang or compute nonsense.
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulator/nccl_ranks.h"

namespace nccl_program {
namespace {

void every_type_and_operator(Rank& r) {
  for (int type = 0; type < ncclNumTypes; ++type)
    for (int op = 0; op < ncclNumOps; ++op)
      for (const size_t n : {size_t{0}, size_t{1}, size_t{1037}}) {
        collective(r, kAllReduce, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), n, 0, op % 2);
        collective(r, kReduceScatter, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), n, 0, type % 2);
      }
}

void every_kind(Rank& r) {
  for (int kind = 0; kind < kKinds; ++kind)
    for (const size_t n : {size_t{0}, size_t{1}, size_t{333}, size_t{200'001}})
      for (const bool in_place : {false, true}) collective(r, kind, ncclFloat32, ncclSum, n, r.size - 1, in_place);
}

void random_ones(Rank& r) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const int kind = static_cast<int>(random() % kKinds), type = static_cast<int>(random() % ncclNumTypes);
    const int op = static_cast<int>(random() % ncclNumOps),
              root = static_cast<int>(random() % static_cast<unsigned>(r.size));
    const size_t n = random() % (i % 50 == 0 ? 100'000 : 300);
    collective(r, kind, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), n, root, random() % 2);
  }
}

void transfers(Rank& r) {
  const auto n = static_cast<size_t>(r.size);
  constexpr size_t kCount = 300'000;
  Buffer out(values(r.rank, ncclInt32, 0, kCount)), in(n * kCount * 4), little(n * 4);
  NCCL(ncclGroupStart());
  for (size_t p = 0; p < n; ++p) {  // all sends first: in a group they do not wait for each other. Also with itself
    NCCL(ncclSend(out.at(), kCount, ncclInt32, static_cast<int>(p), r.comm, r.stream));
    NCCL(ncclSend(out.at(p * 4), 1, ncclInt32, static_cast<int>(p), r.comm, r.stream));
    NCCL(ncclSend(out.at(), 0, ncclInt32, static_cast<int>(p), r.comm, r.stream));
  }
  for (size_t p = 0; p < n; ++p) {
    NCCL(ncclRecv(in.at(p * kCount * 4), kCount, ncclInt32, static_cast<int>(p), r.comm, r.stream));
    NCCL(ncclRecv(little.at(p * 4), 1, ncclInt32, static_cast<int>(p), r.comm, r.stream));
    NCCL(ncclRecv(little.at(), 0, ncclInt32, static_cast<int>(p), r.comm, r.stream));
  }
  NCCL(ncclGroupEnd());
  for (int i = 0; i < 20 && r.size > 1; ++i) {  // without a group, one after the other
    Buffer& b = i % 2 ? in : out;
    if (r.rank == 0) NCCL(ncclSend(out.at(), 1000, ncclInt32, 1, r.comm, r.stream));
    if (r.rank == 1) NCCL(ncclRecv((&b == &out ? in : b).at(), 1000, ncclInt32, 0, r.comm, r.stream));
  }
  r.finish();
  CHECK(r.error() == ncclSuccess);
  for (size_t p = 0; p < n; ++p) {
    SAME(in, ncclInt32, p * kCount, kCount, [&](size_t i) { return value(static_cast<int>(p), i); });
    SAME(little, ncclInt32, p, 1, [&](size_t) { return value(static_cast<int>(p), static_cast<size_t>(r.rank)); });
  }
}

void scaled_sums(Rank& r) {
  Buffer x(values(r.rank, ncclBfloat16, 0, 100)), y(200), factor(2);
  std::vector<char> two(2), half(2);
  put(two, ncclBfloat16, 0, 2);
  put(half, ncclBfloat16, 0, 0.5);
  factor.set(half);
  ncclRedOp_t now, later;
  NCCL(ncclRedOpCreatePreMulSum(&now, two.data(), ncclBfloat16, ncclScalarHostImmediate, r.comm));
  NCCL(ncclRedOpCreatePreMulSum(&later, factor.at(), ncclBfloat16, ncclScalarDevice, r.comm));
  NCCL(ncclAllReduce(x.at(), y.at(), 100, ncclBfloat16, now, r.comm, r.stream));
  NCCL(ncclRedOpDestroy(now, r.comm));
  r.finish();
  SAME(y, ncclBfloat16, 0, 100, [&](size_t i) { return 2 * reduced(ncclSum, ncclFloat32, r.size, i); });
  NCCL(ncclAllReduce(x.at(), y.at(), 100, ncclBfloat16, later, r.comm, r.stream));
  NCCL(ncclRedOpDestroy(later, r.comm));
  r.finish();
  SAME(y, ncclBfloat16, 0, 100, [&](size_t i) { return reduced(ncclSum, ncclFloat32, r.size, i) / 2; });
  CHECK(ncclAllReduce(x.at(), y.at(), 100, ncclBfloat16, later, r.comm, r.stream) == ncclInvalidArgument);
}

void parts(Rank& r) {
  Rank half = r, none = r, rest = r;
  NCCL(ncclCommSplit(r.comm, r.rank % 2, -r.rank, &half.comm, nullptr));
  NCCL(ncclCommCount(half.comm, &half.size));
  NCCL(ncclCommUserRank(half.comm, &half.rank));
  CHECK(half.size == (r.size + 1 - r.rank % 2) / 2 && half.rank == half.size - 1 - r.rank / 2);
  every_kind(half);
  NCCL(ncclCommSplit(r.comm, r.rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, &none.comm, nullptr));
  CHECK((none.comm != nullptr) == (r.rank == 0));
  NCCL(ncclCommDestroy(none.comm));
  NCCL(ncclCommDestroy(half.comm));
  int last = r.size - 1;
  if (r.size > 1 && r.rank < last) {
    NCCL(ncclCommShrink(r.comm, &last, 1, &rest.comm, nullptr, NCCL_SHRINK_DEFAULT));
    --rest.size;
    every_kind(rest);
    NCCL(ncclCommDestroy(rest.comm));
  }
  collective(r, kAllReduce, ncclFloat32, ncclSum, 10, 0, false);
}

ncclConfig_t never_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// From here on no call of the rank's communicator blocks.
void stop_blocking(Rank& r) {
  NCCL(ncclCommDestroy(r.comm));
  r.comm = nullptr;
  r.meet(0);
  if (r.rank == 0) board->id_is_here = 0;
  r.meet(1);
  ncclConfig_t config = never_blocking();
  const ncclResult_t result = ncclCommInitRankConfig(&r.comm, r.size, r.id(), r.rank, &config);
  CHECK(result == ncclInProgress && r.comm);
  r.until_done(result);
}

void without_blocking(Rank& r) {
  stop_blocking(r);
  Rank part = r;
  collective(r, kAllReduce, ncclFloat32, ncclSum, 1000, 0, true);
  ncclConfig_t config = never_blocking();
  // Both say ncclSuccess at once; the parent's state tells when the part is there.
  NCCL(ncclCommSplit(r.comm, NCCL_SPLIT_NOCOLOR, 0, &part.comm, &config));
  r.until_done(ncclInProgress);
  CHECK(!part.comm);
  NCCL(ncclCommSplit(r.comm, 3, r.rank, &part.comm, &config));
  r.until_done(ncclInProgress);
  CHECK(part.comm && part.error() == ncclSuccess);
  collective(part, kAllGather, ncclFloat32, ncclSum, 1000, 0, true);
  r.meet(2);
  NCCL(ncclCommAbort(part.comm));
  r.until_done(ncclCommFinalize(r.comm));
  NCCL(ncclCommDestroy(r.comm));
  r.comm = nullptr;
}

/// NCCL's own thread puts the calls into the stream that this one captures.
void captured_without_blocking(Rank& r) {
  stop_blocking(r);
  Buffer x(values(r.rank, ncclFloat32, 0, 5000)), y(5000 * 4);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
  const ncclResult_t result = ncclAllReduce(x.at(), y.at(), 5000, ncclFloat32, ncclSum, r.comm, r.stream);
  CHECK(result == ncclInProgress);
  r.until_done(result);
  NCCL(ncclGroupStart());
  NCCL(ncclBroadcast(y.at(), x.at(), 5000, ncclFloat32, 0, r.comm, r.stream));
  r.until_done(ncclGroupEnd());
  CUDA(cudaStreamEndCapture(r.stream, &graph));
  size_t nodes = 0;
  CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 2);
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  double factor = 1;
  for (int i = 0; i < 3; ++i) {
    CUDA(cudaGraphLaunch(exec, r.stream));
    collective(r, kAllReduce, ncclInt32, ncclSum, 100, 0, false);  // between the replays
    SAME(x, ncclFloat32, 0, 5000, [&](size_t k) { return factor * reduced(ncclSum, ncclFloat32, r.size, k); });
    factor *= r.size;
  }
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
}

void captured(Rank& r) {
  Buffer x(values(r.rank, ncclFloat32, 0, 5000)), y(5000 * 4), in(4);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
  NCCL(ncclAllReduce(x.at(), y.at(), 5000, ncclFloat32, ncclSum, r.comm, r.stream));
  NCCL(ncclBroadcast(y.at(), x.at(), 5000, ncclFloat32, 0, r.comm, r.stream));
  NCCL(ncclGroupStart());
  NCCL(ncclSend(x.at(), 1, ncclFloat32, (r.rank + 1) % r.size, r.comm, r.stream));
  NCCL(ncclRecv(in.at(), 1, ncclFloat32, (r.rank + r.size - 1) % r.size, r.comm, r.stream));
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamEndCapture(r.stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  double factor = 1;
  for (int i = 0; i < 5; ++i) {
    CUDA(cudaGraphLaunch(exec, r.stream));
    collective(r, kAllReduce, ncclInt32, ncclSum, 100, 0, false);  // between the replays
    SAME(x, ncclFloat32, 0, 5000, [&](size_t k) { return factor * reduced(ncclSum, ncclFloat32, r.size, k); });
    SAME(in, ncclFloat32, 0, 1, [&](size_t) { return factor * reduced(ncclSum, ncclFloat32, r.size, 0); });
    factor *= r.size;
  }
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
}

void several_streams(Rank& r) {
  cudaStream_t other;
  CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  Buffer x(values(r.rank, ncclFloat32, 0, 3000)), y(12000), z(12000);
  for (int i = 0; i < 20; ++i) {
    NCCL(ncclAllReduce(x.at(), y.at(), 3000, ncclFloat32, ncclSum, r.comm, i % 2 ? other : r.stream));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(x.at(), y.at(), 3000, ncclFloat32, ncclSum, r.comm, r.stream));
    NCCL(ncclAllReduce(x.at(), z.at(), 3000, ncclFloat32, ncclMax, r.comm, other));
    NCCL(ncclGroupEnd());
  }
  r.finish();  // both streams of the group wait for the whole
  SAME(z, ncclFloat32, 0, 3000, [&](size_t i) { return reduced(ncclMax, ncclFloat32, r.size, i); });
  SAME(y, ncclFloat32, 0, 3000, [&](size_t i) { return reduced(ncclSum, ncclFloat32, r.size, i); });
  CUDA(cudaStreamDestroy(other));
}

/// One thread speaks for all ranks.
void one_thread(Rank& r) {
  NCCL(ncclCommDestroy(r.comm));
  r.comm = nullptr;
  constexpr int kRanks = 4;
  ncclComm_t all[kRanks], halves[kRanks];
  cudaStream_t streams[kRanks];
  NCCL(ncclCommInitAll(all, kRanks, nullptr));
  std::vector<Buffer*> x, y;
  ncclUniqueId ids[2];
  ncclComm_t pair[2];
  for (ncclUniqueId& id : ids) NCCL(ncclGetUniqueId(&id));
  NCCL(ncclGroupStart());
  for (int i = 0; i < 2; ++i) {
    CUDA(cudaSetDevice(i));
    NCCL(ncclCommInitRankScalable(&pair[i], 2, i, 2, ids, nullptr));
  }
  NCCL(ncclGroupEnd());
  for (ncclComm_t comm : pair) NCCL(ncclCommDestroy(comm));
  std::memset(&ids[1], 1, sizeof ids[1]);
  CHECK(ncclCommInitRankScalable(pair, 2, 0, 2, ids, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommInitRankScalable(pair, 1, 0, 2, ids, nullptr) == ncclInvalidArgument);
  for (int i = 0; i < kRanks; ++i) {
    CUDA(cudaSetDevice(i));
    CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    x.push_back(new Buffer(values(i, ncclFloat32, 0, 1000)));
    y.push_back(new Buffer(4000));
  }
  NCCL(ncclGroupStart());
  for (int i = 0; i < kRanks; ++i) NCCL(ncclCommSplit(all[i], i / 2, i, &halves[i], nullptr));
  NCCL(ncclGroupEnd());
  for (ncclComm_t* comms : {all, halves}) {
    NCCL(ncclGroupStart());
    for (int i = 0; i < kRanks; ++i)
      NCCL(ncclAllReduce(x[i]->at(), y[i]->at(), 1000, ncclFloat32, ncclSum, comms[i], streams[i]));
    NCCL(ncclGroupEnd());
    for (cudaStream_t stream : streams) CUDA(cudaStreamSynchronize(stream));
    SAME(*y[0], ncclFloat32, 0, 1000, [&](size_t i) { return reduced(ncclSum, ncclFloat32, comms == all ? 4 : 2, i); });
  }
  for (int i = 0; i < kRanks; ++i) {
    NCCL(ncclCommDestroy(halves[i]));
    NCCL(ncclCommDestroy(all[i]));
  }
}

// Mistakes. The call that sees one fails, and the operations of all ranks end.

void other_kind(Rank& r) {
  collective(r, kAllReduce, ncclFloat32, ncclSum, 10, 0, false);
  r.meet(0);
  Buffer x(4096);
  if (r.rank == 0) ncclAllReduce(x.at(), x.at(), 1024, ncclFloat32, ncclSum, r.comm, r.stream);
  if (r.rank != 0) ncclBroadcast(x.at(), x.at(), 512, ncclBfloat16, 0, r.comm, r.stream);
  r.expect(ncclInvalidUsage,
           {"collective #2", "rank 0 calls all_reduce of 1024 f32 (sum)", "broadcast of 512 bf16 (root 0)"});
  CHECK(ncclAllReduce(x.at(), x.at(), 8, ncclFloat32, ncclSum, r.comm, r.stream) == ncclInvalidUsage);
}

void capture_ends_too_early(Rank& r) {
  stop_blocking(r);
  r.meet(2);
  Buffer x(4096);
  cudaGraph_t graph;
  // On a busy machine NCCL's thread may still come in time.
  for (int i = 0; i < 100 && r.error() == ncclSuccess; ++i) {
    CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
    ncclAllReduce(x.at(), x.at(), 8, ncclFloat32, ncclSum, r.comm, r.stream);
    CUDA(cudaStreamEndCapture(r.stream, &graph));
    while (r.error() == ncclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  r.expect(ncclInvalidUsage, {"all_reduce of 8 f32 (sum, captured into a graph)",
                              "was called in a capture that ended while", "ncclCommGetAsyncError"});
}

void other_root(Rank& r) {
  Buffer x(4096);
  ncclBroadcast(x.at(), x.at(), 512, ncclBfloat16, r.rank == 0 ? 0 : 1, r.comm, r.stream);
  r.expect(ncclInvalidUsage, {"collective #1", "root 0", "root 1"});
}

void captured_on_one(Rank& r) {
  Buffer x(4096);
  cudaGraph_t graph;
  if (r.rank == 0) CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
  ncclAllReduce(x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.stream);
  if (r.rank == 0) CUDA(cudaStreamEndCapture(r.stream, &graph));
  r.expect(ncclInvalidUsage, {"collective #1", "rank 0 calls all_reduce of 100 f32 (sum, captured into a graph)"});
}

void no_device_memory(Rank& r) {
  Buffer x(4096);
  std::vector<char> host(4096);
  ncclAllReduce(r.rank == 1 ? host.data() : x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.stream);
  r.expect(ncclInvalidUsage, {"rank 1's send buffer", "no device memory"});
}

void buffers_overlap(Rank& r) {
  Buffer x(4096);
  ncclAllReduce(x.at(), x.at(r.rank == 1 ? 4 : 0), 100, ncclFloat32, ncclSum, r.comm, r.stream);
  r.expect(ncclInvalidUsage, {"rank 1's send buffer", "overlap"});
}

void other_device(Rank& r) {
  Buffer x(4096);
  cudaStream_t elsewhere;
  CUDA(cudaSetDevice((r.rank + 1) % r.size));
  CUDA(cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking));
  CUDA(cudaSetDevice(r.rank));
  ncclAllReduce(x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.rank == 1 ? elsewhere : r.stream);
  r.expect(ncclInvalidUsage, {"rank 1's communicator is on device 1, its stream on device"});
}

void other_count(Rank& r) {
  Buffer x(4096);
  if (r.rank == 0) ncclSend(x.at(), 12, ncclFloat32, 1, r.comm, r.stream);
  if (r.rank == 1) ncclRecv(x.at(), 10, ncclFloat32, 0, r.comm, r.stream);
  r.expect(ncclInvalidUsage, {"send of 12 f32 to rank 1", "receive of 10 f32 from rank 0"});
}

void sends_face_to_face(Rank& r) {
  Buffer x(4096);
  if (r.rank < 2) ncclSend(x.at(), 1, ncclFloat32, 1 - r.rank, r.comm, r.stream);
  r.expect(ncclInvalidUsage, {"deadlock", "send of 1 f32 to rank 1 for rank 1", "send of 1 f32 to rank 0 for rank 0"});
}

/// With a seed some small sends end without their receive, as in NCCL's buffers, and large ones never do.
void sends_that_end_early(Rank& r) {
  const char* const seed = std::getenv("WEFT_EMULATE_SEED");
  int early = 0;
  for (int i = 0; i < 16; ++i) {
    const bool large = i == 15;
    const size_t count = large ? size_t{1} << 22 : 100;
    Buffer x(values(0, ncclFloat32, 0, count));
    if (r.rank == 0) {
      NCCL(ncclSend(x.at(), count, ncclFloat32, 1, r.comm, r.stream));
      bool ended = false;
      const auto end = Clock::now() + std::chrono::milliseconds(200);
      while (!ended && Clock::now() < end) ended = cudaStreamQuery(r.stream) == cudaSuccess;
      CHECK(!(ended && large));
      early += ended;
      ++board->arrived[14];
    } else {
      while (board->arrived[14] <= i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      CUDA(cudaMemset(x.at(), 0, count * 4));
      CUDA(cudaDeviceSynchronize());
      NCCL(ncclRecv(x.at(), count, ncclFloat32, 0, r.comm, r.stream));
      r.finish();
      SAME(x, ncclFloat32, 0, count, [&](size_t k) { return value(0, k); });
    }
    r.finish();
  }
  if (r.rank == 0) CHECK(seed && std::atoi(seed) != 0 ? early > 0 && early < 15 : early == 0, std::to_string(early));
}

void send_without_receive(Rank& r) {
  Buffer x(4096);
  if (r.rank == 0) ncclSend(x.at(), 1, ncclFloat32, 1, r.comm, r.stream);
  ncclAllReduce(x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.stream);
  r.expect(ncclInvalidUsage, {"deadlock", "send of 1 f32 to rank 1", "collective #1 (all_reduce of 100 f32 (sum))"});
}

void leaves_early(Rank& r) {
  Buffer x(4096);
  if (r.rank == 1) {
    NCCL(ncclCommDestroy(r.comm));
    CHECK(ncclAllReduce(x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.stream) == ncclInvalidArgument);
    r.comm = nullptr;
    return;
  }
  ncclAllReduce(x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.stream);
  r.expect(ncclInvalidUsage,
           {"collective #1", "waits for rank 1, which has left the communicator after 0 collectives"});
}

void aborts(Rank& r) {
  Buffer x(4096);
  if (r.rank != 1) ncclAllReduce(x.at(), x.at(), 100, ncclFloat32, ncclSum, r.comm, r.stream);
  if (r.rank == 0) {  // an operation under way ends by this rank's abort
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    NCCL(ncclCommAbort(r.comm));
    r.finish();
    r.comm = nullptr;
    return;
  }
  r.expect(ncclRemoteError, {"rank 0 has aborted the communicator"});
  NCCL(ncclCommAbort(r.comm));
  r.comm = nullptr;
}

void dies(Rank& r) {
  Buffer x(size_t{4} << 20);
  ncclAllReduce(x.at(), x.at(), 1000, ncclFloat32, ncclSum, r.comm, r.stream);
  r.finish();
  if (r.rank == 1) raise(SIGKILL);
  const auto begin = Clock::now();
  ncclAllReduce(x.at(), x.at(), size_t{1} << 20, ncclFloat32, ncclSum, r.comm, r.stream);
  r.expect(ncclRemoteError, {"rank 1 has died"});
  CHECK(Clock::now() - begin < std::chrono::seconds(30));
  Rank rest = r;
  int dead = 1;
  NCCL(ncclCommShrink(r.comm, &dead, 1, &rest.comm, nullptr, NCCL_SHRINK_ABORT));
  NCCL(ncclCommCount(rest.comm, &rest.size));
  NCCL(ncclCommUserRank(rest.comm, &rest.rank));
  every_kind(rest);
  NCCL(ncclCommDestroy(rest.comm));
  NCCL(ncclCommAbort(r.comm));
  r.comm = nullptr;
}

void same_gpu(Rank& r) {
  CUDA(cudaSetDevice(0));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, r.size, r.id(), r.rank) == ncclInvalidUsage && !comm);
  CHECK(std::strstr(ncclGetLastError(nullptr), "same GPU"));
}

void speed(Rank& r) {
  const size_t bytes = size_t{64} << 20;
  Buffer x(bytes);
  CUDA(cudaMemset(x.at(), 0, bytes));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 4; ++i) {
    const auto begin = Clock::now();
    NCCL(ncclAllReduce(x.at(), x.at(), bytes / 4, ncclFloat32, ncclSum, r.comm, r.stream));
    r.finish();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (r.rank == 0)
      std::printf("  64 MiB f32: %.1f ms, %.2f GB/s\n", 1e3 * seconds, static_cast<double>(bytes) / seconds / 1e9);
  }
}

struct Check {
  const char* name;
  void (*body)(Rank&);
  int from, to;  ///< ranks
  bool threads = true, processes = true, joined = true;
  int killed = -1;
};

void run_rank(const Check& check, int rank, int size) {
  Rank r{rank, size};
  CUDA(cudaSetDevice(rank));
  if (check.joined) r.init();
  check.body(r);
  if (r.comm) NCCL(ncclCommDestroy(r.comm));
}

/// In processes that this one, which never calls CUDA, forks.
bool run(const Check& check, int size, bool threads) {
  new (board) Board{};
  const int log = memfd_create("log", 0);
  std::fflush(stdout);
  std::vector<pid_t> children;
  for (int p = 0; p < (threads ? 1 : size); ++p) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(log, 2);
      alarm(120);
      std::vector<std::thread> others;
      for (int q = 1; threads && q < size; ++q) others.emplace_back([&, q] { run_rank(check, q, size); });
      run_rank(check, p, size);
      for (std::thread& other : others) other.join();
      std::fflush(stdout);
      _exit(0);
    }
    children.push_back(child);
  }
  bool good = true;
  for (int p = 0; p < static_cast<int>(children.size()); ++p) {
    int status = 0;
    waitpid(children[static_cast<size_t>(p)], &status, 0);
    const bool right = p == check.killed ? WIFSIGNALED(status) != 0 : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!right) {
      std::printf("process %d of %zu ended with status %#x\n", p, children.size(), static_cast<unsigned>(status));
      for (const pid_t other : children)  // waits for nothing any more
        if (good && other != children[static_cast<size_t>(p)]) kill(other, SIGKILL);
      good = false;
    }
  }
  std::printf("%s %s (%d %s)\n", good ? "ok    " : "FAILED", check.name, size, threads ? "threads" : "processes");
  std::string said(static_cast<size_t>(lseek(log, 0, SEEK_END)), ' ');
  if (pread(log, said.data(), said.size(), 0) < 0) said = "its log cannot be read";
  // --check streams has its own exit code, and says why here.
  if (!good || said.find("between streams") != std::string::npos || said.find("in stream order") != std::string::npos)
    std::printf("%s\n", said.c_str());
  close(log);
  return good;
}

constexpr Check kChecks[] = {
    {"every type and operator", every_type_and_operator, 1, 4},
    {"every kind of collective", every_kind, 1, 4},
    {"1000 random collectives", random_ones, 3, 3},
    {"sends and receives in groups", transfers, 1, 4},
    {"scaled sums", scaled_sums, 1, 3},
    {"sends that end early", sends_that_end_early, 2, 2},
    {"split and shrink", parts, 1, 4},
    {"calls that do not block", without_blocking, 1, 4},
    {"collectives in a graph", captured, 2, 3},
    {"collectives in a graph, calls that do not block", captured_without_blocking, 1, 3},
    {"several streams", several_streams, 2, 3},
    {"one thread for four ranks", one_thread, 1, 1, true, false},
    {"mistake: another kind", other_kind, 2, 3},
    {"mistake: another root", other_root, 2, 2},
    {"mistake: a capture that ends too early", capture_ends_too_early, 1, 2},
    {"mistake: captured on one rank", captured_on_one, 2, 3},
    {"mistake: no device memory", no_device_memory, 2, 2},
    {"mistake: buffers overlap", buffers_overlap, 2, 2},
    {"mistake: a stream of another device", other_device, 2, 2},
    {"mistake: another count", other_count, 2, 3},
    {"mistake: sends face to face", sends_face_to_face, 2, 3},
    {"mistake: a send without a receive", send_without_receive, 2, 2},
    {"mistake: a rank leaves early", leaves_early, 2, 3},
    {"mistake: two ranks on one GPU", same_gpu, 2, 2, true, true, false},
    {"a rank aborts", aborts, 2, 3},
    {"a process dies", dies, 2, 4, false, true, true, 1},
};

}  // namespace
}  // namespace nccl_program

int main(int argc, char** argv) {
  using namespace nccl_program;
  const std::string wanted = argc > 1 ? argv[1] : "";
  setenv("WEFT_EMULATE_GPUS", "4", /*overwrite=*/0);
  board = static_cast<Board*>(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int failed = 0;
  if (wanted == "speed") {
    for (const bool threads : {true, false}) failed += !run({"speed", speed, 2, 2}, 2, threads);
    return failed;
  }
  for (const Check& check : kChecks)
    for (const bool threads : {true, false})
      for (int size = check.from; size <= check.to; ++size)
        if ((threads ? check.threads : check.processes) && std::string(check.name).find(wanted) != std::string::npos)
          failed += !run(check, size, threads);
  return failed;
}
