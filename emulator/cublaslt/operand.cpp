// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/operand.h"

#include <algorithm>

#include "emulator/cublaslt/number.h"
#include "emulator/cuda/device.h"
#include "emulator/machine/call_site.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/findings.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/scheduler.h"

namespace emulator::lt {
namespace {

constexpr const char* kKind = "cuBLASLt";

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/// Sorts, and joins ranges that touch. Returns whether two overlapped.
bool join(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& x, const Range& y) { return x.begin < y.begin; });
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
uintptr_t usable_until(const Range& range, Allocation& found) {
  uintptr_t at = range.begin;
  while (at < range.end && find_allocation(at, found) && found.holds(at, 1) && found.kind != MemoryKind::parameters)
    at = found.end;
  return std::min(at, range.end);
}

/// The bytes in both ranges.
Range common(const Operand& x, const Operand& y) {
  for (size_t i = 0, j = 0; i < x.ranges.size() && j < y.ranges.size();) {
    const Range &a = x.ranges[i], &b = y.ranges[j];
    if (const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)}; both.begin < both.end) return both;
    a.end < b.end ? ++i : ++j;
  }
  return {0, 0};
}

std::string place(const Operand& x, uintptr_t at) {
  const uintptr_t first = address(x.at);
  return at >= first ? cat("byte ", at - first, " of ", x.name) : cat(first - at, " bytes before ", x.name);
}

bool is_peer(int device, int other) {
  const auto lock = lock_state();
  return cuda::Device::get(device).peers.contains(other);
}

void require_memory(const std::string& call, const Operand& x, int device) {
  if (!x.at) undefined(call, x.name + " is NULL");
  if (address(x.at) % x.alignment != 0)
    undefined(call, cat(x.name, " at ", x.at, " is not aligned to ", x.alignment, " bytes"));
  for (const Range& range : x.ranges) {
    Allocation found;
    const uintptr_t until = usable_until(range, found);
    if (until != range.end)
      undefined(call, cat(x.written ? "writes " : "reads ", place(x, until), ", which is ", describe_address(until)));
    if (found.kind != MemoryKind::device || found.device == device || is_peer(device, found.device)) continue;
    undefined(call, cat(x.name, " lies on device ", found.device, ", the handle is of device ", device,
                        ", and peer access is not enabled"));
  }
}

}  // namespace

Operand operand(const char* name, const void* at, bool written, size_t alignment, const Matrix& m, int64_t batches) {
  Operand x{name, at, written, alignment, {}};
  const auto size = static_cast<int64_t>(size_of(m.type));
  const bool by_rows = m.column == 1 && m.row != 1;
  const int64_t lines = by_rows ? m.rows : m.columns, step = by_rows ? m.row : m.column,
                length = by_rows ? m.columns : m.rows;
  const int64_t count = step == 0 ? 1 : lines;
  if (!at) return x;
  x.ranges.reserve(static_cast<size_t>(batches * count));
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t line = 0; line < count; ++line) {
      const uintptr_t begin = address(at) + static_cast<uintptr_t>((b * m.batch + line * step) * size);
      x.ranges.push_back({begin, begin + static_cast<uintptr_t>(length * size)});
    }
  x.overlaps_itself = join(x.ranges);
  return x;
}

Operand operand(const char* name, const void* at, bool written, size_t bytes) {
  return {name, at, written, std::min<size_t>(bytes, 4),
          at ? std::vector<Range>{{address(at), address(at) + bytes}} : std::vector<Range>{}};
}

void undefined(const std::string& call, const std::string& text) {
  const std::string site = CallSite::here().text();
  report_finding(kKind, cat(call, ": ", text, site.empty() ? "" : ", called at ", site), cat(call, text, site));
  fail(CUBLAS_STATUS_INVALID_VALUE, "");
}

void require_operands(const std::string& call, const std::vector<Operand>& operands, int device, bool c_is_d) {
  for (const Operand& x : operands) require_memory(call, x, device);
  for (const Operand& x : operands) {
    if (!x.written) continue;
    if (x.overlaps_itself) undefined(call, x.name + ": the matrices of the batch overlap");
    for (const Operand& y : operands) {
      if (&x == &y || (y.written && &y < &x) || (c_is_d && x.name == "D" && y.name == "C")) continue;
      if (const Range both = common(x, y); both.begin < both.end)
        undefined(call, cat(x.name, " and ", y.name, " overlap: ", place(x, both.begin), " is ", place(y, both.begin)));
    }
  }
}

void examine_at_run(const std::string& call, const std::vector<Operand>& operands) {
  for (const Operand& x : operands)
    for (const Range& range : x.ranges) {
      Allocation found;
      if (const uintptr_t until = usable_until(range, found); until != range.end)
        throw Fault(FaultCode::illegal_address, cat(call, ": ", x.written ? "writes " : "reads ", place(x, until),
                                                    ", which is ", describe_address(until)));
      if (!x.written && any_fresh(reinterpret_cast<const void*>(range.begin), range.end - range.begin))
        report_finding("read of memory that was never written", cat(call, ": ", x.name), call + x.name);
    }
}

std::vector<cuda::LibraryWork::Access> accesses_of(const std::vector<Operand>& operands) {
  std::vector<cuda::LibraryWork::Access> all;
  for (const Operand& x : operands)
    for (const Range& range : x.ranges)
      all.push_back({reinterpret_cast<const void*>(range.begin), range.end - range.begin,
                     x.written ? Touch::write : Touch::read});
  return all;
}

}  // namespace emulator::lt
