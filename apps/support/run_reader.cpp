// SPDX-License-Identifier: Apache-2.0
#include "apps/support/run_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/error.h"

namespace weft::support {
namespace {

namespace fs = std::filesystem;

double number_or(const nlohmann::json& line, const char* key, double other) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : other;
}

/// The name of a row's number in the files of train_image and its like: those of a `split` that TensorBoard has, too.
/// Empty: it is said elsewhere.
std::string split_name(const std::string& key, const std::string& split) {
  if (key == "loss" || key == "accuracy") return key + '/' + split;
  if (split == "train") return key;
  return key == "lr" || key == "data_wait" ? "" : key + '/' + split;
}

}  // namespace

Curve& RunReader::Source::at(const std::string& name) {
  const auto [found, is_new] = curves.try_emplace(name, Curve{.name = name});
  if (is_new) order.push_back(name);
  return found->second;
}

RunReader::RunReader(fs::path path) : folder_(std::move(path)), lines_(folder_ / "metrics.jsonl") {
  std::error_code ignored;
  if (!fs::is_regular_file(folder_, ignored)) return;
  const fs::path file = folder_;
  one_file_ = true;
  reads_lines_ = !train::EventFile::is_one(file);
  lines_ = train::AppendedFile(file);
  if (!reads_lines_) event_files_.emplace_back(file);
  folder_ = file.parent_path();
}

bool RunReader::refresh() {
  const bool lines = reads_lines_ && read_lines(), events = read_events();
  if (lines || events) merge();
  return lines || events;
}

bool RunReader::read_lines() {
  const train::AppendedFile::Change change = lines_.refresh();
  if (change == train::AppendedFile::Change::none) return false;
  if (change == train::AppendedFile::Change::replaced) {
    from_lines_ = {};
    line_ = skipped_ = first_skipped_ = 0;
  }
  size_t begin = 0;
  for (size_t end; (end = lines_.unread.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++line_;
    read_line(lines_.unread.substr(begin, end - begin));
  }
  lines_.unread.erase(0, begin);
  return true;
}

void RunReader::read_line(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!json.is_object()) {
    if (skipped_++ == 0) first_skipped_ = line_;
    return;
  }
  const auto text = json.find("split");
  const std::string split = text != json.end() && text->is_string() ? text->get<std::string>() : "";
  CurvePoint point;
  point.epoch = number_or(json, "epoch", CurvePoint::kUnknown);
  point.time = number_or(json, "time", CurvePoint::kUnknown);
  const double count = std::isfinite(point.epoch) ? point.epoch : static_cast<double>(line_);
  point.step = number_or(json, "step", count);
  for (const auto& [key, value] : json.items()) {
    if (key == "step" || key == "epoch" || key == "time" || (!value.is_number() && !value.is_null())) continue;
    const std::string name = split.empty() ? key : split_name(key, split);
    if (name.empty()) continue;
    point.value = value.is_null() ? CurvePoint::kUnknown : value.get<double>();
    from_lines_.at(name).add(point);
  }
}

void RunReader::find_event_files() {
  if (one_file_) return;
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
    if (train::EventFile::is_one(at->path())) found.push_back(at->path());
  std::sort(found.begin(), found.end());  // names begin with the time
  for (const fs::path& path : found) {
    const auto same = [&](const train::EventFile& file) { return file.path() == path; };
    if (std::none_of(event_files_.begin(), event_files_.end(), same)) event_files_.emplace_back(path);
  }
}

bool RunReader::read_events() {
  find_event_files();
  bool any = false;
  for (train::EventFile& file : event_files_) {
    any |= file.refresh([&](const train::Event& event) {
      ended_ = event.ends_session;
      const auto step = static_cast<double>(event.step);
      if (event.starts_session)
        for (auto& [name, curve] : from_events_.curves) curve.drop_from(step);
      for (const auto& [tag, value] : event.scalars)
        from_events_.at(tag).add({.step = step, .time = event.wall_time, .value = value});
    });
  }
  return any;
}

void RunReader::merge() {
  curves_.clear();
  for (const std::string& name : from_lines_.order) curves_.push_back(from_lines_.curves[name]);
  for (const std::string& name : from_events_.order)
    if (!from_lines_.curves.contains(name)) curves_.push_back(from_events_.curves[name]);
}

const Curve* RunReader::find(const std::string& name) const {
  const auto found = std::find_if(curves_.begin(), curves_.end(), [&](const Curve& c) { return c.name == name; });
  return found == curves_.end() ? nullptr : &*found;
}

std::vector<std::string> RunReader::names() const {
  std::vector<std::string> out;
  for (const Curve& curve : curves_) out.push_back(curve.name);
  return out;
}

std::vector<std::string> RunReader::notes() const {
  std::vector<std::string> out;
  const bool half = !lines_.unread.empty();
  if (skipped_ > 0 || half)
    out.push_back(str(lines_.path().string(), ": skipped ", skipped_ + half, " of ", line_ + half, " lines (",
                      skipped_ > 0 ? str("line ", first_skipped_, " is the first that is no JSON object") : "",
                      skipped_ > 0 && half ? "; " : "", half ? "the last one is half-written" : "", ")"));
  for (const train::EventFile& file : event_files_)
    if (file.damaged()) out.push_back(file.path().string() + ": damaged, read up to there");
  return out;
}

}  // namespace weft::support
