// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "core/intrusive.h"
#include "kernels/allocator.h"

namespace weft {

/// The memory behind one or more tensors, and the count of in-place changes made to it. The memory may be given back
/// while the storage lives on (sharded parameters between two uses): what autograd saved of it works again once the
/// memory is there again, wherever that is.
class Storage : public RefCounted {
 public:
  /// Takes memory from the device's caching allocator, tagged with the running op's name.
  Storage(Device device, size_t bytes);
  /// Wraps memory that somebody else owns; `release` is called when the last tensor goes.
  Storage(Device device, void* data, size_t bytes, std::function<void()> release);
  ~Storage() override;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// Gives the memory back to the allocator; bytes() and version() stay. Views into it must not be used until
  /// acquire(), and tensors that still are views need set_data() after it. Errors: memory that somebody else owns.
  void release();
  /// Takes memory for bytes() again, its contents unwritten; nothing where it is there.
  void acquire();
  /// False between release() and acquire().
  bool has_memory() const { return block_ || release_ || data_ || bytes_ == 0; }

  /// Counts in-place writes; a tensor saved for backward remembers it.
  uint32_t version() const { return version_; }
  void bump_version() { ++version_; }

  /// Tells the allocator that a stream other than the one of allocation uses the memory.
  void record_stream(void* stream);

 private:
  Device device_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  uint32_t version_ = 0;
  kernels::Block* block_ = nullptr;
  std::function<void()> release_;
};

}  // namespace weft
