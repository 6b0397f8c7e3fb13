// SPDX-License-Identifier: Apache-2.0
// The texts of the checks' findings.
#include <algorithm>

#include "emulator/machine/findings.h"
#include "emulator/ptx/check/checker.h"

namespace emulator::ptx {

namespace {

uint64_t pair(Site a, Site b) { return uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

std::string triple(uint64_t x, uint64_t y, uint64_t z) { return cat('(', x, ',', y, ',', z, ')'); }

}  // namespace

std::string BlockChecks::where(Site at) const {
  const Kernel& kernel = *block_.grid->kernel;
  return at < kernel.code.size() ? kernel.where(&kernel.code[at]) : "an unknown line";
}

std::string BlockChecks::who_text(uint64_t s) const {
  const Grid& grid = *block_.grid;
  const Dim3 size = grid.cluster_dim, all = grid.launch->grid, threads = grid.launch->block;
  const uint64_t number = stamp::block(s) - launch_.clock.first_block();
  const uint64_t cluster = number / grid.cluster_blocks, rank = number % grid.cluster_blocks;
  const uint64_t across = all.x / size.x, down = all.y / size.y;
  std::string text = cat("block ", triple(cluster % across * size.x + rank % size.x,
                                          cluster / across % down * size.y + rank / size.x % size.y,
                                          cluster / across / down * size.z + rank / size.x / size.y));
  const int thread = stamp::thread(stamp::who(s));
  if (thread < 0) return text;
  const uint64_t t = static_cast<uint64_t>(thread);
  text += cat(", thread ", triple(t % threads.x, t / threads.x % threads.y, t / threads.x / threads.y));
  return stamp::is_warp(stamp::who(s)) ? text + " and others of its warp" : text;
}

std::string BlockChecks::place_text(uintptr_t address, bool shared) const {
  if (!shared) return cat("global memory, ", describe_address(address));
  const Block& owner = owner_of(address)->block_;
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(owner.shared);
  const Kernel& kernel = *block_.grid->kernel;
  std::string text = "shared memory, ";
  bool found = false;
  for (size_t k = 0; k < kernel.shared_variables.size() && k < kernel.shared_offsets.size() && !found; ++k)
    if (const uint64_t begin = kernel.shared_offsets[k];
        offset - begin < static_cast<uint64_t>(kernel.shared_variables[k].bytes)) {
      text += cat("byte ", offset - begin, " of `", demangled(std::string(kernel.shared_variables[k].name)), '`');
      found = true;
    }
  if (!found) {
    const uint64_t dynamic = block_.shared_end - block_.grid->launch->dynamic_shared;
    text += offset >= dynamic ? cat("byte ", offset - dynamic, " of dynamic shared memory") : cat("address ", offset);
  }
  if (&owner != &block_) text += cat(" of block ", owner.rank, " of the cluster");
  return text;
}

/// Once for two lines in a launch; report_finding() knows the launches before.
bool BlockChecks::is_new(Site a, Site b) { return launch_.reported.insert(pair(a, b)).second; }

void BlockChecks::report(const Actor& by, const Conflict& conflict, bool shared, uintptr_t address, uint64_t bytes,
                         bool again) {
  if (again ? launch_.reported.contains(pair(by.at, conflict.at)) ||
                  !launch_.repeated.insert(pair(by.at, conflict.at)).second
            : !is_new(by.at, conflict.at))
    return;
  const Warp& w = block_.warps[static_cast<size_t>(by.thread) / kLanes];
  static constexpr Words kWords{"asynchronous copy to shared memory",
                                "asynchronous store",
                                "atomic or volatile write",
                                "atomic or volatile read",
                                "a barrier of the cluster or an mbarrier",
                                "an order between blocks: a fence before an atomic or a release, and an acquire",
                                "the wait on the mbarrier of the copy",
                                "cp.async.bulk.wait_group.read, and a barrier after it",
                                "wgmma.wait_group, and a barrier after it"};
  const Actor actor{static_cast<int>(w.first_thread) + conflict.lane, by.at, by.what};
  const std::string here = where(by.at), there = where(conflict.at);
  const std::string text =
      cat(launch_text(*block_.grid->launch), ": ", thread_text(w, conflict.lane), ": data race: ", by.what, " of ",
          bytes, " bytes at ", here, " against the ", kind_text(conflict, shared, kWords), " at ", there, " by ",
          is_own(actor, conflict) ? "the same thread" : who_text(conflict.stamp), ": ", place_text(address, shared),
          ". ", order_text(actor, conflict, kWords), again ? " Both write the same value." : "");
  report_finding(
      "race", text,
      cat(block_.grid->kernel->name, '\n', std::min(here, there), '\n', std::max(here, there), again ? "\nagain" : ""));
}

void BlockChecks::report_unfenced(const Actor& by, bool overwrites, const Conflict& access, uintptr_t address) {
  if (!is_new(by.at, access.at)) return;
  const Warp& w = block_.warps[static_cast<size_t>(by.thread) / kLanes];
  const int lane = by.thread % kLanes;
  const std::string here = where(by.at), there = where(access.at);
  const char* const did = stamp::wrote(access.stamp) ? "wrote" : "read";
  report_finding(
      "race",
      cat(launch_text(*block_.grid->launch), ": ", thread_text(w, lane), ": the async proxy (", by.what, " at ", here,
          overwrites ? ") overwrites what " : ") reads what ", who_text(access.stamp), ' ', did, " at ", there, ": ",
          place_text(address, true), ". Missing: fence.proxy.async in the thread that ", did, ", before the barrier."),
      cat(block_.grid->kernel->name, '\n', here, '\n', there, "\nfence"));
}

void BlockChecks::mbarrier_by_proxy(const Issuer& by, const SharedPlace& place) {
  const auto init = unfenced_init(place.data());
  if (!init || !is_new(by.at, init->at)) return;
  const std::string here = where(by.at), there = where(init->at);
  report_finding("race",
                 cat(launch_text(*block_.grid->launch), ": ", thread_text(by.w, by.lane), ": the async proxy (", by.what,
                     " at ", here, ") uses an mbarrier that ", who_text(init->stamp), " initialised at ", there,
                     ". Missing: fence.mbarrier_init or fence.proxy.async in the thread that initialised it, before the barrier."),
                 cat(block_.grid->kernel->name, '\n', here, '\n', there, "\ninit"));
}

void BlockChecks::report_unawaited(const Issuer& by, const char* why) {
  if (!is_new(by.at, ~Site{0} - 2)) return;
  const std::string here = where(by.at);
  report_finding("race",
                 cat(launch_text(*block_.grid->launch), ": ", thread_text(by.w, by.lane), ": ", by.what, " at ", here, ": ", why),
                 cat(block_.grid->kernel->name, '\n', here, "\nunawaited"));
}

void BlockChecks::report_undefined(Warp& w, const Instruction* i, int lane, const std::string& why) {
  if (!is_new(site(i), ~Site{0} - 3)) return;
  const std::string here = where(site(i));
  report_finding("uninitialised",
                 cat(launch_text(*block_.grid->launch), ": ", thread_text(w, lane), " at ", here, ": ", why, '.'),
                 cat(block_.grid->kernel->name, '\n', here, "\nundefined"));
}

void BlockChecks::report_ended(Warp& w, const Instruction* i, int lane, const char* what, const Block& block) {
  if (!is_new(site(i), ~Site{0} - 1)) return;
  const std::string here = where(site(i));
  report_finding(
      "race",
      cat(launch_text(*block_.grid->launch), ": ", thread_text(w, lane), ": ", what, " at ", here,
          " reaches the shared memory of block ", block.rank,
          " of the cluster, which has ended. Missing: a barrier of the cluster before the end of its blocks."),
      cat(block_.grid->kernel->name, '\n', here, "\nended"));
}

void BlockChecks::report_fresh(const Warp& w, int lane, Site at, const char* memory, uint64_t bytes, Space space,
                               const std::string& use) {
  if (!is_new(at, ~Site{0})) return;
  const std::string here = where(at);
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
  const std::string place =
      space == Space::local
          ? cat("local memory, byte ", (address - reinterpret_cast<uintptr_t>(w.local)) % w.local_bytes)
          : place_text(address, space == Space::shared);
  report_finding("uninitialised",
                 cat(launch_text(*block_.grid->launch), ": ", thread_text(w, lane), ": read of ", bytes,
                     " bytes that were never written at ", here, ": ", place, use, '.'),
                 cat(block_.grid->kernel->name, '\n', here));
}

}  // namespace emulator::ptx
