// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/wrong_index.h"

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "kernels/runtime/runtime.h"

namespace weft::kernels {
namespace {

constexpr int kMaxDevices = 64;

std::atomic<WrongIndex*>& place_of(Device device) {
  static std::array<std::array<std::atomic<WrongIndex*>, kMaxDevices>, 3> records{};
  WEFT_CHECK(device.index >= 0 && device.index < kMaxDevices, "wrong_index: no such device: ", device);
  return records[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index)];
}

}  // namespace

std::string text_of(const WrongIndex& wrong, Device device) {
  switch (wrong.text) {
    case WrongIndex::Text::position:
      return str(wrong.op, ": expected positions in [0, ", wrong.limit, "), got ", wrong.value, " as number ", wrong.at,
                 " of the index");
    case WrongIndex::Text::from_either_end:
      return str(wrong.op, ": expected positions in [-", wrong.limit, ", ", wrong.limit, "), got ", wrong.value,
                 " as number ", wrong.at, " of the index");
    case WrongIndex::Text::label:
      return str(wrong.op, ": expected labels 0 to ", wrong.limit - 1, ", got ", wrong.value, " in row ", wrong.at);
    case WrongIndex::Text::weights:
      return str(wrong.op, ": expected finite weights of at least 0, ", wrong.limit,
                 " or more of them positive, got others in row ", wrong.at);
    case WrongIndex::Text::class_of_logits:
      break;
  }
  return str(wrong.op, ": target ", wrong.value, " in row ", wrong.at, " is no class of logits ", wrong.dtype, '[',
             wrong.rows, ',', wrong.limit, "] on ", device, ": expected 0 to ", wrong.limit - 1,
             ". Does the model have the data set's number of classes?");
}

WrongIndex* wrong_index_record(Device device) {
  std::atomic<WrongIndex*>& place = place_of(device);
  if (WrongIndex* const record = place.load(std::memory_order_acquire)) return record;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (WrongIndex* const record = place.load(std::memory_order_acquire)) return record;
  void* const memory = runtime(device.kind).allocate_pinned(sizeof(WrongIndex));
  WEFT_CHECK(memory, "wrong_index: cannot get ", sizeof(WrongIndex), " bytes of pinned memory");
  auto* const record = new (memory) WrongIndex;
  place.store(record, std::memory_order_release);
  return record;
}

void check_wrong_index(Device device) {
  WrongIndex* const record = place_of(device).load(std::memory_order_acquire);
  if (!record) return;
  const std::atomic_ref state(record->state);
  if (state.load(std::memory_order_acquire) != WrongIndex::kComplete) return;
  const WrongIndex found = *record;
  state.store(WrongIndex::kNone, std::memory_order_release);
  throw Error(text_of(found, device));
}

}  // namespace weft::kernels
