// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/work.h"

#include <cstring>

#include "emulator/cuda/error.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda {
namespace {

/// Memory that is known must hold the whole span; unknown memory is the program's own, and nobody can tell its size.
void check_span(const char* what, const void* memory, size_t bytes) {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  Allocation found;
  if (find_allocation(address, found)) {
    if (!found.holds(address, bytes)) {
      throw Fault(FaultCode::illegal_address,
                  cat(what, " ", bytes, " bytes at ", describe_address(address), ", of which ",
                      found.end > address ? found.end - address : 0, " are there"));
    }
    return;
  }
  const std::string text = describe_address(address);
  if (text.find("freed") != std::string::npos || text.find("null") != std::string::npos ||
      text.find("behind") != std::string::npos) {
    throw Fault(FaultCode::illegal_address, cat(what, " ", bytes, " bytes at ", text));
  }
}

void note(const void* memory, size_t bytes, Touch touch) {
  if (Touched* const touched = stream_check::touched()) touched->note(reinterpret_cast<uintptr_t>(memory), bytes, touch);
}

template <class T>
void fill_rows(const FillWork& fill) {
  const T value = static_cast<T>(fill.value);
  for (size_t z = 0; z < fill.depth; ++z) {
    for (size_t y = 0; y < fill.height; ++y) {
      char* const row = fill.to + z * fill.slice + y * fill.pitch;
      note(row, fill.width * sizeof(T), Touch::write);
      mark_written(row, fill.width * sizeof(T));
      if constexpr (sizeof(T) == 1) {
        std::memset(row, int(value), fill.width);
      } else {
        for (size_t x = 0; x < fill.width; ++x) std::memcpy(row + x * sizeof(T), &value, sizeof(T));
      }
    }
  }
}

struct Perform {
  void operator()(const KernelWork& kernel) const { ptx::run(kernel.launch, stream_check::touched()); }
  void operator()(const CopyWork& copy) const { perform_copy(copy); }
  void operator()(const FillWork& fill) const { perform_fill(fill); }
  void operator()(const HostWork& host) const {
    if (host.call) {
      host.call();
    } else {
      host.function(host.data);
    }
  }
  void operator()(const AllocWork& alloc) const {
    note(alloc.said.dptr, alloc.said.bytesize, Touch::write);
    std::memset(alloc.said.dptr, 0xff, alloc.said.bytesize);
    mark_fresh(alloc.said.dptr, alloc.said.bytesize);
  }
  void operator()(const FreeWork& free) const {
    Allocation found;
    if (stream_check::touched() && find_allocation(reinterpret_cast<uintptr_t>(free.memory), found))
      stream_check::freed(free.memory, found.end - found.begin);
  }
  void operator()(const CallWork& call) const { call.call(); }
  // The scheduler's own: they have no work.
  void operator()(const EmptyWork&) const {}
  void operator()(const RecordWork&) const {}
  void operator()(const WaitWork&) const {}
  void operator()(const ChildWork&) const {}
};

}  // namespace

size_t CopyWork::span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  if (width == 0 || height == 0 || depth == 0) return 0;
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

Operation::Kind Work::kind() const {
  if (std::holds_alternative<HostWork>(what)) return Operation::Kind::host;
  if (std::holds_alternative<EmptyWork>(what) || std::holds_alternative<RecordWork>(what) ||
      std::holds_alternative<WaitWork>(what) || std::holds_alternative<ChildWork>(what)) {
    return Operation::Kind::marker;
  }
  return Operation::Kind::device;
}

void Work::perform() const { std::visit(Perform{}, what); }

void enqueue(Lock& lock, Stream& stream, std::shared_ptr<const Work> work) {
  const Operation::Kind kind = work->kind();
  const stream_check::Issuing issuing(&work);
  if (kind == Operation::Kind::marker) {
    issue(lock, stream, kind, nullptr);
  } else {
    issue(lock, stream, kind, [work] { work->perform(); });
  }
}

void perform_copy(const CopyWork& copy) {
  check_span("a copy writes", copy.to, copy.to_span());
  if (!copy.staged) check_span("a copy reads", copy.from, copy.from_span());
  const char* const from = copy.staged ? copy.staged->data() : copy.from;
  if (stream_check::touched()) stream_check::copy_runs(copy.from);
  for (size_t z = 0; z < copy.depth; ++z) {
    for (size_t y = 0; y < copy.height; ++y) {
      char* const to_row = copy.to + z * copy.to_slice + y * copy.to_pitch;
      const char* const from_row = from + z * copy.from_slice + y * copy.from_pitch;
      if (!copy.staged) note(from_row, copy.width, Touch::read);
      note(to_row, copy.width, Touch::write);
      mark_copied(to_row, from_row, copy.width);
      std::memmove(to_row, from_row, copy.width);
    }
  }
}

void perform_fill(const FillWork& fill) {
  check_span("a fill writes", fill.to,
             CopyWork::span(fill.width * fill.element, fill.height, fill.depth, fill.pitch, fill.slice));
  if (fill.element == 1) {
    fill_rows<uint8_t>(fill);
  } else if (fill.element == 2) {
    fill_rows<uint16_t>(fill);
  } else {
    fill_rows<uint32_t>(fill);
  }
}

}  // namespace emulator::cuda
