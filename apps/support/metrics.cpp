// SPDX-License-Identifier: Apache-2.0
#include "apps/support/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "kernels/error.h"

namespace weft::support {
namespace {

namespace fs = std::filesystem;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// Whether a line stays when training goes on at `resumed_step`. A line that is no JSON object stays: it is not ours.
bool stays(const std::string& line, int64_t resumed_step) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return true;
  const auto step = json.find("step");
  return step == json.end() || !step->is_number() || step->get<double>() <= static_cast<double>(resumed_step);
}

void drop_lines_after(const fs::path& path, int64_t resumed_step) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return;
  std::string kept, line;
  bool dropped = false;
  while (std::getline(in, line)) {
    const bool whole = !in.eof();  // the last line of a run that was killed may lack its end
    if (whole && stays(line, resumed_step))
      kept += line + "\n";
    else
      dropped = true;
  }
  if (dropped) write_atomically(path, kept, "metrics");
}

}  // namespace

std::string to_json(const MetricRow& row) {
  return nlohmann::ordered_json{
      {"time", row.time},
      {"epoch", row.epoch},
      {"step", row.step},
      {"split", row.split == Split::train ? "train" : "val"},
      {"loss", row.loss},
      {"accuracy", row.accuracy},
      {"lr", row.lr},
      {"images_per_second", row.images_per_second},
      {"data_wait", row.data_wait},
  }
      .dump();
}

Metrics::Metrics(fs::path path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  WEFT_CHECK(fd_ >= 0, "metrics: expected to open ", path_.string(), ", got '", std::strerror(errno), "'");
}

Metrics::Metrics(fs::path path, int64_t resumed_step) : Metrics((drop_lines_after(path, resumed_step), path)) {}

Metrics::~Metrics() { ::close(fd_); }

void Metrics::append(MetricRow row) {
  if (row.time == 0) row.time = now();
  const std::string line = to_json(row) + "\n";
  const ssize_t written = ::write(fd_, line.data(), line.size());
  WEFT_CHECK(written == static_cast<ssize_t>(line.size()), "metrics: expected to append a line to ", path_.string(),
             ", got '", written < 0 ? std::strerror(errno) : "disk full", "'. Free some space and resume");
}

}  // namespace weft::support
