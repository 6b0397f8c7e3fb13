// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks of nccl_program.cpp, their buffers, and one collective with its expected results.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/emulator/library_program.h"

namespace nccl_program {

using library_program::die;

using Clock = std::chrono::steady_clock;

#define NCCL(call) CHECK((call) == ncclSuccess, ncclGetLastError(nullptr))

/// Memory that the processes of a check share, apart from NCCL.
struct Board {
  ncclUniqueId id;
  std::atomic<int> id_is_here, arrived[16];
};
inline Board* board;

class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {
    CUDA(cudaMalloc(&data_, bytes + 1));
    CUDA(cudaMemset(data_, 0x55, bytes + 1));
    CUDA(cudaDeviceSynchronize());
  }
  explicit Buffer(const std::vector<char>& host) : Buffer(host.size()) { set(host); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* at(size_t offset = 0) const { return static_cast<char*>(data_) + offset; }
  void set(const std::vector<char>& host) { CUDA(cudaMemcpy(data_, host.data(), host.size(), cudaMemcpyHostToDevice)); }
  std::vector<char> get() const {
    std::vector<char> host(bytes_);
    CUDA(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

struct Rank {
  int rank, size;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  /// Work that one moment has to come before the other, on all ranks.
  void meet(int place) const {
    ++board->arrived[place];
    while (board->arrived[place] < size) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ncclUniqueId id() const {
    if (rank == 0) {
      NCCL(ncclGetUniqueId(&board->id));
      board->id_is_here = 1;
    }
    while (!board->id_is_here) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return board->id;
  }
  void init() {
    NCCL(ncclCommInitRank(&comm, size, id(), rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  /// As a framework that polls: no call blocks.
  void until_done(ncclResult_t result) const {
    while (result == ncclInProgress) NCCL(ncclCommGetAsyncError(comm, &result));
    CHECK(result == ncclSuccess, ncclGetLastError(comm));
  }
  void finish() const { CUDA(cudaStreamSynchronize(stream)); }
  ncclResult_t error() const {
    ncclResult_t result;
    NCCL(ncclCommGetAsyncError(comm, &result));
    return result;
  }
  /// The communicator ends with this error, whose text has these words, though only some ranks see it at the call.
  void expect(ncclResult_t code, std::initializer_list<const char*> words) const {
    finish();
    for (int i = 0; i < 60000 && error() == ncclSuccess; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text = ncclGetLastError(comm);
    CHECK(error() == code, text);
    for (const char* word : words) CHECK(text.find(word) != std::string::npos, text + ", not " + word);
  }
};

/// Calls `f` with a zero of CUDA's own type.
template <class F>
auto with_type(ncclDataType_t type, F&& f) {
  switch (type) {
    case ncclInt8:
      return f(int8_t{});
    case ncclUint8:
      return f(uint8_t{});
    case ncclInt32:
      return f(int32_t{});
    case ncclUint32:
      return f(uint32_t{});
    case ncclInt64:
      return f(int64_t{});
    case ncclUint64:
      return f(uint64_t{});
    case ncclFloat16:
      return f(__half{});
    case ncclFloat64:
      return f(double{});
    case ncclBfloat16:
      return f(__nv_bfloat16{});
    case ncclFloat8e4m3:
      return f(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return f(__nv_fp8_e5m2{});
    default:
      return f(float{});
  }
}

inline size_t size_of(ncclDataType_t type) {
  return with_type(type, [](auto zero) { return sizeof zero; });
}

inline void put(std::vector<char>& bytes, ncclDataType_t type, size_t i, double value) {
  with_type(type, [&](auto x) {
    if constexpr (std::is_arithmetic_v<decltype(x)>)
      x = static_cast<decltype(x)>(value);
    else
      x = decltype(x)(static_cast<float>(value));
    std::memcpy(bytes.data() + i * sizeof x, &x, sizeof x);
  });
}

inline double get(const std::vector<char>& bytes, ncclDataType_t type, size_t i) {
  return with_type(type, [&](auto x) {
    std::memcpy(static_cast<void*>(&x), bytes.data() + i * sizeof x, sizeof x);
    if constexpr (std::is_arithmetic_v<decltype(x)>)
      return static_cast<double>(x);
    else
      return static_cast<double>(static_cast<float>(x));
  });
}

inline bool is_integer(ncclDataType_t type) { return type <= ncclUint64; }

/// Small integers: their sums and products over four ranks are exact in each type.
inline double value(int rank, size_t i) {
  return static_cast<double>((i * 7 + static_cast<size_t>(rank) * 5 + i / 11) % 3);
}

inline std::vector<char> values(int rank, ncclDataType_t type, size_t begin, size_t count) {
  std::vector<char> bytes(count * size_of(type));
  for (size_t i = 0; i < count; ++i) put(bytes, type, i, value(rank, begin + i));
  return bytes;
}

inline double reduced(ncclRedOp_t op, ncclDataType_t type, int ranks, size_t i) {
  double result = value(0, i);
  for (int r = 1; r < ranks; ++r) {
    const double x = value(r, i);
    result = op == ncclProd  ? result * x
             : op == ncclMax ? std::fmax(result, x)
             : op == ncclMin ? std::fmin(result, x)
                             : result + x;
  }
  if (op == ncclAvg) result /= ranks;
  if (op == ncclAvg && is_integer(type)) result = std::trunc(result);
  std::vector<char> rounded(size_of(type));
  put(rounded, type, 0, result);
  return get(rounded, type, 0);
}

using Expected = std::function<double(size_t)>;
inline void compare(int line, const Buffer& buffer, ncclDataType_t type, size_t begin, size_t count,
                    const Expected& expected) {
  const std::vector<char> bytes = buffer.get();
  for (size_t i = 0; i < count; ++i)
    if (get(bytes, type, begin + i) != expected(i))
      die(line, "element",
          std::to_string(i) + ": " + std::to_string(get(bytes, type, begin + i)) + ", expected " +
              std::to_string(expected(i)) + ", type " + std::to_string(type));
}
#define SAME(...) compare(__LINE__, __VA_ARGS__)

enum Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kAllToAll, kGather, kScatter };
/// NCCL declares the last three since 2.28.
constexpr int kKinds = NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0) ? kScatter + 1 : kAllToAll;

/// One collective, its buffers and its expected results.
inline void collective(const Rank& r, int kind, ncclDataType_t type, ncclRedOp_t op, size_t n, int root,
                       bool in_place) {
  const size_t w = size_of(type), ranks = static_cast<size_t>(r.size), own = static_cast<size_t>(r.rank) * n;
  const bool pieces = kind == kReduceScatter || kind == kAllToAll || kind == kScatter;
  const bool gathers = kind == kAllGather || kind == kAllToAll || kind == kGather, is_root = r.rank == root;
  in_place = in_place && kind != kAllToAll;
  const size_t sent = pieces ? n * ranks : n, received = gathers ? n * ranks : n;
  Buffer send(values(r.rank, type, 0, sent)), out(received * w);
  char* from = send.at();
  char* to = out.at();
  const Buffer* result = &out;
  size_t begin = 0;
  if (in_place && (kind == kAllGather || kind == kGather)) {
    CUDA(cudaMemcpy(out.at(own * w), send.at(), n * w, cudaMemcpyDeviceToDevice));
    from = out.at(own * w);
  } else if (in_place) {
    result = &send;
    begin = kind == kReduceScatter || kind == kScatter ? own : 0;
    to = send.at(begin * w);
  }
  CUDA(cudaDeviceSynchronize());
  const auto elsewhere = [&](char* p, bool used) { return used || in_place ? p : nullptr; };
  switch (kind) {
    case kAllReduce:
      r.until_done(ncclAllReduce(from, to, n, type, op, r.comm, r.stream));
      break;
    case kReduce:
      r.until_done(ncclReduce(from, elsewhere(to, is_root), n, type, op, root, r.comm, r.stream));
      break;
    case kBroadcast:
      r.until_done(ncclBroadcast(elsewhere(from, is_root), to, n, type, root, r.comm, r.stream));
      break;
    case kAllGather:
      r.until_done(ncclAllGather(from, to, n, type, r.comm, r.stream));
      break;
    case kReduceScatter:
      r.until_done(ncclReduceScatter(from, to, n, type, op, r.comm, r.stream));
      break;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    case kAllToAll:
      r.until_done(ncclAlltoAll(from, to, n, type, r.comm, r.stream));
      break;
    case kGather:
      r.until_done(ncclGather(from, elsewhere(to, is_root), n, type, root, r.comm, r.stream));
      break;
    case kScatter:
      r.until_done(ncclScatter(elsewhere(from, is_root), to, n, type, root, r.comm, r.stream));
      break;
#endif
  }
  r.finish();
  CHECK(r.error() == ncclSuccess);
  const auto sum = [&](size_t i) { return reduced(op, type, r.size, i); };
  for (size_t q = 0; gathers && q < ranks && (kind != kGather || is_root); ++q)
    SAME(*result, type, q * n, n,
         [&](size_t i) { return value(static_cast<int>(q), i + (kind == kAllToAll ? own : 0)); });
  if (kind == kAllReduce || (kind == kReduce && is_root)) SAME(*result, type, begin, n, sum);
  if (kind == kBroadcast) SAME(*result, type, begin, n, [&](size_t i) { return value(root, i); });
  if (kind == kReduceScatter) SAME(*result, type, begin, n, [&](size_t i) { return sum(own + i); });
  if (kind == kScatter) SAME(*result, type, begin, n, [&](size_t i) { return value(root, own + i); });
}

}  // namespace nccl_program
