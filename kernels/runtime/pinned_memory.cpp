// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/pinned_memory.h"

#include <map>
#include <mutex>

#include "kernels/runtime/runtime.h"

namespace weft::kernels {
namespace {

constexpr size_t kPage = 4096;

struct Kept {
  std::mutex mutex;
  std::map<Runtime*, std::multimap<size_t, void*>> by_size;
};
Kept& kept() {
  static Kept& all = *new Kept;  // outlives every static object that holds memory
  return all;
}

/// The smallest that is kept, unless more than a quarter of it would lie idle.
void* take_kept(Runtime* runtime, size_t& bytes) {
  const std::lock_guard lock(kept().mutex);
  auto& by_size = kept().by_size[runtime];
  const auto found = by_size.lower_bound(bytes);
  if (found == by_size.end() || found->first - bytes > found->first / 4) return nullptr;
  bytes = found->first;
  return by_size.extract(found).mapped();
}

}  // namespace

PinnedMemory::~PinnedMemory() { give_back(); }

void PinnedMemory::give_back() noexcept {
  void* const memory = std::exchange(memory_, nullptr);
  if (!memory) return;
  if (kind_ == DeviceKind::cuda) {  // the CPU's heap keeps its own
    try {
      const std::lock_guard lock(kept().mutex);
      kept().by_size[runtime_].emplace(bytes_, memory);
      return;
    } catch (const std::bad_alloc&) {
    }
  }
  runtime_->release_pinned(memory);
}

std::byte* PinnedMemory::at_least(size_t bytes, const char* user) {
  if (bytes > 0 && (!memory_ || bytes > bytes_)) {
    give_back();
    runtime_ = &runtime(kind_);
    bytes_ = kind_ == DeviceKind::cuda ? (bytes + kPage - 1) / kPage * kPage : bytes;
    memory_ = take_kept(runtime_, bytes_);
    if (!memory_) memory_ = runtime_->allocate_pinned(bytes_);
    if (!memory_ && release_kept_pinned_memory() > 0) memory_ = runtime_->allocate_pinned(bytes_);
    WEFT_CHECK(memory_, user, ": cannot get ", bytes, " bytes of pinned memory");
  }
  return as<std::byte>();
}

size_t release_kept_pinned_memory() {
  const std::lock_guard lock(kept().mutex);
  size_t bytes = 0;
  for (auto& [runtime, by_size] : kept().by_size) {
    for (const auto& [size, memory] : by_size) {
      runtime->release_pinned(memory);
      bytes += size;
    }
    by_size.clear();
  }
  return bytes;
}

}  // namespace weft::kernels
