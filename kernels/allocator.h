// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/queue.h"

namespace weft::kernels {

struct MemoryPool;  // of one captured graph; see CachingAllocator::open_pool
struct Segment;     // what the device gave at once: one block, or several side by side

/// One piece of device memory, handed out by a CachingAllocator. Fields other than data, bytes and owner are its own.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;            ///< as asked for
  size_t capacity = 0;         ///< as taken from its segment
  const char* owner = "";      ///< the op that asked (a string literal)
  Segment* segment = nullptr;  ///< that the block lies in
  Block* before = nullptr;     ///< its neighbours in there
  Block* after = nullptr;
  bool is_free = false;       ///< in a list of free blocks
  std::vector<void*> users;   ///< other streams that used it
  std::vector<void*> events;  ///< once it is freed: what they must have done before it is used again
  Block* previous = nullptr;  ///< the ring of live blocks
  Block* next = nullptr;
};

/// Bytes unless said otherwise. live: in use now; cached: kept for reuse; peak_live: since the last reset_peak().
struct MemoryStats {
  size_t live = 0, cached = 0, peak_live = 0;
  size_t in_graphs = 0;          ///< live or cached in the pools of captured graphs
  uint64_t allocations = 0;      ///< calls of allocate
  uint64_t raw_allocations = 0;  ///< of them, those that had to ask the device
};

/// Called after every change of a device's live bytes, under the allocator's lock (it must not allocate device memory).
/// One for the process; nullptr removes it.
using MemoryHook = void (*)(Device device, const MemoryStats& stats);
void set_memory_hook(MemoryHook hook);

/// Memory of one device, kept for reuse so that training steps do not ask the driver. A freed block is kept for its
/// *stream*: work enqueued later on that stream may use it at once, since it runs after. A block that other streams used
/// (record_stream) waits for all work that they were given before it was freed. Thread-safe; the lock is not
/// held while the device is asked for memory or waited for, so a thread that ends a device's hung work gets through.
///
/// Blocks up to 1 MiB have size classes, eighths of powers of two: at most 12.5% is lost. A GPU is asked for 2 MiB of
/// them at once. A larger block of a GPU is cut from the smallest free piece that holds it, and when it is freed it is
/// joined with its free neighbours, so that a batch of another size uses the same memory again. On the CPU, where a
/// fresh allocation costs little, each block is an allocation of its own and large ones have size classes too.
///
/// With WEFT_NO_CACHE=1 nothing is cached but in the pools of graphs: every tensor is an allocation of its own, so that
/// weft-emulate and compute-sanitizer see each overrun and each use after free.
class CachingAllocator {
 public:
  static CachingAllocator& of(Device device);

  /// Never returns nullptr. Errors: OutOfMemory with live / cached / free bytes and the largest live blocks by op.
  Block* allocate(size_t bytes, void* stream, const char* owner);
  void free(Block* block) noexcept;
  /// Notes that work on `stream` uses the block, now or until it is freed: it is reused only after that work. The
  /// stream must be there until then, as a weft::Stream's always is.
  void record_stream(Block* block, void* stream);

  MemoryStats stats() const;
  void reset_peak();
  /// Memory of a captured graph: from here to close_pool, blocks for this thread, whatever the stream, come from a pool
  /// of their own and go back to it, so that no other tensor gets an address that the graph will write to. The device
  /// is asked for nothing but new memory meanwhile: neither events nor the device are waited for, which a capture
  /// forbids.
  MemoryPool* open_pool();
  /// After the capture's end: only then may events be recorded again on streams that took part.
  void close_pool(MemoryPool* pool);
  /// The graph is gone and its work is done: the pool's memory goes back to the device, what is live as soon as it is
  /// freed.
  void release_pool(MemoryPool* pool);

  /// Gives cached blocks back to the device, but for those of graphs.
  void empty_cache();
  /// The report that OutOfMemory carries: totals and the ten largest owners.
  std::string report() const;
  /// Every segment with its blocks, as JSON: `{"device", "live", "cached", …, "segments": [{"address", "bytes", "stream",
  /// "in_graph", "blocks": [{"offset", "bytes", "state", "owner"}]}]}`; states are `live`, `free` and `waiting` (for
  /// streams that still use it). With WEFT_MEMORY_SNAPSHOT=FILE, an OutOfMemory writes it there.
  std::string snapshot() const;

 private:
  explicit CachingAllocator(Device device);
  struct State;
  State* state_;  // lives as long as the process: tensors may outlive statics
};

/// Stream-ordered scratch memory of a kernel: free for reuse on the queue's stream when this object goes.
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
