// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::cuda {
namespace {

constexpr int kRegisters = 65536;      // per SM; a block may have them all
constexpr int kReservedShared = 1024;  // per block, the system's own
constexpr unsigned kPortableCluster = 8, kLargestCluster = 16;

// CUlaunchConfig's `extra` list (cuda.h: CU_LAUNCH_PARAM_*).
void* const kExtraEnd = nullptr;
const auto kExtraPointer = reinterpret_cast<void*>(1), kExtraSize = reinterpret_cast<void*>(2);

ptx::Dim3 dims(const dim3& d) { return {d.x, d.y, d.z}; }

/// Registers per thread, for blocks of `warps` warps. An estimate refuses no block: ptxas may need fewer.
int registers_of(const Function& function, uint64_t warps) {
  if (function.registers > 0) return function.registers;
  const int estimate = function.code->registers_per_thread > 0 ? function.code->registers_per_thread : 32;
  return std::min(estimate, kRegisters / static_cast<int>(32 * warps) / 8 * 8);
}

ptx::Dim3 cluster_of(const Function& function, const LaunchRequest& request) {
  const ptx::Kernel& code = *function.code;
  ptx::Dim3 cluster;
  if (code.cluster[0] > 0) {
    cluster = {uint32_t(code.cluster[0]), uint32_t(std::max(1, code.cluster[1])),
               uint32_t(std::max(1, code.cluster[2]))};
    if (request.cluster.x != 0) {
      require(request.cluster.x == cluster.x && request.cluster.y == cluster.y && request.cluster.z == cluster.z,
              cudaErrorInvalidClusterSize);
    }
  } else if (request.cluster.x != 0) {
    cluster = dims(request.cluster);
  } else if (function.cluster[0] > 0) {
    cluster = {uint32_t(function.cluster[0]), uint32_t(std::max(1, function.cluster[1])),
               uint32_t(std::max(1, function.cluster[2]))};
  }
  return cluster;
}

void check(const Function& function, const LaunchRequest& r, const ptx::Dim3& cluster) {
  const Gpu& gpu = Device::get(function.device).gpu();
  const ptx::Kernel& code = *function.code;
  const ptx::Dim3 grid = dims(r.grid), block = dims(r.block);
  const uint64_t threads = block.count();
  require(threads > 0 && block.x <= 1024 && block.y <= 1024 && block.z <= 64 && threads <= 1024,
          cudaErrorInvalidConfiguration);
  require(grid.count() > 0 && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535,
          cudaErrorInvalidConfiguration);
  require(threads <= uint64_t(code.max_threads));
  if (code.required_threads[0] > 0) {
    require(block.x == uint32_t(code.required_threads[0]) &&
            block.y == uint32_t(std::max(1, code.required_threads[1])) &&
            block.z == uint32_t(std::max(1, code.required_threads[2])));
  }
  require(r.shared <= size_t(function.most_dynamic_shared()) &&
          r.shared + code.static_shared <= size_t(gpu.shared_per_block_optin));
  const uint64_t warps = (threads + 31) / 32;
  require(warps * 32 * uint64_t(registers_of(function, warps)) <= kRegisters, cudaErrorLaunchOutOfResources);
  if (cluster.count() > 1) {
    require(gpu.major >= 9, cudaErrorNotSupported);
    require(cluster.count() <= (function.non_portable_cluster ? kLargestCluster : kPortableCluster),
            cudaErrorInvalidClusterSize);
    require(grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0,
            cudaErrorInvalidConfiguration);
  }
  if (r.cooperative) {
    const uint64_t resident =
        uint64_t(blocks_per_processor(function, int(threads), r.shared)) * uint64_t(gpu.processors);
    require(grid.count() <= resident, cudaErrorCooperativeLaunchTooLarge);
  }
}

void copy_arguments(const ptx::Kernel& code, const LaunchRequest& r, KernelWork& work) {
  std::vector<char>& bytes = work.launch.parameters;
  bytes.assign(code.parameter_bytes, 0);
  if (r.extra) {
    const void* packed = nullptr;
    size_t size = 0;
    for (void** at = r.extra; *at != kExtraEnd; at += 2) {
      if (*at == kExtraPointer) packed = at[1];
      if (*at == kExtraSize) size = *static_cast<size_t*>(at[1]);
    }
    require(packed != nullptr && size <= bytes.size());
    std::memcpy(bytes.data(), packed, size);
  } else {
    require(r.arguments != nullptr || code.parameters.empty());
    for (size_t i = 0; i < code.parameters.size(); ++i) {
      require(r.arguments[i] != nullptr);
      std::memcpy(bytes.data() + code.parameters[i].offset, r.arguments[i], code.parameters[i].bytes);
    }
  }
  for (const ptx::Parameter& parameter : code.parameters)
    work.parameter_pointers.push_back(bytes.data() + parameter.offset);
}

}  // namespace

void read_attributes(const cudaLaunchAttribute* attributes, unsigned count, LaunchRequest& request) {
  require(count == 0 || attributes != nullptr);
  for (unsigned i = 0; i < count; ++i) {
    const cudaLaunchAttributeValue& value = attributes[i].val;
    switch (attributes[i].id) {
      case cudaLaunchAttributeClusterDimension:
        request.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        require(request.cluster.x > 0 && request.cluster.y > 0 && request.cluster.z > 0, cudaErrorInvalidClusterSize);
        break;
      case cudaLaunchAttributeCooperative:
        request.cooperative = value.cooperative != 0;
        break;
      case cudaLaunchAttributeProgrammaticEvent:
        request.event = value.programmaticEvent.event;
        break;
      case cudaLaunchAttributeLaunchCompletionEvent:
        request.event = value.launchCompletionEvent.event;
        break;
      case cudaLaunchAttributeDeviceUpdatableKernelNode:
        if (value.deviceUpdatableKernelNode.deviceUpdatable) {
          fail(cudaErrorNotSupported, "kernel nodes that kernels update are not emulated");
        }
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        request.programmatic = value.programmaticStreamSerializationAllowed != 0;
        break;
      // Hints.
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomainMap:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributePreferredClusterDimension:
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
      case cudaLaunchAttributeNvlinkUtilCentricScheduling:
        break;
      default:
        fail(cudaErrorNotSupported, cat("launch attribute ", int(attributes[i].id), " is not emulated"));
    }
  }
}

std::shared_ptr<const Work> make_launch(const LaunchRequest& request, int device) {
  static std::atomic<uint64_t> launches{0};
  auto work = std::make_shared<Work>();
  KernelWork& kernel = work->what.emplace<KernelWork>();
  const std::lock_guard guard(kernels_mutex());
  Function& named = function_of(request.handle);
  Function& function = named.device == device ? named : named.kernel->on(device);
  const ptx::Dim3 cluster = cluster_of(function, request);
  check(function, request, cluster);
  kernel.function = &function;
  kernel.handle = request.handle;
  kernel.launch.kernel = function.code;
  kernel.launch.grid = dims(request.grid);
  kernel.launch.block = dims(request.block);
  kernel.launch.cluster = cluster;
  kernel.launch.dynamic_shared = uint32_t(request.shared);
  kernel.launch.stack_bytes = uint32_t(Device::get(device).limits[cudaLimitStackSize]);
  kernel.launch.cooperative = request.cooperative;
  kernel.launch.programmatic = request.programmatic;
  kernel.launch.device = device;
  kernel.launch.number = ++launches;
  if (ptx::timed())
    kernel.launch.resident_blocks = std::max(1, blocks_per_processor(function, int(kernel.launch.block.count()), request.shared));
  copy_arguments(*function.code, request, kernel);
  work->device = device;
  return work;
}

void launch_kernel(const LaunchRequest& request, cudaStream_t handle) {
  int device = 0;
  std::string name;
  {
    const Lock lock = lock_state();
    const Stream& stream = stream_of(handle);
    device = stream.device;
    name = stream.name();
  }
  // A kernel is compiled here, when it is first launched: the lock must not be held for so long.
  const std::shared_ptr<const Work> work = make_launch(request, device);
  std::get<KernelWork>(const_cast<Work&>(*work).what).launch.stream = std::move(name);
  {
    Lock lock = lock_state();
    submit(lock, stream_of(handle), work);
  }
  if (request.event) event_record(request.event, handle, 0);
}

int blocks_per_processor(const Function& function, int threads, size_t dynamic_shared) {
  const Gpu& gpu = Device::get(function.device).gpu();
  const ptx::Kernel& code = *function.code;
  if (threads <= 0 || threads > code.max_threads || threads > 1024) return 0;
  if (dynamic_shared > size_t(std::max(function.most_dynamic_shared(), 0))) return 0;
  const int warps = (threads + 31) / 32;
  const int registers = (registers_of(function, static_cast<uint64_t>(warps)) + 7) / 8 * 8 * 32 * warps;
  const size_t shared = (code.static_shared + dynamic_shared + kReservedShared + 127) / 128 * 128;
  return std::min({gpu.blocks_per_processor, gpu.threads_per_processor / (warps * 32), kRegisters / registers,
                   int(size_t(gpu.shared_per_processor) / shared)});
}

int active_clusters(const Function& function, const LaunchRequest& request) {
  const Gpu& gpu = Device::get(function.device).gpu();
  require(gpu.major >= 9, cudaErrorNotSupported);
  const ptx::Dim3 cluster = cluster_of(function, request);
  require(cluster.count() <= (function.non_portable_cluster ? kLargestCluster : kPortableCluster),
          cudaErrorInvalidClusterSize);
  const int blocks = blocks_per_processor(function, int(dims(request.block).count()), request.shared);
  return int(uint64_t(blocks) * uint64_t(gpu.processors) / cluster.count());
}

size_t available_dynamic_shared(const Function& function, int blocks, int threads) {
  require(blocks > 0 && threads > 0);
  const Gpu& gpu = Device::get(function.device).gpu();
  const int each = gpu.shared_per_processor / blocks / 128 * 128 - kReservedShared;
  return size_t(std::clamp(each, 0, gpu.shared_per_block_optin) - std::min(each, int(function.code->static_shared)));
}

}  // namespace emulator::cuda
