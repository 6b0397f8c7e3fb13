// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/stream_check_host.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "emulator/cuda/stream_check_history.h"
#include "emulator/cuda/stream_check_report.h"
#include "emulator/cuda/work.h"

namespace emulator::cuda::stream_check {
namespace {

struct Range {
  uintptr_t begin, end;
  bool meets(uintptr_t b, uintptr_t e) const { return begin < e && b < end; }
};

/// Host memory that an unfinished operation may use.
struct Uses {
  bool host_function = false;
  std::vector<Range> reads, writes;
  std::shared_ptr<const Work> kernel;  ///< its parameters are looked through

  bool may_use(uintptr_t begin, uintptr_t end, const Allocation& owner, bool writing) const {
    if (host_function) return true;
    const auto meets = [&](const Range& range) { return range.meets(begin, end); };
    if (std::ranges::any_of(writes, meets) || (!writing && std::ranges::any_of(reads, meets))) return true;
    if (!kernel) return false;
    const std::vector<char>& bytes = std::get<KernelWork>(kernel->what).launch.parameters;
    for (size_t k = 0; k + sizeof(uintptr_t) <= bytes.size(); k += sizeof(uintptr_t)) {
      uintptr_t word;
      std::memcpy(&word, bytes.data() + k, sizeof(word));
      if (word >= owner.begin && word < owner.end) return true;
    }
    return false;
  }
};

struct Source {
  std::shared_ptr<Trace> trace;
  CopyWork copy;
  uint64_t sum;
};

struct Guards {
  std::map<uint64_t, Uses> uses;       ///< keyed by the operation's number
  std::map<uint64_t, Source> sources;  ///< copies that the host has not waited for
};
Guards& guards() {
  static Guards* const all = new Guards;
  return *all;
}

uint64_t sum_of(const CopyWork& copy) {
  uint64_t sum = 0x9e3779b97f4a7c15u;
  const auto take = [&](uint64_t word) {
    sum = (sum ^ word) * 0xff51afd7ed558ccdu;
    sum ^= sum >> 32;
  };
  for (size_t z = 0; z < copy.depth; ++z)
    for (size_t y = 0; y < copy.height; ++y) {
      const char* const row = copy.from + z * copy.from_slice + y * copy.from_pitch;
      size_t k = 0;
      uint64_t word = 0;
      for (; k + sizeof(word) <= copy.width; k += sizeof(word)) {
        std::memcpy(&word, row + k, sizeof(word));
        take(word);
      }
      word = 0;
      std::memcpy(&word, row + k, copy.width - k);
      take(word);
    }
  return sum;
}

/// Memory that the host may write.
bool is_hosts(const void* memory, Allocation& owner) {
  return find_allocation(reinterpret_cast<uintptr_t>(memory), owner) &&
         (owner.kind == MemoryKind::pinned || owner.kind == MemoryKind::managed);
}

bool used_by_others(uint64_t number, uintptr_t begin, uintptr_t end, const Allocation& owner, bool writing) {
  return std::ranges::any_of(guards().uses, [&](const auto& entry) {
    return entry.first != number && entry.second.may_use(begin, end, owner, writing);
  });
}

Uses uses_of(const std::shared_ptr<const Work>& work) {
  Uses uses;
  if (std::holds_alternative<HostWork>(work->what)) uses.host_function = true;
  if (std::holds_alternative<KernelWork>(work->what)) uses.kernel = work;
  if (const auto* copy = std::get_if<CopyWork>(&work->what)) {
    const uintptr_t from = reinterpret_cast<uintptr_t>(copy->from), to = reinterpret_cast<uintptr_t>(copy->to);
    uses.reads.push_back({from, from + copy->from_span()});
    uses.writes.push_back({to, to + copy->to_span()});
  }
  if (const auto* fill = std::get_if<FillWork>(&work->what)) {
    const uintptr_t to = reinterpret_cast<uintptr_t>(fill->to);
    uses.writes.push_back(
        {to, to + CopyWork::span(fill->width * fill->element, fill->height, fill->depth, fill->pitch, fill->slice)});
  }
  if (const auto* library = std::get_if<LibraryWork>(&work->what)) {
    for (const LibraryWork::Access& access : library->accesses) {
      const uintptr_t begin = reinterpret_cast<uintptr_t>(access.at);
      (access.touch == Touch::read ? uses.reads : uses.writes).push_back({begin, begin + access.bytes});
    }
  }
  return uses;
}

void look(const Source& source) {
  Allocation owner;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(source.copy.from), bytes = source.copy.from_span();
  if (!is_hosts(source.copy.from, owner) || !owner.holds(begin, bytes) || sum_of(source.copy) == source.sum) return;
  if (History::get().written_since(source.trace->number, begin, begin + bytes)) return;
  report_written_source(*source.trace);
}

}  // namespace

void guard_host_memory(const std::shared_ptr<Trace>& trace, const std::shared_ptr<const Work>& work) {
  if (!work) return;
  guards().uses[trace->number] = uses_of(work);
  const auto* const copy = std::get_if<CopyWork>(&work->what);
  if (!copy || copy->staged) return;
  Allocation owner;
  const uintptr_t from = reinterpret_cast<uintptr_t>(copy->from), to = reinterpret_cast<uintptr_t>(copy->to);
  if (is_hosts(copy->from, owner) && owner.holds(from, copy->from_span()) &&
      !used_by_others(trace->number, from, from + copy->from_span(), owner, /*writing=*/true)) {
    guards().sources[trace->number] = {trace, *copy, sum_of(*copy)};
  }
  if (is_hosts(copy->to, owner) && owner.kind == MemoryKind::pinned && owner.holds(to, copy->to_span()) &&
      !Range{to, to + copy->to_span()}.meets(from, from + copy->from_span()) &&
      !used_by_others(trace->number, to, to + copy->to_span(), owner, /*writing=*/false)) {
    // If nobody waited, a later copy that would have read the earlier content is at fault itself.
    for (size_t z = 0; z < copy->depth; ++z)
      for (size_t y = 0; y < copy->height; ++y)
        std::memset(copy->to + z * copy->to_slice + y * copy->to_pitch, 0xff, copy->width);
  }
}

void forget_guards(uint64_t number) { guards().uses.erase(number); }

void look_at_source(uint64_t number, const void* from) {
  const auto found = guards().sources.find(number);
  if (found != guards().sources.end() && found->second.copy.from == from) look(found->second);
}

void look_at_sources(const std::vector<uint32_t>& clock) {
  std::erase_if(guards().sources, [&](const auto& entry) {
    if (!entry.second.trace->before(clock)) return false;
    look(entry.second);
    return true;
  });
}

}  // namespace emulator::cuda::stream_check
