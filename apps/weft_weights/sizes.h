// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <string>

#include "io/stored_dtype.h"
#include "io/weights/weights_file.h"

namespace weft::weft_weights {

/// `44.6 MiB`.
inline std::string size_text(uint64_t bytes) {
  auto value = static_cast<double>(bytes);
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

/// Whether the file holds the dtype that it is read as.
inline bool is_stored_as_is(const WeightInfo& info) { return stored_name(info.dtype) == info.stored; }

}  // namespace weft::weft_weights
