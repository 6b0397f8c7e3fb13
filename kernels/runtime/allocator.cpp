// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernels/runtime/runtime.h"

namespace weft::kernels {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGranule = 256;             // every block of a size class is a multiple of this
constexpr size_t kLargeGranule = 16 << 10;   // and every other block of this: 1.6% at most are lost
constexpr size_t kSmallest = kMiB;           // smallest large block; a piece that is left over may be smaller
constexpr int kStepsPerOctave = 8;

size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

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

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->capacity, a->data) < std::tie(b->capacity, b->data);
  }
};
using Pieces = std::set<Block*, BySize>;

/// Free blocks by their stream.
class FreeBlocks {
 public:
  struct OfStream {
    std::vector<std::vector<Block*>> by_class = std::vector<std::vector<Block*>>(size_t{kStepsPerOctave} * 48);
    Pieces small, large;  ///< rest of segments, to be cut further
  };
  OfStream& of(void* stream) {
    if (!last_ || stream != last_stream_) {  // most calls are for the stream of the call before: no look-up
      last_ = &by_stream_[stream];
      last_stream_ = stream;
    }
    return *last_;
  }
  /// Takes out all of which `leaves` is true.
  template <class F>
  void remove_if(F&& leaves) {
    for (auto& [stream, blocks] : by_stream_) {
      for (std::vector<Block*>& list : blocks.by_class) std::erase_if(list, leaves);
      std::erase_if(blocks.small, leaves);
      std::erase_if(blocks.large, leaves);
    }
  }
  size_t largest_piece() const {
    size_t most = 0;
    for (const auto& [stream, blocks] : by_stream_)
      if (!blocks.large.empty()) most = std::max(most, (*blocks.large.rbegin())->capacity);
    return most;
  }

 private:
  std::unordered_map<void*, OfStream> by_stream_;
  OfStream* last_ = nullptr;
  void* last_stream_ = nullptr;
};

/// A JSON string. Owners are names of ops, but a user's op may have a quote in its name.
std::string quoted(std::string_view text) {
  std::ostringstream out;
  out << std::quoted(text);
  return out.str();
}

/// Memory on its way back to the device. Make it before the lock is taken: its destructor calls the runtime,
/// which may wait.
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
  int segments = 0;  // that belong to it
};

struct Segment {
  char* data = nullptr;
  size_t bytes = 0;
  void* stream = nullptr;      // on which its blocks may be used again at once
  MemoryPool* pool = nullptr;  // that it belongs to, for good
  bool large = false;          // its blocks have no size classes: they are cut as they are asked for, and joined
  Block* first = nullptr;
  int in_use = 0;  // blocks that are not free
};

struct CachingAllocator::State {
  Device device;
  Runtime& runtime;
  bool cached, cuts;  // cuts: a segment may hold several blocks
  mutable std::mutex mutex;
  FreeBlocks free;
  std::unordered_set<Segment*> segments;
  std::vector<MemoryPool*> open_pools;  // pools of captures under way
  std::vector<Block*> waiting;          // freed, but other streams still use them
  std::vector<void*> spare_events;
  std::vector<Block*> spare;  // Block objects without memory
  Block live{};               // head of the ring of live blocks
  MemoryStats stats;

  explicit State(Device d)
      : device(d),
        runtime(kernels::runtime(d.kind)),
        cached(!caching_is_off()),
        cuts(cached && d.kind == DeviceKind::cuda) {
    live.previous = live.next = &live;
  }

  Leaving leaving() { return {runtime, device.index, {}}; }

  /// The pool of this thread's capture.
  MemoryPool* open_pool() const {
    for (MemoryPool* pool : open_pools)
      if (pool->thread == std::this_thread::get_id()) return pool;
    return nullptr;
  }

  FreeBlocks& free_of(const Segment& segment) { return segment.pool ? segment.pool->free : free; }

  /// The bytes that a request takes of a segment, and the segment's size.
  struct Wanted {
    size_t capacity, segment;
    bool large;
  };
  Wanted wanted(size_t bytes, bool keeps) const {
    if (!keeps) return {std::max<size_t>(bytes, 1), std::max<size_t>(bytes, 1), false};
    if (!cuts || bytes <= kSmallest) {
      const size_t capacity = capacity_of(size_class_of(bytes));
      return {capacity, cuts ? 2 * kMiB : capacity, false};
    }
    return {round_up(bytes, kLargeGranule), bytes < 10 * kMiB ? 20 * kMiB : round_up(bytes, 2 * kMiB), true};
  }

  Block* take_cached(const Wanted& wanted, void* stream, MemoryPool* pool) {
    FreeBlocks::OfStream& blocks = (pool ? pool->free : free).of(stream);
    if (!wanted.large) {
      std::vector<Block*>& list = blocks.by_class[static_cast<size_t>(size_class_of(wanted.capacity))];
      if (!list.empty()) {
        Block* const block = list.back();
        list.pop_back();
        use(block);
        return block;
      }
    }
    Pieces& pieces = wanted.large ? blocks.large : blocks.small;
    Block key;
    key.capacity = wanted.capacity;
    const auto found = pieces.lower_bound(&key);
    if (found == pieces.end()) return nullptr;
    Block* const block = *found;
    pieces.erase(found);
    use(block);
    cut(block, wanted.capacity);
    return block;
  }

  void use(Block* block) {
    block->is_free = false;
    ++block->segment->in_use;
    stats.cached -= block->capacity;
  }

  /// Splits a block after its first `capacity` bytes; the rest becomes a free piece.
  void cut(Block* block, size_t capacity) {
    if (block->capacity == capacity) return;
    Block* const rest = new_block();
    rest->data = static_cast<char*>(block->data) + capacity;
    rest->capacity = block->capacity - capacity;
    rest->segment = block->segment;
    rest->is_free = true;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->capacity = capacity;
    FreeBlocks::OfStream& blocks = free_of(*rest->segment).of(rest->segment->stream);
    (rest->segment->large ? blocks.large : blocks.small).insert(rest);
    stats.cached += rest->capacity;
  }

  /// Joins a free block with the free neighbour after it.
  void join(Block* block, Pieces& pieces) {
    Block* const next = block->after;
    if (!next || !next->is_free) return;
    pieces.erase(next);
    block->capacity += next->capacity;
    block->after = next->after;
    if (block->after) block->after->before = block;
    recycle(next);
  }

  Block* new_block() {
    if (spare.empty()) return new Block;
    Block* const block = spare.back();
    spare.pop_back();
    return block;
  }
  void recycle(Block* block) {
    block->segment = nullptr;
    block->before = block->after = nullptr;
    block->is_free = false;
    block->data = nullptr;
    spare.push_back(block);
  }

  /// A block of the wanted size at the beginning of new memory.
  Block* block_of(void* data, const Wanted& wanted, void* stream, MemoryPool* pool) {
    ++stats.raw_allocations;
    Block* const block = new_block();
    block->data = data;
    block->capacity = wanted.segment;
    block->segment = new Segment{static_cast<char*>(data), wanted.segment, stream, pool, wanted.large, block, 1};
    segments.insert(block->segment);
    if (pool) {
      ++pool->segments;
      stats.in_graphs += wanted.segment;
    }
    cut(block, wanted.capacity);
    return block;
  }

  void tell_hook() const {
    if (const MemoryHook hook = memory_hook.load(std::memory_order_relaxed)) [[unlikely]]
      hook(device, stats);
  }

  /// Records an event after all work of the block's users. Not during a capture: the event would become part of
  /// it. Where the device refuses, users stay, and so does the block: memory in use is never handed out.
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
    } catch (const Error&) {  // a failed device is reported elsewhere
    }
  }

  /// False also where the device has failed, which is reported elsewhere.
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
    Segment& segment = *block->segment;
    --segment.in_use;
    block->is_free = true;
    stats.cached += block->capacity;
    if (segment.pool ? segment.pool->released : !cached) {
      if (segment.in_use == 0) give_back(&segment, leaving);
      return;
    }
    FreeBlocks::OfStream& blocks = free_of(segment).of(segment.stream);
    if (!segment.large) {
      blocks.by_class[static_cast<size_t>(size_class_of(block->capacity))].push_back(block);
      return;
    }
    join(block, blocks.large);
    if (Block* const before = block->before; before && before->is_free) {
      blocks.large.erase(before);
      join(before, blocks.large);
      block = before;
    }
    blocks.large.insert(block);
  }

  /// Back to the device. No list has a block of it any more.
  void give_back(Segment* segment, Leaving& leaving) {
    for (Block *block = segment->first, *next; block; block = next) {
      next = block->after;
      stats.cached -= block->capacity;
      recycle(block);
    }
    leaving.memory.push_back(segment->data);
    if (MemoryPool* const pool = segment->pool) {
      stats.in_graphs -= segment->bytes;
      if (--pool->segments == 0 && pool->released) delete pool;
    }
    segments.erase(segment);
    delete segment;
  }

  /// All segments of a graph's pool (nullptr: all that are in none) of which nothing is used.
  void give_back_unused(MemoryPool* pool, Leaving& leaving) {
    (pool ? pool->free : free).remove_if([](const Block* block) { return block->segment->in_use == 0; });
    std::vector<Segment*> unused;
    for (Segment* segment : segments)
      if (segment->pool == pool && segment->in_use == 0) unused.push_back(segment);
    for (Segment* segment : unused) give_back(segment, leaving);
  }

  std::string report() const {
    std::ostringstream out;
    size_t free_bytes = 0, total_bytes = 0;
    runtime.memory_info(device.index, free_bytes, total_bytes);
    out << "live " << readable(stats.live) << ", cached " << readable(stats.cached);
    if (const size_t piece = free.largest_piece()) out << " (largest piece " << readable(piece) << ')';
    out << ", peak " << readable(stats.peak_live);
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

  std::string snapshot() const {
    std::ostringstream out;
    out << "{\"device\": " << quoted(str(device)) << ", \"live\": " << stats.live << ", \"cached\": " << stats.cached
        << ", \"peak_live\": " << stats.peak_live << ", \"in_graphs\": " << stats.in_graphs << ", \"segments\": [";
    std::vector<const Segment*> sorted(segments.begin(), segments.end());
    std::ranges::sort(sorted, {}, &Segment::data);
    const char* separator = "\n";
    for (const Segment* segment : sorted) {
      out << separator << "{\"address\": " << reinterpret_cast<uintptr_t>(segment->data)
          << ", \"bytes\": " << segment->bytes << ", \"stream\": " << reinterpret_cast<uintptr_t>(segment->stream)
          << ", \"in_graph\": " << (segment->pool ? "true" : "false") << ", \"blocks\": [";
      for (const Block* block = segment->first; block; block = block->after) {
        const char* const state = block->is_free ? "free" : block->next ? "live" : "waiting";
        out << (block == segment->first ? "" : ", ") << "{\"offset\": " << static_cast<char*>(block->data) - segment->data
            << ", \"bytes\": " << block->capacity << ", \"state\": \"" << state
            << "\", \"owner\": " << quoted(block->is_free ? "" : block->owner) << '}';
      }
      out << "]}";
      separator = ",\n";
    }
    out << "]}\n";
    return out.str();
  }

  /// The message about a snapshot that an OutOfMemory has written.
  std::string leave_snapshot() const {
    const char* const path = std::getenv("WEFT_MEMORY_SNAPSHOT");
    if (!path || !*path) return "";
    std::ofstream file(path);
    file << snapshot();
    file.close();
    return str(file ? ". Snapshot in " : ". The snapshot could not be written to ", path);
  }

  /// New memory for a block; nullptr: there is none. Without the lock.
  void* ask_device(Wanted& wanted) const {
    void* data = runtime.allocate(device.index, wanted.segment);
    if (!data && wanted.segment > wanted.capacity)
      data = runtime.allocate(device.index, wanted.segment = wanted.capacity);
    return data;
  }
};

void set_memory_hook(MemoryHook hook) { memory_hook = hook; }

CachingAllocator::CachingAllocator(Device device) : state_(new State(device)) {}

CachingAllocator& CachingAllocator::of(Device device) {
  if (device.kind == DeviceKind::cpu) {
    static CachingAllocator* const cpu = new CachingAllocator(device);
    return *cpu;
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
  Leaving leaving = s.leaving();
  std::unique_lock lock(s.mutex);
  MemoryPool* const pool = s.open_pool();
  const bool capturing = !s.open_pools.empty(), keeps = s.cached || pool;
  if (!s.waiting.empty()) s.collect_waiting(leaving);
  State::Wanted wanted = s.wanted(bytes, keeps);
  Block* block = keeps ? s.take_cached(wanted, stream, pool) : nullptr;
  if (block == nullptr) {
    lock.unlock();
    void* data = s.ask_device(wanted);
    if (data == nullptr && !capturing) {
      s.runtime.synchronize_device(s.device.index);
      empty_cache();
      data = s.ask_device(wanted);
    }
    lock.lock();
    if (data == nullptr && s.cuts && keeps && !wanted.large) {  // a small block may be a piece of a large segment
      wanted = {round_up(bytes, kLargeGranule), 0, true};
      block = s.take_cached(wanted, stream, pool);
    }
    if (data == nullptr && block == nullptr)
      throw OutOfMemory(str("out of memory on ", s.device, ": ", owner, " asks for ", readable(bytes),
                            capturing ? " while a graph is captured" : "", "; ", s.report(), s.leave_snapshot()));
    if (data != nullptr) block = s.block_of(data, wanted, stream, pool);
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
  block->previous = block->next = nullptr;
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
  if (s.device.kind == DeviceKind::cpu || stream == block->segment->stream) return;
  const std::lock_guard lock(s.mutex);
  if (s.open_pool() && !block->segment->pool) return;  // a graph's inputs outlive the graph
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
  state_->give_back_unused(pool, leaving);
  pool->released = true;
  pool->free = {};
  if (pool->segments == 0) delete pool;
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
  state_->give_back_unused(nullptr, leaving);
}

std::string CachingAllocator::report() const {
  const std::lock_guard lock(state_->mutex);
  return state_->report();
}

std::string CachingAllocator::snapshot() const {
  const std::lock_guard lock(state_->mutex);
  return state_->snapshot();
}

}  // namespace weft::kernels
