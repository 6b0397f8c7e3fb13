// SPDX-License-Identifier: Apache-2.0
// What --time prints when the program ends.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/machine/options.h"
#include "emulator/machine/time_table.h"
#include "emulator/machine/timeline.h"
#include "emulator/ptx/time/time_count.h"

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
  Work work;              ///< the last launch's
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

  /// The key of a launch's counts, in any run of these kernels. Near addresses of one allocation count by their
  /// distance, others by their place in 256 bytes. Layers of a network are the same so, wherever their tensors lie.
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
    return fingerprint(cat(launch.device, ' ', launch.kernel->name, ' ', size(launch.grid), size(launch.block),
                           size(launch.cluster), launch.dynamic_shared, ' ', options().time_waves, ' ',
                           std::string(arguments.data(), arguments.size())));
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
    timeline::compute(demangled(launch.kernel->name), prediction.seconds);
    const std::lock_guard lock(mutex_);
    Row& row = rows_[{launch.kernel->name, launch.grid.count(), launch.block.count(), launch.dynamic_shared}];
    ++row.launches;
    row.seconds += prediction.seconds;
    row.work = work;
    row.prediction = prediction;
    const time_model::TableLine line{launch.kernel->name, std::string(options().gpu->key), work};
    if (sampled())
      if (const auto [place, added] = counted_.emplace(identity(launch), work); added)
        append(options().time_known, place->first + '\t' + to_text(line, prediction));
    append(options().time_table, to_text(line, prediction));
  }

 private:
  Report() {
    std::ifstream file(options().time_known);
    // A line without an end was cut off.
    for (std::string text; std::getline(file, text) && !file.eof();) {
      const size_t tab = text.find('\t');
      time_model::TableLine line;
      if (tab != text.npos && from_text(std::string_view(text).substr(tab + 1), line) && line.gpu == options().gpu->key)
        counted_.emplace(text.substr(0, tab), line.work);
    }
  }

  /// 128 bits as text: FNV-1a from two offsets.
  static std::string fingerprint(const std::string& of) {
    uint64_t a = 0xcbf29ce484222325u, b = 0x9e3779b97f4a7c15u;
    for (const char c : of)
      for (uint64_t* const hash : {&a, &b}) *hash = (*hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    char text[33];
    std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(a),
                  static_cast<unsigned long long>(b));
    return text;
  }

  /// Adds a line to a file; an empty path: to none.
  static void append(const std::string& path, const std::string& line) {
    std::FILE* const file = path.empty() ? nullptr : std::fopen(path.c_str(), "a");
    if (!file) return;
    std::fprintf(file, "%s\n", line.c_str());
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
    std::fprintf(stderr, "weft-emulate: predicted times on %s, not measured. %s (docs/cuda_without_a_gpu.md)\n",
                 std::string(options().gpu->name).c_str(), std::string(time_model::error_bar()).c_str());
    std::fprintf(stderr, "%12s %9s %10s  %s\n", "us each", "launches", "us in all", "kernel: what limits it (of its time)");
    std::fprintf(stderr, "%12s %9s %10.1f  all %zu\n", "", "", all * 1e6, rows.size());
    for (const auto& [key, row] : rows) {
      std::vector<size_t> order;
      for (size_t k = 0; k < time_model::kLimits; ++k) order.push_back(k);
      std::ranges::sort(order, [&row = row](size_t a, size_t b) { return row->prediction.cycles[a] > row->prediction.cycles[b]; });
      std::string limits;
      for (size_t k = 0; k < 3; ++k)
        limits += cat(
            k ? ", " : "", name_of(static_cast<Limit>(order[k])), ' ',
            std::lround(row->prediction.cycles[order[k]] / (row->prediction.ghz * 1e7) / row->prediction.seconds), '%');
      // A line in one write: other ranks print beside it.
      std::fprintf(stderr, "%12.1f %9llu %10.1f  %s <<<%llu, %llu>>>: %s; %.0f blocks an SM%s\n",
                   row->seconds / static_cast<double>(row->launches) * 1e6,
                   static_cast<unsigned long long>(row->launches), row->seconds * 1e6, demangled(key->name).c_str(),
                   static_cast<unsigned long long>(key->blocks), static_cast<unsigned long long>(key->threads),
                   limits.c_str(), row->work.resident_blocks,
                   row->work.counted_blocks < row->work.blocks
                       ? cat(", ", row->work.counted_blocks, " of ", row->work.blocks, " blocks run").c_str()
                       : "");
    }
  }

  std::mutex mutex_;
  std::map<Key, Row> rows_;
  std::unordered_map<std::string, Work> counted_;  ///< keyed by identity
};

}  // namespace

void report(const Launch& launch, const Work& work) { Report::get().add(launch, work); }
bool report_again(const Launch& launch) { return sampled() && Report::get().add_again(launch); }

}  // namespace emulator::ptx::timing
