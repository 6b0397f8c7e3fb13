// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the programs with planted faults of order.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace stream_faults {

constexpr int kN = 1 << 12;
constexpr size_t kBytes = kN * sizeof(float);

inline void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("FAILED %s: %s\n", what, cudaGetErrorName(status));
  std::exit(1);
}
#define MUST(call) stream_faults::must(call, #call)

static __global__ void add(float* data, float value, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) data[i] += value;
}
static __global__ void copy(const float* from, float* to, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) to[i] = from[i];
}

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { MUST(cudaStreamCreateWithFlags(&handle, flags)); }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return handle; }
  void wait() const { MUST(cudaStreamSynchronize(handle)); }
  cudaStream_t handle = nullptr;
};
struct Event {
  Event() { MUST(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { MUST(cudaEventRecord(handle, stream)); }
  void block(cudaStream_t stream) const { MUST(cudaStreamWaitEvent(stream, handle)); }
  cudaEvent_t handle = nullptr;
};

inline float* zeros(size_t bytes = kBytes) {
  float* data = nullptr;
  MUST(cudaMalloc(&data, bytes));
  MUST(cudaMemset(data, 0, bytes));
  MUST(cudaDeviceSynchronize());
  return data;
}
inline float* pinned(float value) {
  float* data = nullptr;
  MUST(cudaMallocHost(&data, kBytes));
  for (int i = 0; i < kN; ++i) data[i] = value;
  return data;
}

/// A caching allocator as programs write them. `record_stream` says that another stream uses a block, too: wrongly by
/// an event of this moment; rightly the event is recorded when the block is freed, after that stream's last use.
class Cache {
 public:
  explicit Cache(bool right) : right_(right) {}
  float* take(cudaStream_t stream) {
    if (free_.empty()) return zeros();
    const Block block = free_.back();
    free_.pop_back();
    for (const Event* event : block.uses) event->block(stream);
    return block.data;
  }
  void record_stream(cudaStream_t user) {
    if (right_) {
      users_.push_back(user);
    } else {
      uses_.push_back(new Event);
      uses_.back()->record(user);
    }
  }
  void give(float* data) {
    for (cudaStream_t user : users_) {
      uses_.push_back(new Event);
      uses_.back()->record(user);
    }
    free_.push_back({data, uses_});
    uses_.clear();
    users_.clear();
  }

 private:
  struct Block {
    float* data;
    std::vector<Event*> uses;
  };
  bool right_;
  std::vector<Block> free_;
  std::vector<cudaStream_t> users_;
  std::vector<Event*> uses_;
};

struct Fault {
  const char* name;
  std::function<void(bool)> run;
};
/// Runs the fault that is asked for, or with `_right` after its name its repaired twin. Returns main's value.
inline int run_fault(const std::string& asked, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults)
    for (const bool right : {false, true})
      if (asked == fault.name + std::string(right ? "_right" : "")) return fault.run(right), 0;
  std::printf("unknown: %s\n", asked.c_str());
  return 2;
}

}  // namespace stream_faults
