// SPDX-License-Identifier: Apache-2.0
#include "core/choose_device.h"

#include "core/emulated.h"
#include "core/text.h"
#include "kernels/runtime/runtime.h"

namespace weft {

Device choose_device(const std::string& text) {
  const std::string named = enter_emulator(text);
  const auto count_gpus = [] { return kernels::runtime(DeviceKind::cuda).device_count(); };
  if (named == "auto") return {count_gpus() > 0 ? DeviceKind::cuda : DeviceKind::cpu, 0};
  const Device device = parse_device(printable(named));  // unchanged, where it is a device
  if (device.kind != DeviceKind::cuda) return device;
  if (const int gpus = count_gpus(); device.index >= gpus) {
    if (gpus > 0) fail("device: expected cuda:0 … cuda:", gpus - 1, ", got '", text, "'");
    std::string reason;
    try {
      reason = kernels::runtime(DeviceKind::cuda).describe(device.index);
    } catch (const Error& error) {
      reason = error.what();
    }
    fail("device: '", text, "' cannot be used: ", reason, ". Use --device cpu, or emulated for an emulated GPU");
  }
  return device;
}

std::string describe(Device device) {
  return str(device, " (", kernels::runtime(device.kind).describe(device.index), ")");
}

}  // namespace weft
