// SPDX-License-Identifier: Apache-2.0
#pragma once

// An implementation with several variants notes which one it takes, so that profiles and timings can name
// it. Separate from kernel.h, which everything includes.

namespace weft::kernels {

namespace detail {
inline thread_local const char* kernel_variant = "";
}

/// Notes the variant that a contract takes: `sm90` (wgmma and TMA), `cublaslt`, `cudnn`; nothing for the plain ones of
/// kernels/cuda. A string literal; of several the last one counts.
inline void note_kernel_variant(const char* variant) { detail::kernel_variant = variant; }
/// The last note of this thread. To learn a call's variant, note "" before it.
inline const char* noted_kernel_variant() { return detail::kernel_variant; }

}  // namespace weft::kernels
