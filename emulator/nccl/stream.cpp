// SPDX-License-Identifier: Apache-2.0
// What a communicator puts on CUDA's streams, and what runs there.
#include <algorithm>
#include <utility>

#include "emulator/machine/fault.h"
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {
namespace {

/// What a host function holds of its communicator: it may come after ncclCommDestroy.
struct Enqueued {
  CommunicatorPtr communicator;
  std::shared_ptr<Batch> batch;
};

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

}  // namespace

void Communicator::enqueue(std::shared_ptr<Batch> batch, cudaStream_t stream, const std::vector<cudaStream_t>& others) {
  const bool captured = batch->captured;
  bool counted = false;
  // Of a captured batch it lives for ever: nothing tells when the last graph that holds it goes.
  auto enqueued = std::make_unique<Enqueued>(Enqueued{shared_from_this(), std::move(batch)});
  try {
    const OnDevice guard(device_);
    if (!captured) {
      if (!last_) check(cudaEventCreateWithFlags(&last_, cudaEventDisableTiming), "cudaEventCreate");
      // Operations of one communicator run in the order of their calls, whatever streams they name.
      if (pending_ > 0) check(cudaStreamWaitEvent(stream, last_, 0), "cudaStreamWaitEvent");
    }
    for (cudaStream_t other : others) Event().order(other, stream);
    if (!captured) ++pending_;
    counted = !captured;
    check(cudaLaunchHostFunc(stream, &Communicator::run_on_stream, enqueued.get()), "cudaLaunchHostFunc");
    counted = false;
    enqueued.release();
    if (!captured) check(cudaEventRecord(last_, stream), "cudaEventRecord");
    for (cudaStream_t other : others) Event().order(stream, other);
  } catch (const Failure& failure) {
    if (counted) --pending_;
    fail(failure.code, cat("rank ", rank_, ": ", failure.text));  // the other ranks would wait for this operation
    throw;
  }
}

void Communicator::run_on_stream(void* pointer) {
  auto* const enqueued = static_cast<Enqueued*>(pointer);
  const CommunicatorPtr c = enqueued->communicator;
  const std::shared_ptr<Batch> batch = enqueued->batch;
  if (!batch->captured) delete enqueued;
  c->run(*batch);
  if (!batch->captured && --c->pending_ == 0 && c->finalizing_) c->leave(Presence::left);
}

void Communicator::run(Batch& batch) {
  ++running_;
  const auto s = segment();
  if (closed_ && batch.captured && !late_.exchange(true))
    report(cat("a graph runs ",
               batch.collectives.empty() ? batch.transfers.front().text() : batch.collectives.front().what.text(),
               " of a communicator that was destroyed (rank ", rank_, " of ", size_, ")"));
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
