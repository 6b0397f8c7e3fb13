// SPDX-License-Identifier: Apache-2.0
#include "io/disk_work.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

struct UnderWay {
  std::mutex mutex;
  std::map<const DiskWork*, std::pair<std::string, Clock::time_point>> all;
};
UnderWay& under_way() {
  static auto* const made = new UnderWay;  // files may be written while statics go
  return *made;
}

}  // namespace

DiskWork::DiskWork(std::string what) {
  const std::lock_guard lock(under_way().mutex);
  under_way().all.emplace(this, std::pair(std::move(what), Clock::now()));
}

DiskWork::~DiskWork() {
  const std::lock_guard lock(under_way().mutex);
  under_way().all.erase(this);
}

std::optional<DiskWork::Longest> DiskWork::longest() {
  const std::lock_guard lock(under_way().mutex);
  const auto first =
      std::ranges::min_element(under_way().all, {}, [](const auto& entry) { return entry.second.second; });
  if (first == under_way().all.end()) return {};
  const auto& [what, since] = first->second;
  return Longest{what, std::chrono::duration<double>(Clock::now() - since).count()};
}

}  // namespace weft
