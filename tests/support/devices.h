// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/source/simt.h"
#include "kernels/queue.h"
#include "kernels/runtime.h"

namespace weft::tests {

/// Do the tests run on this device? On every one that is there; WEFT_TEST_DEVICES=simt,cuda names some. A named device
/// that is not there is an error: a run that was asked to test the GPU must not pass without one.
inline bool runs_on(DeviceKind kind) {
  const auto there = [kind] { return kernels::runtime(kind).device_count() > 0; };
  const char* const chosen = std::getenv("WEFT_TEST_DEVICES");
  if (chosen == nullptr) return there();
  bool named = false;
  std::istringstream names(chosen);
  for (std::string one; std::getline(names, one, ',');) {
    if (one != "cpu" && one != "simt" && one != "cuda")
      throw std::runtime_error("WEFT_TEST_DEVICES: expected some of cpu,simt,cuda, got '" + one + "'");
    named |= one == name(kind);
  }
  if (named && !there())
    throw std::runtime_error("WEFT_TEST_DEVICES names " + std::string(name(kind)) +
                             ", but there is none on this machine");
  return named;
}

/// The random schedule of this run: fresh, or WEFT_SIMT_SEED to run a failure again (tests/kernels/schedules.cpp prints
/// it).
inline uint64_t random_schedule() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("WEFT_SIMT_SEED");
    const uint64_t chosen = text ? std::strtoull(text, nullptr, 10) : 0;
    return chosen ? chosen : std::random_device{}() | 1u;
  }();
  return seed;
}

/// The devices that tests run on: each is held against the same reference.
inline std::vector<DeviceKind> test_devices() {
  std::vector<DeviceKind> devices;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::simt, DeviceKind::cuda})
    if (runs_on(kind)) devices.push_back(kind);
  return devices;
}

/// What kernel tests run on: the devices, each held against the same f64 reference. simt comes twice: its threads run
/// in their fixed order, and then in a random one.
class DeviceRuns {
  struct Run {
    DeviceKind kind;
    uint64_t schedule;
  };

 public:
  /// Sets the emulator's schedule on the way.
  class Iterator {
   public:
    explicit Iterator(const Run* run) : run_(run) {}
    DeviceKind operator*() const {
      emulator::source::set_schedule_seed(run_->schedule);
      return run_->kind;
    }
    Iterator& operator++() {
      emulator::source::set_schedule_seed(0);
      ++run_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return run_ != other.run_; }

   private:
    const Run* run_;
  };

  DeviceRuns() {
    for (const DeviceKind kind : test_devices()) runs_.push_back({kind, 0});
    if (runs_on(DeviceKind::simt)) runs_.push_back({DeviceKind::simt, random_schedule()});
  }
  Iterator begin() const { return Iterator(runs_.data()); }
  Iterator end() const { return Iterator(runs_.data() + runs_.size()); }

 private:
  std::vector<Run> runs_;
};

inline DeviceRuns device_runs() { return {}; }

inline kernels::Queue queue_on(DeviceKind kind) { return {{kind, 0}, nullptr}; }

}  // namespace weft::tests

namespace weft {

/// GoogleTest prints a parameter of a test with this.
inline void PrintTo(DeviceKind kind, std::ostream* out) { *out << name(kind); }

}  // namespace weft
