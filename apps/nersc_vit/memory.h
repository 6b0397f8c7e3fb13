// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/device.h"

namespace weft::nersc_vit {

/// GB (2^30 bytes) in use: of a GPU's memory by everyone, else of this process at most.
double memory_in_use(Device device);

}  // namespace weft::nersc_vit
