// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/library_operand.h"

#include <algorithm>

#include "emulator/cuda/device.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/machine/call_site.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/findings.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/scheduler.h"

namespace emulator::cuda {
namespace {

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/// Sorts, and joins ranges that touch. Returns whether two overlapped.
bool join(std::vector<LibraryRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const LibraryRange& x, const LibraryRange& y) { return x.begin < y.begin; });
  bool overlap = false;
  size_t last = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    overlap = overlap || ranges[i].begin < ranges[last].end;
    if (ranges[i].begin <= ranges[last].end)
      ranges[last].end = std::max(ranges[last].end, ranges[i].end);
    else
      ranges[++last] = ranges[i];
  }
  ranges.resize(std::min(ranges.size(), last + 1));
  return overlap;
}

/// The first byte of the range that no device can use, or its end.
uintptr_t usable_until(const LibraryRange& range, Allocation& found) {
  uintptr_t at = range.begin;
  while (at < range.end && find_allocation(at, found) && found.holds(at, 1) && found.kind != MemoryKind::parameters)
    at = found.end;
  return std::min(at, range.end);
}

/// The bytes in both ranges.
LibraryRange common(const LibraryOperand& x, const LibraryOperand& y) {
  for (size_t i = 0, j = 0; i < x.ranges.size() && j < y.ranges.size();) {
    const LibraryRange &a = x.ranges[i], &b = y.ranges[j];
    if (const LibraryRange both{std::max(a.begin, b.begin), std::min(a.end, b.end)}; both.begin < both.end) return both;
    a.end < b.end ? ++i : ++j;
  }
  return {0, 0};
}

std::string place(const LibraryOperand& x, uintptr_t at) {
  const uintptr_t first = address(x.at);
  return at >= first ? cat("byte ", at - first, " of ", x.name) : cat(first - at, " bytes before ", x.name);
}

bool is_peer(int device, int other) {
  const auto lock = lock_state();
  return Device::get(device).peers.contains(other);
}

void require_memory(const LibraryCall& call, const LibraryOperand& x, int device) {
  if (!x.at) misused(call, x.name + " is NULL");
  if (address(x.at) % x.alignment != 0)
    misused(call, cat(x.name, " at ", x.at, " is not aligned to ", x.alignment, " bytes"));
  for (const LibraryRange& range : x.ranges) {
    Allocation found;
    const uintptr_t until = usable_until(range, found);
    if (until != range.end)
      misused(call, cat(x.written ? "writes " : "reads ", place(x, until), ", which is ", describe_address(until)));
    if (found.kind != MemoryKind::device || found.device == device || is_peer(device, found.device)) continue;
    misused(call, cat(x.name, " lies on device ", found.device, ", the handle is of device ", device,
                      ", and peer access is not enabled"));
  }
}

std::vector<LibraryWork::Access> accesses_of(const std::vector<LibraryOperand>& operands) {
  std::vector<LibraryWork::Access> all;
  for (const LibraryOperand& x : operands)
    for (const LibraryRange& range : x.ranges)
      all.push_back({reinterpret_cast<const void*>(range.begin), range.end - range.begin,
                     x.written ? Touch::write : Touch::read});
  return all;
}

void examine_at_run(const LibraryCall& call, const std::vector<LibraryOperand>& operands) {
  for (const LibraryOperand& x : operands)
    for (const LibraryRange& range : x.ranges) {
      Allocation found;
      if (const uintptr_t until = usable_until(range, found); until != range.end)
        throw Fault(FaultCode::illegal_address, cat(call.text, ": ", x.written ? "writes " : "reads ", place(x, until),
                                                    ", which is ", describe_address(until)));
      if ((!x.written || x.read_too) && any_fresh(reinterpret_cast<const void*>(range.begin), range.end - range.begin))
        report_finding("read of memory that was never written", cat(call.text, ": ", x.name), call.text + x.name);
    }
}

void mark_written(const std::vector<LibraryOperand>& operands) {
  for (const LibraryOperand& x : operands)
    if (x.written)
      for (const LibraryRange& range : x.ranges)
        emulator::mark_written(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
}

}  // namespace

LibraryOperand library_operand(const char* name, const void* at, bool written, size_t alignment,
                               std::vector<LibraryRange> ranges) {
  LibraryOperand x{name, at, written, alignment, std::move(ranges)};
  x.overlaps_itself = join(x.ranges);
  return x;
}

LibraryOperand library_operand(const char* name, const void* at, bool written, size_t alignment, int64_t length,
                               int64_t lines, int64_t step, int64_t batches, int64_t batch_step) {
  std::vector<LibraryRange> ranges;
  ranges.reserve(static_cast<size_t>(batches * lines));
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t line = 0; line < lines; ++line) {
      const uintptr_t begin = address(at) + static_cast<uintptr_t>(b * batch_step + line * step);
      ranges.push_back({begin, begin + static_cast<uintptr_t>(length)});
    }
  return library_operand(name, at, written, alignment, std::move(ranges));
}

LibraryOperand library_operand(const char* name, const void* at, bool written, size_t bytes) {
  return library_operand(name, at, written, std::min<size_t>(bytes, 4), static_cast<int64_t>(bytes), 1, 0);
}

void misused(const LibraryCall& call, const std::string& text) {
  const std::string site = CallSite::here().text();
  report_finding(call.library, cat(call.text, ": ", text, site.empty() ? "" : ", called at ", site),
                 cat(call.text, text, site));
  throw LibraryMisuse();
}

void require_operands(const LibraryCall& call, const std::vector<LibraryOperand>& operands, int device) {
  for (const LibraryOperand& x : operands) require_memory(call, x, device);
  for (const LibraryOperand& x : operands) {
    if (!x.written) continue;
    if (x.overlaps_itself) misused(call, x.name + ": the matrices of the batch overlap");
    for (const LibraryOperand& y : operands) {
      if (&x == &y || (y.written && &y < &x) || std::ranges::find(x.may_be, y.name) != x.may_be.end()) continue;
      if (const LibraryRange both = common(x, y); both.begin < both.end)
        misused(call, cat(x.name, " and ", y.name, " overlap: ", place(x, both.begin), " is ", place(y, both.begin)));
    }
  }
}

void require_host(const LibraryCall& call, const char* name, const void* at) {
  Allocation found;
  if (find_allocation(address(at), found) && found.holds(address(at), 1) && found.kind == MemoryKind::device)
    misused(call, cat(name, " is ", describe_address(address(at)), ", and the pointer mode is the host's"));
}

void examine_late(const LibraryCall& call, const std::vector<LibraryOperand>& operands) {
  examine_at_run(call, operands);
  if (Touched* const touched = stream_check::touched())
    for (const LibraryOperand& x : operands)
      for (const LibraryRange& range : x.ranges)
        touched->note(range.begin, range.end - range.begin, x.written ? Touch::write : Touch::read);
  mark_written(operands);
}

cudaError_t enqueue_library_call(cudaStream_t stream, const LibraryCall& call, std::vector<LibraryOperand> operands,
                                 std::function<void()> compute) {
  LibraryWork work{call.text, accesses_of(operands), nullptr};
  work.call = [call, operands = std::move(operands), compute = std::move(compute)] {
    examine_at_run(call, operands);
    compute();
    mark_written(operands);
  };
  return enqueue_library_work(stream, std::move(work));
}

}  // namespace emulator::cuda
