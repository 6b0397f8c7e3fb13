// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/queue.h"

namespace weft::kernels {

struct MemoryPool;  // of one captured graph; see CachingAllocator::open_pool

/// One piece of device memory, handed out by a CachingAllocator. Fields other than data, bytes and owner are its own.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;        ///< as asked for
  size_t capacity = 0;     ///< as obtained from the device
  const char* owner = "";  ///< the op that asked (a string literal)
  void* stream = nullptr;  ///< the stream on which the block may be used again at once
  int size_class = 0;
  MemoryPool* pool = nullptr;  ///< that the block belongs to, for good
  std::vector<void*> users;    ///< other streams that used it
  std::vector<void*> events;   ///< once it is freed: what they must have done before it is used again
  Block* previous = nullptr;
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

/// Memory of one device, kept for reuse so that training steps do not ask the driver. A freed block goes back to the
/// list of its size class *and stream*: work enqueued later on that stream may use it at once, since it runs after. A
/// block that other streams used (record_stream) waits until they have done all that they were given until it was
/// freed. Size classes are eighths of powers of two, so at most 12.5% is lost. Thread-safe; the lock is not held while
/// the device is asked for memory or waited for, so a thread that ends a device's hung work gets through.
///
/// On simt, and with WEFT_NO_CACHE=1 everywhere, nothing is cached but in the pools of graphs: every tensor is an
/// allocation of its own, so that the emulator and compute-sanitizer see each overrun and each use after free.
class CachingAllocator {
 public:
  static CachingAllocator& of(Device device);

  /// Never returns nullptr. Errors: OutOfMemory with live / cached / free bytes and the largest live blocks by op.
  Block* allocate(size_t bytes, void* stream, const char* owner);
  void free(Block* block) noexcept;
  /// Tells that work on `stream` uses the block, now or until it is freed: it is reused only after that work. The
  /// stream must be there until then, as a weft::Stream's always is.
  void record_stream(Block* block, void* stream);

  MemoryStats stats() const;
  void reset_peak();
  /// Memory of a captured graph: from here to close_pool, blocks for this thread, whatever the stream, come from a pool
  /// of their own and go back to it, so that nobody else gets an address that the graph will write to. The device is
  /// asked for nothing but new memory meanwhile: neither events nor the device are waited for, which a capture forbids.
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
