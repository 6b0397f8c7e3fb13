// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/kernel_trace.h"
#include "kernels/runtime.h"

namespace weft::kernels {

namespace {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text && std::string_view(text) != "0";
}

KernelChecks checks{is_set("WEFT_SYNC"), is_set("WEFT_CHECK_NAN")};
KernelTrace trace = nullptr;
void* trace_context = nullptr;

/// Elements from the lowest to the highest address that a view touches; strides are never negative.
int64_t span(const View& view) {
  int64_t last = 0;
  for (int d = 0; d < view.rank; ++d) last += (view.sizes[d] - 1) * view.strides[d];
  return view.numel() == 0 ? 0 : last + 1;
}

/// `[3,0,17]` for the n-th element in row-major order.
std::string index_text(const View& view, int64_t n) {
  std::string text = "]";
  for (int d = view.rank - 1; d >= 0; --d) {
    text = std::to_string(n % view.sizes[d]) + text;
    if (d) text = "," + text;
    n /= view.sizes[d];
  }
  return "[" + text;
}

template <class T>
void check_finite(const char* name, const Queue& queue, const View& view) {
  std::vector<T> host(static_cast<size_t>(span(view)));
  if (host.empty()) return;
  Runtime& device = runtime(queue.device.kind);
  device.copy(queue.device.index, host.data(), view.data, host.size() * sizeof(T), queue.stream);
  device.synchronize_stream(queue.device.index, queue.stream);
  int64_t bad = 0, first = 0;
  double first_value = 0;
  const int64_t numel = view.numel();
  for (int64_t n = 0; n < numel; ++n) {
    int64_t offset = 0, rest = n;
    for (int d = view.rank - 1; d >= 0; --d) {
      offset += rest % view.sizes[d] * view.strides[d];
      rest /= view.sizes[d];
    }
    const double value = static_cast<double>(host[static_cast<size_t>(offset)]);
    if (std::isfinite(value)) continue;
    if (bad++ == 0) first = n, first_value = value;
  }
  WEFT_CHECK(bad == 0, name, ": ", bad, " of ", numel, " elements of its output ", view, " on ", queue.device,
             " are NaN or infinite, the first is ", first_value, " at ", index_text(view, first),
             " (WEFT_CHECK_NAN=1)");
}

}  // namespace

void set_kernel_trace(KernelTrace hook, void* context) {
  trace = hook;
  trace_context = context;
}
void set_kernel_checks(KernelChecks wanted) { checks = wanted; }
KernelChecks kernel_checks() { return checks; }

KernelScope::KernelScope(const char* name, const Queue& queue) : name_(name), queue_(queue) {}
KernelScope::~KernelScope() = default;

void KernelScope::finish(const View* output) {
  if (trace) trace(name_, queue_, output, trace_context);
  if (checks.synchronize) {
    try {
      runtime(queue_.device.kind).synchronize_stream(queue_.device.index, queue_.stream);
    } catch (const Error& e) {
      fail(name_, " failed on ", queue_.device, " (WEFT_SYNC=1): ", e.what());
    }
  }
  if (checks.not_finite && output && *output && is_floating(output->dtype))
    with_dtype<float, double, bf16, f16>(output->dtype, name_,
                                         [&]<class T>() { check_finite<T>(name_, queue_, *output); });
}

}  // namespace weft::kernels
