// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runtime/queue.h"

namespace weft::kernels {

struct MemoryPool;  // memory of one captured graph; see CachingAllocator::open_pool
struct Segment;     // one allocation from the device: one block, or several neighbours

/// One piece of device memory from a CachingAllocator. All fields except data, bytes and owner are private to the
/// allocator.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;            ///< requested bytes
  size_t capacity = 0;         ///< bytes reserved in the segment
  const char* owner = "";      ///< the requesting op (a string literal)
  Segment* segment = nullptr;  ///< the segment that contains the block
  Block* before = nullptr;     ///< neighbours in the segment
  Block* after = nullptr;
  bool is_free = false;       ///< whether the block is in a free list
  std::vector<void*> users;   ///< other streams that used the block
  std::vector<void*> events;  ///< after the free: events to wait for before reuse
  Block* previous = nullptr;  ///< links of the ring of live blocks
  Block* next = nullptr;
};

/// Bytes unless said otherwise. live: in use now; cached: kept for reuse; peak_live: since the last reset_peak().
struct MemoryStats {
  size_t live = 0, cached = 0, peak_live = 0;
  size_t in_graphs = 0;          ///< live or cached in the pools of captured graphs
  uint64_t allocations = 0;      ///< calls of allocate
  uint64_t raw_allocations = 0;  ///< calls of allocate that allocated from the device
};

/// Called after every change of a device's live bytes, under the allocator's lock (the hook must not allocate device
/// memory). One hook per process; nullptr removes it.
using MemoryHook = void (*)(Device device, const MemoryStats& stats);
void set_memory_hook(MemoryHook hook);

/// Memory of one device, cached for reuse so that training steps do not call the driver. A freed block is cached for
/// its *stream*: work enqueued later on that stream may use the block at once, since streams run in order. A block that
/// other streams used (record_stream) is reused only after all work enqueued on them before the free. Thread-safe; the
/// lock is not held during driver allocations and waits, so that a thread that aborts a device's hung work is not
/// blocked.
///
/// Blocks up to 1 MiB have size classes, eighths of powers of two: at most 12.5% is lost. On a GPU they are allocated
/// in segments of 2 MiB. A larger block of a GPU is split from the smallest free block that fits, and merged with its
/// free neighbours when freed. So a batch of another size reuses the memory, and so does a small block when the device
/// has none left. On the CPU, where allocations are cheap, each block is a separate allocation and large blocks have
/// size classes too.
///
/// With WEFT_NO_CACHE=1 only the pools of graphs are cached: every other tensor is a separate allocation, so that
/// weft-emulate and compute-sanitizer see each overrun and each use after free.
class CachingAllocator {
 public:
  static CachingAllocator& of(Device device);

  /// Never returns nullptr. Errors: OutOfMemory with live / cached / free bytes and the largest live blocks by op.
  Block* allocate(size_t bytes, void* stream, const char* owner);
  void free(Block* block) noexcept;
  /// Records that work on `stream` uses the block until it is freed: the block is reused only after that work. The
  /// stream must exist until then, as a weft::Stream's always does.
  void record_stream(Block* block, void* stream);

  MemoryStats stats() const;
  void reset_peak();
  /// Starts a captured graph's memory pool: until close_pool, this thread's blocks, on any stream, are allocated from
  /// and freed to a separate pool. So no other tensor gets an address that the graph writes. Meanwhile the
  /// allocator only allocates from the device: a capture forbids waiting for events or for the device.
  MemoryPool* open_pool();
  /// Ends the pool. Call after the capture's end: only then may events be recorded again on streams that took part.
  void close_pool(MemoryPool* pool);
  /// Returns the pool's memory to the device, live blocks as soon as they are freed. The graph must be destroyed and
  /// its work complete.
  void release_pool(MemoryPool* pool);

  /// Returns cached blocks to the device, except blocks of graphs.
  void empty_cache();
  /// The report in an OutOfMemory error: totals and the ten largest owners.
  std::string report() const;
  /// Every segment with its blocks, as JSON: `{"device", "live", "cached", …, "segments": [{"address", "bytes",
  /// "stream", "in_graph", "blocks": [{"offset", "bytes", "state", "owner"}]}]}`; states are `live`, `free` and
  /// `waiting` (for streams that still use it). With WEFT_MEMORY_SNAPSHOT=FILE, an OutOfMemory writes it there.
  std::string snapshot() const;

 private:
  explicit CachingAllocator(Device device);
  struct State;
  State* state_;  // never destroyed: tensors may outlive statics
};

/// Stream-ordered scratch memory of a kernel: freed for reuse on the queue's stream by the destructor.
class Workspace {
 public:
  Workspace(const Queue& queue, size_t bytes, const char* owner = "workspace")
      : allocator_(CachingAllocator::of(queue.device)), block_(allocator_.allocate(bytes, queue.stream, owner)) {}
  ~Workspace() { allocator_.free(block_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* data() const { return block_->data; }
  template <class T>
  T* as() const {
    return static_cast<T*>(block_->data);
  }

 private:
  CachingAllocator& allocator_;
  Block* block_;
};

}  // namespace weft::kernels
