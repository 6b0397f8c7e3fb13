// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/static_runtimes.h"
#include "emulator/machine/call_site.h"
#include "emulator/machine/findings.h"
#include "emulator/machine/per_thread.h"

emulator::cuda::StaticRuntime emulator_static_runtimes[emulator::cuda::kMostStaticRuntimes];

namespace emulator::cuda {
namespace {

/// The last errors of this thread, by where the library begins whose runtime returned them; 0: of all others.
using LastErrors = std::map<uintptr_t, cudaError_t>;

/// The library with a runtime inside that calls; 0: another caller.
uintptr_t calling_library() {
  if (emulator_static_runtimes[0].begin == 0) return 0;
  const uintptr_t caller = CallSite::here().caller();
  for (const StaticRuntime& each : emulator_static_runtimes)
    if (caller >= each.begin && caller < each.end) return each.begin;
  return 0;
}

/// Launches that were refused, by thread: nobody has asked for their errors.
std::mutex unasked_mutex;
std::map<std::thread::id, std::set<std::string>> unasked;

struct Text {
  int code;
  const char *name, *text;
};
constexpr Text kTexts[] = {
#include "emulator/cuda/error_texts.inc"
};

struct LogListener {
  LogCallback callback;
  void* data;
};
std::mutex listening;
std::list<LogListener> listeners;

const Text* find(int code) {
  for (const Text& text : kTexts)
    if (text.code == code) return &text;
  return nullptr;
}

}  // namespace

void report(const std::string& text) {
  const std::string line = "weft-emulate: " + text + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  keep_told("error", text);
  const std::lock_guard lock(listening);
  for (const LogListener& listener : listeners) {
    std::string message = text;
    listener.callback(listener.data, 0, message.data(), message.size());
  }
}

void* add_log_callback(LogCallback callback, void* data) {
  require(callback != nullptr);
  const std::lock_guard lock(listening);
  return &listeners.emplace_back(callback, data);
}

void remove_log_callback(void* handle) {
  const std::lock_guard lock(listening);
  require(listeners.remove_if([&](const LogListener& listener) { return &listener == handle; }) == 1);
}

void fail(cudaError_t code, const std::string& text) {
  report(text);
  fail(code);
}

const char* error_name(int code) {
  const Text* const text = find(code);
  return text ? text->name : nullptr;
}
const char* error_string(int code) {
  const Text* const text = find(code);
  return text ? text->text : nullptr;
}

void remember(cudaError_t code) { per_thread<LastErrors>()[calling_library()] = code; }

void remember_unreturned(cudaError_t code, const std::string& launch) {
  static const int told_at_the_end = std::atexit([] {
    for (const auto& [thread, launches] : unasked)
      for (const std::string& text : launches) report_finding("launch", text, text);
  });
  static_cast<void>(told_at_the_end);
  remember(code);
  const std::lock_guard lock(unasked_mutex);
  unasked[std::this_thread::get_id()].insert(
      cat(launch, " was refused with ", error_name(code), ", and the program did not ask for the error"));
}

cudaError_t last_error(bool clear) {
  const cudaError_t sticky = sticky_error();
  if (sticky != cudaSuccess && sticky != cudaErrorNoDevice) return sticky;
  LastErrors& errors = per_thread<LastErrors>();
  if (std::all_of(errors.begin(), errors.end(), [](const auto& each) { return each.second == cudaSuccess; }))
    return cudaSuccess;
  // Who is in no such library sees all: a function that ends in a call of the runtime is not among its callers.
  const uintptr_t library = calling_library();
  cudaError_t code = cudaSuccess;
  for (auto& [begin, error] : errors)
    if ((library == 0 || library == begin) && error != cudaSuccess) {
      code = error;
      if (clear) error = cudaSuccess;
    }
  if (code != cudaSuccess) {
    const std::lock_guard lock(unasked_mutex);
    unasked.erase(std::this_thread::get_id());
  }
  return code;
}

cudaError_t code_of_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return error.code;
  } catch (const Fault& fault) {
    report(fault.text);
    if (fault.code == FaultCode::unsupported) count_fault();
    return cudaError_t(fault.code);
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (const std::exception& other) {
    report(other.what());
    return cudaErrorUnknown;
  }
}

cudaError_t sticky_error() { return Device::count() == 0 ? cudaErrorNoDevice : Device::current().fault(); }

int refuse(const char* call, bool remembered) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(call).second) {
    report(cat(call, " is not emulated"));
    count_fault();
  }
  if (remembered) remember(cudaErrorNotSupported);
  return cudaErrorNotSupported;
}

int driver_code(cudaError_t code) {
  switch (code) {
    // Codes of the runtime, which have other numbers in the driver.
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidDeviceFunction:
      return 1;  // CUDA_ERROR_INVALID_VALUE
    case cudaErrorInvalidSymbol:
      return 500;  // CUDA_ERROR_NOT_FOUND
    default:
      return int(code);
  }
}

}  // namespace emulator::cuda
