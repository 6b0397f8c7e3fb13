// SPDX-License-Identifier: Apache-2.0
#pragma once

// An implementation with several variants records its choice here, so that profiles and timings can name the variant.
// Separate from kernel.h, which everything includes.

namespace weft::kernels {

namespace detail {
inline thread_local const char* kernel_variant = "";
}

/// Records the variant of a call: `sm90` (wgmma and TMA), `cublaslt`, `cudnn`; plain kernels of kernels/cuda record
/// nothing. A string literal; the last call counts.
inline void note_kernel_variant(const char* variant) { detail::kernel_variant = variant; }
/// The last record of this thread. To get a call's variant, record "" before the call.
inline const char* noted_kernel_variant() { return detail::kernel_variant; }

}  // namespace weft::kernels
