// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stubs for kernels that a program does not contain. Include this before the headers of their contracts: each kernel of
// the device WEFT_DEVICE is then defined as an error that ends with the text WEFT_NO_DEVICE.
#include "kernels/kernel.h"

namespace weft::kernels::WEFT_DEVICE {
[[noreturn]] [[maybe_unused]] static void missing(const char* name) { fail(name, WEFT_NO_DEVICE); }
}  // namespace weft::kernels::WEFT_DEVICE

#undef WEFT_KERNEL
#define WEFT_KERNEL(kernel_name, ...)                                                    \
  namespace WEFT_DEVICE {                                                                \
  void kernel_name(__VA_ARGS__);                                                         \
  void kernel_name(__VA_ARGS__) { ::weft::kernels::WEFT_DEVICE::missing(#kernel_name); } \
  }                                                                                      \
  static_assert(true)

#pragma GCC diagnostic ignored "-Wunused-parameter"
