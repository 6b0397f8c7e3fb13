// SPDX-License-Identifier: Apache-2.0
// The checked build: every access of a kernel is held against the bounds of what it touches, against what was ever
// written there, and against the accesses that it may race with (race.h).
#include "kernels/simt/check.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/error.h"
#include "kernels/simt/instrument.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/race.h"
#include "kernels/simt/report.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/static_shared.h"
#include "kernels/simt/worker.h"

namespace weft::emulator {

namespace {

/// 1 for each byte of the device range that was written since it was allocated.
uint8_t* device_written() {
  static uint8_t* const written = static_cast<uint8_t*>(reserve_zeroed(device_range_bytes()));
  return written;
}

Shadow& device_shadow() {
  static Shadow& shadow = *new Shadow(device_range_bytes());
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

/// One access: by whom, where in memory, and where in the source.
struct Event {
  uintptr_t address;
  size_t bytes;
  Access access;
  Site at;
  int thread;
};
constexpr const char* kVerbs[] = {"read", "write", "atomic access"};

/// What one OS thread needs to check the block that it runs.
class Checker {
 public:
  explicit Checker(Worker& worker);

  void begin(LaunchClock& launch, uint64_t block);
  void end(std::string& error);
  void barrier();
  BlockClock& clock() { return clock_; }
  Worker& worker() { return worker_; }

  template <Access kAccess, size_t kBytes>
  void access(uintptr_t address, size_t bytes, Site at);
  uint32_t copy_issued(uintptr_t destination, size_t bytes, uintptr_t source, size_t source_bytes, Site at);
  void copy_done(uintptr_t destination, size_t bytes, uintptr_t source, size_t source_bytes, Site at, uint32_t issued);

 private:
  struct Cached {
    uintptr_t page, begin, end;
  };
  static constexpr size_t kCached = 256;

  template <Access kAccess, size_t kBytes>
  void device_access(uintptr_t address, size_t bytes, Site at);
  template <Access kAccess>
  void shared_access(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at);
  template <bool kShared, Access kAccess>
  void visit(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at, bool& unwritten);
  template <bool kShared>
  bool is_split(const Cell& word) const {
    if (kShared) return word.split == clock_.block();
    return word.split - clock_.launch().first_block() < clock_.launch().blocks();
  }
  bool stays_in_variable(uint16_t& variable, size_t offset, size_t bytes, Site at);
  bool is_program_memory(uintptr_t address) const;
  Shadow* shared_shadow(uintptr_t address, size_t& offset);

  void never_written(const Event& e);
  [[noreturn]] void out_of_bounds(const Event& e, uint16_t variable = 0);
  [[noreturn]] void race(const Event& e, const Conflict& conflict);
  std::string describe(uintptr_t address) const;
  std::string unwritten_text() const;

  Worker& worker_;
  BlockClock clock_;
  uint32_t numbers_generation_ = 0;
  uintptr_t stacks_begin_, stacks_bytes_, device_begin_, device_bytes_, dynamic_begin_, static_begin_, static_bytes_;
  uint8_t* const device_written_ = emulator::device_written();
  Shadow& device_shadow_ = emulator::device_shadow();
  Shadow dynamic_shadow_, static_shadow_;
  std::vector<uint16_t> variable_of_byte_;  // of the thread-local storage; 0: none
  /// Which variable the code at a place touched first in this launch.
  struct FirstTouch {
    Site at;
    uint32_t launch;
    uint16_t variable;
  };
  static constexpr size_t kTouches = 1024;
  FirstTouch touches_[kTouches] = {};
  uint64_t memory_generation_ = 0;
  Cached cached_[kCached];
  /// The first read of bytes that nobody has written. It waits for the end of the barrier's interval: if another thread
  /// writes them there, the report is that of a race, with both places.
  Event unwritten_{};
  bool found_unwritten_ = false;
};

/// The checker of the block that this OS thread runs, or nullptr.
__thread Checker* running = nullptr;

Checker::Checker(Worker& worker)
    : worker_(worker),
      stacks_begin_(worker.stacks().begin()),
      stacks_bytes_(worker.stacks().bytes()),
      device_begin_(device_range_begin()),
      device_bytes_(device_range_bytes()),
      dynamic_begin_(worker.dynamic_shared_arena()),
      static_begin_(worker.static_shared().begin),
      static_bytes_(worker.static_shared().end - worker.static_shared().begin),
      dynamic_shadow_(Worker::dynamic_shared_arena_bytes()),
      static_shadow_(static_bytes_),
      variable_of_byte_(static_bytes_) {
  const auto& variables = shared_variables();
  WEFT_CHECK(variables.size() < 65535, "simt: more __shared__ variables than the checked build can number");
  for (size_t i = 0; i < variables.size(); ++i)
    std::fill_n(variable_of_byte_.begin() + static_cast<std::ptrdiff_t>(variables[i].offset), variables[i].bytes,
                static_cast<uint16_t>(i + 1));
}

void Checker::begin(LaunchClock& launch, uint64_t block) {
  if (numbers_generation_ != LaunchClock::generation()) {
    numbers_generation_ = LaunchClock::generation();
    device_shadow_.clear();
    dynamic_shadow_.clear();
    static_shadow_.clear();
  }
  const dim3 size = worker_.launch().block;
  clock_.begin(launch, block, static_cast<int>(size.x * size.y * size.z));
  if (memory_generation_ != memory_generation()) {
    memory_generation_ = memory_generation();
    std::memset(cached_, 0xff, sizeof(cached_));
  }
  found_unwritten_ = false;
}

void Checker::end(std::string& error) {
  if (!found_unwritten_) return;
  const std::string found = str(worker_.place(unwritten_.thread), ": ", unwritten_text());
  error = error.empty() ? found : str(found, "\nAnd then: ", error);
}

void Checker::barrier() {
  if (found_unwritten_) {
    worker_.report();
    found_unwritten_ = false;
    worker_.fail_for(unwritten_.thread, unwritten_text());
  }
  clock_.barrier();
}

template <bool kShared, Access kAccess>
void Checker::visit(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at, bool& unwritten) {
  const int thread = worker_.current();
  Visitor<kShared> visitor{clock_, thread, clock_.now(thread), at};
  const auto visit_cell = [&](Cell& cell) {
    if (kShared && kAccess != Access::write && stamp::block(cell.write) != clock_.block()) unwritten = true;
    if (!visitor.visit(kAccess, cell, address)) [[unlikely]]
      race({address, bytes, kAccess, at, thread}, visitor.conflict);
  };
  for (const size_t end = offset + bytes; offset < end;) {
    Cell& word = shadow.word(offset);
    const bool split = is_split<kShared>(word);
    if (offset % 4 == 0 && end - offset >= 4) {
      if (!split) [[likely]] {
        visit_cell(word);
        offset += 4;
        address += 4;
        continue;
      }
      for (int i = 0; i < 4; ++i, ++offset, ++address) visit_cell(shadow.byte(offset));
      if (kAccess == Access::write) word = {visitor.now, {}, at, {}, 0};
    } else {
      if (!split) {
        std::fill_n(&shadow.byte(offset & ~size_t{3}), 4, word);
        word.split = clock_.block();
      }
      visit_cell(shadow.byte(offset));
      ++offset;
      ++address;
    }
  }
}

template <Access kAccess, size_t kBytes>
void Checker::device_access(uintptr_t address, size_t bytes, Site at) {
  const uintptr_t page = address >> 12;
  Cached& entry = cached_[page % kCached];
  if (entry.page != page) [[unlikely]] {
    Allocation owner;
    if (!find_allocation(address, owner)) out_of_bounds({address, bytes, kAccess, at, worker_.current()});
    const uintptr_t begin = reinterpret_cast<uintptr_t>(owner.data);
    entry = {page, begin, begin + owner.bytes};
  }
  if (address < entry.begin || address + bytes > entry.end) [[unlikely]]
    out_of_bounds({address, bytes, kAccess, at, worker_.current()});
  const size_t offset = address - device_begin_;
  uint8_t* const written = device_written_ + offset;
  if (kAccess != Access::write) {
    const auto any_unwritten = [&] {
      if constexpr (kBytes != 0) {  // written[] holds 0 and 1
        uint8_t ones[kBytes];
        std::memset(ones, 1, kBytes);
        return std::memcmp(written, ones, kBytes) != 0;
      } else {
        return std::find(written, written + bytes, 0) != written + bytes;
      }
    };
    if (any_unwritten()) [[unlikely]]
      never_written({address, bytes, kAccess, at, worker_.current()});
  }
  if (kAccess != Access::read) std::memset(written, 1, kBytes ? kBytes : bytes);
  if (kAccess == Access::write) clock_.global_write(clock_.now(worker_.current()));
  bool unused = false;
  visit<false, kAccess>(device_shadow_, offset, address, kBytes ? kBytes : bytes, at, unused);
}

template <Access kAccess>
void Checker::shared_access(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at) {
  bool unwritten = false;
  visit<true, kAccess>(shadow, offset, address, bytes, at, unwritten);
  if (unwritten) [[unlikely]]
    never_written({address, bytes, kAccess, at, worker_.current()});
}

template <Access kAccess, size_t kBytes>
inline void Checker::access(uintptr_t address, size_t bytes, Site at) {
  if (address - stacks_begin_ < stacks_bytes_ || worker_.reporting()) return;
  if (kBytes) bytes = kBytes;
  if (address - device_begin_ < device_bytes_) {
    device_access<kAccess, kBytes>(address, bytes, at);
  } else if (worker_.in_dynamic_shared_arena(address)) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(worker_.dynamic_shared());
    if (address < begin || address + bytes > begin + worker_.dynamic_shared_bytes()) [[unlikely]]
      out_of_bounds({address, bytes, kAccess, at, worker_.current()});
    shared_access<kAccess>(dynamic_shadow_, address - dynamic_begin_, address, bytes, at);
  } else if (address - static_begin_ < static_bytes_) {
    const size_t offset = address - static_begin_;
    uint16_t variable = variable_of_byte_[offset];
    if (!stays_in_variable(variable, offset, bytes, at)) [[unlikely]]
      out_of_bounds({address, bytes, kAccess, at, worker_.current()}, variable);
    if (!variable) return;  // threadIdx, or a variable that is not __shared__
    shared_access<kAccess>(static_shadow_, offset, address, bytes, at);
  } else if (!is_program_memory(address)) {
    out_of_bounds({address, bytes, kAccess, at, worker_.current()});
  } else {
    return;
  }
  worker_.yield_sometimes();
}

/// False when the access leaves its variable: by its own width, or because the code there has so far been in another
/// kernel function's variable, right before this one. (Arrays of one function may be walked by one pointer.)
bool Checker::stays_in_variable(uint16_t& variable, size_t offset, size_t bytes, Site at) {
  const auto& all = shared_variables();
  FirstTouch& touch = touches_[at % kTouches];
  const bool known = touch.at == at && touch.launch == clock_.launch().first_block();
  if (known && touch.variable != variable) [[unlikely]] {
    const SharedVariable& first = all[touch.variable - 1u];
    const size_t end = first.offset + first.bytes;
    if (offset >= end && offset - end < bytes && (!variable || all[variable - 1u].function() != first.function())) {
      variable = touch.variable;
      return false;
    }
  }
  if (!variable) return true;
  if (!known) touch = {at, clock_.launch().first_block(), variable};
  const SharedVariable& owner = all[variable - 1u];
  return offset + bytes <= owner.offset + owner.bytes;
}

bool Checker::is_program_memory(uintptr_t address) const {
  const Launch& launch = worker_.launch();
  if (address - reinterpret_cast<uintptr_t>(launch.arguments) < launch.arguments_bytes) return true;
  for (const Range& range : program_ranges())
    if (address >= range.begin && address < range.end) return true;
  return false;
}

Shadow* Checker::shared_shadow(uintptr_t address, size_t& offset) {
  const bool dynamic = worker_.in_dynamic_shared_arena(address);
  offset = address - (dynamic ? dynamic_begin_ : static_begin_);
  return dynamic ? &dynamic_shadow_ : &static_shadow_;
}

uint32_t Checker::copy_issued(uintptr_t destination, size_t bytes, uintptr_t source, size_t source_bytes, Site at) {
  access<Access::write, 0>(destination, bytes, at);
  size_t offset;
  Shadow* shadow = shared_shadow(destination, offset);
  for (size_t i = 0; i < bytes; i += 4) shadow->word(offset + i).write_at |= kInFlight;
  if (source_bytes == 0) return clock_.tick();
  access<Access::read, 0>(source, source_bytes, at);
  // So that what the block wrote before, and what it writes while the copy is under way, differ in their ticks.
  if (source - device_begin_ < device_bytes_) clock_.advance();
  return clock_.tick();
}

void Checker::copy_done(uintptr_t destination, size_t bytes, uintptr_t source, size_t source_bytes, Site at,
                        uint32_t issued) {
  const int thread = worker_.current();
  size_t offset;
  Shadow* shadow = shared_shadow(destination, offset);
  for (size_t i = 0; i < bytes; i += 4) {
    Cell& word = shadow->word(offset + i);
    word.write = clock_.now(thread);
    word.write_at = at;
  }
  if (source - device_begin_ >= device_bytes_) return;
  for (size_t i = 0; i < source_bytes; i += 4) {
    const size_t from = source - device_begin_ + i;
    const Cell& word = device_shadow_.word(from);
    const Cell& cell = is_split<false>(word) ? device_shadow_.byte(from) : word;
    if (stamp::block(cell.write) == clock_.block() && stamp::tick(cell.write) >= issued && issued != stamp::kLastTick)
        [[unlikely]]
      race({source + i, 4, Access::read, at, thread}, {Conflict::write, cell.write, cell.write_at});
  }
}

std::string Checker::describe(uintptr_t address) const {
  if (worker_.in_dynamic_shared_arena(address)) {
    const int64_t offset = static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(worker_.dynamic_shared()));
    const auto bytes = worker_.dynamic_shared_bytes();
    const bool inside = offset >= 0 && static_cast<size_t>(offset) < bytes;
    return inside ? str("byte ", offset, " of dynamic shared memory")
                  : str("byte ", offset, " of ", bytes, " bytes of dynamic shared memory");
  }
  if (address - static_begin_ < static_bytes_)
    if (const uint16_t variable = variable_of_byte_[address - static_begin_]) {
      const SharedVariable& owner = shared_variables()[variable - 1u];
      return str("byte ", address - static_begin_ - owner.offset, " of __shared__ ", plain_name(owner.name));
    }
  return describe_address(address);
}

void Checker::out_of_bounds(const Event& e, uint16_t variable) {
  worker_.report();
  std::string what;
  if (variable) {
    const SharedVariable& owner = shared_variables()[variable - 1u];
    what = str("byte ", e.address - static_begin_ - owner.offset, " of __shared__ ", plain_name(owner.name),
               ", which has ", owner.bytes, " bytes");
  } else {
    what = describe(e.address);
  }
  worker_.fail("out-of-bounds ", kVerbs[static_cast<int>(e.access)], " of ", e.bytes, " bytes at ", site_text(e.at),
               ": ", what);
}

void Checker::never_written(const Event& e) {
  if (found_unwritten_) return;
  found_unwritten_ = true;
  unwritten_ = e;
}

std::string Checker::unwritten_text() const {
  return str("reads ", unwritten_.bytes, " bytes that were never written at ", site_text(unwritten_.at), ": ",
             describe(unwritten_.address));
}

void Checker::race(const Event& e, const Conflict& conflict) {
  worker_.report();
  found_unwritten_ = false;
  constexpr const char* kKinds[] = {"write", "read", "atomic access", "cp.async"};
  const uint64_t now = clock_.now(e.thread);
  const char* const missing[] = {"the wait for the copy", "__syncwarp", "__syncthreads", "an order between blocks"};
  const int distance = stamp::distance(now, conflict.stamp);
  const std::string other = distance == 0 ? str("the same thread")
                                          : worker_.place(stamp::block(conflict.stamp) - clock_.launch().first_block(),
                                                          stamp::thread(conflict.stamp));
  worker_.fail(
      "data race: ", kVerbs[static_cast<int>(e.access)], " of ", e.bytes, " bytes at ", site_text(e.at),
      " against the ", kKinds[conflict.kind], " at ", site_text(conflict.at), " by ", other, ": ", describe(e.address),
      ". ",
      conflict.kind == Conflict::copy_in_flight ? std::string("Nobody has waited for the copy.")
                                                : str("Nothing orders the two (missing: ", missing[distance], ").")  //
  );
}

template <Access kAccess, size_t kBytes>
inline void check(const void* address, size_t bytes, Site at) {
  if (Checker* checker = running) checker->access<kAccess, kBytes>(reinterpret_cast<uintptr_t>(address), bytes, at);
}

/// For the accesses whose size is not known when this is compiled.
template <Access kAccess>
void check_any(const void* address, size_t bytes, Site at) {
  if (bytes) check<kAccess, 0>(address, bytes, at);
}

}  // namespace

bool access_checks() { return true; }

template <size_t kBytes>
void instrumented_read(const void* address, const void* instruction) {
  check<Access::read, kBytes>(address, kBytes, site_of(instruction));
}
template <size_t kBytes>
void instrumented_write(const void* address, const void* instruction) {
  check<Access::write, kBytes>(address, kBytes, site_of(instruction));
}
#define WEFT_INSTANTIATE(bytes)                                     \
  template void instrumented_read<bytes>(const void*, const void*); \
  template void instrumented_write<bytes>(const void*, const void*);
WEFT_INSTANTIATE(1)
WEFT_INSTANTIATE(2)
WEFT_INSTANTIATE(4)
WEFT_INSTANTIATE(8)
WEFT_INSTANTIATE(16)
#undef WEFT_INSTANTIATE
void instrumented_read_range(const void* address, size_t bytes, const void* instruction) {
  check_any<Access::read>(address, bytes, site_of(instruction));
}
void instrumented_write_range(const void* address, size_t bytes, const void* instruction) {
  check_any<Access::write>(address, bytes, site_of(instruction));
}

void check_read(const void* address, size_t bytes, SourceLine where) {
  check_any<Access::read>(address, bytes, site_of(where));
}

uint32_t check_copy_issued(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                           SourceLine where) {
  return running->copy_issued(reinterpret_cast<uintptr_t>(destination), bytes, reinterpret_cast<uintptr_t>(source),
                              source_bytes, site_of(where));
}
void check_copy_done(const void* destination, size_t bytes, const void* source, size_t source_bytes, SourceLine where,
                     uint32_t issued) {
  running->copy_done(reinterpret_cast<uintptr_t>(destination), bytes, reinterpret_cast<uintptr_t>(source), source_bytes,
                     site_of(where), issued);
}

void note_atomic(void* address, size_t bytes, SourceLine where) {
  if (!running) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  running->clock().atomic(begin, !in_device_range(begin), running->worker().current());
  check_any<Access::atomic>(address, bytes, site_of(where));
}

void check_fence(bool own_block_only) {
  if (running) running->clock().fence(running->worker().current(), own_block_only);
}

std::shared_ptr<LaunchClock> check_launch(uint64_t blocks) { return std::make_shared<LaunchClock>(blocks); }

void check_block_begin(Worker& worker, LaunchClock* launch, uint64_t block) {
  static thread_local std::unique_ptr<Checker> checker;
  if (!checker) checker = std::make_unique<Checker>(worker);
  checker->begin(*launch, block);
  running = checker.get();
}
void check_block_end(Worker&, std::string& error) { std::exchange(running, nullptr)->end(error); }
void check_barrier() { running->barrier(); }
void check_sync_warp(int warp, uint32_t mask, uint32_t members) { running->clock().sync_warp(warp, mask, members); }

void check_allocated(void* data, size_t bytes, bool written) {
  std::memset(device_written() + device_offset(reinterpret_cast<uintptr_t>(data)), written, bytes);
}

void check_copied(void* destination, const void* source, size_t bytes) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination), from = reinterpret_cast<uintptr_t>(source);
  if (!in_device_range(to)) return;
  if (in_device_range(from))
    std::memmove(device_written() + device_offset(to), device_written() + device_offset(from), bytes);
  else
    check_filled(destination, bytes);
}

void check_filled(void* destination, size_t bytes) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination);
  if (in_device_range(to)) std::memset(device_written() + device_offset(to), 1, bytes);
}

}  // namespace weft::emulator
