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
constexpr size_t lines(int cell_shift) { return (ShadowPage::kBytes >> cell_shift) / ShadowPage::Line::kCells; }

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
    madvise(slab_, kSlab, MADV_HUGEPAGE);  // random accesses miss the TLB less often
    slab_left_ = kSlab;
  }
  char* const taken = slab_;
  slab_ += bytes;
  slab_left_ -= bytes;
  return taken;
}

void Shadow::give_lines(ShadowPage& page, int cell_shift) {
  page.cell_shift = cell_shift;
  page.lines = reinterpret_cast<ShadowPage::Line*>(take(lines(cell_shift) * sizeof(ShadowPage::Line)));
  page.cells = nullptr;
}

void Shadow::give_cells(ShadowPage& page) {
  constexpr size_t kFours = ShadowPage::Line::kCells / ShadowPage::Cells::kCount;
  page.cells = reinterpret_cast<ShadowPage::Cells*>(take(lines(page.cell_shift) * kFours * sizeof(ShadowPage::Cells)));
}

void ShadowPage::part(size_t number) {
  if (!cells) {
    Shadow& shadow = Shadow::get();
    const std::lock_guard lock(shadow.mutex_);
    shadow.give_cells(*this);
  }
  Line& line = lines[number];
  line.apart = true;
  for (size_t k = 0; k < Line::kCells; ++k) {
    const Cell cell(*this, number * Line::kCells + k);
    cell.write() = line.stamp(0, k);
    cell.write_at() = line.at[0];
    for (int slot = 0; slot < 2; ++slot) {
      cell.read(slot) = line.stamp(1 + slot, k);
      cell.read_at(slot) = line.at[1 + slot];
    }
  }
}

ShadowPage& Shadow::make(uintptr_t address, size_t bytes) {
  const int fine = std::min(2, std::countr_zero(address | bytes));
  const std::lock_guard lock(mutex_);
  ShadowPage*& known = table_[address >> ShadowPage::kShift];
  if (!known) {
    auto* const page = new ShadowPage;
    give_lines(*page, fine);
    pages_.push_back(page);
    __atomic_store_n(&known, page, __ATOMIC_RELEASE);
  } else if (known->cell_shift > fine) {
    ShadowPage old = *known;
    if (!old.cells) give_cells(old);
    give_lines(*known, fine);
    give_cells(*known);
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
  for (ShadowPage* const page : pages_) std::memset(static_cast<void*>(page->lines), 0, lines(page->cell_shift) * sizeof(ShadowPage::Line));
}

}  // namespace emulator
