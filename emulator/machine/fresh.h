// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// Unwritten memory, for `--check uninitialised`: a bit for each byte of device memory since its
// allocation, and of shared and local memory since its block began. Memory of the host counts as written. Without the
// check all of this does nothing.

namespace emulator {

/// [memory, memory + bytes) is fresh; or has been written.
void mark_fresh(const void* memory, size_t bytes);
void mark_written(const void* memory, size_t bytes);
/// A copy: fresh bytes stay fresh.
void mark_copied(const void* to, const void* from, size_t bytes);
/// Whether any of these bytes is fresh.
bool any_fresh(const void* memory, size_t bytes);

}  // namespace emulator
