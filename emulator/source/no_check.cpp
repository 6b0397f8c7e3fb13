// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/check.h"
#include "emulator/source/simt.h"
#include "emulator/source/watch.h"

namespace emulator::source {

Watcher* watcher = nullptr;

bool access_checks() { return false; }
void check_allocated(void*, size_t, bool) {}
void check_copied(void*, const void*, size_t) {}
void check_filled(void*, size_t) {}
std::shared_ptr<LaunchClock> check_launch(uint64_t, uint64_t) { return nullptr; }
void check_block_begin(Worker& worker, LaunchClock*) {
  if (watcher) watcher->block_begins(worker);
}
void check_block_end(Worker&, std::string&) {
  if (watcher) watcher->block_ends();
}
void check_barrier() {
  if (watcher) watcher->barrier();
}
void check_sync_warp(int warp, uint32_t, uint32_t) {
  if (watcher) watcher->sync_warp(warp);
}
void check_read(const void* address, size_t bytes, SourceLine where) {
  if (watcher) watcher->read(address, bytes, where);
}
void check_copy_issued(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                       SourceLine where) {
  if (watcher) watcher->copy(destination, bytes, source, source_bytes, where);
}
void check_copy_done(const void*, size_t, const void*, size_t, SourceLine) {}
void check_atomic(void*, size_t, SourceLine) {}
void check_fence(bool) {}

bool access_checked() { return false; }
void check_write(const void*, size_t, SourceLine) {}
void check_mbarrier_made(int) {}
void check_mbarrier_access(const void*, SourceLine) {}
void check_mbarrier_release(Worker&, int) {}
void check_mbarrier_phase(Worker&, int) {}
void check_mbarrier_acquire(int) {}
void check_proxy_fence() {}
void check_load_issued(Worker&, const void*, int, int, SourceLine) {}
void check_load_done(Worker&, const void*, int, int, SourceLine) {}
uint32_t check_store_issued(const void*, int, SourceLine) { return 0; }
void check_stores_read(int, std::optional<uint32_t>) {}
void check_store_written(const void*, size_t, int, SourceLine) {}
void check_wgmma_read(size_t, const void*, SourceLine) {}
void check_warpgroup_done(int, size_t) {}
void check_named_arrive(int) {}
void check_named_complete(int) {}
void check_named_acquire(int) {}
void check_cluster_arrive() {}
void check_cluster_barrier() {}
void check_cluster_acquire() {}

}  // namespace emulator::source
