// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/device.h"

#include <cstdio>
#include <deque>
#include <string_view>

#include "emulator/cuda/error.h"
#include "emulator/cuda/pool.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/options.h"
#include "emulator/machine/per_thread.h"

namespace emulator::cuda {
namespace {

std::deque<Device>& devices() {
  static std::deque<Device>* const all = [] {
    auto* const list = new std::deque<Device>;
    for (int i = 0; i < options().gpus; ++i) list->emplace_back(i, *options().gpu);
    return list;
  }();
  return *all;
}

std::vector<Context>& primary_contexts() {
  static std::vector<Context>* const all = [] {
    auto* const list = new std::vector<Context>;
    for (int i = 0; i < Device::count(); ++i) list->push_back({i, 0, true, uint64_t(i) + 1});
    return list;
  }();
  return *all;
}

}  // namespace

Device::Device(int ordinal, const Gpu& gpu) : ordinal_(ordinal), gpu_(gpu) {
  limits[cudaLimitStackSize] = 1024;
  limits[cudaLimitPrintfFifoSize] = size_t{1} << 20;
  limits[cudaLimitMallocHeapSize] = size_t{8} << 20;
  limits[cudaLimitDevRuntimeSyncDepth] = 2;
  limits[cudaLimitDevRuntimePendingLaunchCount] = 2048;
  limits[cudaLimitMaxL2FetchGranularity] = 64;
}

int Device::count() { return options().gpus; }

Device& Device::get(int ordinal) {
  require(ordinal >= 0 && ordinal < count(), cudaErrorInvalidDevice);
  return devices()[size_t(ordinal)];
}

Device& Device::current() { return get(current_device()); }

void Device::die(const Fault& fault) {
  const std::lock_guard lock(death_);
  if (fault_ != 0) return;
  report(fault.text);
  count_fault();
  // Last: a program that sees the fault may end at once, and its exit code is that of the count.
  fault_ = fault.code == FaultCode::invalid_value ? int(cudaErrorLaunchFailure) : int(fault.code);
}

Stream& Device::legacy_stream() {
  if (!legacy_) legacy_ = make_stream(ordinal_, 0, 0, Stream::Role::legacy);
  return *legacy_;
}

Pool& Device::default_pool() {
  if (!default_pool_) {
    default_pool_ = new Pool{ordinal_};
    if (!pool) pool = default_pool_;
  }
  return *default_pool_;
}

std::array<unsigned char, 16> Device::uuid() const {
  // Stable over runs and different between devices; the first bytes can be read by people.
  std::array<unsigned char, 16> bytes{'w', 'e', 'f', 't'};
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : gpu_.key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash = (hash ^ uint64_t(ordinal_)) * 0x100000001b3u;
  for (size_t i = 4; i < 12; ++i) bytes[i] = static_cast<unsigned char>(hash >> (8 * (i - 4)));
  bytes[15] = static_cast<unsigned char>(ordinal_);
  return bytes;
}

std::string Device::pci_bus_id() const {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", 0x10 + ordinal_);
  return text;
}

Context* primary_context(int device) {
  require(device >= 0 && device < Device::count(), cudaErrorInvalidDevice);
  return &primary_contexts()[size_t(device)];
}

std::vector<Context*>& context_stack() {
  return per_thread<std::vector<Context*>>();
}

int current_device() { return context_stack().empty() || !context_stack().back() ? 0 : context_stack().back()->device; }

void set_current_device(int device) {
  Context* const context = primary_context(device);
  if (context_stack().empty()) {
    context_stack().push_back(context);
  } else {
    context_stack().back() = context;
  }
}

}  // namespace emulator::cuda
