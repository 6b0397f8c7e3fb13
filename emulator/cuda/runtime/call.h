// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every file of the runtime's entry points includes this first. It declares the entry points for export.

#if EMULATOR_CUDART == 12
// CUDA 12 has these forms under names of their own; the plain names are older forms there (older_calls.cpp).
#define cudaEventElapsedTime cudaEventElapsedTime_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#define cudaGraphAddNode cudaGraphAddNode_v2
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
#define cudaMemAdvise cudaMemAdvise_v2
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaGetDeviceProperties properties_of_cuda_13
#endif

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include "emulator/cuda/capture.h"
#include "emulator/cuda/copy.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/graph.h"
#include "emulator/cuda/kernels.h"
#include "emulator/cuda/launch.h"
#include "emulator/cuda/memory_calls.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/memory.h"

/// The result of cudaRuntimeGetVersion.
#if EMULATOR_CUDART == 12
constexpr int kRuntimeVersion = 12080;
#else
constexpr int kRuntimeVersion = CUDART_VERSION;
#endif

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))
