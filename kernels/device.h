// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "kernels/error.h"

namespace weft {

/// Where tensors are stored. A program that weft-emulate starts sees emulated GPUs as `cuda`.
enum class DeviceKind : uint8_t { cpu, cuda };

constexpr std::string_view name(DeviceKind kind) {
  constexpr std::string_view names[] = {"cpu", "cuda"};
  return names[static_cast<int>(kind)];
}

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

/// `cpu`, `cuda:0`.
inline std::ostream& operator<<(std::ostream& out, Device device) {
  out << name(device.kind);
  if (device.kind == DeviceKind::cuda) out << ':' << device.index;
  return out;
}

/// Reads `cpu`, `cuda`, `cuda:3`. Errors: any other text.
inline Device parse_device(const std::string& text) {
  if (text == "cpu") return {DeviceKind::cpu, 0};
  if (text == "cuda") return {DeviceKind::cuda, 0};
  if (text.rfind("cuda:", 0) == 0 && text.size() > 5 && text.size() < 9 &&
      text.find_first_not_of("0123456789", 5) == std::string::npos)
    return {DeviceKind::cuda, std::stoi(text.substr(5))};
  fail("device: expected cpu, cuda, cuda:N or emulated, got '", text, "'");
}

}  // namespace weft
