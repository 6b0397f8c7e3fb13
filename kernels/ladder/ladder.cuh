// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/ladder/ladder.h"

// Every step includes this. A step lives in a namespace of its own (the steps of a ladder are compiled together), what
// steps share in one (inline) that the framework's kernels do not know.

namespace weft::kernels::WEFT_DEVICE::inline rungs {

using ladder::Sizes;

/// Announces a step: `const Rung<run> rung("transpose/1_naive", "one thread per element");`
template <auto kRun>
struct Rung : ladder::Rung<kRun> {
#ifdef WEFT_SIMT
  static constexpr DeviceKind kDevice = DeviceKind::simt;
#else
  static constexpr DeviceKind kDevice = DeviceKind::cuda;
#endif
  Rung(const char* name, const char* idea, Sizes sizes = Sizes::any, bool (*runs_on)(const Queue&) = nullptr)
      : ladder::Rung<kRun>(name, idea, kDevice, sizes, runs_on) {}
};

/// How many tiles of `tile` cover n.
inline unsigned tiles(int64_t n, int64_t tile) { return static_cast<unsigned>((n + tile - 1) / tile); }

}  // namespace weft::kernels::WEFT_DEVICE::inline rungs
