// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "core/intrusive.h"
#include "kernels/runtime/allocator.h"

namespace weft {

/// The memory behind one or more tensors, and the count of in-place changes. The memory may be given back
/// while the storage lives on (sharded parameters between two uses): tensors that autograd saved work again once the
/// memory is there again, at any address. A storage may be a part of a larger one and may move there (parameters into
/// flat buffers): tensors follow, for they look up the address at each use.
class Storage : public RefCounted {
 public:
  /// Takes memory from the device's caching allocator, tagged with the running op's name.
  Storage(Device device, size_t bytes);
  /// Wraps memory of another owner; `release` is called when the last tensor goes.
  Storage(Device device, void* data, size_t bytes, std::function<void()> release);
  /// Bytes `offset` … `offset + bytes` - 1 of `whole`.
  Storage(Ref<Storage> whole, size_t offset, size_t bytes);
  ~Storage() override;

  void* data() const { return whole_ ? whole_->at(offset_) : data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// Gives the memory back to the allocator; bytes() and version() stay. Views must not be used until acquire(), and
  /// tensors that still are views then need set_data(). Errors: memory of another owner.
  void release();
  /// Takes memory for bytes() again, its contents unwritten; nothing where it is there.
  void acquire();
  /// False between release() and acquire().
  bool has_memory() const { return whole_ ? whole_->has_memory() : block_ || release_ || data_ || bytes_ == 0; }

  /// The storage that this one is a part of; null where it has memory of its own.
  const Ref<Storage>& whole() const { return whole_; }
  size_t offset() const { return offset_; }
  /// Equal for storages that share memory.
  const Storage* memory() const { return whole_ ? whole_->memory() : this; }
  /// Becomes a part of `whole`, which holds the same bytes there, and frees its own memory; version() stays.
  void move_into(Ref<Storage> whole, size_t offset);
  /// Takes memory of its own and copies its bytes there; version() stays.
  void move_out();
  /// Whether move_into() may free the memory: nobody else knows its address.
  bool can_move() const { return (block_ || whole_) && !is_exported_; }
  /// Another library has the address from now on.
  void set_exported() { is_exported_ = true; }

  /// Counts in-place writes; a tensor saved for backward remembers it. A write to a whole counts for each part. A write
  /// to a part counts for the whole, and not for other parts.
  uint32_t version() const { return writes() + writes_to_parts_; }
  void bump_version() {
    ++version_;
    for (Storage* whole = whole_.get(); whole; whole = whole->whole_.get()) ++whole->writes_to_parts_;
  }
  /// Counts in-place writes to this storage alone, without those to its whole.
  uint32_t own_writes() const { return version_; }

  /// Tells the allocator that a stream other than the one of allocation uses the memory.
  void record_stream(void* stream);

 private:
  void* at(size_t offset) const {
    void* const begin = data();
    return begin ? static_cast<char*>(begin) + offset : nullptr;
  }
  uint32_t writes() const { return version_ + (whole_ ? whole_->writes() : 0); }
  void free_memory();

  Device device_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  uint32_t version_ = 0, writes_to_parts_ = 0;
  Ref<Storage> whole_;
  size_t offset_ = 0;  // in the whole, in bytes
  bool is_exported_ = false;
  kernels::Block* block_ = nullptr;
  std::function<void()> release_;
};

}  // namespace weft
