// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>

#include "core/stream.h"

namespace weft::finetune {

/// Seconds between go_on(), as which the constructor counts, and pause(), which waits for the device's work.
class StepClock {
 public:
  explicit StepClock(Device device) : device_(device) { go_on(); }
  void go_on() { since_ = std::chrono::steady_clock::now(); }
  void pause() {
    synchronize(device_);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  }
  double seconds() const { return seconds_; }

 private:
  Device device_;
  std::chrono::steady_clock::time_point since_;
  double seconds_ = 0;
};

}  // namespace weft::finetune
