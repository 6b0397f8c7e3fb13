// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/runtime.h"

namespace weft::kernels {

namespace {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text && std::string_view(text) != "0";
}

KernelChecks checks{is_set("WEFT_SYNC"), is_set("WEFT_CHECK_NAN")};
std::atomic<KernelObserver*> observer{nullptr};

void update_watched() { kernel_calls_watched = checks.synchronize || checks.not_finite || observer.load() != nullptr; }
[[maybe_unused]] const bool watched_from_the_start = (update_watched(), true);

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
  std::vector<T> host(static_cast<size_t>(view.span()));
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

void set_kernel_observer(KernelObserver* wanted) {
  observer = wanted;
  update_watched();
}
void set_kernel_checks(KernelChecks wanted) {
  checks = wanted;
  update_watched();
}
KernelChecks kernel_checks() { return checks; }

KernelScope::KernelScope(const KernelCall& call) : call_(call) {
  KernelObserver* const watcher = observer.load();
  if (!watcher) return;
  runs_ = watcher->runs();
  watcher->before(call_);
}

void KernelScope::finish() {
  if (KernelObserver* const watcher = observer.load()) watcher->after(call_);
  if (!runs_) return;
  const Queue& queue = call_.queue;
  if (checks.synchronize) {
    try {
      runtime(queue.device.kind).synchronize_stream(queue.device.index, queue.stream);
    } catch (const Error& e) {
      fail(call_.name, " failed on ", queue.device, " (WEFT_SYNC=1): ", e.what());
    }
  }
  const View* const output = call_.views.empty() ? nullptr : call_.views[0];
  if (checks.not_finite && output && *output && is_floating(output->dtype))
    with_dtype<float, double, bf16, f16>(output->dtype, call_.name,
                                         [&]<class T>() { check_finite<T>(call_.name, queue, *output); });
}

}  // namespace weft::kernels
