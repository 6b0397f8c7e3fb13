// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/shadow.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "emulator/machine/fault.h"

namespace emulator {

namespace {

constexpr int kAddressBits = 48;  // of user space
constexpr size_t kSlab = size_t{64} << 20;
constexpr size_t kCellBytes = 3 * (sizeof(uint64_t) + sizeof(Site));

}  // namespace

void* reserve_zeroed(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Fault(FaultCode::launch_failure, cat("--check: cannot reserve ", bytes >> 20,
                                               " MiB of addresses for what is remembered of memory. Is ulimit -v set, "
                                               "or vm.overcommit_memory 2?"));
  return memory;
}

Shadow& Shadow::get() {
  static Shadow* const shadow = new Shadow;
  return *shadow;
}

Shadow::Shadow()
    : table_(static_cast<ShadowPage**>(
          reserve_zeroed((size_t{1} << (kAddressBits - ShadowPage::kShift)) * sizeof(ShadowPage*)))) {}

char* Shadow::take(size_t bytes) {
  if (slab_left_ < bytes) {
    slab_ = static_cast<char*>(reserve_zeroed(kSlab));
    slab_left_ = kSlab;
  }
  char* const taken = slab_;
  slab_ += bytes;
  slab_left_ -= bytes;
  return taken;
}

void Shadow::give_cells(ShadowPage& page, int cell_shift) {
  const size_t cells = ShadowPage::kBytes >> cell_shift;
  char* const memory = take(cells * kCellBytes);
  uint64_t* const stamps = reinterpret_cast<uint64_t*>(memory);
  Site* const sites = reinterpret_cast<Site*>(stamps + 3 * cells);
  page.cell_shift = cell_shift;
  page.write = stamps;
  page.reads[0] = stamps + cells;
  page.reads[1] = stamps + 2 * cells;
  page.write_at = sites;
  page.reads_at[0] = sites + cells;
  page.reads_at[1] = sites + 2 * cells;
}

ShadowPage& Shadow::make(uintptr_t address, size_t bytes) {
  const int fine = std::min(2, std::countr_zero(address | bytes));
  const std::lock_guard lock(mutex_);
  ShadowPage*& known = table_[address >> ShadowPage::kShift];
  if (!known) {
    auto* const page = new ShadowPage;
    give_cells(*page, fine);
    pages_.push_back(page);
    __atomic_store_n(&known, page, __ATOMIC_RELEASE);
  } else if (known->cell_shift > fine) {
    const ShadowPage old = *known;
    give_cells(*known, fine);
    const size_t cells = ShadowPage::kBytes >> fine;
    const int from = old.cell_shift - fine;
    for (size_t k = 0; k < cells; ++k) {
      known->write[k] = old.write[k >> from];
      known->write_at[k] = old.write_at[k >> from];
      for (int r = 0; r < 2; ++r) {
        known->reads[r][k] = old.reads[r][k >> from];
        known->reads_at[r][k] = old.reads_at[r][k >> from];
      }
    }
  }
  return *known;
}

void Shadow::clear() {
  const std::lock_guard lock(mutex_);
  for (ShadowPage* const page : pages_)
    std::memset(page->write, 0, (ShadowPage::kBytes >> page->cell_shift) * kCellBytes);
}

}  // namespace emulator
