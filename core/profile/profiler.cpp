// SPDX-License-Identifier: Apache-2.0
#include "core/profile/profiler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "core/capture.h"
#include "core/profile/recorder.h"
#include "core/trace.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/kernel_cost.h"
#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/kernel_variant.h"
#include "kernels/runtime/runtime.h"

namespace weft::profile {
namespace {

using kernels::KernelCall;

thread_local std::string thread_name;

int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A kernel between before() and after() on this thread. Contracts do not call each other.
struct Pending {
  uint64_t recording = 0;  // its number
  std::pair<int, int> device{};
  int64_t started = 0;
  void* event = nullptr;
};
thread_local Pending pending;

/// A kernel that a device timed: known when its events are done.
struct Timed {
  size_t span;  // into Recording::spans
  Device device;
  void *start, *stop;
};

/// Everything that a recording collects. One object, never destroyed: threads may report while it stops.
class Recorder final : public kernels::KernelObserver {
 public:
  static Recorder& instance() {
    static Recorder* const recorder = new Recorder;
    return *recorder;
  }

  void start() {
    const std::lock_guard lock(mutex_);
    WEFT_CHECK(!detail::recording, "profiler: another one records; stop it first");
    recording_ = {};
    threads_.clear();
    streams_.clear();
    ++number_;
    origin_ = steady_now();
    detail::recording = true;
    kernels::set_kernel_observer(this);
    kernels::set_memory_hook(
        [](Device device, const kernels::MemoryStats& stats) { instance().memory(device, stats); });
  }

  Recording stop() {
    kernels::set_kernel_observer(nullptr);
    kernels::set_memory_hook(nullptr);
    const std::lock_guard lock(mutex_);
    detail::recording = false;
    resolve();
    recording_.duration = steady_now() - origin_;
    return std::exchange(recording_, {});
  }

  void end_span(Category category, const char* name, bool backward, int64_t started) {
    const int64_t end = steady_now();
    const std::lock_guard lock(mutex_);
    if (!detail::recording || started < origin_) return;
    recording_.spans.push_back({.category = category,
                                .backward = backward,
                                .track = thread_track("threads", ""),
                                .name = name,
                                .start = started - origin_,
                                .end = end - origin_});
  }

  void before(const KernelCall& call) override {
    if (is_capturing(call.queue.device)) return;  // recorded, not run
    const std::lock_guard lock(mutex_);
    if (!detail::recording) return;
    // A kernel that threw has left its event.
    if (pending.event && pending.recording == number_) bases_.at(pending.device).free.push_back(pending.event);
    pending = {};
    pending.recording = number_;
    pending.device = key(call.queue.device);
    if (call.queue.device.kind == DeviceKind::cuda) {
      Base& base = base_of(call.queue);
      pending.event = take_event(base, call.queue.device);
      kernels::runtime(call.queue.device.kind).record_event(pending.event, call.queue.device.index, call.queue.stream);
    }
    kernels::note_kernel_variant("");
    pending.started = steady_now();
  }

  void after(const KernelCall& call) override {
    const int64_t end = steady_now();
    const Device device = call.queue.device;
    const std::lock_guard lock(mutex_);
    if (!detail::recording || pending.recording != number_ || is_capturing(device)) return;
    const kernels::KernelCost cost = kernels::cost_of(call);
    Span span{.category = Category::kernel,
              .backward = in_backward(),
              .track = 0,
              .name = call.name,
              .variant = kernels::noted_kernel_variant(),
              .op = current_op(),
              .start = pending.started - origin_,
              .end = end - origin_,
              .bytes = cost.bytes,
              .flop = cost.flop};
    if (pending.event) {
      void* const stop = take_event(bases_.at(key(device)), device);
      kernels::runtime(device.kind).record_event(stop, device.index, call.queue.stream);
      timed_.push_back({recording_.spans.size(), device, pending.event, stop});
      span.track = stream_track(call.queue);
    } else {
      span.track = thread_track(str(device), "kernels of ");
    }
    recording_.spans.push_back(span);
    pending = {};
  }

  void memory(Device device, const kernels::MemoryStats& stats) {
    const std::lock_guard lock(mutex_);
    if (!detail::recording) return;
    recording_.memory.push_back(
        {device, steady_now() - origin_, static_cast<int64_t>(stats.live), static_cast<int64_t>(stats.cached)});
  }

 private:
  using Key = std::pair<int, int>;  // a device

  /// Where a device's clock stands against the host's, and the events to take from.
  struct Base {
    void* event = nullptr;
    int64_t time = 0;  // the event's, on the host's clock
    std::vector<void*> free;
  };

  static Key key(Device device) { return {static_cast<int>(device.kind), device.index}; }

  /// The first kernel of a recording on a device waits for it before and after the base, so that both clocks are read
  /// together.
  Base& base_of(const kernels::Queue& queue) {
    Base& base = bases_[key(queue.device)];
    if (base.event) return base;
    kernels::Runtime& device = kernels::runtime(queue.device.kind);
    device.synchronize_device(queue.device.index);
    base.event = device.create_event(queue.device.index, /*timing=*/true);
    base.time = steady_now();  // before the event, so that no kernel seems to end after the recording
    device.record_event(base.event, queue.device.index, queue.stream);
    device.synchronize_event(base.event);
    return base;
  }

  static void* take_event(Base& base, Device device) {
    if (base.free.empty()) return kernels::runtime(device.kind).create_event(device.index, /*timing=*/true);
    void* const event = base.free.back();
    base.free.pop_back();
    return event;
  }

  /// Gives the kernels that devices timed their times: the start by the base, the length by the kernel's own events.
  void resolve() {
    std::map<int, int64_t> ends;  // per track; the two roundings must not make neighbours overlap
    for (const Timed& timed : timed_) {
      kernels::Runtime& device = kernels::runtime(timed.device.kind);
      Base& base = bases_.at(key(timed.device));
      Span& span = recording_.spans[timed.span];
      device.synchronize_event(timed.stop);
      const auto nanoseconds = [&](void* from, void* to) {
        return static_cast<int64_t>(static_cast<double>(device.elapsed_ms(from, to)) * 1e6);
      };
      int64_t& end = ends[span.track];
      span.start = std::max(end, base.time - origin_ + nanoseconds(base.event, timed.start));
      span.end = end = span.start + nanoseconds(timed.start, timed.stop);
      base.free.push_back(timed.start);
      base.free.push_back(timed.stop);
    }
    timed_.clear();
    for (auto& [device, base] : bases_) {
      kernels::Runtime& runtime = kernels::runtime(static_cast<DeviceKind>(device.first));
      for (void* event : base.free) runtime.destroy_event(event);
      runtime.destroy_event(base.event);
    }
    bases_.clear();
  }

  int add_track(std::string process, std::string name) {
    recording_.tracks.push_back({std::move(process), std::move(name)});
    return static_cast<int>(recording_.tracks.size()) - 1;
  }

  int thread_track(const std::string& process, const char* prefix) {
    thread_local int number = 0;
    if (number == 0) number = ++threads_seen_;
    const auto [found, made] = threads_.try_emplace({process, number});
    if (made) found->second = add_track(process, prefix + (thread_name.empty() ? str("thread ", number) : thread_name));
    return found->second;
  }

  int stream_track(const kernels::Queue& queue) {
    const auto [found, made] = streams_.try_emplace({key(queue.device), queue.stream});
    if (made)
      found->second = add_track(str(queue.device), queue.stream ? str("stream ", streams_.size()) : "default stream");
    return found->second;
  }

  std::mutex mutex_;
  uint64_t number_ = 0;
  int64_t origin_ = 0;
  Recording recording_;
  std::map<std::pair<std::string, int>, int> threads_;
  std::map<std::pair<Key, void*>, int> streams_;
  std::map<Key, Base> bases_;
  std::vector<Timed> timed_;
  int threads_seen_ = 0;
};

}  // namespace

namespace detail {
int64_t now() { return steady_now(); }
}  // namespace detail

void end_span(Category category, const char* name, bool backward, int64_t started) {
  Recorder::instance().end_span(category, name, backward, started);
}

void name_thread(std::string name) { thread_name = std::move(name); }

Profiler::Profiler() {
  if (thread_name.empty()) thread_name = "main";
  Recorder::instance().start();
}
Profiler::~Profiler() {
  if (!running_) return;
  try {
    Recorder::instance().stop();
  } catch (const Error&) {  // a device that failed has told so elsewhere
  }
}
Recording Profiler::stop() {
  WEFT_CHECK(running_, "profiler: it has been stopped already");
  running_ = false;
  return Recorder::instance().stop();
}

}  // namespace weft::profile
