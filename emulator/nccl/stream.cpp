// SPDX-License-Identifier: Apache-2.0
// A communicator's work on CUDA's streams.
#include <algorithm>
#include <utility>

#include "emulator/machine/fault.h"
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {
namespace {

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw Failure{ncclUnhandledCudaError, cat(call, ": ", cudaGetErrorString(code))};
}

/// Selects a device for as long as it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) : wanted_(device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != wanted_) check(cudaSetDevice(wanted_), "cudaSetDevice");
  }
  ~OnDevice() {
    if (before_ != wanted_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int wanted_, before_ = 0;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  /// `after` goes on when `before` has come here.
  void order(cudaStream_t before, cudaStream_t after) {
    check(cudaEventRecord(event_, before), "cudaEventRecord");
    check(cudaStreamWaitEvent(after, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The calls of a communicator that does not block come here late.
void require_capture(const Batch& batch, cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  if ((status == cudaStreamCaptureStatusActive) == batch.captured) return;
  throw Failure{ncclInvalidUsage, cat(batch.text(), batch.captured ? " was called in a capture that ended" : " was called before a capture that began",
                                      " while the call was ncclInProgress: wait until ncclCommGetAsyncError says ncclSuccess")};
}

}  // namespace

std::string Batch::text() const {
  const size_t calls = collectives.size() + transfers.size();
  const std::string first = collectives.empty() ? transfers.front().text() : collectives.front().what.text();
  return calls == 1 ? first : cat("a group of ", calls, " calls, the first: ", first);
}

std::vector<cuda::LibraryWork::Access> Batch::accesses(int rank, int ranks) const {
  std::vector<cuda::LibraryWork::Access> all;
  for (const Collective& call : collectives) {
    const BufferSizes sizes = buffer_sizes(call.what, rank, ranks);
    all.push_back({call.send, sizes.send, Touch::read});
    all.push_back({call.recv, sizes.recv, Touch::write});
    if (call.device_factor) all.push_back({call.device_factor, size_of(call.what.dtype()), Touch::read});
  }
  for (const Transfer& t : transfers) all.push_back({t.buffer, t.bytes(), t.sends ? Touch::read : Touch::write});
  return all;
}

void Communicator::enqueue(std::shared_ptr<Batch> batch, cudaStream_t stream, const std::vector<cudaStream_t>& others) {
  const bool captured = batch->captured;
  bool counted = false;
  cuda::LibraryWork work{batch->text(), batch->accesses(rank_, size_), nullptr, /*waits=*/true};
  work.call = [self = shared_from_this(), batch] {  // it may come after ncclCommDestroy
    self->run(*batch);
    if (!batch->captured && --self->pending_ == 0 && self->finalizing_) self->leave(Presence::left);
  };
  try {
    const OnDevice guard(device_);
    if (!blocking()) require_capture(*batch, stream);
    for (cudaStream_t other : others) Event().order(other, stream);
    if (!captured) ++pending_;
    counted = !captured;
    // Operations of one communicator run in the order of their calls, on any streams, but NCCL promises no order for
    // their buffers.
    check(cuda::enqueue_library_work(stream, std::move(work), &last_), "the work of a stream");
    counted = false;
    if (!captured) mark_end(stream);
    for (cudaStream_t other : others) Event().order(stream, other);
  } catch (const Failure& failure) {
    if (counted) --pending_;
    fail(failure.code, cat("rank ", rank_, ": ", failure.text));  // the other ranks would wait for this operation
    throw;
  }
}

void Communicator::mark_end(cudaStream_t stream) {
  cudaEvent_t& end = ends_[stream];
  if (!end) check(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreate");
  check(cudaEventRecord(end, stream), "cudaEventRecord");
}

void Communicator::run(Batch& batch) {
  ++running_;
  const auto s = segment();
  if (closed_ && batch.captured && !late_.exchange(true))
    report(
        cat("a graph runs ", batch.text(), " of a communicator that was destroyed (rank ", rank_, " of ", size_, ")"));
  if (s && !closed_ && !aborted_ && !stopped_ && !s->header().error.is_here()) {
    try {
      run_in_segment(*s, batch);
    } catch (const Stopped&) {
    }
  }
  --running_;
}

void Communicator::run_in_segment(Segment& s, Batch& batch) {
  if (!batch.captured) {
    const std::lock_guard lock(order_);
    for (const Collective& call : batch.collectives) run_collective(*this, s, call, 0, /*in_order=*/true);
    if (!batch.transfers.empty()) run_transfers(*this, s, batch.transfers, 0, /*captured=*/false);
    return;
  }
  const uint64_t run = ++batch.runs;
  for (const Collective& call : batch.collectives) {
    const int lane = claim_lane(*this, s, call.number << 32 | (run & 0xffffffff), call);
    run_collective(*this, s, call, lane, /*in_order=*/false);
    leave_lane(*this, s, lane);
  }
  if (batch.transfers.empty()) return;
  const std::lock_guard lock(captured_transfers_);
  run_transfers(*this, s, batch.transfers, run, /*captured=*/true);
}

}  // namespace emulator::nccl
