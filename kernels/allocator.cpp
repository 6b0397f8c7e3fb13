// SPDX-License-Identifier: Apache-2.0
#include "kernels/allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iomanip>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "kernels/runtime.h"

namespace weft::kernels {
namespace {

constexpr size_t kGranule = 256;  // every block is a multiple of this
constexpr int kStepsPerOctave = 8;

/// Eighths of powers of two: classes 0…7 are 1…8 granules, then each octave has eight steps.
int size_class_of(size_t bytes) {
  const size_t granules = std::max<size_t>(1, (bytes + kGranule - 1) / kGranule);
  if (granules <= kStepsPerOctave) return static_cast<int>(granules) - 1;
  const int octave = std::bit_width(granules - 1) - 4;  // granules in (8 << octave, 16 << octave]
  const size_t step = size_t{1} << octave;
  const int within = static_cast<int>((granules - 1) / step) - kStepsPerOctave;  // 0…7
  return kStepsPerOctave * (octave + 1) + within;
}

size_t capacity_of(int size_class) {
  if (size_class < kStepsPerOctave) return (static_cast<size_t>(size_class) + 1) * kGranule;
  const int octave = size_class / kStepsPerOctave - 1;
  const size_t step = size_t{1} << octave;
  return (static_cast<size_t>(size_class % kStepsPerOctave) + kStepsPerOctave + 1) * step * kGranule;
}

std::atomic<MemoryHook> memory_hook{nullptr};

std::string readable(size_t bytes) {
  std::ostringstream out;
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << value << ' ' << units[unit];
  return out.str();
}

using FreeLists = std::vector<std::vector<Block*>>;  // by size class

/// Of free blocks, by their stream.
class FreeBlocks {
 public:
  std::vector<Block*>& of(void* stream, int size_class) {
    FreeLists& found = by_stream_[stream];
    if (found.empty()) found.resize(8 * 48);
    return found[static_cast<size_t>(size_class)];
  }
  template <class F>
  void for_each_list(F&& f) {
    for (auto& [stream, lists] : by_stream_)
      for (std::vector<Block*>& list : lists) f(list);
  }

 private:
  std::unordered_map<void*, FreeLists> by_stream_;
};

/// Memory on its way back to the device. Make it before the lock is taken: it calls the runtime, which may wait, when
/// it goes.
struct Leaving {
  Runtime& runtime;
  const int index;
  std::vector<void*> memory;

  ~Leaving() {
    for (void* one : memory) runtime.release(index, one);
  }
};

bool caching_is_off() {
  const char* const text = std::getenv("WEFT_NO_CACHE");
  return text && *text && std::string_view(text) != "0";
}

}  // namespace

struct MemoryPool {
  std::thread::id thread;  // that captures
  FreeBlocks free;
  bool released = false;
  int blocks = 0;  // that belong to it, live or free
};

struct CachingAllocator::State {
  Device device;
  Runtime& runtime;
  bool cached;
  mutable std::mutex mutex;
  FreeBlocks free;
  std::vector<MemoryPool*> open_pools;  // of captures under way
  std::vector<Block*> waiting;          // freed, but other streams still use them
  std::vector<void*> spare_events;
  std::vector<Block*> spare;  // Block objects without memory
  Block live{};               // head of the ring of live blocks
  MemoryStats stats;

  explicit State(Device d)
      : device(d), runtime(kernels::runtime(d.kind)), cached(d.kind != DeviceKind::simt && !caching_is_off()) {
    live.previous = live.next = &live;
  }

  Leaving leaving() { return {runtime, device.index, {}}; }

  /// Of this thread's capture.
  MemoryPool* open_pool() const {
    for (MemoryPool* pool : open_pools)
      if (pool->thread == std::this_thread::get_id()) return pool;
    return nullptr;
  }

  Block* take_cached(int size_class, void* stream, MemoryPool* pool) {
    std::vector<Block*>& list = (pool ? pool->free : free).of(stream, size_class);
    if (list.empty()) return nullptr;
    Block* block = list.back();
    list.pop_back();
    stats.cached -= block->capacity;
    return block;
  }

  Block* block_of(void* data, size_t capacity, int size_class, void* stream, MemoryPool* pool) {
    ++stats.raw_allocations;
    Block* block;
    if (spare.empty()) {
      block = new Block;
    } else {
      block = spare.back();
      spare.pop_back();
    }
    block->data = data;
    block->capacity = capacity;
    block->size_class = size_class;
    block->stream = stream;
    block->pool = pool;
    if (pool) {
      ++pool->blocks;
      stats.in_graphs += capacity;
    }
    return block;
  }

  void tell_hook() const {
    if (const MemoryHook hook = memory_hook.load(std::memory_order_relaxed)) [[unlikely]]
      hook(device, stats);
  }

  /// Puts an event behind all that the block's users were given. Not during a capture: the event would become part of
  /// it. Where the device refuses, users stay, and so does the block: nobody gets memory that may be in use.
  void mark_uses(Block* block) noexcept {
    try {
      while (!block->users.empty()) {
        void* event;
        if (spare_events.empty()) {
          event = runtime.create_event(device.index, false);
        } else {
          event = spare_events.back();
          spare_events.pop_back();
        }
        block->events.push_back(event);
        runtime.record_event(event, device.index, block->users.back());
        block->users.pop_back();
      }
    } catch (const Error&) {  // a device that failed tells so elsewhere
    }
  }

  /// False also where the device has failed: it tells so elsewhere.
  bool has_passed(void* event) noexcept {
    try {
      return runtime.query_event(event);
    } catch (const Error&) {
      return false;
    }
  }

  void collect_waiting(Leaving& leaving) {
    if (!open_pools.empty()) return;
    std::erase_if(waiting, [&](Block* block) {
      mark_uses(block);
      std::erase_if(block->events, [&](void* event) {
        if (!has_passed(event)) return false;
        spare_events.push_back(event);
        return true;
      });
      if (!block->events.empty() || !block->users.empty()) return false;
      put(block, leaving);
      return true;
    });
  }

  void put(Block* block, Leaving& leaving) {
    MemoryPool* const pool = block->pool;
    if (pool ? pool->released : !cached) return give_back(block, leaving);
    stats.cached += block->capacity;
    (pool ? pool->free : free).of(block->stream, block->size_class).push_back(block);
  }

  void give_back(Block* block, Leaving& leaving) {
    if (MemoryPool* const pool = std::exchange(block->pool, nullptr)) {
      stats.in_graphs -= block->capacity;
      if (--pool->blocks == 0 && pool->released) delete pool;
    }
    leaving.memory.push_back(std::exchange(block->data, nullptr));
    spare.push_back(block);
  }

  void drop(FreeBlocks& blocks, Leaving& leaving) {
    blocks.for_each_list([&](std::vector<Block*>& list) {
      for (Block* block : list) {
        stats.cached -= block->capacity;
        give_back(block, leaving);
      }
      list.clear();
    });
  }

  std::string report() const {
    std::ostringstream out;
    size_t free_bytes = 0, total_bytes = 0;
    runtime.memory_info(device.index, free_bytes, total_bytes);
    out << "live " << readable(stats.live) << ", cached " << readable(stats.cached) << ", peak "
        << readable(stats.peak_live);
    if (stats.in_graphs > 0) out << ", in graphs " << readable(stats.in_graphs);
    out << ", device free " << readable(free_bytes) << " of " << readable(total_bytes);
    std::map<std::string, std::pair<size_t, int>> by_owner;
    for (const Block* block = live.next; block != &live; block = block->next) {
      auto& [bytes, count] = by_owner[block->owner];
      bytes += block->bytes;
      ++count;
    }
    std::vector<std::pair<std::string, std::pair<size_t, int>>> owners(by_owner.begin(), by_owner.end());
    std::sort(owners.begin(), owners.end(),
              [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
    if (owners.size() > 10) owners.resize(10);
    out << (owners.empty() ? "" : ". Largest owners:");
    for (const auto& [owner, use] : owners)
      out << ' ' << owner << ' ' << readable(use.first) << " in " << use.second
          << (use.second == 1 ? " tensor;" : " tensors;");
    return out.str();
  }
};

void set_memory_hook(MemoryHook hook) { memory_hook = hook; }

CachingAllocator::CachingAllocator(Device device) : state_(new State(device)) {}

CachingAllocator& CachingAllocator::of(Device device) {
  if (device.kind == DeviceKind::cpu) {
    static CachingAllocator* const cpu = new CachingAllocator(device);
    return *cpu;
  }
  if (device.kind == DeviceKind::simt) {
    static CachingAllocator* const simt = new CachingAllocator(device);
    return *simt;
  }
  constexpr int kMaxDevices = 64;
  static std::array<CachingAllocator*, kMaxDevices>* const cuda = new std::array<CachingAllocator*, kMaxDevices>{};
  static std::mutex* const mutex = new std::mutex;
  WEFT_CHECK(device.index >= 0 && device.index < kMaxDevices, "allocator: no such device: ", device);
  const std::lock_guard lock(*mutex);
  CachingAllocator*& slot = (*cuda)[device.index];
  if (slot == nullptr) slot = new CachingAllocator(device);
  return *slot;
}

Block* CachingAllocator::allocate(size_t bytes, void* stream, const char* owner) {
  State& s = *state_;
  WEFT_CHECK(bytes < (size_t{1} << 46), owner, ": cannot allocate ", bytes, " bytes");
  const int size_class = size_class_of(bytes);
  Leaving leaving = s.leaving();
  std::unique_lock lock(s.mutex);
  MemoryPool* const pool = s.open_pool();
  const bool capturing = !s.open_pools.empty();
  if (!s.waiting.empty()) s.collect_waiting(leaving);
  Block* block = s.cached || pool ? s.take_cached(size_class, stream, pool) : nullptr;
  if (block == nullptr) {
    const size_t capacity = s.cached || pool ? capacity_of(size_class) : std::max<size_t>(bytes, 1);
    lock.unlock();
    void* data = s.runtime.allocate(s.device.index, capacity);
    if (data == nullptr && !capturing) {
      s.runtime.synchronize_device(s.device.index);
      empty_cache();
      data = s.runtime.allocate(s.device.index, capacity);
    }
    lock.lock();
    if (data == nullptr)
      throw OutOfMemory(str("out of memory on ", s.device, ": ", owner, " asks for ", readable(bytes),
                            capturing ? " while a graph is captured" : "", "; ", s.report()));
    block = s.block_of(data, capacity, size_class, stream, pool);
  }
  block->bytes = bytes;
  block->owner = owner;
  block->next = s.live.next;
  block->previous = &s.live;
  s.live.next->previous = block;
  s.live.next = block;
  ++s.stats.allocations;
  s.stats.live += block->capacity;
  s.stats.peak_live = std::max(s.stats.peak_live, s.stats.live);
  s.tell_hook();
  return block;
}

void CachingAllocator::free(Block* block) noexcept {
  State& s = *state_;
  Leaving leaving = s.leaving();
  const std::lock_guard lock(s.mutex);
  block->previous->next = block->next;
  block->next->previous = block->previous;
  s.stats.live -= block->capacity;
  if (block->users.empty()) {
    s.put(block, leaving);
  } else {
    if (s.open_pools.empty()) s.mark_uses(block);
    s.waiting.push_back(block);
  }
  s.tell_hook();
}

void CachingAllocator::record_stream(Block* block, void* stream) {
  State& s = *state_;
  if (s.device.kind == DeviceKind::cpu || stream == block->stream) return;
  const std::lock_guard lock(s.mutex);
  if (s.open_pool() && !block->pool) return;  // a graph's inputs outlive the graph
  if (std::ranges::find(block->users, stream) == block->users.end()) block->users.push_back(stream);
}

MemoryPool* CachingAllocator::open_pool() {
  const std::lock_guard lock(state_->mutex);
  WEFT_CHECK(state_->open_pool() == nullptr, "allocator: a graph is captured on this thread already");
  state_->open_pools.push_back(new MemoryPool{std::this_thread::get_id(), {}});
  return state_->open_pools.back();
}

void CachingAllocator::close_pool(MemoryPool* pool) {
  const std::lock_guard lock(state_->mutex);
  std::erase(state_->open_pools, pool);
}

void CachingAllocator::release_pool(MemoryPool* pool) {
  Leaving leaving = state_->leaving();
  const std::lock_guard lock(state_->mutex);
  ++pool->blocks;  // the pool stays until the end of this function
  pool->released = true;
  state_->drop(pool->free, leaving);
  if (--pool->blocks == 0) delete pool;
}

MemoryStats CachingAllocator::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

void CachingAllocator::reset_peak() {
  const std::lock_guard lock(state_->mutex);
  state_->stats.peak_live = state_->stats.live;
}

void CachingAllocator::empty_cache() {
  Leaving leaving = state_->leaving();
  const std::lock_guard lock(state_->mutex);
  state_->collect_waiting(leaving);
  state_->drop(state_->free, leaving);
}

std::string CachingAllocator::report() const {
  const std::lock_guard lock(state_->mutex);
  return state_->report();
}

}  // namespace weft::kernels
