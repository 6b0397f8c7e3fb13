// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/queue.h"

namespace weft::kernels {

/// One piece of device memory, handed out by a CachingAllocator. Fields other than data, bytes and owner are its own.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;        ///< as asked for
  size_t capacity = 0;     ///< as obtained from the device
  const char* owner = "";  ///< the op that asked (a string literal)
  void* stream = nullptr;  ///< the stream on which the block may be used again at once
  int size_class = 0;
  std::vector<void*> events;  ///< uses on other streams that must finish before reuse
  Block* previous = nullptr;
  Block* next = nullptr;
};

/// Bytes unless said otherwise. live: in use now; cached: kept for reuse; peak_live: since the last reset_peak().
struct MemoryStats {
  size_t live = 0, cached = 0, peak_live = 0;
  uint64_t allocations = 0;      ///< calls of allocate
  uint64_t raw_allocations = 0;  ///< of them, those that had to ask the device
};

/// Memory of one device, kept for reuse so that training steps do not ask the driver. A freed block goes back to the
/// list of its size class *and stream*: work enqueued later on that stream may use it at once, since it runs after. A
/// block used on another stream (record_stream) waits for that stream's event. Size classes are eighths of powers of
/// two, so at most 12.5% is lost. Thread-safe.
///
/// On simt nothing is cached: every tensor is its own emulated allocation, so that each overrun is seen.
class CachingAllocator {
 public:
  static CachingAllocator& of(Device device);

  /// Never returns nullptr. Errors: OutOfMemory with live / cached / free bytes and the largest live blocks by op.
  Block* allocate(size_t bytes, void* stream, const char* owner);
  void free(Block* block) noexcept;
  /// Tells that work on `stream` uses the block: it is reused only after that work.
  void record_stream(Block* block, void* stream);

  MemoryStats stats() const;
  void reset_peak();
  /// Gives cached blocks back to the device.
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
