// SPDX-License-Identifier: Apache-2.0
// What --time prints when the program ends.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/machine/options.h"
#include "emulator/machine/time_table.h"
#include "emulator/ptx/time_count.h"

namespace emulator::ptx::timing {

namespace {

using time_model::Limit;
using time_model::Prediction;
using time_model::Work;

struct Key {
  std::string name;
  uint64_t blocks, threads, shared;
  auto operator<=>(const Key&) const = default;
};
struct Row {
  uint64_t launches = 0;
  double seconds = 0;
  Work work;              ///< of the last launch
  Prediction prediction;
};

class Report {
 public:
  static Report& get() {
    static Report* const report = [] {
      std::atexit([] { get().print(); });
      return new Report;
    }();
    return *report;
  }

  /// What decides a launch's counts. Addresses: those of one allocation that are near each other by how far apart they
  /// are, others by their place in 256 bytes. Layers of a network are the same so, wherever their tensors lie.
  static std::string identity(const Launch& launch) {
    std::vector<char> arguments = launch.parameters;
    std::vector<std::pair<uint64_t, uint64_t>> owners;  // an allocation's number, the first address in it
    for_each_address(launch, [&](size_t at, uint64_t address, const Allocation& owner) {
      size_t k = 0;
      constexpr uint64_t kNear = 1 << 20;
      while (k < owners.size() && (owners[k].first != owner.number || address - owners[k].second + kNear > 2 * kNear))
        ++k;
      const bool is_first = k == owners.size();
      if (is_first) owners.emplace_back(owner.number, address);
      const uint64_t place = (is_first ? address % 256 : address - owners[k].second) << 8 | k;
      std::memcpy(arguments.data() + at, &place, sizeof(place));
    });
    const auto size = [](const Dim3& d) { return cat(d.x, ',', d.y, ',', d.z, ' '); };
    return cat(launch.device, ' ', reinterpret_cast<uintptr_t>(launch.kernel), ' ', size(launch.grid),
               size(launch.block), size(launch.cluster), launch.dynamic_shared, ' ',
               std::string(arguments.data(), arguments.size()));
  }

  bool add_again(const Launch& launch) {
    const std::string same = identity(launch);
    Work work;
    {
      const std::lock_guard lock(mutex_);
      const auto found = counted_.find(same);
      if (found == counted_.end()) return false;
      work = found->second;
    }
    add(launch, work);
    return true;
  }

  void add(const Launch& launch, const Work& work) {
    const time_model::Chip& chip = *time_model::find_chip(options().gpu->key);
    const Prediction prediction = time_model::predict(chip, work);
    const std::lock_guard lock(mutex_);
    Row& row = rows_[{launch.kernel->name, launch.grid.count(), launch.block.count(), launch.dynamic_shared}];
    ++row.launches;
    row.seconds += prediction.seconds;
    row.work = work;
    row.prediction = prediction;
    if (sampled()) counted_.emplace(identity(launch), work);
    if (!options().time_table.empty()) append(launch, work, prediction);
  }

 private:
  static void append(const Launch& launch, const Work& w, const Prediction& p) {
    std::FILE* const file = std::fopen(options().time_table.c_str(), "a");
    if (!file) return;
    const time_model::TableLine line{launch.kernel->name, std::string(options().gpu->key), w};
    std::fprintf(file, "%s\n", to_text(line, p).c_str());
    std::fclose(file);
  }

  void print() {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<const Key*, const Row*>> rows;
    double all = 0;
    for (const auto& [key, row] : rows_) {
      rows.emplace_back(&key, &row);
      all += row.seconds;
    }
    std::ranges::sort(rows, [](const auto& a, const auto& b) { return a.second->seconds > b.second->seconds; });
    const time_model::ErrorBar bar = time_model::error_bar();
    std::fprintf(stderr,
                 "weft-emulate: predicted times on %s, not measured. Of others' matrix products, half are within %.0f%%, nine of ten "
                 "within %.0f%%; nothing else was compared (docs/cuda_without_a_gpu.md)\n",
                 std::string(options().gpu->name).c_str(), bar.median * 100, bar.ninety * 100);
    std::fprintf(stderr, "%12s %9s %10s  %s\n", "us each", "launches", "us in all", "kernel: what limits it (of its time)");
    std::fprintf(stderr, "%12s %9s %10.1f  all %zu\n", "", "", all * 1e6, rows.size());
    for (const auto& [key, row] : rows) {
      std::fprintf(stderr, "%12.1f %9llu %10.1f  %s <<<%llu, %llu>>>:", row->seconds / static_cast<double>(row->launches) * 1e6,
                   static_cast<unsigned long long>(row->launches), row->seconds * 1e6, demangled(key->name).c_str(),
                   static_cast<unsigned long long>(key->blocks), static_cast<unsigned long long>(key->threads));
      std::vector<size_t> order;
      for (size_t k = 0; k < time_model::kLimits; ++k) order.push_back(k);
      std::ranges::sort(order, [&](size_t a, size_t b) { return row->prediction.cycles[a] > row->prediction.cycles[b]; });
      for (size_t k = 0; k < 3; ++k)
        std::fprintf(stderr, "%s %s %.0f%%", k ? "," : "", std::string(name_of(static_cast<Limit>(order[k]))).c_str(),
                     row->prediction.cycles[order[k]] / (row->prediction.ghz * 1e7) / row->prediction.seconds);
      std::fprintf(stderr, "; %.0f blocks an SM%s\n", row->work.resident_blocks,
                   row->work.counted_blocks < row->work.blocks
                       ? cat(", ", row->work.counted_blocks, " of ", row->work.blocks, " blocks run").c_str()
                       : "");
    }
  }

  std::mutex mutex_;
  std::map<Key, Row> rows_;
  std::unordered_map<std::string, Work> counted_;  ///< by identity
};

}  // namespace

void report(const Launch& launch, const Work& work) { Report::get().add(launch, work); }
bool report_again(const Launch& launch) { return sampled() && Report::get().add_again(launch); }

}  // namespace emulator::ptx::timing
