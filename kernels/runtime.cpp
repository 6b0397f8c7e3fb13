// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime.h"

namespace weft::kernels {

Runtime& runtime(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return cpu::runtime();
    case DeviceKind::simt:
      return simt::runtime();
    case DeviceKind::cuda:
      return cuda::runtime();
  }
  fail("runtime: unknown device kind ", static_cast<int>(kind));
}

}  // namespace weft::kernels
