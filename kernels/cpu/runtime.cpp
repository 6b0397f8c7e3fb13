// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "kernels/cpu/brief_waits.h"

namespace weft::kernels::cpu {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kHugeFrom = 8 << 20;  // bytes: below, what a huge page may waste is too much

struct Event {
  std::chrono::steady_clock::time_point time{};
};

/// The value of `key` in a file of lines `key : value`, or an empty string.
std::string line_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

/// The CPU as a device: every call has finished its work when it returns.
class CpuRuntime final : public Runtime {
 public:
  CpuRuntime() { make_waits_brief(); }
  int device_count() override { return 1; }
  std::string describe(int) override {
    const std::string model = line_of("/proc/cpuinfo", "model name");
    return model.empty() ? "CPU" : model;
  }
  std::string identity(int) override { return ""; }
  void memory_info(int, size_t& free_bytes, size_t& total_bytes) override {
    total_bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    free_bytes = std::strtoull(line_of("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) << 10;
  }
  void* allocate(int, size_t bytes) override {
    const size_t alignment = bytes >= kHugeFrom ? kHugePage : kAlignment;
    void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    // A large tensor in huge pages: fewer faults when it is first written, fewer misses of the TLB. Only advice.
    if (memory && alignment == kHugePage) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return memory;
  }
  void release(int, void* memory) noexcept override { std::free(memory); }
  void* allocate_pinned(size_t bytes) override { return allocate(0, bytes); }
  void release_pinned(void* memory) noexcept override { std::free(memory); }
  void copy(int, void* destination, const void* source, size_t bytes, void*) override {
    if (bytes) std::memmove(destination, source, bytes);
  }
  bool stages_pageable_memory(int) override { return true; }
  void fill_bytes(int, void* destination, int byte, size_t bytes, void*) override {
    if (bytes) std::memset(destination, byte, bytes);
  }
  void* create_stream(int, int) override { return nullptr; }
  void destroy_stream(int, void*) noexcept override {}
  void synchronize_stream(int, void*) override {}
  void synchronize_device(int) override {}
  void* create_event(int, bool) override { return new Event; }
  void destroy_event(void* event) noexcept override { delete static_cast<Event*>(event); }
  void record_event(void* event, int, void*) override {
    static_cast<Event*>(event)->time = std::chrono::steady_clock::now();
  }
  void wait_event(int, void*, void*) override {}
  bool query_event(void*) override { return true; }
  void synchronize_event(void*) override {}
  float elapsed_ms(void* start, void* stop) override {
    return std::chrono::duration<float, std::milli>(static_cast<Event*>(stop)->time - static_cast<Event*>(start)->time)
        .count();
  }
  void begin_capture(int, void*) override { fail("graph: the cpu runs each op at once: there is nothing to capture"); }
  void* end_capture(int, void*) override { return nullptr; }
  void abandon_capture(int, void*) noexcept override {}
  void launch_graph(int, void*, void*) override {}
  void destroy_graph(void*) noexcept override {}
};

}  // namespace

Runtime& runtime() {
  static CpuRuntime& runtime = *new CpuRuntime;
  return runtime;
}

}  // namespace weft::kernels::cpu
