// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/kernel_variant.h"

namespace weft::tests {

/// The kernels that run while it lives: by name, and by name and variant ("matmul sm90").
struct KernelCalls : kernels::KernelObserver {
  KernelCalls() { kernels::set_kernel_observer(this); }
  ~KernelCalls() override { kernels::set_kernel_observer(nullptr); }
  void before(const kernels::KernelCall&) override { kernels::note_kernel_variant(""); }
  void after(const kernels::KernelCall& call) override {
    const std::string variant = kernels::noted_kernel_variant();
    names.emplace_back(call.name);
    ++count[names.back()];
    if (!variant.empty()) ++count[names.back() + ' ' + variant];
  }
  std::map<std::string, int> count;
  std::vector<std::string> names;  ///< in order
};

}  // namespace weft::tests
