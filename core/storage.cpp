// SPDX-License-Identifier: Apache-2.0
#include "core/storage.h"

#include "core/stream.h"
#include "core/trace.h"

namespace weft {

Storage::Storage(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  block_ = kernels::CachingAllocator::of(device).allocate(bytes, current_stream(device), current_op());
  data_ = block_->data;
}

Storage::Storage(Device device, void* data, size_t bytes, std::function<void()> release)
    : device_(device), data_(data), bytes_(bytes), release_(std::move(release)) {}

Storage::~Storage() {
  if (block_) kernels::CachingAllocator::of(device_).free(block_);
  if (release_) release_();
}

void Storage::release() {
  if (!has_memory()) return;
  WEFT_CHECK(block_, "storage: release: its ", bytes_, " bytes belong to somebody else");
  kernels::CachingAllocator::of(device_).free(block_);
  block_ = nullptr;
  data_ = nullptr;
}

void Storage::acquire() {
  if (has_memory()) return;
  block_ = kernels::CachingAllocator::of(device_).allocate(bytes_, current_stream(device_), current_op());
  data_ = block_->data;
}

void Storage::record_stream(void* stream) {
  if (block_) kernels::CachingAllocator::of(device_).record_stream(block_, stream);
}

}  // namespace weft
