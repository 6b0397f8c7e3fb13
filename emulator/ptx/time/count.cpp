// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/time/count.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

#include "emulator/machine/options.h"
#include "emulator/ptx/run/warp.h"

namespace emulator::ptx {

namespace {

struct Row {
  Count count;
  uint64_t launches = 0;
  double compilation = 0;

  double all_seconds() const { return count.seconds + compilation; }
  void add(const Row& other) {
    count.warp_instructions += other.count.warp_instructions;
    count.lane_instructions += other.count.lane_instructions;
    count.seconds += other.count.seconds;
    launches += other.launches;
    compilation += other.compilation;
  }
};

void print(const Row& row, const char* name) {
  const Count& c = row.count;
  const double warps = static_cast<double>(std::max<uint64_t>(1, c.warp_instructions));
  const double lanes = static_cast<double>(c.lane_instructions);
  std::fprintf(stderr, "%9.3f %10.3f %9llu %14llu %7.1f %6.1f %8.3f  %s\n", c.seconds, row.compilation,
               static_cast<unsigned long long>(row.launches), static_cast<unsigned long long>(c.warp_instructions),
               c.seconds / warps * 1e9, lanes / warps, c.seconds > 0 ? lanes / c.seconds * 1e-9 : 0, name);
}

/// All that was counted. Never destroyed: threads that run kernels outlive main.
class Counts {
 public:
  static Counts& get() {
    static Counts* const counts = [] {
      std::atexit([] { get().report(); });
      return new Counts;
    }();
    return *counts;
  }
  void add(const Kernel& kernel, const Row& row) {
    const std::lock_guard lock(mutex_);
    rows_[kernel.name].add(row);
  }

 private:
  void report() {
    const std::lock_guard lock(mutex_);
    Row all;
    std::vector<std::pair<std::string, Row>> rows;
    for (const auto& [name, row] : rows_) {
      all.add(row);
      rows.emplace_back(demangled(name), row);
    }
    std::ranges::sort(rows,
                      [](const auto& a, const auto& b) { return a.second.all_seconds() > b.second.all_seconds(); });
    std::fprintf(stderr,
                 "weft-emulate: seconds are of the processors; G lanes/s: lane instructions of a processor's second\n");
    std::fprintf(stderr, "%9s %10s %9s %14s %7s %6s %8s  %s\n", "seconds", "compiling", "launches", "warp instr.",
                 "ns each", "lanes", "G lanes/s", "kernel");
    print(all, cat("all ", rows.size(), " kernels").c_str());
    for (const auto& [name, row] : rows) print(row, name.c_str());
  }

  std::mutex mutex_;
  std::map<std::string, Row> rows_;
};

}  // namespace

bool counts() { return options().count; }

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void count_compilation(const Kernel& kernel, double seconds) { Counts::get().add(kernel, {{}, 0, seconds}); }
void count_launch(const Kernel& kernel, const Count& count) { Counts::get().add(kernel, {count, 1, 0}); }

}  // namespace emulator::ptx
