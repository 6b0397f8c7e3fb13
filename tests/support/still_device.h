// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/runtime/runtime.h"

namespace weft::tests {

/// A GPU in which time stands still: work is done when the host waits for it, and no sooner; an event behind no work is
/// done at once. Work that the host enqueues too early, too late or without order shows in the results. The class
/// replaces the device `cuda`, without kernels: memory, copies, streams and events.
class StillDevice final : public kernels::Runtime {
 public:
  std::string failure;                          ///< while set, every call that can fails with it
  size_t memory = size_t{1} << 40;              ///< bytes left
  std::function<void()> while_waiting = [] {};  ///< in synchronize_device
  std::vector<std::string> calls;               ///< allocate, release, record: in their order

  int device_count() override { return alive(), 64; }
  std::string describe(int) override { return "a device in which time stands still"; }
  std::string identity(int) override { return ""; }
  void memory_info(int, size_t& free_bytes, size_t& total_bytes) override { free_bytes = total_bytes = memory; }

  void* allocate(int, size_t bytes) override {
    alive();
    const std::lock_guard lock(mutex_);
    calls.push_back("allocate");
    if (bytes > memory) return nullptr;
    memory -= bytes;
    void* const data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    known_[data] = bytes;
    return data;
  }
  void release(int, void* data) noexcept override {
    const std::lock_guard lock(mutex_);
    calls.push_back("release");
    run_all();  // as cudaFree does
    memory += known_.at(data);
    known_.erase(data);
    std::free(data);
  }
  void* allocate_pinned(size_t bytes) override {
    alive();
    const std::lock_guard lock(mutex_);
    calls.push_back("allocate_pinned");
    void* const data = std::malloc(bytes);
    known_[data] = bytes;
    return data;
  }
  void release_pinned(void* data) noexcept override {
    const std::lock_guard lock(mutex_);
    known_.erase(data);
    std::free(data);
  }

  void copy(int, void* to, const void* from, size_t bytes, void* stream) override {
    alive();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<char[]> staged;
    if (!knows(from)) {  // pageable
      staged = std::make_shared<char[]>(bytes);
      std::memcpy(staged.get(), from, bytes);
      from = staged.get();
    }
    of(stream).push_back({[=] {
      static_cast<void>(staged);
      std::memmove(to, from, bytes);
    }});
  }
  bool stages_pageable_memory(int) override { return true; }
  void fill_bytes(int, void* to, int byte, size_t bytes, void* stream) override {
    alive();
    const std::lock_guard lock(mutex_);
    of(stream).push_back({[=] { std::memset(to, byte, bytes); }});
  }

  void* create_stream(int, int = 0) override { return alive(), &streams_.emplace_back(); }
  void destroy_stream(int, void*) noexcept override {}
  void synchronize_stream(int, void* stream) override {
    alive();
    const std::lock_guard lock(mutex_);
    while (!of(stream).empty()) run_first(of(stream));
  }
  void synchronize_device(int) override {
    alive();
    while_waiting();
    const std::lock_guard lock(mutex_);
    run_all();
  }

  void* create_event(int, bool) override { return alive(), &events_.emplace_back(); }
  void destroy_event(void*) noexcept override {}
  void record_event(void* event, int, void* stream) override {
    alive();
    const std::lock_guard lock(mutex_);
    calls.push_back("record");
    Event& e = *static_cast<Event*>(event);
    e.stream = &of(stream);
    ++e.recorded;
    if (e.stream->empty())
      e.done = e.recorded;
    else
      e.stream->push_back({[&e, number = e.recorded] { e.done = number; }});
  }
  void wait_event(int, void* stream, void* event) override {
    alive();
    const std::lock_guard lock(mutex_);
    Event& e = *static_cast<Event*>(event);
    if (e.done < e.recorded) of(stream).push_back({[&e, number = e.recorded] { run_until(e, number); }});
  }
  bool query_event(void* event) override {
    alive();
    const std::lock_guard lock(mutex_);
    const Event& e = *static_cast<Event*>(event);
    return e.done == e.recorded;
  }
  void synchronize_event(void* event) override {
    alive();
    const std::lock_guard lock(mutex_);
    Event& e = *static_cast<Event*>(event);
    run_until(e, e.recorded);
  }
  float elapsed_ms(void*, void*) override { return 0; }

  void begin_capture(int, void*) override { fail("a still device has no graphs"); }
  void* end_capture(int, void*) override { return nullptr; }
  void abandon_capture(int, void*) noexcept override {}
  void launch_graph(int, void*, void*) override {}
  void destroy_graph(void*) noexcept override {}

  /// Has the stream nothing to do?
  bool is_idle(void* stream) {
    const std::lock_guard lock(mutex_);
    return of(stream).empty();
  }
  int64_t count(const std::string& call) const { return std::ranges::count(calls, call); }
  int64_t events() const { return static_cast<int64_t>(events_.size()); }

 private:
  using Work = std::function<void()>;
  using Queue = std::deque<Work>;
  struct Event {
    uint64_t recorded = 0, done = 0;
    Queue* stream = nullptr;
  };

  void alive() const {
    if (!failure.empty()) fail(failure);
  }
  Queue& of(void* stream) { return stream ? *static_cast<Queue*>(stream) : default_; }
  bool knows(const void* data) const {
    const auto after = known_.upper_bound(const_cast<void*>(data));
    if (after == known_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return data < static_cast<const char*>(begin) + bytes;
  }
  static void run_first(Queue& queue) {
    const Work work = std::move(queue.front());
    queue.pop_front();
    work();
  }
  static void run_until(Event& event, uint64_t number) {
    while (event.done < number) run_first(*event.stream);
  }
  void run_all() {
    while (!default_.empty()) run_first(default_);
    for (Queue& queue : streams_)
      while (!queue.empty()) run_first(queue);
  }

  std::mutex mutex_;
  std::map<void*, size_t> known_;
  Queue default_;
  std::deque<Queue> streams_;
  std::deque<Event> events_;
};

/// A still device in the place of a GPU, each time another GPU, so that nothing remains of the last test.
class StillGpu {
 public:
  StillGpu()
      : gpu(devices().emplace_back()), device{DeviceKind::cuda, kFirst + static_cast<int>(devices().size()) - 1} {
    kernels::replace_runtime(DeviceKind::cuda, &gpu);
  }
  ~StillGpu() { kernels::replace_runtime(DeviceKind::cuda, nullptr); }
  StillGpu(const StillGpu&) = delete;
  StillGpu& operator=(const StillGpu&) = delete;

 private:
  static constexpr int kFirst = 16;  // GPUs before this one may be there
  static std::deque<StillDevice>& devices() {
    static auto& all = *new std::deque<StillDevice>;  // allocators keep theirs
    return all;
  }

 public:
  StillDevice& gpu;
  const Device device;
};

}  // namespace weft::tests
