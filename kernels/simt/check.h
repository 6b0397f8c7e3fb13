// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "kernels/simt/kernel_api.h"

// What the checked build (WEFT_SIMT_CHECK=ON, check.cpp) knows about memory; in the plain build (no_check.cpp) all of
// this does nothing.

namespace weft::emulator {

/// A device allocation begins; pinned memory counts as written.
void check_allocated(void* data, size_t bytes, bool written);
/// The host wrote device memory, or copied from one place in it to another.
void check_copied(void* destination, const void* source, size_t bytes);
void check_filled(void* destination, size_t bytes);

/// Kernel code reads or writes [address, address + bytes) through an emulated instruction.
void check_read(const void* address, size_t bytes, SourceLine where);
void check_write(const void* address, size_t bytes, SourceLine where);
/// A cp.async made [address, address + bytes) unreadable until the copy is waited for.
void check_unwritten(const void* address, size_t bytes);

}  // namespace weft::emulator
