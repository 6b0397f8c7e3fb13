// SPDX-License-Identifier: Apache-2.0
// The forms that only CUDA 12's runtime has.
#if EMULATOR_CUDART == 12
#include <cstring>

#include "emulator/cuda/runtime/call.h"
#include "emulator/cuda/runtime/device_properties_12.h"

using namespace emulator;
using namespace emulator::cuda;

#undef cudaEventElapsedTime
#undef cudaGraphAddDependencies
#undef cudaGraphAddNode
#undef cudaGraphGetEdges
#undef cudaGraphNodeGetDependencies
#undef cudaGraphNodeGetDependentNodes
#undef cudaGraphRemoveDependencies
#undef cudaMemAdvise
#undef cudaMemPrefetchAsync
#undef cudaStreamGetCaptureInfo
#undef cudaStreamUpdateCaptureDependencies

namespace {

template <class To, class From>
void take(To& to, const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&to, &from, sizeof(To));
}

}  // namespace

WEFT_EXPORT cudaError_t cudaGetDeviceProperties_v2(DeviceProperties12* to, int ordinal) {
  return runtime_call([&] {
    const Device& device = Device::get(ordinal);
    const auto of = [&](int attribute) {
      int value = 0;
      device_attribute(device, attribute, value);
      return value;
    };
    cudaDeviceProp p;
    device_properties(device, p);
    *to = {};
    take(to->name, p.name);
    take(to->uuid, p.uuid);
    take(to->luid, p.luid);
    take(to->luidDeviceNodeMask, p.luidDeviceNodeMask);
    take(to->totalGlobalMem, p.totalGlobalMem);
    take(to->sharedMemPerBlock, p.sharedMemPerBlock);
    take(to->regsPerBlock, p.regsPerBlock);
    take(to->warpSize, p.warpSize);
    take(to->memPitch, p.memPitch);
    take(to->maxThreadsPerBlock, p.maxThreadsPerBlock);
    take(to->maxThreadsDim, p.maxThreadsDim);
    take(to->maxGridSize, p.maxGridSize);
    take(to->totalConstMem, p.totalConstMem);
    take(to->major, p.major);
    take(to->minor, p.minor);
    take(to->textureAlignment, p.textureAlignment);
    take(to->texturePitchAlignment, p.texturePitchAlignment);
    take(to->multiProcessorCount, p.multiProcessorCount);
    take(to->integrated, p.integrated);
    take(to->canMapHostMemory, p.canMapHostMemory);
    take(to->maxTexture1D, p.maxTexture1D);
    take(to->maxTexture1DMipmap, p.maxTexture1DMipmap);
    take(to->maxTexture2D, p.maxTexture2D);
    take(to->maxTexture2DMipmap, p.maxTexture2DMipmap);
    take(to->maxTexture2DLinear, p.maxTexture2DLinear);
    take(to->maxTexture2DGather, p.maxTexture2DGather);
    take(to->maxTexture3D, p.maxTexture3D);
    take(to->maxTexture3DAlt, p.maxTexture3DAlt);
    take(to->maxTextureCubemap, p.maxTextureCubemap);
    take(to->maxTexture1DLayered, p.maxTexture1DLayered);
    take(to->maxTexture2DLayered, p.maxTexture2DLayered);
    take(to->maxTextureCubemapLayered, p.maxTextureCubemapLayered);
    take(to->maxSurface1D, p.maxSurface1D);
    take(to->maxSurface2D, p.maxSurface2D);
    take(to->maxSurface3D, p.maxSurface3D);
    take(to->maxSurface1DLayered, p.maxSurface1DLayered);
    take(to->maxSurface2DLayered, p.maxSurface2DLayered);
    take(to->maxSurfaceCubemap, p.maxSurfaceCubemap);
    take(to->maxSurfaceCubemapLayered, p.maxSurfaceCubemapLayered);
    take(to->surfaceAlignment, p.surfaceAlignment);
    take(to->concurrentKernels, p.concurrentKernels);
    take(to->ECCEnabled, p.ECCEnabled);
    take(to->pciBusID, p.pciBusID);
    take(to->pciDeviceID, p.pciDeviceID);
    take(to->pciDomainID, p.pciDomainID);
    take(to->tccDriver, p.tccDriver);
    take(to->asyncEngineCount, p.asyncEngineCount);
    take(to->unifiedAddressing, p.unifiedAddressing);
    take(to->memoryBusWidth, p.memoryBusWidth);
    take(to->l2CacheSize, p.l2CacheSize);
    take(to->persistingL2CacheMaxSize, p.persistingL2CacheMaxSize);
    take(to->maxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor);
    take(to->streamPrioritiesSupported, p.streamPrioritiesSupported);
    take(to->globalL1CacheSupported, p.globalL1CacheSupported);
    take(to->localL1CacheSupported, p.localL1CacheSupported);
    take(to->sharedMemPerMultiprocessor, p.sharedMemPerMultiprocessor);
    take(to->regsPerMultiprocessor, p.regsPerMultiprocessor);
    take(to->managedMemory, p.managedMemory);
    take(to->isMultiGpuBoard, p.isMultiGpuBoard);
    take(to->multiGpuBoardGroupID, p.multiGpuBoardGroupID);
    take(to->hostNativeAtomicSupported, p.hostNativeAtomicSupported);
    take(to->pageableMemoryAccess, p.pageableMemoryAccess);
    take(to->concurrentManagedAccess, p.concurrentManagedAccess);
    take(to->computePreemptionSupported, p.computePreemptionSupported);
    take(to->canUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem);
    take(to->cooperativeLaunch, p.cooperativeLaunch);
    take(to->sharedMemPerBlockOptin, p.sharedMemPerBlockOptin);
    take(to->pageableMemoryAccessUsesHostPageTables, p.pageableMemoryAccessUsesHostPageTables);
    take(to->directManagedMemAccessFromHost, p.directManagedMemAccessFromHost);
    take(to->maxBlocksPerMultiProcessor, p.maxBlocksPerMultiProcessor);
    take(to->accessPolicyMaxWindowSize, p.accessPolicyMaxWindowSize);
    take(to->reservedSharedMemPerBlock, p.reservedSharedMemPerBlock);
    take(to->hostRegisterSupported, p.hostRegisterSupported);
    take(to->sparseCudaArraySupported, p.sparseCudaArraySupported);
    take(to->hostRegisterReadOnlySupported, p.hostRegisterReadOnlySupported);
    take(to->timelineSemaphoreInteropSupported, p.timelineSemaphoreInteropSupported);
    take(to->memoryPoolsSupported, p.memoryPoolsSupported);
    take(to->gpuDirectRDMASupported, p.gpuDirectRDMASupported);
    take(to->gpuDirectRDMAFlushWritesOptions, p.gpuDirectRDMAFlushWritesOptions);
    take(to->gpuDirectRDMAWritesOrdering, p.gpuDirectRDMAWritesOrdering);
    take(to->memoryPoolSupportedHandleTypes, p.memoryPoolSupportedHandleTypes);
    take(to->deferredMappingCudaArraySupported, p.deferredMappingCudaArraySupported);
    take(to->ipcEventSupported, p.ipcEventSupported);
    take(to->clusterLaunch, p.clusterLaunch);
    take(to->unifiedFunctionPointers, p.unifiedFunctionPointers);
    to->clockRate = of(cudaDevAttrClockRate);
    to->deviceOverlap = of(cudaDevAttrGpuOverlap);
    to->kernelExecTimeoutEnabled = of(cudaDevAttrKernelExecTimeout);
    to->computeMode = of(cudaDevAttrComputeMode);
    to->maxTexture1DLinear = of(cudaDevAttrMaxTexture1DLinearWidth);
    to->memoryClockRate = of(cudaDevAttrMemoryClockRate);
    to->singleToDoublePrecisionPerfRatio = of(cudaDevAttrSingleToDoublePrecisionPerfRatio);
  });
}
WEFT_EXPORT cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime_v2(ms, start, end);
}
WEFT_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                 const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
WEFT_EXPORT cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                    const cudaGraphNode_t* to, size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}
WEFT_EXPORT cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                         size_t count, cudaGraphNodeParams* p) {
  return cudaGraphAddNode_v2(node, graph, dependencies, nullptr, count, p);
}
WEFT_EXPORT cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                          size_t* count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}
WEFT_EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}
WEFT_EXPORT cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}
WEFT_EXPORT cudaError_t cudaMemAdvise(const void* memory, size_t bytes, cudaMemoryAdvise advice, int) {
  return cudaMemAdvise_v2(memory, bytes, advice, {});
}
WEFT_EXPORT cudaError_t cudaMemPrefetchAsync(const void* memory, size_t bytes, int, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(memory, bytes, {}, 0, stream);
}
WEFT_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                 unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
WEFT_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                    unsigned long long* id, cudaGraph_t* graph,
                                                    const cudaGraphNode_t** dependencies, size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
WEFT_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                            size_t count, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}
WEFT_EXPORT cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
WEFT_EXPORT cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
#endif
