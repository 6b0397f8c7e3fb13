// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/autocast_mode.h>

namespace peer {

/// torch.autocast("cpu", torch.bfloat16) of Python.
class Autocast {
 public:
  explicit Autocast(bool enabled) {
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(enabled);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_cpu_enabled(false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

}  // namespace peer
