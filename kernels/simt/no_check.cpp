// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/check.h"
#include "kernels/simt/simt.h"

namespace weft::emulator {

bool access_checks() { return false; }
void check_allocated(void*, size_t, bool) {}
void check_copied(void*, const void*, size_t) {}
void check_filled(void*, size_t) {}
std::shared_ptr<LaunchClock> check_launch(uint64_t) { return nullptr; }
void check_block_begin(Worker&, LaunchClock*, uint64_t) {}
void check_block_end(Worker&, std::string&) {}
void check_barrier() {}
void check_sync_warp(int, uint32_t, uint32_t) {}
void check_read(const void*, size_t, SourceLine) {}
uint32_t check_copy_issued(const void*, size_t, const void*, size_t, SourceLine) { return 0; }
void check_copy_done(const void*, size_t, const void*, size_t, SourceLine, uint32_t) {}
void note_atomic(void*, size_t, SourceLine) {}
void check_fence(bool) {}

}  // namespace weft::emulator
