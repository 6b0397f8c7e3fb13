// SPDX-License-Identifier: Apache-2.0
// Compiled instead of the .cu files in a build without CUDA: each kernel throws.
#define WEFT_DEVICE cuda
#define WEFT_NO_DEVICE                                                                                              \
  ": this build has no CUDA. Configure with -DWEFT_CUDA=ON (needs nvcc of the CUDA Toolkit 12.x or 13.x, which "      \
  "`tools/install_packages test` gets where there is none), or use --device cpu"
#include "kernels/cuda/attention/attention_lengths.h"
#include "kernels/cuda/no_device.cuh"
#include "kernels/runtime/runtime.h"

#include "contracts.h"  // written by CMake: includes every contract header

namespace weft::kernels::cuda {

static constexpr const char* kDevice = "device cuda";

void attention_lengths(const Queue&, int32_t*, const View&, int64_t, int64_t) { missing("attention_lengths"); }
void attention_clear_results(const Queue&, const View&, const View&, const View&) {
  missing("attention_clear_results");
}
void attention_clear_gradients(const Queue&, const View&, const View&, const View&, const View&) {
  missing("attention_clear_gradients");
}

namespace {

class NoDevice final : public Runtime {
 public:
  int device_count() override { return 0; }
  std::string describe(int) override { missing(kDevice); }
  std::string identity(int) override { missing(kDevice); }
  void memory_info(int, size_t&, size_t&) override { missing(kDevice); }
  void* allocate(int, size_t) override { missing(kDevice); }
  void release(int, void*) noexcept override {}
  void* allocate_pinned(size_t) override { missing(kDevice); }
  void release_pinned(void*) noexcept override {}
  void copy(int, void*, const void*, size_t, void*) override { missing(kDevice); }
  bool stages_pageable_memory(int) override { missing(kDevice); }
  void fill_bytes(int, void*, int, size_t, void*) override { missing(kDevice); }
  void* create_stream(int, int) override { missing(kDevice); }
  void destroy_stream(int, void*) noexcept override {}
  void synchronize_stream(int, void*) override { missing(kDevice); }
  void synchronize_device(int) override { missing(kDevice); }
  void* create_event(int, bool) override { missing(kDevice); }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, int, void*) override { missing(kDevice); }
  void wait_event(int, void*, void*) override { missing(kDevice); }
  bool query_event(void*) override { missing(kDevice); }
  void synchronize_event(void*) override { missing(kDevice); }
  float elapsed_ms(void*, void*) override { missing(kDevice); }
  void begin_capture(int, void*) override { missing(kDevice); }
  void* end_capture(int, void*) override { missing(kDevice); }
  void abandon_capture(int, void*) noexcept override {}
  void launch_graph(int, void*, void*) override { missing(kDevice); }
  void destroy_graph(void*) noexcept override {}
};

}  // namespace

Runtime& runtime() {
  static NoDevice& runtime = *new NoDevice;
  return runtime;
}

}  // namespace weft::kernels::cuda
