// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "kernels/device.h"
#include "kernels/dtype.h"

namespace weft::kernels {

/// A label or position outside of its range. A device finds such an error while the host is far ahead. Its kernels
/// write the first error into a record that host and device share. The host throws at its next wait for the device:
/// nothing waits for the check.
struct WrongIndex {
  /// How it reads; `value` is number `at` (row `at`) and should be in [0, limit).
  enum class Text : uint32_t {
    position,         ///< in an index
    from_either_end,  ///< in an index, where negative values count from the end
    label,            ///< as a row's label
    class_of_logits,  ///< as class of a row of logits `dtype` [rows, limit]
    weights,          ///< for a row, which needs `limit` positive weights; no value
  };
  static constexpr uint32_t kNone = 0, kClaimed = 1, kComplete = 2;

  uint32_t state = kNone;
  Text text = Text::position;
  const char* op = "";  ///< a string literal of the host, which the device only hands back
  DType dtype = DType::f32;
  int64_t value = 0, at = 0, limit = 0, rows = 0;
};

/// The error's text, which the CPU reports at once and a device later.
std::string text_of(const WrongIndex& wrong, Device device);

/// The device's record, made at its first use: not inside a capture (Graph::capture makes it before).
WrongIndex* wrong_index_record(Device device);

/// After a wait for the device. Throws what its kernels found, once.
void check_wrong_index(Device device);

}  // namespace weft::kernels
