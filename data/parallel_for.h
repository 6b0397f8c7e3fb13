// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

namespace weft::data {

/// Calls body(i) for every i in 0 … count-1 from up to `threads` threads (0: one per core), in no particular order.
/// The first exception stops the rest and is thrown again here.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace weft::data
