// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/checker.h"

#include <link.h>

#include "emulator/machine/fault.h"
#include "emulator/source/report.h"

namespace emulator::source {

namespace {

Shadow& device_shadow() {
  static Shadow& shadow = *new Shadow(device_range_bytes());
  return shadow;
}

struct Range {
  uintptr_t begin, end;
  bool writable;
};

/// Code, constants and global variables of the program, which holds the kernels. Kernels have no business in a library's.
const std::vector<Range>& program_ranges() {
  static const std::vector<Range>& ranges = *[] {
    auto* found = new std::vector<Range>;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (const auto& header = info->dlpi_phdr[i]; header.p_type == PT_LOAD) {
              const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
              static_cast<std::vector<Range>*>(out)->push_back(
                  {begin, begin + header.p_memsz, (header.p_flags & PF_W) != 0});
            }
          return 1;  // the program comes first: no more
        },
        found);
    return found;
  }();
  return ranges;
}

constexpr const char* kVerbs[] = {"read", "write", "atomic access"};

}  // namespace

uint8_t* device_written() {
  static uint8_t* const written = static_cast<uint8_t*>(reserve_zeroed(device_range_bytes()));
  return written;
}

Checker::Checker(Worker& worker)
    : worker_(worker),
      stacks_begin_(reinterpret_cast<uintptr_t>(worker.stacks().begin())),
      stacks_bytes_(worker.stacks().bytes()),
      device_begin_(device_range_begin()),
      device_bytes_(device_range_bytes()),
      dynamic_begin_(worker.dynamic_shared_arena()),
      static_begin_(worker.static_shared().begin),
      static_bytes_(worker.static_shared().end - worker.static_shared().begin),
      device_written_(device_written()),
      device_shadow_(device_shadow()),
      dynamic_shadow_(Worker::dynamic_shared_arena_bytes()),
      static_shadow_(static_bytes_),
      variable_of_byte_(static_bytes_) {
  const auto& variables = shared_variables();
  if (variables.size() >= 65535)
    throw Fault(FaultCode::launch_failure, "simt: more __shared__ variables than the checked build can number");
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
  views_used_ = false;
}

void Checker::end(std::string& error) {
  if (!found_unwritten_) return;
  const std::string found = cat(worker_.place(unwritten_.thread), ": ", unwritten_text());
  error = error.empty() ? found : cat(found, "\nAnd then: ", error);
}

void Checker::barrier() {
  if (found_unwritten_) {
    worker_.report();
    found_unwritten_ = false;
    worker_.fail_for(unwritten_.thread, [&] { return unwritten_text(); });
  }
  clock_.barrier();
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

bool Checker::is_program_memory(uintptr_t address, Access access) const {
  const Launch& launch = worker_.launch();
  if (address - reinterpret_cast<uintptr_t>(launch.arguments) < launch.arguments_bytes) return true;
  for (const Range& range : program_ranges())
    if (address >= range.begin && address < range.end) return access == Access::read || range.writable;
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
  // So that the block's earlier writes and those during the copy have different ticks.
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
  if (const std::string found = worker_.describe_peer(address); !found.empty()) return found;
  if (worker_.in_dynamic_shared_arena(address)) {
    const int64_t offset = static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(worker_.dynamic_shared()));
    const auto bytes = worker_.dynamic_shared_bytes();
    const bool inside = offset >= 0 && static_cast<size_t>(offset) < bytes;
    return inside ? cat("byte ", offset, " of dynamic shared memory")
                  : cat("byte ", offset, " of ", bytes, " bytes of dynamic shared memory");
  }
  if (address - static_begin_ < static_bytes_)
    if (const uint16_t variable = variable_of_byte_[address - static_begin_]) {
      const SharedVariable& owner = shared_variables()[variable - 1u];
      return cat("byte ", address - static_begin_ - owner.offset, " of __shared__ ", plain_name(owner.name));
    }
  return describe_address(address);
}

void Checker::out_of_bounds(const Event& e, uint16_t variable) {
  worker_.report().fail([&] {
    std::string what;
    if (variable) {
      const SharedVariable& owner = shared_variables()[variable - 1u];
      what = cat("byte ", e.address - static_begin_ - owner.offset, " of __shared__ ", plain_name(owner.name),
                 ", which has ", owner.bytes, " bytes");
    } else {
      what = describe(e.address);
    }
    return cat("out-of-bounds ", kVerbs[static_cast<int>(e.access)], " of ", e.bytes, " bytes at ", site_text(e.at),
               ": ", what);
  });
}

void Checker::never_written(const Event& e) {
  if (found_unwritten_) return;
  found_unwritten_ = true;
  unwritten_ = e;
}

std::string Checker::unwritten_text() const {
  return cat("reads ", unwritten_.bytes, " bytes that were never written at ", site_text(unwritten_.at), ": ",
             describe(unwritten_.address));
}

void Checker::race(const Event& e, const Conflict& conflict) {
  worker_.report();
  found_unwritten_ = false;
  worker_.fail([&] {
    constexpr const char* kKinds[] = {"write", "read", "atomic access", "cp.async"};
    const char* const missing[] = {
        "the wait for the copy", "__syncwarp", views_used_ ? "__syncthreads or an mbarrier" : "__syncthreads",
        clock_.is_live(stamp::block(conflict.stamp)) ? "cluster_sync or an mbarrier" : "an order between blocks"};
    const int distance = stamp::distance(clock_.now(e.thread), conflict.stamp);
    const int by = stamp::thread(conflict.stamp);
    const bool is_thread = by < worker_.threads_count() || by < proxy::kFirst;
    const char* const kind = is_thread             ? kKinds[conflict.kind]
                             : proxy::is_load(by)  ? "load by TMA"
                             : by == proxy::kStore ? "store by TMA"
                                                   : "wgmma";
    const std::string other =
        distance == 0 ? cat("the same thread")
        : is_thread   ? worker_.place(stamp::block(conflict.stamp) - clock_.launch().first_block(), by)
                      : worker_.place_of_block(stamp::block(conflict.stamp) - clock_.launch().first_block());
    const std::string order = conflict.kind == Conflict::copy_in_flight ? cat("No thread has waited for the copy.")
                              : is_thread          ? cat("Nothing orders the two (missing: ", missing[distance], ").")
                              : proxy::is_load(by) ? cat("Nothing orders the two (missing: mbarrier_wait).")
                              : by == proxy::kStore
                                  ? cat("Nothing orders the two (missing: tma_store_wait_read).")
                                  : cat("Nothing orders the two (missing: wgmma_wait, and a barrier after it).");
    return cat("data race: ", kVerbs[static_cast<int>(e.access)], " of ", e.bytes, " bytes at ", site_text(e.at),
               " against the ", kind, " at ", site_text(conflict.at), " by ", other, ": ", describe(e.address), ". ",
               order);
  });
}

}  // namespace emulator::source
