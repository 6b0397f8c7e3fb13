// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "emulator/source/runtime_api.h"
#include "emulator/source/simt.h"
#include "tests/simt/basics.h"
#include "tests/simt/bugs.h"
#include "tests/simt/device_array.h"

// Streams of the emulator in the orders that CUDA allows: ordered programs compute the right result in each, others do not.

namespace weft::tests {
namespace {

using namespace emulator::source::api;  // NOLINT: the CUDA runtime's names
using testing::HasSubstr;

constexpr size_t kSize = 100;
using Values = std::vector<float>;

void set_order(const char* text) {
  const auto order = emulator::parse_streams(text);
  ASSERT_TRUE(order.has_value()) << text;
  emulator::source::set_stream_order(order);
}

class SimtStreams : public testing::Test {
 protected:
  SimtStreams() {
    for (cudaStream_t& stream : streams_) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&event_);
  }
  ~SimtStreams() override {
    cudaDeviceSynchronize();
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    cudaEventDestroy(event_);
    cudaGetLastError();
    const char* const before = std::getenv("WEFT_SIMT_STREAMS");
    emulator::source::set_stream_order(before ? emulator::parse_streams(before) : std::nullopt);
  }
  kernels::Queue queue(size_t i) const { return {{DeviceKind::simt, 0}, streams_[i]}; }

  cudaStream_t streams_[3];
  cudaEvent_t event_ = nullptr;
};

TEST_F(SimtStreams, AMissingWaitShows) {
  for (const bool waits : {false, true}) {
    const DeviceArray<float> x(Values(kSize, 1.0f)), y(Values(kSize, 5.0f)), z(kSize);
    set_order("lazy");
    kernels::simt::scale(queue(0), y.view(), x.view(), 2.0f);
    cudaEventRecord(event_, streams_[0]);
    if (waits) cudaStreamWaitEvent(streams_[1], event_);
    kernels::simt::scale(queue(1), z.view(), y.view(), 3.0f);
    EXPECT_EQ(cudaStreamSynchronize(streams_[1]), cudaSuccess);
    EXPECT_EQ(z.host(), Values(kSize, waits ? 6.0f : 15.0f));
  }
}

/// Kernels, copies of both kinds of host memory, a fill, a host function, a captured fork and the default stream.
Values ordered_program(cudaStream_t a, cudaStream_t b, cudaStream_t blocking) {
  const kernels::Queue on_a{{DeviceKind::simt, 0}, a}, on_b{{DeviceKind::simt, 0}, b};
  const DeviceArray<float> x(kSize), y(kSize), z(kSize);
  constexpr size_t kBytes = kSize * sizeof(float);
  float* pinned = nullptr;
  EXPECT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), kBytes, cudaHostAllocDefault), cudaSuccess);
  cudaEvent_t forked, joined;
  cudaEventCreate(&forked);
  cudaEventCreate(&joined);
  {
    const Values pageable(kSize, 1.0f);
    cudaMemcpyAsync(x.data(), pageable.data(), kBytes, cudaMemcpyDefault, a);
  }
  kernels::simt::scale(on_a, y.view(), x.view(), 2.0f);
  cudaMemcpyAsync(pinned, y.data(), kBytes, cudaMemcpyDefault, a);
  cudaLaunchHostFunc(
      a, [](void* data) { std::for_each_n(static_cast<float*>(data), kSize, [](float& v) { v += 1; }); }, pinned);
  cudaEventRecord(forked, a);
  cudaStreamWaitEvent(b, forked);
  cudaMemcpyAsync(z.data(), pinned, kBytes, cudaMemcpyDefault, b);
  cudaMemsetAsync(z.data(), 0, 4 * sizeof(float), b);
  cudaEventRecord(joined, b);
  cudaStreamWaitEvent(a, joined);

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  kernels::simt::scale(on_a, y.view(), z.view(), 2.0f);
  cudaEventRecord(forked, a);
  EXPECT_EQ(cudaStreamWaitEvent(b, forked), cudaSuccess);
  kernels::simt::scale(on_b, x.view(), y.view(), 5.0f);
  cudaEventRecord(joined, b);
  EXPECT_EQ(cudaStreamWaitEvent(a, joined), cudaSuccess);
  kernels::simt::scale(on_a, z.view(), x.view(), 0.5f);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaGraphLaunch(exec, a);
  cudaGraphLaunch(exec, a);
  cudaGraphExecDestroy(exec);
  cudaMemcpyAsync(pinned, z.data(), kBytes, cudaMemcpyDefault, a);
  EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);

  // The default stream and a blocking one are ordered without events.
  cudaMemsetAsync(y.data(), 0, kBytes);
  cudaMemcpyAsync(y.data(), pinned, kBytes, cudaMemcpyDefault, blocking);
  kernels::simt::scale(kSimt, x.view(), y.view(), 1.0f);
  const Values result = x.host();
  cudaFreeHost(pinned);
  cudaEventDestroy(forked);
  cudaEventDestroy(joined);
  return result;
}

TEST_F(SimtStreams, AnOrderedProgramIsRightInEveryOrder) {
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  Values expected(kSize, 75.0f);
  std::fill_n(expected.begin(), 4, 0.0f);
  emulator::source::set_stream_order(std::nullopt);
  EXPECT_EQ(ordered_program(streams_[0], streams_[1], blocking), expected);
  for (const char* order : {"inorder", "lazy", "starve:0"}) {
    set_order(order);
    EXPECT_EQ(ordered_program(streams_[0], streams_[1], blocking), expected) << order;
  }
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    emulator::source::set_stream_order(emulator::StreamOptions{emulator::StreamOrder::random, 0, seed});
    EXPECT_EQ(ordered_program(streams_[0], streams_[1], blocking), expected) << "random, seed " << seed;
  }
  cudaStreamDestroy(blocking);
}

TEST_F(SimtStreams, PinnedMemoryIsReadWhenTheCopyRunsAndPageableMemoryAtTheCall) {
  float* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(float), cudaHostAllocDefault), cudaSuccess);
  const DeviceArray<float> from_pinned(1), from_pageable(1);
  set_order("lazy");
  float pageable = *pinned = 1;
  cudaMemcpyAsync(from_pinned.data(), pinned, sizeof(float), cudaMemcpyDefault, streams_[0]);
  cudaMemcpyAsync(from_pageable.data(), &pageable, sizeof(float), cudaMemcpyDefault, streams_[0]);
  pageable = *pinned = 2;
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
  EXPECT_EQ(from_pinned.host(), Values{2});
  EXPECT_EQ(from_pageable.host(), Values{1});
  cudaFreeHost(pinned);
}

TEST_F(SimtStreams, ErrorsOfKernelsComeWithTheNextCallThatWaits) {
  const DeviceArray<int> broken(std::vector<int>(64, 1));
  const DeviceArray<float> x(Values(kSize, 1.0f)), y(Values(kSize, 5.0f));
  set_order("lazy");
  kernels::simt::plant(queue(0), kernels::simt::Bug::two_barriers, broken.data());
  kernels::simt::scale(queue(0), y.view(), x.view(), 2.0f);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaErrorLaunchFailure);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorLaunchFailure");
  EXPECT_THAT(cudaGetErrorString(cudaErrorLaunchFailure),
              HasSubstr("plant: grid (1,1,1), block (64,1,1), 64 bytes of dynamic shared memory: block (0,0,0)"));
  EXPECT_EQ(y.host(), Values(kSize, 5.0f)) << "what was queued after it has no effect";

  kernels::simt::plant(queue(0), kernels::simt::Bug::two_barriers, broken.data());
  EXPECT_THAT(error_of([] {}), HasSubstr("plant: grid"));
  kernels::simt::scale(queue(0), y.view(), x.view(), 2.0f);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the device goes on";
  EXPECT_EQ(y.host(), Values(kSize, 2.0f));
}

TEST_F(SimtStreams, QueriesTellWhatHasNotRun) {
  const DeviceArray<float> x(Values(kSize, 1.0f)), y(kSize);
  set_order("lazy");
  cudaEvent_t begun;
  cudaEventCreate(&begun);
  cudaEventRecord(begun, streams_[0]);
  kernels::simt::scale(queue(0), y.view(), x.view(), 2.0f);
  cudaEventRecord(event_, streams_[0]);
  float milliseconds = -1;
  EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begun, event_), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begun, event_), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  cudaEventDestroy(begun);
}

TEST_F(SimtStreams, AStarvedStreamRunsWhenSomebodyWaitsForIt) {
  const DeviceArray<float> x(Values(kSize, 1.0f)), y(Values(kSize, 5.0f)), z(kSize);
  set_order("starve:0");
  kernels::simt::scale(kSimt, y.view(), x.view(), 2.0f);  // the default stream
  kernels::simt::scale(queue(1), z.view(), y.view(), 3.0f);
  EXPECT_EQ(cudaStreamSynchronize(streams_[1]), cudaSuccess);
  EXPECT_EQ(z.host(), Values(kSize, 15.0f));
  EXPECT_EQ(y.host(), Values(kSize, 2.0f));
}

TEST_F(SimtStreams, ACaptureMustJoinWhatItForked) {
  const DeviceArray<float> x(Values(kSize, 1.0f)), y(kSize);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaEventRecord(event_, streams_[0]);
  EXPECT_EQ(cudaStreamWaitEvent(streams_[1], event_), cudaSuccess);
  kernels::simt::scale(queue(1), y.view(), x.view(), 2.0f);
  EXPECT_EQ(cudaStreamEndCapture(streams_[1], &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(streams_[0], &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorStreamCaptureUnjoined");
  EXPECT_EQ(cudaStreamSynchronize(streams_[1]), cudaSuccess) << "it is free again";
}

TEST(SimtStreamOrder, IsReadFromText) {
  EXPECT_EQ(emulator::parse_streams("starve:12")->starved, 12);
  for (const char* text : {"", "Lazy", "starve", "starve:", "starve:-1", "starve:2x", "random:3"})
    EXPECT_FALSE(emulator::parse_streams(text).has_value()) << text;
}

}  // namespace
}  // namespace weft::tests
