// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/run/device_launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "emulator/machine/fault.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"

namespace emulator::ptx {
namespace {

// Codes of cudaError_t.
constexpr int kInvalidValue = 1, kInvalidConfiguration = 9, kMaxDepthExceeded = 65, kInvalidFunction = 98;
constexpr int kMostDepth = 24;  // Programming Guide: the deepest nesting of launches
constexpr uint32_t kMostThreads = 1024, kMostShared = 48 << 10;
constexpr uint64_t kTailStream = 3;  // cudaStreamTailLaunch

uint64_t thread_of(const Warp& w, int lane) {
  return w.block->number * kMostThreads + w.first_thread + static_cast<uint64_t>(lane);
}

}  // namespace

DeviceLaunches::~DeviceLaunches() {
  for (const auto& [memory, child] : begun_) release(memory, MemoryKind::device);
}

char* DeviceLaunches::begin(const Warp& parent, int lane, uint64_t address, const Dim3& grid, const Dim3& block,
                            uint32_t shared) {
  const Launch& launch = *parent.block->grid->launch;
  auto& module = const_cast<Module&>(*launch.kernel->module);
  const Function* const function = module.function_at(address);
  const Kernel* const kernel = function != nullptr && function->is_kernel ? module.kernel(function->name) : nullptr;
  const std::lock_guard lock(mutex_);
  const auto refuse = [&](int code) {
    errors_[thread_of(parent, lane)] = code;
    return nullptr;
  };
  if (kernel == nullptr) return refuse(kInvalidFunction);
  const uint64_t threads = block.count();
  if (grid.count() == 0 || threads == 0 || threads > kMostThreads || block.z > 64 || grid.y > 65535 || grid.z > 65535)
    return refuse(kInvalidConfiguration);
  if (threads > static_cast<uint64_t>(kernel->max_threads) || shared + kernel->static_shared > kMostShared)
    return refuse(kInvalidValue);
  if (launch.depth >= kMostDepth) return refuse(kMaxDepthExceeded);
  const size_t bytes = std::max<size_t>(1, kernel->parameter_bytes);
  auto* const memory = static_cast<char*>(allocate(bytes, MemoryKind::device, launch.device));
  if (memory == nullptr) return refuse(kInvalidValue);
  begun_[memory] = {kernel, grid, block, shared, parent.block->number, {}, false};
  return memory;
}

int DeviceLaunches::launch(const Warp& parent, int lane, uint64_t parameters, uint64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = begun_.find(reinterpret_cast<char*>(parameters));
  if (found == begun_.end()) return errors_[thread_of(parent, lane)] = kInvalidValue;
  Child child = std::move(found->second);
  child.parameters.assign(found->first, found->first + child.kernel->parameter_bytes);
  child.is_last = stream == kTailStream;
  release(found->first, MemoryKind::device);
  begun_.erase(found);
  launched_.push_back(std::move(child));
  return 0;
}

int DeviceLaunches::error(const Warp& parent, int lane, bool forgets) {
  const std::lock_guard lock(mutex_);
  const auto found = errors_.find(thread_of(parent, lane));
  if (found == errors_.end()) return 0;
  const int code = found->second;
  if (forgets) errors_.erase(found);
  return code;
}

void DeviceLaunches::run(const Launch& parent, uint64_t seed, Touched* touched) {
  static std::atomic<uint64_t> launches{0};
  if (launched_.empty()) return;
  // Host threads run blocks in any order: a fixed one, or the seed's, is made here.
  std::vector<uint64_t> place(parent.grid.count());
  for (uint64_t i = 0; i < place.size(); ++i) place[i] = i;
  if (seed != 0) std::shuffle(place.begin(), place.end(), std::mt19937_64(seed + parent.number));
  std::stable_sort(launched_.begin(), launched_.end(), [&](const Child& x, const Child& y) {
    return std::pair(x.is_last, place[x.parent_block]) < std::pair(y.is_last, place[y.parent_block]);
  });
  for (Child& child : launched_) {
    Launch launch;
    launch.kernel = child.kernel;
    launch.grid = child.grid, launch.block = child.block;
    launch.dynamic_shared = child.shared;
    launch.stack_bytes = parent.stack_bytes;
    launch.parameters = std::move(child.parameters);
    launch.device = parent.device;
    launch.number = uint64_t{1} << 63 | ++launches;
    launch.stream = parent.stream + ", launched by " + parent.kernel->name;
    launch.depth = parent.depth + 1;
    ptx::run(launch, touched);
  }
}

}  // namespace emulator::ptx
