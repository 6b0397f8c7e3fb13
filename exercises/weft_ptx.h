// SPDX-License-Identifier: Apache-2.0
#pragma once
// PTX instructions as functions: Weft's own, each with a description (kernels/cuda/ptx/ptx.cuh, ptx_hopper.cuh,
// ptx_wgmma.cuh).
#include "kernels/cuda/ptx/ptx_wgmma.cuh"

namespace ptx = weft::kernels::cuda::ptx;
using weft::bf16;
