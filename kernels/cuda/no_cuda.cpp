// SPDX-License-Identifier: Apache-2.0
// Compiled instead of the .cu files when no CUDA compiler was found: every cuda::kernel throws.
#include "kernels/kernel.h"
#include "kernels/runtime.h"

namespace weft::kernels::cuda {
[[noreturn]] static void missing(const char* name) {
  fail(name,
       ": this build has no CUDA. Configure with -DWEFT_CUDA=ON (needs nvcc of the CUDA Toolkit 12.x or 13.x), "
       "or use --device simt or cpu");
}
}  // namespace weft::kernels::cuda

#undef WEFT_KERNEL
#define WEFT_KERNEL(kernel_name, ...)                      \
  namespace cuda {                                         \
  void kernel_name(__VA_ARGS__);                           \
  void kernel_name(__VA_ARGS__) { missing(#kernel_name); } \
  }                                                        \
  static_assert(true)

#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "contracts.h"  // written by CMake: includes every contract header

namespace weft::kernels::cuda {

namespace {

class NoCuda final : public Runtime {
 public:
  int device_count() override { return 0; }
  std::string describe(int) override { missing("device cuda"); }
  std::string identity(int) override { missing("device cuda"); }
  void memory_info(int, size_t&, size_t&) override { missing("device cuda"); }
  void* allocate(int, size_t) override { missing("device cuda"); }
  void release(int, void*) noexcept override {}
  void* allocate_pinned(size_t) override { missing("device cuda"); }
  void release_pinned(void*) noexcept override {}
  void copy(int, void*, const void*, size_t, void*) override { missing("device cuda"); }
  bool stages_pageable_memory(int) override { missing("device cuda"); }
  void fill_bytes(int, void*, int, size_t, void*) override { missing("device cuda"); }
  void* create_stream(int) override { missing("device cuda"); }
  void destroy_stream(int, void*) noexcept override {}
  void synchronize_stream(int, void*) override { missing("device cuda"); }
  void synchronize_device(int) override { missing("device cuda"); }
  void* create_event(int, bool) override { missing("device cuda"); }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, int, void*) override { missing("device cuda"); }
  void wait_event(int, void*, void*) override { missing("device cuda"); }
  bool query_event(void*) override { missing("device cuda"); }
  void synchronize_event(void*) override { missing("device cuda"); }
  float elapsed_ms(void*, void*) override { missing("device cuda"); }
  void begin_capture(int, void*) override { missing("device cuda"); }
  void* end_capture(int, void*) override { missing("device cuda"); }
  void abandon_capture(int, void*) noexcept override {}
  void launch_graph(int, void*, void*) override { missing("device cuda"); }
  void destroy_graph(void*) noexcept override {}
};

}  // namespace

Runtime& runtime() {
  static NoCuda& runtime = *new NoCuda;
  return runtime;
}

}  // namespace weft::kernels::cuda
