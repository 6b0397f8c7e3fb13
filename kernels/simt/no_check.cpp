// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/check.h"
#include "kernels/simt/simt.h"

namespace weft::emulator {

bool access_checks() { return false; }
void check_allocated(void*, size_t, bool) {}
void check_copied(void*, const void*, size_t) {}
void check_filled(void*, size_t) {}
void check_read(const void*, size_t, SourceLine) {}
void check_write(const void*, size_t, SourceLine) {}
void check_unwritten(const void*, size_t) {}
void note_atomic(void*, size_t, SourceLine) {}

}  // namespace weft::emulator
