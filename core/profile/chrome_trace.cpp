// SPDX-License-Identifier: Apache-2.0
#include "core/profile/chrome_trace.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/error.h"

namespace weft::profile {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanoseconds / 1000),
                static_cast<int>(nanoseconds % 1000));
  return text;
}

const char* name_of(Category category) {
  constexpr const char* names[] = {"part", "op", "kernel", "collective"};
  return names[static_cast<int>(category)];
}

class Writer {
 public:
  explicit Writer(const Recording& recording) : recording_(recording) {}

  std::string write() {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (size_t i = 0; i < recording_.tracks.size(); ++i) {
      const Track& track = recording_.tracks[i];
      metadata("thread_name", process(track.process), static_cast<int>(i) + 1, track.name);
    }
    for (const Span& span : recording_.spans) write(span);
    for (const MemorySample& sample : recording_.memory) write(sample);
    return text_ + "\n]}\n";
  }

 private:
  // The number of a process, named when it is first met.
  int process(const std::string& name) {
    const auto [found, made] = processes_.try_emplace(name, static_cast<int>(processes_.size()) + 1);
    if (made) metadata("process_name", found->second, 0, name);
    return found->second;
  }

  void event(const std::string& fields) {
    text_ += first_ ? "\n{" : ",\n{";
    text_ += fields + '}';
    first_ = false;
  }

  void metadata(const char* what, int pid, int tid, const std::string& name) {
    event(str("\"ph\":\"M\",\"name\":\"", what, "\",\"pid\":", pid, ",\"tid\":", tid,
              ",\"args\":{\"name\":", quoted(name), '}'));
  }

  void write(const Span& span) {
    const std::string name = str(span.kernel(), span.backward && span.category == Category::op ? " backward" : "");
    std::string fields = str("\"ph\":\"X\",\"name\":", quoted(name), ",\"cat\":\"", name_of(span.category),
                             "\",\"pid\":", process(recording_.tracks[static_cast<size_t>(span.track)].process),
                             ",\"tid\":", span.track + 1, ",\"ts\":", microseconds(span.start),
                             ",\"dur\":", microseconds(span.end - span.start));
    if (span.category == Category::kernel) {
      fields +=
          str(",\"args\":{\"op\":", quoted(str(span.op, span.backward ? " backward" : "")), ",\"bytes\":", span.bytes);
      if (span.flop > 0) fields += str(",\"flop\":", static_cast<int64_t>(span.flop));
      fields += '}';
    }
    event(fields);
  }

  void write(const MemorySample& sample) {
    event(str("\"ph\":\"C\",\"name\":\"memory\",\"pid\":", process(str(sample.device)), ",\"tid\":0,\"ts\":",
              microseconds(sample.time), ",\"args\":{\"live\":", sample.live, ",\"cached\":", sample.cached, '}'));
  }

  const Recording& recording_;
  std::string text_;
  std::map<std::string, int> processes_;
  bool first_ = true;
};

}  // namespace

std::string chrome_trace(const Recording& recording) { return Writer(recording).write(); }

}  // namespace weft::profile
