// SPDX-License-Identifier: Apache-2.0
#include "core/storage.h"

#include "core/stream.h"
#include "core/trace.h"
#include "kernels/runtime/transfer.h"

namespace weft {

Storage::Storage(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  block_ = kernels::CachingAllocator::of(device).allocate(bytes, current_stream(device), current_op());
  data_ = block_->data;
}

Storage::Storage(Device device, void* data, size_t bytes, std::function<void()> release)
    : device_(device), data_(data), bytes_(bytes), release_(std::move(release)) {}

Storage::Storage(Ref<Storage> whole, size_t offset, size_t bytes)
    : device_(whole->device()), bytes_(bytes), whole_(std::move(whole)), offset_(offset) {}

Storage::~Storage() {
  free_memory();
  if (release_) release_();
}

void Storage::free_memory() {
  if (block_) kernels::CachingAllocator::of(device_).free(block_);
  block_ = nullptr;
  data_ = nullptr;
}

void Storage::release() {
  if (!has_memory()) return;
  WEFT_CHECK(block_ || whole_, "storage: release: its ", bytes_, " bytes belong to somebody else");
  version_ = writes();
  whole_ = {};
  free_memory();
}

void Storage::move_into(Ref<Storage> whole, size_t offset) {
  const uint32_t now = writes();
  free_memory();
  whole_ = std::move(whole);
  offset_ = offset;
  version_ = now - whole_->writes();
}

void Storage::move_out() {
  const uint32_t now = writes();
  const void* const source = data();
  block_ = kernels::CachingAllocator::of(device_).allocate(bytes_, current_stream(device_), current_op());
  data_ = block_->data;
  kernels::transfer(current_queue(device_), "copy", data_, source, bytes_);
  whole_ = {};
  version_ = now;
}

void Storage::acquire() {
  if (has_memory()) return;
  block_ = kernels::CachingAllocator::of(device_).allocate(bytes_, current_stream(device_), current_op());
  data_ = block_->data;
}

void Storage::record_stream(void* stream) {
  if (whole_) return whole_->record_stream(stream);
  if (block_) kernels::CachingAllocator::of(device_).record_stream(block_, stream);
}

}  // namespace weft
