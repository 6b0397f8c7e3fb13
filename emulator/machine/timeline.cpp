// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/timeline.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/options.h"
#include "emulator/machine/scheduler.h"

namespace emulator::timeline {

namespace {

thread_local Operation* running = nullptr;

struct Span {
  double begin, end;
  double arrived;  ///< when the stream came to it: before `begin` it waited for other ranks
  uint64_t stream;
  uint32_t name, how;  ///< indices of names_
};
struct Device {
  std::vector<Span> computes, communicates;
  int rank = 0, ranks = 0;  ///< 0 ranks: none is known
};

using Interval = std::pair<double, double>;

/// Sorted intervals without overlaps.
std::vector<Interval> united(const std::vector<Span>& spans) {
  std::vector<Interval> all, result;
  for (const Span& span : spans) all.emplace_back(span.begin, span.end);
  std::ranges::sort(all);
  for (const Interval& one : all) {
    if (!result.empty() && one.first <= result.back().second)
      result.back().second = std::max(result.back().second, one.second);
    else
      result.push_back(one);
  }
  return result;
}

double length(const std::vector<Interval>& intervals) {
  double sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

/// The length of what both have.
double common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double sum = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[k].second) - std::max(a[i].first, b[k].first));
    ++(a[i].second < b[k].second ? i : k);
  }
  return sum;
}

class Recorder {
 public:
  static Recorder& get() {
    static Recorder* const recorder = [] {
      std::atexit([] { get().finish(); });
      return new Recorder;
    }();
    return *recorder;
  }

  void add(const Operation& op, const std::string& what, const std::string& how, bool computes, double begin, double end) {
    const std::lock_guard lock(mutex_);
    Device& device = devices_[op.device];
    (computes ? device.computes : device.communicates).push_back({begin, end, op.ends, op.stream, number(what), number(how)});
  }
  void name(int device, int rank, int ranks) {
    const std::lock_guard lock(mutex_);
    Device& its = devices_[device];
    if (ranks > its.ranks) its.rank = rank, its.ranks = ranks;
  }

 private:
  uint32_t number(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return found->second;
  }

  static std::string name_of(int number, const Device& device) {
    const std::string gpu = cat("GPU ", number);
    return device.ranks == 0 ? gpu : cat("rank ", device.rank, " of ", device.ranks, " (", gpu, ')');
  }

  void finish() {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, device] : devices_) print(number, device);
    if (const char* const trace = std::getenv("WEFT_EMULATE_TIME_TRACE")) write_trace(trace);
  }

  static void print(int number, const Device& device) {
    const auto computes = united(device.computes), communicates = united(device.communicates);
    double last = 0;
    for (const auto* intervals : {&computes, &communicates})
      if (!intervals->empty()) last = std::max(last, intervals->back().second);
    if (last == 0 && communicates.empty()) return;
    const double hidden = common(computes, communicates), exposed = length(communicates) - hidden;
    std::fprintf(stderr,
                 "weft-emulate: %s: %.3f ms predicted: compute %.3f, communication %.3f, of it exposed %.3f, idle %.3f%s\n",
                 name_of(number, device).c_str(), 1e3 * last, 1e3 * length(computes), 1e3 * length(communicates), 1e3 * exposed,
                 1e3 * std::max(0.0, last - length(computes) - exposed),
                 !device.communicates.empty() && !cluster() ? "; no links of this GPU are known: --cluster names some" : "");
  }

  /// Chrome's format: a process for each rank, a thread for each stream. Processes of a job add to one file.
  void write_trace(const char* path) const {
    std::string events;
    const auto add = [&](const nlohmann::json& event) {
      events += (events.empty() ? "" : ",\n") + event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    for (const auto& [number, device] : devices_) {
      const int process = device.ranks == 0 ? number : device.rank;
      add({{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name_of(number, device)}}}});
      std::map<uint64_t, bool> streams;
      for (const bool computes : {true, false})
        for (const Span& span : computes ? device.computes : device.communicates) {
          streams[span.stream] = true;
          nlohmann::json event = {{"ph", "X"}, {"name", names_[span.name]}, {"cat", computes ? "compute" : "communication"},
                                  {"pid", process}, {"tid", span.stream}, {"ts", 1e6 * span.begin}, {"dur", 1e6 * (span.end - span.begin)}};
          if (!computes) event["args"] = {{"how", names_[span.how]}, {"waited_us", 1e6 * (span.begin - span.arrived)}};
          add(event);
        }
      for (const auto& [stream, known] : streams)
        add({{"ph", "M"}, {"name", "thread_name"}, {"pid", process}, {"tid", stream},
             {"args", {{"name", stream == 0 ? "default stream" : cat("stream ", stream)}}}});
    }
    if (events.empty()) return;
    const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    bool good = file >= 0 && flock(file, LOCK_EX) == 0;
    static constexpr char kHead[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", kTail[] = "\n]}\n";
    const off_t size = good ? lseek(file, 0, SEEK_END) : 0, tail = sizeof kTail - 1;
    const std::string text = (size > tail ? ",\n" : kHead) + events + kTail;
    good = good && pwrite(file, text.data(), text.size(), size > tail ? size - tail : 0) == static_cast<ssize_t>(text.size());
    if (!good) std::fprintf(stderr, "weft-emulate: cannot write %s: %s\n", path, std::strerror(errno));
    if (file >= 0) close(file);
  }

  std::mutex mutex_;
  std::map<int, Device> devices_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace

bool on() { return options().time; }

const collective_time::Cluster* cluster() {
  static const collective_time::Cluster* const chosen = [] {
    const char* const name = std::getenv("WEFT_EMULATE_CLUSTER");
    if (!name || !*name) return collective_time::cluster_of_gpu(options().gpu->key);
    const collective_time::Cluster* const found = collective_time::find_cluster(name);
    if (found) return found;
    std::fprintf(stderr, "weft-emulate: --cluster (WEFT_EMULATE_CLUSTER): expected one of %s, got '%s'\n",
                 collective_time::cluster_keys().c_str(), name);
    std::exit(2);
  }();
  return chosen;
}

Running::Running(Operation& op) : before_(running) { running = &op; }
Running::~Running() { running = before_; }

double now() { return running ? running->ends : 0; }

void compute(const std::string& what, double seconds) {
  if (!running) return;
  Recorder::get().add(*running, what, "", true, running->ends, running->ends + seconds);
  running->ends += seconds;
}

void communicate(const std::string& what, double begin, double end, const std::string& how) {
  if (!running) return;
  Recorder::get().add(*running, what, how, false, begin, end);
  running->ends = end;
}

double& host() {
  static thread_local double time = 0;
  return time;
}

void name_rank(int device, int rank, int ranks) { Recorder::get().name(device, rank, ranks); }

}  // namespace emulator::timeline
