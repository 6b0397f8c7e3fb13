// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// libweft_gpu.so exports this C function, as those of exported.h: what --profile counts, for a program that counts its own kernels.

extern "C" {

/// A request is a warp's instruction with at least one active lane.
struct weft_emulator_global_counts {
  int64_t requests;
  int64_t sectors;  ///< aligned 32-byte pieces that the requests touch, each once per request
  int64_t bytes;    ///< that the lanes ask for
};
struct weft_emulator_shared_counts {
  int64_t requests;    ///< loads, stores, ldmatrix, and the writes of cp.async; not wgmma, mbarriers and TMA
  int64_t wavefronts;  ///< passes over the 32 banks, 4 bytes from each
  int64_t conflicts;   ///< wavefronts because lanes want different words of one bank
};

/// Facts of the PTX and its addresses: caches and timing are not included.
struct weft_emulator_counts {
  int64_t blocks;
  int64_t barriers;  ///< completed bar.sync and the like, per block
  struct weft_emulator_global_counts loads;
  struct weft_emulator_global_counts stores;  ///< atomic operations included
  struct weft_emulator_shared_counts shared;
  int64_t bulk_bytes;  ///< copied by TMA; a multicast counts once
};

/// Waits for all work of all devices. Then kernels add to *counts; with nullptr they no longer do.
void weft_emulator_count(struct weft_emulator_counts* counts);

}
