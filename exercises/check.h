// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "chain.h"

// The common part of the exercises' checks: main() runs an exercise on many sizes, or, with the argument `measure`, on
// the one whose costs are counted. A line of output per size is `case NAME: right` or `case NAME: wrong: …`;
// tools/weft-lab reads them.

/// Memory of the device that is freed at the end of its scope. Its size is exact, so that an access beyond it is seen.
template <class T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) {
    if (cudaMalloc(&data_, count * sizeof(T)) != cudaSuccess) std::abort();
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
    cudaStreamSynchronize(
        nullptr);  // a copy from pageable memory may return before it has arrived, which other streams would see
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  operator T*() const { return data_; }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

class Check {
 public:
  /// Small whole numbers from `low` to `high`: their sums are exact in float.
  template <class T = float>
  std::vector<T> numbers(size_t count, int low = -8, int high = 8) {
    std::vector<T> values(count);
    for (T& value : values) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<T>(low + static_cast<int>((state_ >> 33) % static_cast<unsigned>(high - low + 1)));
    }
    return values;
  }

  /// Compares what the exercise has computed; a value may err by `tolerance` of the expected one.
  template <class T>
  void equal(const std::string& name, const Device<T>& got, const std::vector<T>& expected, double tolerance = 0) {
    if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
      std::printf("case %s: wrong: %s\n", name.c_str(), cudaGetErrorString(error));
      std::exit(1);  // after an error on the device no call works any more
    }
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
      return fail(name, std::string("the launch failed: ") + cudaGetErrorString(error));
    equal(name, got.download(), expected, tolerance);
  }
  /// Checks values that are on the host already; waits for nothing.
  template <class T>
  void equal(const std::string& name, const std::vector<T>& values, const std::vector<T>& expected,
             double tolerance = 0) {
    size_t wrong = 0, first = 0;
    for (size_t i = values.size(); i-- > 0;) {
      const double e = static_cast<double>(expected[i]), g = static_cast<double>(values[i]);
      if (std::abs(g - e) <= tolerance * std::abs(e)) continue;  // false of NaN
      ++wrong;
      first = i;
    }
    if (wrong == 0) {
      std::printf("case %s: right\n", name.c_str());
      return;
    }
    fail(name, std::to_string(wrong) + " of " + std::to_string(values.size()) + " values; the first is number " +
                   std::to_string(first) + ": expected " + std::to_string(expected[first]) + ", got " +
                   std::to_string(values[first]));
  }
  bool failed() const { return failed_; }

  /// A fact of the measured run that no profile shows: goals of check.json name it.
  void count(const char* name, double value) { std::printf("count %s: %g\n", name, value); }

  /// Counts the overlap of the work that `enqueue` puts into a stream (chain.h). `counts`: false for all ranks but one.
  template <class F>
  void chain(const std::string& name, cudaStream_t stream, F&& enqueue, bool counts = true) {
    const Chain chain = chain_of(stream, enqueue);
    if (chain.error != cudaSuccess)
      return fail(name, std::string("captured into a graph: ") + cudaGetErrorString(chain.error));
    if (!counts) return;
    count("operations", chain.operations);
    count("longest", chain.longest);
  }

 private:
  void fail(const std::string& name, const std::string& why) {
    failed_ = true;
    std::printf("case %s: wrong: %s\n", name.c_str(), why.c_str());
  }
  unsigned long long state_ = 1;
  bool failed_ = false;
};

/// Pinned memory of the host, for asynchronous copies.
class Pinned {
 public:
  explicit Pinned(size_t count) : count_(count) {
    if (cudaMallocHost(&data_, count * sizeof(float)) != cudaSuccess) std::abort();
    std::memset(data_, 0xff, count * sizeof(float));  // NaN
  }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  operator float*() const { return data_; }
  void fill(const std::vector<float>& values) { std::memcpy(data_, values.data(), count_ * sizeof(float)); }
  std::vector<float> values() const { return {data_, data_ + count_}; }

 private:
  size_t count_;
  float* data_ = nullptr;
};

/// Each exercise's check.cu: all cases, or the one that is measured.
void run(Check& check, bool measure);

int main(int argc, char** argv) {
  Check check;
  run(check, argc > 1 && std::strcmp(argv[1], "measure") == 0);
  return check.failed();
}

#include EXERCISE
