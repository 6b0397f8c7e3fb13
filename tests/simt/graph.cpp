// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "emulator/source/runtime_api.h"
#include "kernels/runtime.h"
#include "tests/simt/basics.h"
#include "tests/simt/bugs.h"
#include "tests/simt/device_array.h"

// Captured streams of the emulator: recorded work, and calls that a capture forbids, as on the device.

namespace weft::tests {
namespace {

using namespace emulator::source::api;  // NOLINT: the CUDA runtime's names

/// A stream under capture, as Weft captures: thread-local.
struct Capture {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  explicit Capture(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  ~Capture() {
    if (graph) cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cudaGetLastError();
  }
  kernels::Queue queue() const { return {{DeviceKind::simt, 0}, stream}; }
  cudaError_t end() { return cudaStreamEndCapture(stream, &graph); }
};

TEST(SimtGraph, RecordsLaunchesCopiesAndFillsWithTheirArguments) {
  const DeviceArray<float> x(std::vector<float>(100, 3.0f)), y(std::vector<float>(100, 7.0f));
  const DeviceArray<float> copy(std::vector<float>(100, 7.0f));
  Capture capture;
  {
    float factor = 2;
    kernels::View input = x.view();  // gone before the graph runs
    kernels::simt::scale(capture.queue(), y.view(), input, factor);
    factor = 100;
  }
  ASSERT_EQ(cudaMemcpyAsync(copy.data(), y.data(), 100 * sizeof(float), cudaMemcpyDefault, capture.stream),
            cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(copy.data(), 0, 4 * sizeof(float), capture.stream), cudaSuccess);
  ASSERT_EQ(capture.end(), cudaSuccess);
  EXPECT_EQ(y.host(), std::vector<float>(100, 7.0f)) << "a capture runs nothing";

  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, capture.graph), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_EQ(y.host(), std::vector<float>(100, 6.0f));
  std::vector<float> expected(100, 6.0f);
  std::fill_n(expected.begin(), 4, 0.0f);
  EXPECT_EQ(copy.host(), expected);

  const std::vector<float> fives(100, 5.0f);
  cudaMemcpy(x.data(), fives.data(), 100 * sizeof(float), cudaMemcpyDefault);
  ASSERT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_EQ(y.host(), std::vector<float>(100, 10.0f)) << "each launch reads the memory anew";
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

/// The result of `call` inside a capture, which it must break.
template <class Call>
void expect_forbidden(Call&& call, cudaError_t expected) {
  Capture capture;
  EXPECT_EQ(call(capture.stream), expected);
  EXPECT_EQ(capture.end(), cudaErrorStreamCaptureInvalidated);
}

TEST(SimtGraph, ForbidsWhatNeedsTheHost) {
  const DeviceArray<float> x(16);
  float host[16];
  void* memory = nullptr;
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaEventRecord(event);
  const auto unsupported = cudaErrorStreamCaptureUnsupported;
  expect_forbidden([](cudaStream_t stream) { return cudaStreamSynchronize(stream); }, unsupported);
  expect_forbidden([](cudaStream_t) { return cudaDeviceSynchronize(); }, unsupported);
  expect_forbidden([&](cudaStream_t) { return cudaMalloc(&memory, 16); }, unsupported);
  expect_forbidden([&](cudaStream_t) { return cudaFree(x.data()); }, unsupported);
  expect_forbidden([&](cudaStream_t) { return cudaMemcpy(host, x.data(), 16, cudaMemcpyDefault); }, unsupported);
  expect_forbidden([&](cudaStream_t) { return cudaEventQuery(event); }, unsupported);
  expect_forbidden([&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, event); },
                   cudaErrorStreamCaptureIsolation);
  cudaEventDestroy(event);
}

TEST(SimtGraph, EventsOfACaptureAreNoEvents) {
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  Capture capture;
  EXPECT_EQ(cudaEventRecord(event, capture.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(capture.stream, event), cudaSuccess);
  EXPECT_EQ(capture.end(), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, event), cudaErrorNotSupported);
  EXPECT_EQ(cudaEventRecord(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  cudaEventDestroy(event);
}

TEST(SimtGraph, RelaxedModeAllowsNewMemory) {
  Capture capture;
  void* memory = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(capture.end(), cudaSuccess);
  cudaFree(memory);
}

TEST(SimtGraph, OtherThreadsAreFree) {
  Capture capture;
  cudaError_t allocated = cudaErrorInvalidValue, ended = cudaSuccess;
  std::thread([&] {
    void* memory = nullptr;
    allocated = cudaMalloc(&memory, 16);
    cudaFree(memory);
    cudaGraph_t graph = nullptr;
    ended = cudaStreamEndCapture(capture.stream, &graph);
  }).join();
  EXPECT_EQ(allocated, cudaSuccess);
  EXPECT_EQ(ended, cudaErrorStreamCaptureWrongThread);
  EXPECT_EQ(capture.end(), cudaSuccess);
}

TEST(SimtGraph, TheDefaultStreamCannotBeCaptured) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(nullptr, &graph), cudaErrorStreamCaptureUnmatched);
  const DeviceArray<float> x(std::vector<float>(4, 1.0f)), y(4);
  Capture blocking(cudaStreamDefault);
  EXPECT_THAT(error_of([&] { kernels::simt::scale(kSimt, y.view(), x.view(), 2.0f); }),
              testing::HasSubstr("cudaErrorStreamCaptureImplicit"));
  EXPECT_EQ(blocking.end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorStreamCaptureInvalidated),
               "operation failed due to a previous error during capture");
}

TEST(SimtGraph, AKernelThatFailsIsNamed) {
  const DeviceArray<int> x(std::vector<int>(64, 1));
  Capture capture;
  kernels::simt::plant(capture.queue(), kernels::simt::Bug::two_barriers, x.data());
  ASSERT_EQ(capture.end(), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, capture.graph), cudaSuccess);
  EXPECT_THAT(
      error_of([&] { kernels::runtime(DeviceKind::simt).launch_graph(0, exec, nullptr); }),
      testing::HasSubstr("plant in a graph: grid (1,1,1), block (64,1,1), 64 bytes of dynamic shared memory: "));
  cudaGraphExecDestroy(exec);
}

}  // namespace
}  // namespace weft::tests
