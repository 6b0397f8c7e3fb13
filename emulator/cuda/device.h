// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/gpu.h"

namespace emulator::cuda {

struct Stream;
struct Pool;

/// One emulated GPU and its primary context.
class Device {
 public:
  static int count();
  /// Errors: cudaErrorInvalidDevice.
  static Device& get(int ordinal);
  static Device& current();

  int ordinal() const { return ordinal_; }
  const Gpu& gpu() const { return gpu_; }

  bool faulted() const { return fault_.load(std::memory_order_acquire) != 0; }
  cudaError_t fault() const { return cudaError_t(fault_.load(std::memory_order_acquire)); }
  /// The context is dead from now on; the text is printed if it is the first fault.
  void die(const Fault& fault);
  void revive() { fault_ = 0; }

  // Under the state's lock.
  Stream& legacy_stream();
  std::set<Stream*> streams;        ///< all of this device
  std::set<int> peers;              ///< whose memory was made accessible
  std::array<size_t, 16> limits{};  ///< indexed by cudaLimit
  unsigned flags = 0;
  bool active = false;   ///< the primary context has been used
  Pool* pool = nullptr;  ///< cudaMallocAsync's
  Pool& default_pool();

  std::array<unsigned char, 16> uuid() const;
  std::string pci_bus_id() const;

  Device(int ordinal, const Gpu& gpu);

 private:
  int ordinal_;
  const Gpu& gpu_;
  std::mutex death_;  ///< the first fault is the one told
  std::atomic<int> fault_{0};
  Stream* legacy_ = nullptr;
  Pool* default_pool_ = nullptr;
};

/// A driver context. Contexts beyond the primary ones share their device's memory and streams.
struct Context {
  int device;
  unsigned flags = 0;
  bool primary = false;
  uint64_t number = 0;
};
Context* primary_context(int device);

/// The thread's current device: the top of its stack of contexts, else device 0.
int current_device();
void set_current_device(int device);
std::vector<Context*>& context_stack();

/// The value of a cudaDeviceAttr, which CUdevice_attribute shares. False: there is no such attribute.
bool device_attribute(const Device& device, int attribute, int& value);
/// CUDA 13's structure.
void device_properties(const Device& device, cudaDeviceProp& p);

}  // namespace emulator::cuda
