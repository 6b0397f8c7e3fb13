// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/checker.h"

#include <link.h>

#include <utility>

#include "emulator/machine/fault.h"
#include "emulator/source/report.h"

namespace emulator::source {

namespace {

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

}  // namespace

uint8_t* device_written() {
  static uint8_t* const written = static_cast<uint8_t*>(reserve_zeroed(device_range_bytes()));
  return written;
}

Checker::Checker(Worker& worker)
    : worker_(worker),
      shadow_(Shadow::get()),
      stacks_begin_(reinterpret_cast<uintptr_t>(worker.stacks().begin())),
      stacks_bytes_(worker.stacks().bytes()),
      device_begin_(device_range_begin()),
      device_bytes_(device_range_bytes()),
      static_begin_(worker.static_shared().begin),
      static_bytes_(worker.static_shared().end - worker.static_shared().begin),
      device_written_(device_written()),
      shared_{{clock_, {}, 0, 0, 0, 0, 0}},
      global_{{clock_, {}, 0, 0, 0, 0, 0}},
      variable_of_byte_(static_bytes_) {
  const auto& variables = shared_variables();
  if (variables.size() >= 65535)
    throw Fault(FaultCode::launch_failure, "simt: more __shared__ variables than the checked build can number");
  for (size_t i = 0; i < variables.size(); ++i)
    std::fill_n(variable_of_byte_.begin() + static_cast<std::ptrdiff_t>(variables[i].offset), variables[i].bytes,
                static_cast<uint16_t>(i + 1));
}

void Checker::begin(LaunchClock& launch) {
  BlockRaces::begin(launch, worker_.cluster_number(), static_cast<uint32_t>(worker_.cluster_size()),
                    static_cast<uint32_t>(worker_.rank()), static_cast<uint32_t>(worker_.threads_count()));
  if (launch_ != launch.first_block()) {
    launch_ = launch.first_block();
    // Nothing else in the pages at the ends is looked at.
    constexpr size_t kMore = ShadowPage::kBytes - 1;
    shadow_.coarsen(worker_.dynamic_shared_arena() - kMore, Worker::dynamic_shared_arena_bytes() + 2 * kMore);
    shadow_.coarsen(static_begin_ - kMore, static_bytes_ + 2 * kMore);
  }
  if (memory_generation_ != memory_generation()) {
    memory_generation_ = memory_generation();
    std::memset(cached_, 0xff, sizeof(cached_));
  }
  found_unwritten_ = false;
}

void Checker::end(std::string& error) {
  BlockRaces::end();
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
  const bool known = touch.at == at && touch.launch == launch_;
  if (known && touch.variable != variable) [[unlikely]] {
    const SharedVariable& first = all[touch.variable - 1u];
    const size_t end = first.offset + first.bytes;
    if (offset >= end && offset - end < bytes && (!variable || all[variable - 1u].function() != first.function())) {
      variable = touch.variable;
      return false;
    }
  }
  if (!variable) return true;
  if (!known) touch = {at, launch_, variable};
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

bool Checker::is_peer_memory(uintptr_t address) const {
  for (int r = 0; r < worker_.cluster_size(); ++r) {
    const Worker& other = worker_.member(r);
    const auto& range = other.static_shared();
    if (r != worker_.rank() &&
        (other.in_dynamic_shared_arena(address) || address - range.begin < range.end - range.begin))
      return true;
  }
  return false;
}

BlockRaces& Checker::peer(uint32_t rank) { return *worker_.member(static_cast<int>(rank)).checker(); }

void Checker::atomic(uintptr_t address, size_t bytes, Site at) {
  if (worker_.reporting()) return;
  clock_.strong(address, in_device_range(address) ? nullptr : &clock_, worker_.current(),
                {true, true, false, false, Reach::device});
  access<Access::atomic, 0>(address, bytes, at);
}

void Checker::copy_issued(const Copy& copy) {
  access<Access::write, 0>(reinterpret_cast<uintptr_t>(copy.to), copy.bytes, copy.at);
  Copy known = copy;
  if (const uintptr_t from = reinterpret_cast<uintptr_t>(copy.from); copy.given != 0) {
    if (in_device_range(from))
      check_bounds<Access::read, 0>(from, copy.given, copy.at);
    else
      access<Access::read, 0>(from, std::exchange(known.given, 0), copy.at);
  }
  BlockRaces::copy_issued(worker_.current(), known);
}

void Checker::copy_done(const Copy& copy) {
  Copy known = copy;
  if (!in_device_range(reinterpret_cast<uintptr_t>(copy.from))) known.given = 0;
  BlockRaces::copy_done(worker_.current(), known);
}

void Checker::proxy_reads(const Actor& by, const Run& run) {
  const auto& glance = looking<true>().visitor.glance;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(run.memory);
  for (uintptr_t at = begin; at < begin + run.bytes;) {
    ShadowPage& page = shadow_.page(at, begin + run.bytes - at);
    if (glance.dead(Cell(page, page.cell(at)).write())) return never_written(by, at, 4);
    at += size_t{1} << page.cell_shift;
  }
}

void Checker::global_write(const Actor& by, const Run& run) {
  std::fill_n(device_written_ + (reinterpret_cast<uintptr_t>(run.memory) - device_begin_), run.bytes, uint8_t{1});
  global_access(by, run.memory, run.bytes, true, false);
  global_written(by.thread, run.memory, run.bytes);
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

void Checker::out_of_bounds(Access access, uintptr_t address, size_t bytes, Site at, uint16_t variable) {
  worker_.report().fail([&] {
    std::string what;
    if (variable) {
      const SharedVariable& owner = shared_variables()[variable - 1u];
      what = cat("byte ", address - static_begin_ - owner.offset, " of __shared__ ", plain_name(owner.name),
                 ", which has ", owner.bytes, " bytes");
    } else {
      what = describe(address);
    }
    return cat("out-of-bounds ", verb(access), " of ", bytes, " bytes at ", site_text(at), ": ", what);
  });
}

void Checker::never_written(const Actor& by, uintptr_t address, size_t bytes) {
  if (found_unwritten_) return;
  found_unwritten_ = true;
  unwritten_ = {by.thread, by.at, address, bytes};
}

std::string Checker::unwritten_text() const {
  return cat("reads ", unwritten_.bytes, " bytes that were never written at ", site_text(unwritten_.at), ": ",
             describe(unwritten_.address));
}

std::string Checker::who_text(uint64_t s) const {
  const uint64_t number = stamp::block(s) - clock_.launch().first_block();
  const uint64_t blocks = static_cast<uint64_t>(worker_.cluster_size());
  const uint64_t block = block_of(worker_.launch(), number / blocks, number % blocks);
  const int thread = stamp::thread(stamp::who(s));
  if (thread < 0) return worker_.place_of_block(block);
  const std::string text = worker_.place(block, thread);
  return stamp::is_warp(stamp::who(s)) ? text + " and others of its warp" : text;
}

void Checker::report(const Actor& by, const Conflict& conflict, bool shared, uintptr_t address, uint64_t bytes) {
  worker_.report();
  found_unwritten_ = false;
  worker_.fail_for(by.thread, [&] {
    static constexpr Words kWords{"load by TMA",
                                  "store by TMA",
                                  "atomic access",
                                  "atomic access",
                                  "cluster_sync or an mbarrier",
                                  "an order between blocks",
                                  "mbarrier_wait",
                                  "tma_store_wait_read",
                                  "wgmma_wait, and a barrier after it"};
    return cat("data race: ", by.what, " of ", bytes, " bytes at ", site_text(by.at), " against the ",
               kind_text(conflict, shared, kWords), " at ", site_text(conflict.at), " by ",
               is_own(by, conflict) ? "the same thread" : who_text(conflict.stamp), ": ", describe(address), ". ",
               order_text(by, conflict, kWords));
  });
}

void Checker::report_unfenced(const Actor& by, bool overwrites, const Conflict& access, uintptr_t address) {
  worker_.report();
  found_unwritten_ = false;
  worker_.fail_for(by.thread, [&] {
    const char* const did = stamp::wrote(access.stamp) ? "wrote" : "read";
    return cat("the async proxy (", by.what, overwrites ? ") overwrites at " : ") reads at ", site_text(by.at),
               " what ", who_text(access.stamp), ' ', did, " at ", site_text(access.at), ": ", describe(address),
               ". Missing: fence_proxy_async() in the thread that ", did, ", before the barrier.");
  });
}

}  // namespace emulator::source
