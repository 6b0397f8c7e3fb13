// SPDX-License-Identifier: Apache-2.0
// Streams and events. Without an order (simt.h) a call does its work itself; with one the machine's scheduler does it,
// later, and a call that waits reports errors since then.
#include "emulator/source/stream.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <set>

#include "emulator/source/census.h"
#include "emulator/source/include/nvtx3/nvToolsExt.h"
#include "emulator/source/simt.h"
#include "emulator/source/worker.h"

namespace emulator::source {

namespace {

std::optional<StreamOptions> order_from_environment() {
  const char* const text = std::getenv("WEFT_SIMT_STREAMS");
  if (!text || !*text) return std::nullopt;
  std::optional<StreamOptions> options = parse_streams(text);
  if (!options) {
    std::fprintf(stderr, "WEFT_SIMT_STREAMS: expected inorder, lazy, random or starve:K, got '%s'\n", text);
    std::exit(2);
  }
  if (const uint64_t seed = schedule_seed()) options->seed = seed;
  return options;
}

/// The device fails once: work queued after the kernel ends without effect, until a call reports the error.
class Device final : public StreamOwner {
 public:
  bool dead(int) override {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  void die(int, const Fault& fault) override {
    const std::lock_guard lock(mutex_);
    if (!failed_) failure_ = fault.text;
    failed_ = true;
  }
  bool take(std::string& failure) {
    const std::lock_guard lock(mutex_);
    if (!failed_) return false;
    failure = std::move(failure_);
    failed_ = false;
    return true;
  }

 private:
  std::mutex mutex_;
  bool failed_ = false;
  std::string failure_;
};

struct Streams {
  std::atomic<bool> asynchronous;
  Device device;
  Scheduler scheduler;
  api::Stream legacy{};
  std::set<api::Stream*> all{&legacy};
  std::vector<Op> orphans, unordered_orphans;  ///< of streams that are gone: blocking ones, and others
  uint64_t created = 0;

  explicit Streams(const std::optional<StreamOptions>& order)
      : asynchronous(order.has_value()), scheduler(order.value_or(StreamOptions{}), device) {}
};

Streams& streams() {
  static Streams& all = *new Streams(order_from_environment());  // its threads never end
  return all;
}

thread_local std::string last_failure = "unspecified launch failure";

constexpr std::align_val_t kArgumentAlignment{64};  // of the strictest type that a kernel takes by value

struct FreeArguments {
  void operator()(void* bytes) const { ::operator delete(bytes, kArgumentAlignment); }
};

Op issue(Lock& lock, api::Stream& stream, Operation::Kind kind, Task work, std::vector<Op> after = {}) {
  for (Op& op : everything_before(stream)) after.push_back(std::move(op));
  stream.last = scheduler().issue(lock, 0, stream.number, kind, std::move(work), after);
  scheduler().step(lock);
  return stream.last;
}

/// An event of a device whose calls have done their work when they return.
Op ended_now() {
  Op op = std::make_shared<Operation>();
  op->done = true;
  op->ended = std::chrono::steady_clock::now();
  return op;
}

void finish_all(Lock& lock) {
  Streams& all = streams();
  std::vector<Op> ops = all.orphans;
  ops.insert(ops.end(), all.unordered_orphans.begin(), all.unordered_orphans.end());
  for (const api::Stream* stream : all.all) ops.push_back(stream->last);
  std::ranges::sort(ops, {}, [](const Op& op) { return op ? op->number : 0; });
  all.scheduler.wait(lock, ops);
  all.orphans.clear();
  all.unordered_orphans.clear();
}

}  // namespace

bool asynchronous() { return streams().asynchronous.load(std::memory_order_relaxed); }
Scheduler& scheduler() { return streams().scheduler; }
api::Stream& stream_of(api::cudaStream_t stream) { return stream ? *stream : streams().legacy; }
const std::string& failure_text() { return last_failure; }

std::vector<Op> everything_before(api::Stream& stream) {
  Streams& all = streams();
  std::vector<Op> ops{stream.last};
  if (&stream == &all.legacy) {
    for (const api::Stream* other : all.all)
      if (other->blocking) ops.push_back(other->last);
    ops.insert(ops.end(), all.orphans.begin(), all.orphans.end());
  } else if (stream.blocking) {
    ops.push_back(all.legacy.last);
  }
  const auto ended = [](const Op& op) { return !op || op->done; };
  std::erase_if(ops, ended);
  std::erase_if(all.orphans, ended);
  std::erase_if(all.unordered_orphans, ended);
  return ops;
}

api::cudaError_t told() { return streams().device.take(last_failure) ? api::cudaErrorLaunchFailure : api::cudaSuccess; }

api::cudaError_t run_now(const Task& work) {
  try {
    work();
    return api::cudaSuccess;
  } catch (const std::exception& failure) {
    last_failure = failure.what();
    return api::cudaErrorLaunchFailure;
  }
}

api::cudaError_t submit(api::cudaStream_t stream, Operation::Kind kind, Task work, bool wait) {
  if (!asynchronous()) return run_now(work);
  Lock lock = lock_state();
  const Op op = issue(lock, stream_of(stream), kind, std::move(work));
  if (!wait) return api::cudaSuccess;
  scheduler().wait(lock, op);
  return told();
}

Task kernel_task(const Launch& launch, const char* where) {
  std::shared_ptr<void> arguments(::operator new(launch.arguments_bytes, kArgumentAlignment), FreeArguments{});
  std::memcpy(arguments.get(), launch.arguments, launch.arguments_bytes);
  return [kept = launch, arguments, name = std::string(range_name), where]() mutable {
    kept.arguments = arguments.get();
    try {
      run_grid(kept);
    } catch (const Fault& fault) {
      const api::dim3 g = kept.grid, b = kept.block;
      throw Fault(fault.code, cat(name, where, ": grid (", g.x, ",", g.y, ",", g.z, "), block (", b.x, ",", b.y, ",",
                                  b.z, "), ", kept.dynamic_shared, " bytes of dynamic shared memory: ", fault.text));
    }
  };
}

void finish_streams() {
  if (!asynchronous()) return;
  Lock lock = lock_state();
  finish_all(lock);
}

void set_stream_order(const std::optional<StreamOptions>& order) {
  finish_streams();
  const Lock lock = lock_state();
  streams().asynchronous = order.has_value();
  if (order) streams().scheduler.set_options(lock, *order);
}

namespace api {

namespace {

cudaError_t result(cudaError_t error) { return record_error(error); }

}  // namespace

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  finish_streams();
  return result(told());
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  use_device();
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock = lock_state();
  *stream = new Stream;
  (*stream)->blocking = !(flags & cudaStreamNonBlocking);
  (*stream)->number = ++streams().created;
  streams().all.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  use_device();
  if (!stream) return result(cudaErrorInvalidResourceHandle);
  const Lock lock = lock_state();
  leave_capture(*stream);
  // Its work goes on.
  if (stream->last && !stream->last->done)
    (stream->blocking ? streams().orphans : streams().unordered_orphans).push_back(stream->last);
  streams().all.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  break_capture(stream);
  if (is_captured(stream)) return result(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  if (!asynchronous()) return cudaSuccess;
  Lock lock = lock_state();
  scheduler().wait(lock, everything_before(stream_of(stream)));
  return result(told());
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  break_capture(stream);
  if (is_captured(stream)) return result(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  if (!asynchronous()) return cudaSuccess;
  Lock lock = lock_state();
  for (const Op& op : everything_before(stream_of(stream)))
    if (!scheduler().query(lock, op)) return result(cudaErrorNotReady);
  return result(told());
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  if (event->capture) return result(capture_wait(stream, *event));
  if (is_captured(stream)) {
    break_capture(stream);
    return result(cudaErrorStreamCaptureIsolation);
  }
  if (!event->recorded || event->recorded->done) return cudaSuccess;
  Lock lock = lock_state();
  issue(lock, stream_of(stream), Operation::Kind::marker, nullptr, {event->recorded});
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  const auto call = [function, data] { function(data); };
  if (!is_captured(stream)) return result(submit(stream, Operation::Kind::host, call));
  capture(*stream, Operation::Kind::host, call);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  use_device();
  *event = new Event;
  (*event)->timing = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  use_device();
  if (!event) return result(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  event->capture = 0;
  if (is_captured(stream)) {
    capture_record(*stream, *event);
  } else if (asynchronous()) {
    Lock lock = lock_state();
    event->recorded = issue(lock, stream_of(stream), Operation::Kind::marker, nullptr);
  } else {
    event->recorded = ended_now();
  }
  return cudaSuccess;
}

namespace {

/// Of an event that may be waited for.
cudaError_t check_event(cudaEvent_t event) {
  use_device();
  if (!event) return cudaErrorInvalidResourceHandle;
  return event->capture ? cudaErrorCapturedEvent : may_call_unsafe();
}

}  // namespace

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = check_event(event); status != cudaSuccess) return result(status);
  if (!asynchronous()) return cudaSuccess;
  Lock lock = lock_state();
  return result(scheduler().query(lock, event->recorded) ? told() : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t status = check_event(event); status != cudaSuccess) return result(status);
  if (!asynchronous()) return cudaSuccess;
  Lock lock = lock_state();
  scheduler().wait(lock, event->recorded);
  return result(told());
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  use_device();
  for (const Event* event : {start, stop})
    if (!event || !event->timing || !event->recorded || event->capture) return result(cudaErrorInvalidResourceHandle);
  const Lock lock = lock_state();
  if (!start->recorded->done || !stop->recorded->done) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(stop->recorded->ended - start->recorded->ended).count();
  return cudaSuccess;
}

}  // namespace api
}  // namespace emulator::source
