// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emulator/cuda/device.h"
#include "emulator/machine/options.h"

namespace emulator::cuda {
namespace {

constexpr int kMaxPitch = 0x7fffffff;
// Textures and surfaces.
constexpr int k1d = 131072, k2dWidth = 131072, k2dHeight = 65536, k3d = 16384, kLayers = 2048, kCube = 32768;

}  // namespace

bool device_attribute(const Device& device, int attribute, int& value) {
  const Gpu& gpu = device.gpu();
  const bool hopper = gpu.major >= 9;
  value = 0;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      value = 1024;
      break;
    case cudaDevAttrMaxBlockDimZ:
      value = 64;
      break;
    case cudaDevAttrMaxGridDimX:
      value = 0x7fffffff;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      value = 65535;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      value = 48 << 10;
      break;
    case cudaDevAttrTotalConstantMemory:
      value = 64 << 10;
      break;
    case cudaDevAttrWarpSize:
      value = 32;
      break;
    case cudaDevAttrMaxPitch:
      value = kMaxPitch;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      value = 65536;
      break;
    case cudaDevAttrClockRate:
      value = gpu.clock_khz;
      break;
    case cudaDevAttrMemoryClockRate:
      value = gpu.memory_clock_khz;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      value = gpu.memory_bus_bits;
      break;
    case cudaDevAttrTextureAlignment:
    case cudaDevAttrSurfaceAlignment:
      value = 512;
      break;
    case cudaDevAttrTexturePitchAlignment:
      value = 32;
      break;
    case cudaDevAttrMultiProcessorCount:
      value = gpu.processors;
      break;
    case cudaDevAttrL2CacheSize:
      value = int(gpu.l2_bytes);
      break;
    case cudaDevAttrMaxPersistingL2CacheSize:
      value = int(gpu.l2_bytes / 4 * 3);
      break;
    case cudaDevAttrMaxAccessPolicyWindowSize:
      value = 128 << 20;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      value = gpu.threads_per_processor;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      value = gpu.blocks_per_processor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      value = gpu.shared_per_processor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      value = gpu.shared_per_block_optin;
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      value = 1024;
      break;
    case cudaDevAttrAsyncEngineCount:
      value = 3;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      value = gpu.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      value = gpu.minor;
      break;
    case cudaDevAttrPciBusId:
      value = 0x10 + device.ordinal();
      break;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      value = gpu.minor == 0 ? 2 : 64;
      break;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrCanFlushRemoteWrites:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrEccEnabled:
      value = 1;
      break;
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrDirectManagedMemAccessFromHost:
      value = gpu.coherent_host();
      break;
    case cudaDevAttrClusterLaunch:
      value = hopper;
      break;
    case cudaDevAttrMemSyncDomainCount:
      value = hopper ? 4 : 1;
      break;
    case cudaDevAttrMultiGpuBoardGroupID:
      value = device.ordinal();
      break;
    case cudaDevAttrNumaId:
    case cudaDevAttrHostNumaId:
      value = attribute == cudaDevAttrHostNumaId ? 0 : -1;
      break;
    case cudaDevAttrMaxTexture1DWidth:
    case cudaDevAttrMaxTexture2DWidth:
      value = k2dWidth;
      break;
    case cudaDevAttrMaxTexture2DHeight:
      value = k2dHeight;
      break;
    case cudaDevAttrMaxTexture3DWidth:
    case cudaDevAttrMaxTexture3DHeight:
    case cudaDevAttrMaxTexture3DDepth:
      value = k3d;
      break;
    case cudaDevAttrMaxTexture3DWidthAlt:
    case cudaDevAttrMaxTexture3DHeightAlt:
      value = k3d / 2;
      break;
    case cudaDevAttrMaxTexture3DDepthAlt:
      value = k3d * 2;
      break;
    case cudaDevAttrMaxTexture1DLayeredWidth:
    case cudaDevAttrMaxTexture2DLayeredWidth:
    case cudaDevAttrMaxTexture2DLayeredHeight:
    case cudaDevAttrMaxTexture2DGatherWidth:
    case cudaDevAttrMaxTexture2DGatherHeight:
    case cudaDevAttrMaxTextureCubemapWidth:
    case cudaDevAttrMaxTextureCubemapLayeredWidth:
    case cudaDevAttrMaxTexture2DMipmappedWidth:
    case cudaDevAttrMaxTexture2DMipmappedHeight:
    case cudaDevAttrMaxTexture1DMipmappedWidth:
    case cudaDevAttrMaxSurface1DWidth:
    case cudaDevAttrMaxSurface1DLayeredWidth:
    case cudaDevAttrMaxSurface2DLayeredWidth:
    case cudaDevAttrMaxSurface2DLayeredHeight:
    case cudaDevAttrMaxSurfaceCubemapWidth:
    case cudaDevAttrMaxSurfaceCubemapLayeredWidth:
      value = kCube;
      break;
    case cudaDevAttrMaxTexture1DLayeredLayers:
    case cudaDevAttrMaxTexture2DLayeredLayers:
    case cudaDevAttrMaxSurface1DLayeredLayers:
    case cudaDevAttrMaxSurface2DLayeredLayers:
      value = kLayers;
      break;
    case cudaDevAttrMaxTextureCubemapLayeredLayers:
    case cudaDevAttrMaxSurfaceCubemapLayeredLayers:
      value = kLayers - 2;
      break;
    case cudaDevAttrMaxSurface2DWidth:
      value = k1d;
      break;
    case cudaDevAttrMaxSurface2DHeight:
      value = k2dHeight;
      break;
    case cudaDevAttrMaxSurface3DWidth:
    case cudaDevAttrMaxSurface3DHeight:
    case cudaDevAttrMaxSurface3DDepth:
      value = k3d;
      break;
    case cudaDevAttrMaxTexture1DLinearWidth:
      value = 1 << 28;
      break;
    case cudaDevAttrMaxTexture2DLinearWidth:
      value = k1d;
      break;
    case cudaDevAttrMaxTexture2DLinearHeight:
      value = 65000;
      break;
    case cudaDevAttrMaxTexture2DLinearPitch:
      value = 2097120;
      break;
    case cudaDevAttrIpcEventSupport:
      value = 1;
      break;
    // All else that exists is 0: not integrated, no time limit, no RDMA, …
    default:
      return attribute > 0 && attribute <= cudaDevAttrOnlyPartialHostNativeAtomicSupported;
  }
  return true;
}

void device_properties(const Device& device, cudaDeviceProp& p) {
  const Gpu& gpu = device.gpu();
  const auto of = [&](int attribute) {
    int value = 0;
    device_attribute(device, attribute, value);
    return value;
  };
  p = {};
  gpu.name.copy(p.name, sizeof p.name - 1);
  const auto uuid = device.uuid();
  std::memcpy(p.uuid.bytes, uuid.data(), uuid.size());
  p.totalGlobalMem = options().memory_mib > 0 ? options().memory_mib << 20 : gpu.memory_bytes;
  p.sharedMemPerBlock = size_t(of(cudaDevAttrMaxSharedMemoryPerBlock));
  p.regsPerBlock = p.regsPerMultiprocessor = of(cudaDevAttrMaxRegistersPerBlock);
  p.warpSize = 32;
  p.memPitch = size_t(kMaxPitch);
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = of(cudaDevAttrMaxGridDimX);
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = size_t(of(cudaDevAttrTotalConstantMemory));
  p.major = gpu.major;
  p.minor = gpu.minor;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = gpu.processors;
  p.canMapHostMemory = 1;
  p.maxTexture1D = k1d;
  p.maxTexture1DMipmap = kCube;
  p.maxTexture2D[0] = k2dWidth;
  p.maxTexture2D[1] = k2dHeight;
  p.maxTexture2DMipmap[0] = p.maxTexture2DMipmap[1] = kCube;
  p.maxTexture2DLinear[0] = k1d;
  p.maxTexture2DLinear[1] = 65000;
  p.maxTexture2DLinear[2] = 2097120;
  p.maxTexture2DGather[0] = p.maxTexture2DGather[1] = kCube;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = k3d;
  p.maxTexture3DAlt[0] = p.maxTexture3DAlt[1] = k3d / 2;
  p.maxTexture3DAlt[2] = k3d * 2;
  p.maxTextureCubemap = kCube;
  p.maxTexture1DLayered[0] = p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = kCube;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = kLayers;
  p.maxTextureCubemapLayered[0] = p.maxSurface1D = p.maxSurfaceCubemap = kCube;
  p.maxTextureCubemapLayered[1] = p.maxSurfaceCubemapLayered[1] = kLayers - 2;
  p.maxSurface2D[0] = k1d;
  p.maxSurface2D[1] = k2dHeight;
  p.maxSurface3D[0] = p.maxSurface3D[1] = p.maxSurface3D[2] = k3d;
  p.maxSurface1DLayered[0] = p.maxSurface2DLayered[0] = p.maxSurface2DLayered[1] = kCube;
  p.maxSurface1DLayered[1] = p.maxSurface2DLayered[2] = kLayers;
  p.maxSurfaceCubemapLayered[0] = kCube;
  p.concurrentKernels = p.ECCEnabled = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.pciBusID = of(cudaDevAttrPciBusId);
  p.asyncEngineCount = of(cudaDevAttrAsyncEngineCount);
  p.memoryBusWidth = gpu.memory_bus_bits;
  p.l2CacheSize = int(gpu.l2_bytes);
  p.persistingL2CacheMaxSize = of(cudaDevAttrMaxPersistingL2CacheSize);
  p.maxThreadsPerMultiProcessor = gpu.threads_per_processor;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = size_t(gpu.shared_per_processor);
  p.managedMemory = p.concurrentManagedAccess = 1;
  p.multiGpuBoardGroupID = device.ordinal();
  p.hostNativeAtomicSupported = p.pageableMemoryAccess = gpu.coherent_host();
  p.pageableMemoryAccessUsesHostPageTables = p.directManagedMemAccessFromHost = gpu.coherent_host();
  p.computePreemptionSupported = p.canUseHostPointerForRegisteredMem = p.cooperativeLaunch = 1;
  p.sharedMemPerBlockOptin = size_t(gpu.shared_per_block_optin);
  p.maxBlocksPerMultiProcessor = gpu.blocks_per_processor;
  p.accessPolicyMaxWindowSize = of(cudaDevAttrMaxAccessPolicyWindowSize);
  p.reservedSharedMemPerBlock = 1024;
  p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.clusterLaunch = of(cudaDevAttrClusterLaunch);
  p.deviceNumaId = -1;
}

}  // namespace emulator::cuda
