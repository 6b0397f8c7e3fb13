// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"
#include "kernels/view.h"

namespace weft::kernels {

/// What happens to a gradient that a kernel produces.
enum class Grad : uint8_t { overwrite, accumulate };

/// Called around every kernel call; see launch_guard.cpp: NVTX range, trace, WEFT_SYNC=1, WEFT_CHECK_NAN=1.
class KernelScope {
 public:
  KernelScope(const char* name, const Queue& queue);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

  /// After the kernel was enqueued: with WEFT_SYNC=1 waits for it; with WEFT_CHECK_NAN=1 looks at `output`.
  void finish(const View* output);

 private:
  const char* name_;
  const Queue& queue_;
};

/// One kernel contract: its name and its three implementations. Calling it is the only switch over devices in Weft.
template <class Signature>
struct Kernel;

template <class... Args>
struct Kernel<void(const Queue&, Args...)> {
  const char* name;
  void (*cpu)(const Queue&, Args...);
  void (*simt)(const Queue&, Args...);
  void (*cuda)(const Queue&, Args...);

  void operator()(const Queue& queue, Args... args) const {
    KernelScope scope(name, queue);
    (queue.device.kind == DeviceKind::cpu ? cpu : queue.device.kind == DeviceKind::simt ? simt : cuda)(queue, args...);
    scope.finish(first_view(args...));
  }

 private:
  // By convention the first view of a contract is its output.
  template <class First, class... Rest>
  static const View* first_view(const First& first, const Rest&... rest) {
    if constexpr (std::is_same_v<First, View>)
      return &first;
    else
      return first_view(rest...);
  }
  static const View* first_view() { return nullptr; }
};

}  // namespace weft::kernels

/// Declares a kernel contract inside namespace weft::kernels:
///   WEFT_KERNEL(relu_forward, const Queue& queue, const View& y, const View& x);
/// declares cpu::relu_forward, simt::relu_forward, cuda::relu_forward (each defined in the folder of its name; a build
/// without CUDA defines the last ones in cuda/no_cuda.cpp) and the callable relu_forward that picks one by the queue.
#ifndef WEFT_KERNEL
#define WEFT_KERNEL(kernel_name, ...)                                       \
  namespace cpu {                                                           \
  void kernel_name(__VA_ARGS__);                                            \
  }                                                                         \
  namespace simt {                                                          \
  void kernel_name(__VA_ARGS__);                                            \
  }                                                                         \
  namespace cuda {                                                          \
  void kernel_name(__VA_ARGS__);                                            \
  }                                                                         \
  inline constexpr Kernel<void(__VA_ARGS__)> kernel_name {                  \
#kernel_name, &cpu::kernel_name, &simt::kernel_name, &cuda::kernel_name \
  }
#endif
