// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/stream.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_set>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/cuda/work.h"
#include "emulator/machine/per_thread.h"
#include "emulator/machine/timeline.h"

namespace emulator::cuda {
namespace {

thread_local bool null_is_per_thread = false;

std::unordered_set<const void*>& live_streams() {
  static auto* const all = new std::unordered_set<const void*>;
  return *all;
}

bool launches_block() {
  static const bool yes = [] {
    const char* const text = std::getenv("CUDA_LAUNCH_BLOCKING");
    return text && *text == '1';
  }();
  return yes;
}

/// Whether an operation has ended, and neither a check nor the predicted clock needs its successors.
bool nobody_needs(const Operation& op) {
  return op.done && op.ends <= timeline::host() && (!stream_check::on() || stream_check::host_knows(op));
}

/// A context that has died runs nothing more; queued work ends without effect.
class Devices final : public StreamOwner {
 public:
  bool dead(int device) override { return Device::get(device).faulted(); }
  void die(int device, const Fault& fault) override { Device::get(device).die(fault); }
  void run(Operation& op) override {
    if (!stream_check::on()) return op.work();
    stream_check::Running running(op);
    op.work();
    running.finish();
  }
  void issued(Operation& op, const std::vector<Op>& after) override {
    if (stream_check::on()) stream_check::issued(op, after);
  }
  void begins(const Operation& op) override {
    if (stream_check::on() && op.kind == Operation::Kind::host) stream_check::host_function_begins(op);
  }
  void ended(const Operation& op) override {
    if (stream_check::on()) stream_check::ended(op);
  }
  void postponed(Operation& op, const Operation& before) override {
    if (stream_check::on()) stream_check::postponed(op, before);
  }
  void known_to_host(const Operation& op) override {
    if (stream_check::on()) stream_check::known_to_host(op);
  }
};

/// The last work in the hardware queue that the stream shares with others; nullptr: it shares none. As a GPU's driver
/// does, the device's first work reads CUDA_DEVICE_MAX_CONNECTIONS.
Op* queue_of(const Stream& stream) {
  static std::map<std::pair<int, uint64_t>, Op> last;
  if (options().streams.order != StreamOrder::queues) return nullptr;
  static const auto queues = [] {
    const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const int asked = text ? std::atoi(text) : 0;
    return static_cast<uint64_t>(asked > 0 ? std::min(asked, 32) : options().streams.queues);
  }();
  return &last[{stream.device, stream.number % queues}];
}

Stream& per_thread_stream(int device) {
  Stream*& stream = per_thread<std::map<int, Stream*>>()[device];
  if (!stream) stream = make_stream(device, 0, 0, Stream::Role::per_thread);
  return *stream;
}

}  // namespace

PerThreadDefault::PerThreadDefault() : before_(null_is_per_thread) { null_is_per_thread = true; }
PerThreadDefault::~PerThreadDefault() { null_is_per_thread = before_; }

Scheduler& scheduler() {
  static Scheduler& scheduler = *new Scheduler(options().streams, *new Devices);
  return scheduler;
}

std::string Stream::name() const {
  if (role == Role::legacy) return "the default stream";
  return cat("stream ", number);
}

Stream* make_stream(int device, unsigned flags, int priority, Stream::Role role) {
  static uint64_t created = 0;
  auto* const stream = new Stream;
  stream->number = role == Stream::Role::legacy ? 0 : ++created;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->role = role;
  Device::get(device).streams.insert(stream);
  live_streams().insert(stream);
  return stream;
}

Stream& stream_of(cudaStream_t handle) {
  Device& device = Device::current();
  device.active = true;
  if (handle == nullptr) return null_is_per_thread ? per_thread_stream(device.ordinal()) : device.legacy_stream();
  if (handle == cudaStreamLegacy) return device.legacy_stream();
  if (handle == cudaStreamPerThread) return per_thread_stream(device.ordinal());
  require(live_streams().contains(handle), cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Stream*>(handle);
}

std::vector<Op> everything_before(Stream& stream) {
  std::vector<Op> ops{stream.last};
  if (stream.role == Stream::Role::legacy) {
    for (const Stream* other : Device::get(stream.device).streams)
      if (other->blocking()) ops.push_back(other->last);
    std::erase_if(stream.orphans, [](const Op& op) { return nobody_needs(*op); });
    std::erase_if(stream.unordered_orphans, [](const Op& op) { return nobody_needs(*op); });
    ops.insert(ops.end(), stream.orphans.begin(), stream.orphans.end());
  } else if (stream.blocking()) {
    ops.push_back(Device::get(stream.device).legacy_stream().last);
  }
  // The check of streams and the predicted clock need the order that the program demands, not the one that happened.
  std::erase_if(ops, [](const Op& op) { return !op || (op->done && !stream_check::on() && !timeline::on()); });
  return ops;
}

Op issue(Lock& lock, Stream& stream, Operation::Kind kind, std::function<void()> work, std::vector<Op> after,
         const Op& unchecked) {
  for (Op& op : everything_before(stream)) after.push_back(std::move(op));
  Op* const queue = queue_of(stream);
  const Op op = scheduler().issue(lock, stream.device, stream.number, kind, std::move(work), after,
                                  {unchecked, queue ? *queue : nullptr});
  if (queue) *queue = op;
  stream.last = op;
  scheduler().step(lock);
  if (kind == Operation::Kind::device && launches_block()) scheduler().wait(lock, op);
  return op;
}

void submit(Lock& lock, Stream& stream, std::shared_ptr<const Work> work) {
  refuse_implicit(stream);
  if (stream.capture) {
    capture_work(stream, std::move(work));
    return;
  }
  enqueue(lock, stream, std::move(work));
}

cudaStream_t stream_create(unsigned flags, int priority) {
  const Lock lock = lock_state();
  require((flags & ~unsigned{cudaStreamNonBlocking}) == 0);
  Device& device = Device::current();
  device.active = true;
  return reinterpret_cast<cudaStream_t>(
      make_stream(device.ordinal(), flags, std::clamp(priority, -5, 0), Stream::Role::own));
}

void stream_destroy(cudaStream_t handle) {
  const Lock lock = lock_state();
  require(handle != nullptr && handle != cudaStreamLegacy && handle != cudaStreamPerThread,
          cudaErrorInvalidResourceHandle);
  Stream& stream = stream_of(handle);
  require(stream.role == Stream::Role::own, cudaErrorInvalidResourceHandle);
  if (stream.capture) abandon_capture(stream);
  // Its work goes on; a later use of the default stream still has to wait for it.
  if (stream.blocking() && stream.last && !nobody_needs(*stream.last)) {
    Stream& legacy = Device::get(stream.device).legacy_stream();
    legacy.orphans.push_back(stream.last);
  } else if (stream.last && !nobody_needs(*stream.last)) {
    Device::get(stream.device).legacy_stream().unordered_orphans.push_back(stream.last);
  }
  Device::get(stream.device).streams.erase(&stream);
  live_streams().erase(&stream);
  delete &stream;
}

void stream_synchronize(cudaStream_t handle) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  refuse_while_capturing(stream);
  const std::vector<Op> ops = everything_before(stream);
  const int device = stream.device;
  scheduler().wait(lock, ops);
  require(!Device::get(device).faulted(), Device::get(device).fault());
}

void stream_query(cudaStream_t handle) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  refuse_while_capturing(stream);
  const std::vector<Op> ops = everything_before(stream);
  const int device = stream.device;
  for (const Op& op : ops) require(scheduler().query(lock, op), cudaErrorNotReady);
  require(!Device::get(device).faulted(), Device::get(device).fault());
}

void stream_wait_event(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  Event& event = event_of(event_handle);
  require((flags & ~unsigned{cudaEventWaitExternal}) == 0);
  refuse_implicit(stream);
  if (capture_wait(stream, event, event_handle, flags)) return;
  if (auto wait = wait_for_others(event))
    return static_cast<void>(issue(lock, stream, Operation::Kind::waiting, std::move(wait)));
  if (!event.recorded || nobody_needs(*event.recorded)) return;
  issue(lock, stream, Operation::Kind::marker, nullptr, {event.recorded});
}

void device_synchronize(Lock& lock, int device) {
  std::vector<Op> ops;
  for (Stream* stream : Device::get(device).streams) {
    ops.push_back(stream->last);
    ops.insert(ops.end(), stream->orphans.begin(), stream->orphans.end());
    ops.insert(ops.end(), stream->unordered_orphans.begin(), stream->unordered_orphans.end());
  }
  std::ranges::sort(ops, {}, [](const Op& op) { return op ? op->number : 0; });
  scheduler().wait(lock, ops);
}

void device_synchronize() {
  Lock lock = lock_state();
  Device& device = Device::current();
  device.active = true;
  refuse_unsafe(lock);
  for (Stream* stream : device.streams) refuse_while_capturing(*stream);
  device_synchronize(lock, device.ordinal());
}

}  // namespace emulator::cuda
