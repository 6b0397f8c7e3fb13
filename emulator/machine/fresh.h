// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// Unwritten memory, for `--check uninitialised`: a bit per byte of device memory since its allocation, and of shared
// and local memory since its block started. Host memory counts as written. Without the check these functions do
// nothing.

namespace emulator {

/// Marks [memory, memory + bytes) as fresh (unwritten), or as written.
void mark_fresh(const void* memory, size_t bytes);
void mark_written(const void* memory, size_t bytes);
/// Marks the target of a copy: copies of fresh bytes are fresh.
void mark_copied(const void* to, const void* from, size_t bytes);
/// Whether any of these bytes is fresh.
bool any_fresh(const void* memory, size_t bytes);
/// A quick test: whether any byte is fresh of the 64 KiB pages of [memory, memory + bytes).
bool any_fresh_near(const void* memory, size_t bytes);

}  // namespace emulator
