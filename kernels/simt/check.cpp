// SPDX-License-Identifier: Apache-2.0
// The memory model of the checked build. Every byte of device memory has a shadow byte (written or not), every byte of
// shared memory the number of the block that wrote it last. A race detector needs more state per byte, in further
// arrays of the same shape.
#include "kernels/simt/check.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "kernels/error.h"
#include "kernels/simt/instrument.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/report.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/static_shared.h"
#include "kernels/simt/worker.h"

namespace weft::emulator {

namespace {

/// 1 for each byte of the device range that was written since it was allocated.
uint8_t* device_shadow() {
  static uint8_t* const shadow = [] {
    void* memory =
        mmap(nullptr, device_range_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WEFT_CHECK(memory != MAP_FAILED, "simt: cannot reserve addresses for the shadow memory. Is ulimit -v set?");
    return static_cast<uint8_t*>(memory);
  }();
  return shadow;
}

struct Range {
  uintptr_t begin, end;
};

/// Code, constants and global variables of everything that is loaded.
const std::vector<Range>& program_ranges() {
  static const std::vector<Range>& ranges = *[] {
    auto* found = new std::vector<Range>;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_LOAD) {
              const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
              static_cast<std::vector<Range>*>(out)->push_back({begin, begin + info->dlpi_phdr[i].p_memsz});
            }
          return 0;
        },
        found);
    return found;
  }();
  return ranges;
}

/// What one OS thread remembers: the shadow of its block's shared memory, and the allocations that it met.
struct Shadow {
  static constexpr size_t kCached = 256;
  struct Cached {
    uintptr_t page;
    uint64_t generation;
    uintptr_t begin, end;
  };
  std::vector<uint32_t> dynamic_shared;  // by offset in the worker's arena
  std::vector<uint32_t> static_shared;   // by offset in the thread-local storage
  Cached cached[kCached] = {};
};

Shadow& shadow() {
  static thread_local Shadow shadow;
  return shadow;
}

enum class Access : uint8_t { read, write, atomic };
constexpr const char* kVerbs[] = {"read", "write", "atomic access"};

/// One access: where in memory, and where in the source.
struct Event {
  uintptr_t address;
  size_t bytes;
  Access access;
  const void* instruction;  // or else
  SourceLine where;

  std::string place() const { return instruction ? source_line(instruction) : str(where); }
};

/// `describe()` gives the text: it is built after the worker has begun to report.
template <class Describe>
[[noreturn]] void out_of_bounds(Worker& worker, const Event& e, Describe&& describe) {
  worker.report().fail("out-of-bounds ", kVerbs[static_cast<int>(e.access)], " of ", e.bytes, " bytes at ", e.place(),
                       ": ", describe());
}

template <class Describe>
[[noreturn]] void never_written(Worker& worker, const Event& e, Describe&& describe) {
  worker.report().fail("reads ", e.bytes, " bytes that were never written at ", e.place(), ": ", describe());
}

void device_access(Worker& worker, const Event& e) {
  const uintptr_t page = e.address >> 12;
  Shadow::Cached& entry = shadow().cached[page % Shadow::kCached];
  const uint64_t generation = memory_generation();
  if (entry.page != page || entry.generation != generation) [[unlikely]] {
    Allocation owner;
    if (!find_allocation(e.address, owner)) out_of_bounds(worker, e, [&] { return describe_address(e.address); });
    const uintptr_t begin = reinterpret_cast<uintptr_t>(owner.data);
    entry = {page, generation, begin, begin + owner.bytes};
  }
  if (e.address < entry.begin || e.address + e.bytes > entry.end) [[unlikely]]
    out_of_bounds(worker, e, [&] { return describe_address(e.address); });
  uint8_t* written = device_shadow() + device_offset(e.address);
  if (e.access != Access::write)
    for (size_t i = 0; i < e.bytes; ++i)
      if (!written[i]) [[unlikely]]
        never_written(worker, e, [&] { return describe_address(e.address); });
  if (e.access != Access::read) std::memset(written, 1, e.bytes);
}

void shared_access(Worker& worker, const Event& e, uint32_t* written, size_t offset, const SharedVariable* variable) {
  const uint32_t block = worker.block_epoch();
  if (e.access != Access::write)
    for (size_t i = 0; i < e.bytes; ++i)
      if (written[i] != block) [[unlikely]]
        never_written(worker, e, [&] {
          return variable ? str("byte ", offset, " of __shared__ ", plain_name(variable->name))
                          : str("byte ", offset, " of dynamic shared memory");
        });
  if (e.access != Access::read) std::fill(written, written + e.bytes, block);
}

void dynamic_shared_access(Worker& worker, const Event& e) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(worker.dynamic_shared());
  if (e.address < begin || e.address + e.bytes > begin + worker.dynamic_shared_bytes()) [[unlikely]]
    out_of_bounds(worker, e, [&] {
      return str("byte ", static_cast<int64_t>(e.address - begin), " of ", worker.dynamic_shared_bytes(),
                 " bytes of dynamic shared memory");
    });
  auto& written = shadow().dynamic_shared;
  if (written.empty()) [[unlikely]]
    written.resize(worker.dynamic_shared_arena_bytes());
  shared_access(worker, e, written.data() + worker.dynamic_shared_arena_offset(e.address), e.address - begin, nullptr);
}

void static_shared_access(Worker& worker, const Event& e) {
  const size_t offset = e.address - worker.static_shared().begin;
  auto& written = shadow().static_shared;
  if (written.empty()) [[unlikely]]
    written.resize(worker.static_shared().end - worker.static_shared().begin);
  const SharedVariable* variable = find_shared_variable(offset);
  if (!variable) return;  // threadIdx, or a variable that is not __shared__
  if (offset + e.bytes > variable->offset + variable->bytes) [[unlikely]]
    out_of_bounds(worker, e, [&] {
      return str("byte ", offset - variable->offset, " of __shared__ ", plain_name(variable->name), ", which has ",
                 variable->bytes, " bytes");
    });
  shared_access(worker, e, written.data() + offset, offset - variable->offset, variable);
}

bool is_program_memory(const Worker& worker, uintptr_t address) {
  const Launch& launch = worker.launch();
  if (address - reinterpret_cast<uintptr_t>(launch.arguments) < launch.arguments_bytes) return true;
  for (const Range& range : program_ranges())
    if (address >= range.begin && address < range.end) return true;
  return false;
}

void check(const Event& e) {
  Worker* worker = Worker::running();
  if (!worker || worker->reporting() || worker->stacks().contains(e.address)) return;
  if (in_device_range(e.address))
    device_access(*worker, e);
  else if (worker->in_dynamic_shared_arena(e.address))
    dynamic_shared_access(*worker, e);
  else if (e.address >= worker->static_shared().begin && e.address < worker->static_shared().end)
    static_shared_access(*worker, e);
  else if (!is_program_memory(*worker, e.address))
    out_of_bounds(*worker, e, [&] { return describe_address(e.address); });
  else
    return;
  worker->yield_sometimes();
}

}  // namespace

bool access_checks() { return true; }

void instrumented_read(const void* address, size_t bytes, const void* instruction) {
  check({reinterpret_cast<uintptr_t>(address), bytes, Access::read, instruction, {}});
}
void instrumented_write(const void* address, size_t bytes, const void* instruction) {
  check({reinterpret_cast<uintptr_t>(address), bytes, Access::write, instruction, {}});
}

void check_read(const void* address, size_t bytes, SourceLine where) {
  check({reinterpret_cast<uintptr_t>(address), bytes, Access::read, nullptr, where});
}
void check_write(const void* address, size_t bytes, SourceLine where) {
  check({reinterpret_cast<uintptr_t>(address), bytes, Access::write, nullptr, where});
}
void note_atomic(void* address, size_t bytes, SourceLine where) {
  check({reinterpret_cast<uintptr_t>(address), bytes, Access::atomic, nullptr, where});
}

void check_unwritten(const void* address, size_t bytes) {
  Worker* worker = Worker::running();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  const bool dynamic = worker->in_dynamic_shared_arena(begin);
  auto& written = dynamic ? shadow().dynamic_shared : shadow().static_shared;
  if (written.empty()) return;
  const size_t offset = dynamic ? worker->dynamic_shared_arena_offset(begin) : begin - worker->static_shared().begin;
  std::fill_n(written.begin() + static_cast<std::ptrdiff_t>(offset), bytes, 0);
}

void check_allocated(void* data, size_t bytes, bool written) {
  std::memset(device_shadow() + device_offset(reinterpret_cast<uintptr_t>(data)), written, bytes);
}

void check_copied(void* destination, const void* source, size_t bytes) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination), from = reinterpret_cast<uintptr_t>(source);
  if (!in_device_range(to)) return;
  if (in_device_range(from))
    std::memmove(device_shadow() + device_offset(to), device_shadow() + device_offset(from), bytes);
  else
    check_filled(destination, bytes);
}

void check_filled(void* destination, size_t bytes) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination);
  if (in_device_range(to)) std::memset(device_shadow() + device_offset(to), 1, bytes);
}

}  // namespace weft::emulator
