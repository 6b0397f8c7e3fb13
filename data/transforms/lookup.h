// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "data/picture.h"

namespace weft::data {

/// The value that each byte becomes.
using Lookup = std::array<uint8_t, 256>;

/// Every byte replaced by `table[byte]`, or by its channel's table.
Picture look_up(Picture picture, const Lookup& table);
Picture look_up(Picture picture, const std::vector<Lookup>& per_channel);

/// How often each byte occurs in one channel.
std::array<int64_t, 256> histogram(const Picture& picture, int64_t channel);

}  // namespace weft::data
