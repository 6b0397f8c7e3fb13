// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <span>
#include <type_traits>

#include "kernels/runtime/queue.h"
#include "kernels/view.h"

namespace weft::kernels {

/// Whether a kernel overwrites its gradient output or adds to it.
enum class Grad : uint8_t { overwrite, accumulate };

/// One call of a kernel contract, for hooks. `views`: its tensors in the order of the contract, the output first by
/// convention; absent tensors are false.
struct KernelCall {
  const char* name;
  const Queue& queue;
  std::span<const View* const> views;
};

/// True while calls are observed (kernel_trace.h): the one branch that a call pays for tracing.
inline std::atomic<bool> kernel_calls_watched{false};

/// Wraps an observed call: the observer, WEFT_SYNC=1, WEFT_CHECK_NAN=1.
class KernelScope {
 public:
  explicit KernelScope(const KernelCall& call);
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

  /// False if the observer only counts: the kernel is skipped.
  bool runs() const { return runs_; }

  /// Called after the kernel was enqueued; not if the kernel threw.
  void finish();

 private:
  const KernelCall& call_;
  bool runs_ = true;
};

/// One kernel contract: its name and its two implementations. Calling it is the only switch over devices in Weft.
template <class Signature>
struct Kernel;

template <class... Args>
struct Kernel<void(const Queue&, Args...)> {
  const char* name;
  void (*cpu)(const Queue&, Args...);
  void (*cuda)(const Queue&, Args...);

  void operator()(const Queue& queue, Args... args) const {
    const auto run = queue.device.kind == DeviceKind::cpu ? cpu : cuda;
    if (kernel_calls_watched.load(std::memory_order_relaxed)) [[unlikely]]
      return run_watched(run, queue, args...);
    run(queue, args...);
  }

 private:
  [[gnu::noinline, gnu::cold]] void run_watched(void (*run)(const Queue&, Args...), const Queue& queue,
                                                Args... args) const {
    std::array<const View*, sizeof...(Args) + 1> views{};  // one more: an array of no elements has no data
    size_t count = 0;
    const auto add = [&](const auto& argument) {
      if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, View>) views[count++] = &argument;
    };
    (add(args), ...);
    const KernelCall call{name, queue, {views.data(), count}};
    KernelScope scope(call);
    if (scope.runs()) run(queue, args...);
    scope.finish();
  }
};

}  // namespace weft::kernels

/// Declares a kernel contract inside namespace weft::kernels:
///   WEFT_KERNEL(relu_forward, const Queue& queue, const View& y, const View& x);
/// declares cpu::relu_forward and cuda::relu_forward (each defined in the folder of its name; a build without CUDA
/// defines the latter in no_cuda.cpp) and the callable relu_forward that picks one by the queue.
#ifndef WEFT_KERNEL
#define WEFT_KERNEL(kernel_name, ...)                                       \
  namespace cpu {                                                           \
  void kernel_name(__VA_ARGS__);                                            \
  }                                                                         \
  namespace cuda {                                                          \
  void kernel_name(__VA_ARGS__);                                            \
  }                                                                         \
  inline constexpr Kernel<void(__VA_ARGS__)> kernel_name {                  \
#kernel_name, &cpu::kernel_name, &cuda::kernel_name \
  }
#endif
