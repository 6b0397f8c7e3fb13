// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/runtime.h"

#include <array>
#include <atomic>

namespace weft::kernels {
namespace {
std::array<std::atomic<Runtime*>, 2> replaced{};
}

void replace_runtime(DeviceKind kind, Runtime* runtime) { replaced[static_cast<size_t>(kind)] = runtime; }

Runtime& runtime(DeviceKind kind) {
  if (Runtime* const other = replaced[static_cast<size_t>(kind)].load(std::memory_order_acquire)) [[unlikely]]
    return *other;
  switch (kind) {
    case DeviceKind::cpu:
      return cpu::runtime();
    case DeviceKind::cuda:
      return cuda::runtime();
  }
  fail("runtime: unknown device kind ", static_cast<int>(kind));
}

}  // namespace weft::kernels
