// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/shadow.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "emulator/machine/fault.h"

namespace emulator {

namespace {

constexpr int kAddressBits = 48;  // user space
constexpr size_t kSlab = size_t{64} << 20;
constexpr size_t cell_bytes(int cell_shift) {
  return (ShadowPage::kBytes >> cell_shift) / ShadowPage::Cells::kCount * sizeof(ShadowPage::Cells);
}

}  // namespace

void* reserve_zeroed(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Fault(FaultCode::launch_failure, cat("--check: cannot reserve ", bytes >> 20,
                                               " MiB of addresses for what is remembered of memory. Is ulimit -v set, "
                                               "or vm.overcommit_memory 2?"));
  return memory;
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
  page.cell_shift = cell_shift;
  page.cells = reinterpret_cast<ShadowPage::Cells*>(take(cell_bytes(cell_shift)));
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
    ShadowPage old = *known;
    give_cells(*known, fine);
    for (size_t k = 0; k < ShadowPage::kBytes >> fine; ++k) {
      const Cell to(*known, k), from(old, k >> (old.cell_shift - fine));
      to.write() = from.write();
      to.write_at() = from.write_at();
      for (int slot = 0; slot < 2; ++slot) {
        to.read(slot) = from.read(slot);
        to.read_at(slot) = from.read_at(slot);
      }
    }
  }
  return *known;
}

void Shadow::clear() {
  const std::lock_guard lock(mutex_);
  for (ShadowPage* const page : pages_) std::memset(static_cast<void*>(page->cells), 0, cell_bytes(page->cell_shift));
}

}  // namespace emulator
