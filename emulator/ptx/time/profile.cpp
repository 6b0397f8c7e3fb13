// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/time/profile.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "emulator/machine/findings.h"
#include "emulator/machine/options.h"
#include "emulator/machine/requests.h"

namespace emulator::ptx {

namespace {

using nlohmann::json;
using Shape = std::array<uint32_t, 3>;

Shape shape(const Dim3& d) { return {d.x, d.y, d.z}; }

/// Launches that differ in one of these are shown apart.
struct Key {
  const Kernel* kernel;
  Shape grid, block, cluster;
  uint32_t dynamic_shared;
  auto operator<=>(const Key&) const = default;
};

/// All launches of one Key. The kernel may be gone at the end: what is to be written is kept.
struct Entry {
  uint64_t launches = 0, first = 0;  ///< first: the number of its first launch
  std::unique_ptr<LaunchProfile> sum;
  std::string name;
  uint32_t static_shared = 0;
  int registers = 0;
  std::shared_ptr<const ProfileTable> table;
  std::vector<Line> lines;
  std::vector<std::string> files;
  uint64_t read_sectors = 0, written_sectors = 0;  ///< different ones, launch by launch
};

json access_json(const AccessCount& a, LaunchProfile::Where where) {
  json j{{"requests", a.requests}, {"bytes", a.bytes}, {"write", a.write}, {"atomic", a.atomic}};
  if (where == LaunchProfile::shared) {
    j["wavefronts"] = a.wavefronts;
    j["conflicts"] = a.conflicts;
  } else {
    j["sectors"] = a.sectors;
  }
  if (a.atomic) j["collisions"] = a.collisions;
  json at = json::array();
  for (int lane = 0; lane < kLanes; ++lane)
    at.push_back((a.worst_mask >> lane & 1) != 0 ? json(a.worst_at[static_cast<size_t>(lane)]) : json());
  j["worst"] = {{"cost", a.worst}, {"bytes", a.worst_bytes}, {"at", std::move(at)}};
  return j;
}

/// [[file, line], …]: the innermost first, the calls that were inlined after it.
json places_json(const Entry& e, uint32_t line) {
  json places = json::array();
  for (uint32_t at = line, depth = 0; at != 0 && at < e.lines.size() && depth < 64; at = e.lines[at].inlined_at, ++depth)
    if (const Line& l = e.lines[at]; l.line != 0 && l.file < e.files.size())
      places.push_back({e.files[l.file], l.line});
  return places;
}

json kernel_json(const Key& key, const Entry& e) {
  json instructions = json::array();
  for (const ProfileTable::Row& row : e.table->rows) {
    LaunchProfile::Site all;
    for (size_t i = row.first; i < row.last; ++i) {
      const uint64_t executed = all.executed;
      all.add(e.sum->sites()[i]);
      if (i != row.first) all.executed = executed;
    }
    json j{{"op", row.op}, {"ptx", row.text}, {"ptx_line", row.ptx_line}, {"at", places_json(e, row.line)},
           {"executed", all.executed}};
    if (row.first != row.last) {
      j["active"] = e.sum->sites()[row.first].active;
      j["lanes"] = e.sum->sites()[row.first].lanes;
    } else {
      j["free"] = true;  // needs no instruction in the emulator
    }
    if (all.splits != 0) j["splits"] = all.splits;
    if (all.bulk_bytes != 0) j["bulk_bytes"] = all.bulk_bytes;
    static constexpr const char* kNames[] = {"global", "shared", "local"};
    for (size_t where = 0; where < 3; ++where)
      if (all.access[where]) j[kNames[where]] = access_json(*all.access[where], static_cast<LaunchProfile::Where>(where));
    instructions.push_back(std::move(j));
  }
  return {{"name", demangled(e.name)}, {"mangled", e.name}, {"launches", e.launches}, {"grid", key.grid},
          {"block", key.block}, {"cluster", key.cluster}, {"dynamic_shared", key.dynamic_shared},
          {"static_shared", e.static_shared}, {"registers_estimate", e.registers},
          {"read_bytes", e.read_sectors * kSectorBytes}, {"written_bytes", e.written_sectors * kSectorBytes},
          {"instructions", std::move(instructions)}};
}

json gpu_json(const Gpu& g) {
  return {{"key", g.key}, {"name", g.name}, {"capability", g.capability()}, {"processors", g.processors},
          {"shared_per_processor", g.shared_per_processor}, {"threads_per_processor", g.threads_per_processor},
          {"blocks_per_processor", g.blocks_per_processor}, {"clock_khz", g.clock_khz},
          {"memory_clock_khz", g.memory_clock_khz}, {"memory_bus_bits", g.memory_bus_bits}, {"l2_bytes", g.l2_bytes}};
}

/// All that was counted. Never destroyed: threads that run kernels outlive main.
class Profiles {
 public:
  static Profiles& get() {
    static Profiles* const profiles = [] {
      std::atexit([] { get().write(); });
      return new Profiles;
    }();
    return *profiles;
  }

  void add(const Launch& launch, std::unique_ptr<LaunchProfile> profile, const Touched& touched) {
    const Kernel& kernel = *launch.kernel;
    const std::lock_guard lock(mutex_);
    Entry& e = entries_[{&kernel, shape(launch.grid), shape(launch.block), shape(launch.cluster), launch.dynamic_shared}];
    for (const Touched::Page& page : touched.pages()) {
      uint64_t sectors = 0;
      for (const uint64_t word : *page.mask)
        for (int half = 0; half < 64; half += 32) sectors += (word >> half & 0xffffffffu) != 0;
      if (page.touch != Touch::write) e.read_sectors += sectors;
      if (page.touch != Touch::read) e.written_sectors += sectors;
    }
    if (e.launches++ != 0) return e.sum->add(*profile);
    e.first = launch.number;
    e.sum = std::move(profile);
    e.name = kernel.name;
    e.static_shared = kernel.static_shared;
    e.registers = kernel.registers_per_thread;
    e.table = kernel.profile;
    e.lines = kernel.lines;
    e.files = kernel.module->text().files;
  }

 private:
  void write() {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<uint64_t, json>> kernels;
    for (const auto& [key, entry] : entries_) kernels.emplace_back(entry.first, kernel_json(key, entry));
    std::ranges::sort(kernels, {}, &std::pair<uint64_t, json>::first);
    json all{{"version", 1}, {"gpu", gpu_json(*options().gpu)}, {"findings", json::array()}, {"kernels", json::array()}};
    for (const Told& told : all_told()) all["findings"].push_back({{"kind", told.kind}, {"text", told.text}});
    for (auto& [first, kernel] : kernels) all["kernels"].push_back(std::move(kernel));
    std::ofstream file(options().profile);
    file << all.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    if (!file.flush()) std::fprintf(stderr, "weft-emulate: cannot write the profile %s\n", options().profile.c_str());
  }

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

std::mutex counted_mutex;
weft_emulator_counts* counted = nullptr;

bool counts_launches() {
  const std::lock_guard lock(counted_mutex);
  return counted != nullptr;
}

void count(const Launch& launch, const LaunchProfile& profile) {
  const std::lock_guard lock(counted_mutex);
  if (!counted) return;
  counted->blocks += static_cast<int64_t>(launch.grid.count());
  counted->barriers += static_cast<int64_t>(profile.barriers);
  for (const LaunchProfile::Site& site : profile.sites()) {
    counted->bulk_bytes += static_cast<int64_t>(site.bulk_bytes);
    if (const auto& a = site.access[LaunchProfile::global]) {
      weft_emulator_global_counts& to = a->write || a->atomic ? counted->stores : counted->loads;
      to.requests += static_cast<int64_t>(a->requests);
      to.sectors += static_cast<int64_t>(a->sectors);
      to.bytes += static_cast<int64_t>(a->bytes);
    }
    if (const auto& a = site.access[LaunchProfile::shared]) {
      counted->shared.requests += static_cast<int64_t>(a->requests);
      counted->shared.wavefronts += static_cast<int64_t>(a->wavefronts);
      counted->shared.conflicts += static_cast<int64_t>(a->conflicts);
    }
  }
}

}  // namespace

bool profiles() { return !options().profile.empty(); }

void keep_profile_table(Kernel& kernel, const Function& body, const std::vector<size_t>& start) {
  const std::string_view text = kernel.module->text().text;
  std::vector<std::string_view> lines{""};
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  auto table = std::make_shared<ProfileTable>();
  for (size_t s = 0; s < body.code.size(); ++s) {
    const Statement& statement = body.code[s];
    std::string op(statement.op);
    for (const std::string_view mod : statement.mods) op += cat(".", mod);
    std::string_view ptx = statement.ptx_line < lines.size() ? lines[statement.ptx_line] : "";
    while (!ptx.empty() && (ptx[0] == ' ' || ptx[0] == '\t')) ptx.remove_prefix(1);
    table->rows.push_back({std::move(op), std::string(ptx), statement.ptx_line, statement.line, start[s], start[s + 1]});
  }
  kernel.profile = std::move(table);
}

void AccessCount::add(const AccessCount& other) {
  requests += other.requests;
  sectors += other.sectors;
  wavefronts += other.wavefronts;
  conflicts += other.conflicts;
  bytes += other.bytes;
  collisions += other.collisions;
  write = write || other.write;
  atomic = atomic || other.atomic;
  if (other.worst <= worst) return;
  worst = other.worst;
  worst_mask = other.worst_mask;
  worst_bytes = other.worst_bytes;
  worst_at = other.worst_at;
}

void LaunchProfile::Site::add(const Site& other) {
  executed += other.executed;
  active += other.active;
  lanes += other.lanes;
  splits += other.splits;
  bulk_bytes += other.bulk_bytes;
  for (size_t where = 0; where < access.size(); ++where) {
    if (!other.access[where]) continue;
    if (!access[where]) access[where] = std::make_unique<AccessCount>();
    access[where]->add(*other.access[where]);
  }
}

LaunchProfile::LaunchProfile(const Kernel& kernel) : code_(kernel.code.data()), sites_(kernel.code.size()) {}

void LaunchProfile::add(const LaunchProfile& other) {
  for (size_t i = 0; i < sites_.size(); ++i) sites_[i].add(other.sites_[i]);
}

const Instruction* LaunchProfile::step(Warp& w, const Instruction* i) {
  const uint32_t active = w.mask, lanes = w.lanes(i);
  const size_t groups = w.groups.size();
  const Instruction* const next = i->run(w, i);
  if (!next && w.current < w.groups.size()) {
    const Group& group = w.groups[w.current];
    if (group.pc == i && (group.state == Group::State::polling || group.state == Group::State::meeting)) return next;
  }
  Site& here = site(i);
  ++here.executed;
  here.active += static_cast<uint64_t>(std::popcount(active));
  here.lanes += static_cast<uint64_t>(std::popcount(lanes));
  here.splits += w.groups.size() > groups;
  return next;
}

void LaunchProfile::access(Warp& w, const Instruction* i, const AccessNote& note) {
  if (note.lanes == 0) return;
  Where where = global;
  if (note.space == Space::shared)
    where = shared;
  else if (note.space == Space::local)
    where = local;
  else if (note.space != Space::global)
    return;
  std::unique_ptr<AccessCount>& kept = site(i).access[where];
  if (!kept) kept = std::make_unique<AccessCount>();
  AccessCount& count = *kept;
  uintptr_t at[kLanes] = {};
  uint32_t bytes[kLanes] = {};
  const uintptr_t shared_begin = reinterpret_cast<uintptr_t>(w.block->shared) + kSharedBase;
  for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    uintptr_t address = reinterpret_cast<uintptr_t>(note.at(lane));
    if (where == shared)
      address -= shared_begin;
    else if (where == local) {
      // Words of the same offset lie side by side: CUDA C++ Programming Guide, "Local Memory".
      const uintptr_t offset = (address - reinterpret_cast<uintptr_t>(w.local)) % w.local_bytes;
      address = offset / 4 * 128 + static_cast<uintptr_t>(lane) * 4 + offset % 4;
    }
    at[lane] = address;
    bytes[lane] = where == local ? std::min(4u, note.bytes) : note.bytes;
    count.bytes += note.bytes;
  }
  const Request request{note.lanes, at, bytes};
  ++count.requests;
  count.write = count.write || note.write;
  count.atomic = count.atomic || note.atomic;
  uint32_t cost = 0;
  if (where == shared) {
    const Wavefronts found = wavefronts_of(request);
    count.wavefronts += static_cast<uint64_t>(found.all);
    count.conflicts += static_cast<uint64_t>(found.conflicts);
    cost = static_cast<uint32_t>(found.all);
  } else if (where == local) {
    // Each word of a lane is a row of its own.
    cost = static_cast<uint32_t>(sectors_of(request)) * std::max(1u, note.bytes / 4);
    count.sectors += cost;
  } else {
    cost = static_cast<uint32_t>(sectors_of(request));
    count.sectors += cost;
  }
  if (note.atomic) {
    std::array<uintptr_t, kLanes> sorted;
    int lanes = 0;
    for (uint32_t left = note.lanes; left != 0; left &= left - 1) sorted[static_cast<size_t>(lanes++)] = at[std::countr_zero(left)];
    std::sort(sorted.begin(), sorted.begin() + lanes);
    count.collisions += static_cast<uint64_t>(lanes - (std::unique(sorted.begin(), sorted.begin() + lanes) - sorted.begin()));
  }
  if (cost <= count.worst) return;
  count.worst = cost;
  count.worst_mask = note.lanes;
  count.worst_bytes = note.bytes;
  uintptr_t base = 0;
  if (where == global) {
    base = ~uintptr_t{0};
    for (uint32_t left = note.lanes; left != 0; left &= left - 1) base = std::min(base, at[std::countr_zero(left)]);
    base &= ~uintptr_t{127};
  }
  for (size_t lane = 0; lane < kLanes; ++lane) count.worst_at[lane] = static_cast<int64_t>(at[lane] - base);
}

void count_launches(weft_emulator_counts* counts) {
  const std::lock_guard lock(counted_mutex);
  counted = counts;
}

std::unique_ptr<LaunchProfile> begin_profile(Grid& grid) {
  if (!profiles() && !counts_launches()) return nullptr;
  auto profile = std::make_unique<LaunchProfile>(*grid.kernel);
  grid.profile = profile.get();
  grid.checked = true;
  if (profiles() && !grid.touched) grid.touched = &profile->touched;
  return profile;
}

void end_profile(const Grid& grid, std::unique_ptr<LaunchProfile> profile) {
  if (!profile) return;
  count(*grid.launch, *profile);
  if (profiles()) Profiles::get().add(*grid.launch, std::move(profile), *grid.touched);
}

}  // namespace emulator::ptx
