// SPDX-License-Identifier: Apache-2.0
#pragma once

// A contract's implementation says whose kernels it takes where it has several, so that profiles and timings can name
// them. Apart from kernel.h, which everything includes.

namespace weft::kernels {

namespace detail {
inline thread_local const char* kernel_variant = "";
}

/// Says in a contract whose kernels it takes: `sm90` (wgmma and TMA), `cublaslt`, `cudnn`; nothing for the plain ones of
/// kernels/cuda. A string literal; of several the last one counts.
inline void note_kernel_variant(const char* variant) { detail::kernel_variant = variant; }
/// What was noted last on this thread. Who wants to know it of a call notes "" before.
inline const char* noted_kernel_variant() { return detail::kernel_variant; }

}  // namespace weft::kernels
