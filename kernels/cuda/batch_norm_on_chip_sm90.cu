// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>

#include "kernels/cuda/batch_norm_on_chip.cuh"
#include "kernels/cuda/ptx_hopper.cuh"

#ifdef WEFT_SIMT
#include "emulator/source/large_cluster.h"
#endif

// batch_norm_on_chip.cuh on Hopper's clusters: blocks read each other's moments in distributed shared memory.

namespace weft::kernels::WEFT_DEVICE::channelwise {

struct BlocksOfCluster {
  static __device__ __forceinline__ void sync() { ptx::cluster_sync(); }
  static __device__ __forceinline__ void arrive() { ptx::cluster_arrive(); }
  static __device__ __forceinline__ void wait() { ptx::cluster_wait(); }
  template <class A>
  static __device__ __forceinline__ A* of_block(A* shared, int rank) {
    return ptx::cluster_map(shared, rank);
  }
};

namespace {

constexpr int kPortable = 8, kLargest = 16;

/// True where the device runs clusters of 16 of these blocks: a part of it (GPC) must have as many multiprocessors.
bool takes_largest(const Queue& queue, const void* kernel, [[maybe_unused]] int shared) {
  bool takes = cudaSetDevice(queue.device.index) == cudaSuccess &&
               cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess;
#ifndef WEFT_SIMT
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {kLargest, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = kLargest;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = static_cast<size_t>(shared);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  takes = takes && cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) == cudaSuccess &&
          cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0;
#endif
  if (!takes) cudaGetLastError();  // the next call starts clean
  return takes;
}

}  // namespace

template <class T>
int most_blocks_of_cluster(const Queue& queue, int rows) {
  static std::array<std::atomic<int>, 64> known{};  // by device: calls of the driver take microseconds
  const auto device = static_cast<size_t>(queue.device.index);
  if (device >= known.size()) return kPortable;
  if (known[device] == 0)
    known[device] =
        takes_largest(queue, reinterpret_cast<const void*>(on_chip<T, BlocksOfCluster>), kJoinBytes + rows * kPlane)
            ? kLargest
            : kPortable;
  return known[device];
}

template <class T>
void norm_on_clusters(const Queue& queue, const Norm<T>& norm, const OnChip& plan) {
  launch_cluster(queue, kOnChip, grid_of(plan, kVecSize<T>), dim3(kThreads), plan.bytes(),
                 dim3(static_cast<unsigned>(plan.blocks)), on_chip<T, BlocksOfCluster>, norm, plan);
}

#define WEFT_ON_CLUSTERS(T)                                  \
  template int most_blocks_of_cluster<T>(const Queue&, int); \
  template void norm_on_clusters<T>(const Queue&, const Norm<T>&, const OnChip&);
WEFT_ON_CLUSTERS(float)
WEFT_ON_CLUSTERS(bf16)
WEFT_ON_CLUSTERS(f16)
#undef WEFT_ON_CLUSTERS

}  // namespace weft::kernels::WEFT_DEVICE::channelwise
