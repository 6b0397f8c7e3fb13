// SPDX-License-Identifier: Apache-2.0
#include "train/record/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

/// Whether a line stays when training goes on at `resumed_step`. A line that is no JSON object stays: it is not ours.
bool stays(const std::string& line, int64_t resumed_step) {
  using Json = nlohmann::json;
  // Values of many levels, which would overflow the stack, are not built.
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= 1; };
  const Json json = Json::parse(standard_json(line), keep, false);
  if (!json.is_object()) return true;
  const auto step = json.find("step");
  return step == json.end() || !step->is_number() || step->get<double>() <= static_cast<double>(resumed_step);
}

void drop_lines(const fs::path& path, int64_t resumed_step) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  std::ifstream in(path, std::ios::binary);
  std::string kept, line;
  bool dropped = false;
  while (std::getline(in, line)) {
    const bool whole = !in.eof();  // the last line of a run that was killed may lack its end
    if (whole && (resumed_step < 0 || stays(line, resumed_step)))
      kept += line + "\n";
    else
      dropped = true;
  }
  if (dropped) write_atomically(path, kept, "metrics");
}

}  // namespace

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

JsonLines::JsonLines(fs::path path, int64_t resumed_step) : path_(std::move(path)) {
  // In a folder that others can write a link could lead to a file of this user's: to be appended to, or to be copied
  // here.
  std::error_code ignored;
  WEFT_CHECK(!fs::is_symlink(path_, ignored), "metrics: expected a file, got a link: ", path_.string());
  // Opening a pipe would block until a reader opens it.
  WEFT_CHECK(!fs::is_fifo(path_, ignored), "metrics: expected a file, got a pipe: ", path_.string());
  drop_lines(path_, resumed_step);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  WEFT_CHECK(fd_ >= 0, "metrics: expected to open ", path_.string(), ", got '", std::strerror(errno), "'");
}

JsonLines::~JsonLines() { ::close(fd_); }

void JsonLines::append(std::string object) {
  object += '\n';
  const ssize_t written = ::write(fd_, object.data(), object.size());
  WEFT_CHECK(written == static_cast<ssize_t>(object.size()), "metrics: expected to append a line to ", path_.string(),
             ", got '", written < 0 ? std::strerror(errno) : "disk full", "'. Free some space and resume");
}

}  // namespace weft::train
