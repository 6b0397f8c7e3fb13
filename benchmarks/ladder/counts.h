// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "emulator/exported_counts.h"

namespace weft::benchmarks {

/// True where the GPU is weft-emulate's. A real one does not count.
bool can_count();
/// Counts the kernels that `work` launches. Errors: a real GPU.
weft_emulator_counts count(const std::function<void()>& work);

}  // namespace weft::benchmarks
