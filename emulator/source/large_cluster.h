// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/runtime_api.h"

// For kernels whose clusters have more than 8 blocks, which not every GPU runs: with this attribute they may have 16.

namespace emulator::source::api {

constexpr auto cudaFuncAttributeNonPortableClusterSizeAllowed = static_cast<cudaFuncAttribute>(14);

}  // namespace emulator::source::api
