// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// Sees every kernel call of the process, on the thread that makes it.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void before(const KernelCall& call) = 0;
  /// Called after the kernel was enqueued (on the CPU: done); not if the call threw.
  virtual void after(const KernelCall& call) = 0;
  /// False: calls are observed but not run, and their outputs stay unchanged. This yields a step's cost from shapes
  /// alone, without access to the tensors' memory. Read once per call, before `before`.
  virtual bool runs() const { return true; }
};

/// Sets the observer; nullptr removes it. A concurrent call on another thread may still use the old observer, so an
/// observer of other threads must outlive them.
void set_kernel_observer(KernelObserver* observer);

/// Runs other work as a kernel contract under the given name (a string literal): hooks see it.
template <class Run>
void run_as_kernel(const Queue& queue, const char* name, std::span<const View* const> views, Run&& run) {
  if (!kernel_calls_watched.load(std::memory_order_relaxed)) return run();
  const KernelCall call{name, queue, views};
  KernelScope scope(call);
  if (scope.runs()) run();
  scope.finish();
}

/// Overrides the environment's WEFT_SYNC and WEFT_CHECK_NAN.
struct KernelChecks {
  bool synchronize = false;  ///< wait for each kernel, so that an error names the kernel that caused it
  bool not_finite = false;   ///< copy each output to the host and fail on the first NaN or infinity
};
void set_kernel_checks(KernelChecks checks);
KernelChecks kernel_checks();

}  // namespace weft::kernels
