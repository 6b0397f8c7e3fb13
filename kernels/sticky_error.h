// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::kernels {

/// Some of CUDA's errors (an illegal address, a kernel that trapped) are found while a kernel runs, and then returned
/// by every later call: the call that reports one is not its cause. Such an error's text ends with what this returns:
/// how to find the kernel. Empty for other errors, and where WEFT_SYNC=1 waits for each kernel and names it already.
/// `code`: a cudaError_t.
std::string sticky_error_hint(int code);

}  // namespace weft::kernels
