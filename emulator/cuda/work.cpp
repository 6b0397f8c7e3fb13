// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/work.h"

#include <atomic>
#include <cstring>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/copy.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/options.h"
#include "emulator/machine/time_model.h"
#include "emulator/machine/timeline.h"
#include "emulator/ptx/check/standstill.h"

namespace emulator::cuda {
namespace {

/// Known memory must hold the whole span; unknown memory is the program's own, of unknown size.
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
  const AddressDescription description = look_up_address(address);
  if (description.is_invalid)
    throw Fault(FaultCode::illegal_address, cat(what, " ", bytes, " bytes at ", description.text));
}

void note(const void* memory, size_t bytes, Touch touch) {
  if (Touched* const touched = stream_check::touched())
    touched->note(reinterpret_cast<uintptr_t>(memory), bytes, touch);
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

/// A copy or a fill in a device's memory takes predicted time. Copies from and to the host take none.
void spend(const std::string& what, size_t read, size_t written) {
  const time_model::Chip* const chip = timeline::on() ? time_model::find_chip(options().gpu->key) : nullptr;
  if (!chip) return;
  const time_model::Work work{.dram_bytes = static_cast<double>(read + written), .dram_written = static_cast<double>(written)};
  timeline::compute(cat(what, ' ', written, " bytes"), time_model::predict(*chip, work).seconds);
}

std::atomic<int64_t> kernels{0};

struct Perform {
  void operator()(const KernelWork& kernel) const {
    ++kernels;
    ptx::others_may_change_memory = [](int device) {
      Lock lock = lock_state();
      return scheduler().relieve(lock, device);
    };
    ptx::run(kernel.launch, stream_check::touched(), stream_check::early());
  }
  void operator()(const CopyWork& copy) const {
    perform_copy(copy);
    const size_t bytes = copy.width * copy.height * copy.depth;
    if (home_of(copy.to) == Home::device && !copy.staged && home_of(copy.from) == Home::device) spend("copy of", bytes, bytes);
  }
  void operator()(const FillWork& fill) const {
    perform_fill(fill);
    if (home_of(fill.to) == Home::device) spend("fill of", 0, fill.element * fill.width * fill.height * fill.depth);
  }
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
  void operator()(const LibraryWork& library) const {
    for (const LibraryWork::Access& access : library.accesses) note(access.at, access.bytes, access.touch);
    library.call();
  }
  // The scheduler's own: they have no work.
  void operator()(const EmptyWork&) const {}
  void operator()(const RecordWork&) const {}
  void operator()(const WaitWork&) const {}
  void operator()(const ChildWork&) const {}
  void operator()(const ConditionalWork&) const {}  // graph_exec.cpp
};

}  // namespace

int64_t kernels_run() { return kernels; }

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
  const auto* const library = std::get_if<LibraryWork>(&what);
  return library && library->waits ? Operation::Kind::waiting : Operation::Kind::device;
}

void Work::perform() const { std::visit(Perform{}, what); }

Op enqueue(Lock& lock, Stream& stream, std::shared_ptr<const Work> work, const Op& unchecked) {
  const Operation::Kind kind = work->kind();
  const stream_check::Issuing issuing(&work);
  if (kind == Operation::Kind::marker) return issue(lock, stream, kind, nullptr);
  return issue(
      lock, stream, kind, [work] { work->perform(); }, {}, unchecked);
}

cudaError_t enqueue_library_work(cudaStream_t handle, LibraryWork library,
                                 std::shared_ptr<Operation>* previous) noexcept {
  return runtime_call([&] {
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    const auto work = make_work(std::move(library), stream.device);
    if (stream.capture || !previous) return submit(lock, stream, work);
    refuse_implicit(stream);
    *previous = enqueue(lock, stream, work, *previous);
  });
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
