// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::kernels {

/// The hint that ends the text of a sticky CUDA error: how to find the kernel that caused the error. Some errors (an
/// illegal address, a trap) are detected while a kernel runs, and every later call returns them. Empty for other
/// errors, and with WEFT_SYNC=1, which waits for each kernel and names it. `code`: a cudaError_t.
std::string sticky_error_hint(int code);

}  // namespace weft::kernels
