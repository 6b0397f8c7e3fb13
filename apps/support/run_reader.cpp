// SPDX-License-Identifier: Apache-2.0
#include "apps/support/run_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "data/image_folder.h"
#include "data/text/text_rows.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::support {
namespace {

/// The words of a name in lower case: `val_loss`, `Loss/val` -> {loss, val}.
std::multiset<std::string> words(const std::string& name) {
  std::multiset<std::string> out;
  std::string word;
  for (const char c : name + ' ') {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80) {
      word += static_cast<char>(std::tolower(byte));
    } else if (!word.empty()) {
      out.insert(word);
      word.clear();
    }
  }
  return out;
}

}  // namespace

void Curve::add(CurvePoint point) {
  point.step += shift;
  if (!points.empty() && point.step <= points.back().step) {
    if (point.epoch > points.back().epoch) {
      const double on = points.back().step - shift;
      shift += on;
      point.step += on;
    }
    drop_from(point.step);
  }
  points.push_back(point);
}

void Curve::place(CurvePoint& point, double line) {
  const bool again = !points.empty() && std::isfinite(point.epoch) && points.back().epoch == point.epoch;
  if (again && !by_line && repeated) {  // the third row of an epoch
    by_line = true;
    repeated->step = line - 2, points.back().step = line - 1;
    points.insert(points.end() - 1, *repeated);
  }
  repeated = again && !by_line ? std::optional(points.back()) : std::nullopt;
  point.step = by_line || !std::isfinite(point.epoch) ? line : point.epoch;
}

void Curve::drop_from(double step) {
  while (!points.empty() && points.back().step >= step) points.pop_back();
}

const CurvePoint* Curve::last() const {
  const auto found = std::find_if(points.rbegin(), points.rend(), [](const auto& p) { return std::isfinite(p.value); });
  return found == points.rend() ? nullptr : &*found;
}

const CurvePoint* Curve::best(bool smallest) const {
  const CurvePoint* best = nullptr;
  for (const CurvePoint& p : points) {
    if (!std::isfinite(p.value)) continue;
    if (best == nullptr || (smallest ? p.value < best->value : p.value > best->value)) best = &p;
  }
  return best;
}

bool less_is_better(const std::string& name) {
  static const std::array<const char*, 8> signs{"loss", "err", "rmse", "mse", "mae", "perplexity", "time", "wait"};
  for (const std::string& word : words(name))
    for (const char* sign : signs)
      if (word.starts_with(sign) || word.ends_with("loss")) return true;
  return false;
}

std::optional<std::string> find_curve_name(const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  std::optional<std::string> found;
  for (const std::string& other : names) {
    if (words(other) != words(name)) continue;
    if (found) return std::nullopt;  // two would fit
    found = other;
  }
  return found;
}

namespace {

namespace fs = std::filesystem;

/// The name of a row's number in the files of train_image and its like: those of a `split` that TensorBoard has, too.
/// Empty: it is said elsewhere.
std::string split_name(const std::string& key, const std::string& split) {
  if (key == "loss" || key == "accuracy") return key + '/' + split;
  if (split == "train" || key == "gradient_norm") return key;
  return key == "lr" || key == "data_wait" ? "" : key + '/' + split;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

constexpr const char* kState = "trainer_state.json";

bool is_table(const fs::path& file) { return file.extension() == ".csv" || file.filename() == kState; }

/// W&B's export says Step, TensorBoard's Step and Wall time.
std::string column_name(const std::string& title) {
  return title == "Step" ? "step" : title == "Epoch" ? "epoch" : title == "Wall time" ? "time" : title;
}

/// The number of the row that counts as `name`; null: there is none.
const std::pair<std::string, double>* find_count(const std::vector<std::pair<std::string, double>>& row,
                                                 std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const auto& entry : row)
      if (entry.first == name && std::isfinite(entry.second)) return &entry;
  return nullptr;
}

/// The number N of checkpoint-N; below 0: it is none of Hugging Face's.
int64_t checkpoint_number(const fs::path& folder) {
  constexpr std::string_view kName = "checkpoint-";
  const std::string name = folder.filename().string();
  int64_t number = -1;
  if (name.starts_with(kName)) std::from_chars(name.data() + kName.size(), name.data() + name.size(), number);
  std::error_code ignored;
  return fs::is_regular_file(folder / kState, ignored) ? number : -1;
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
  const bool events = train::EventFile::is_one(file);
  reads_lines_ = !events && !is_table(file);
  lines_ = train::AppendedFile(file);
  if (events) event_files_.emplace_back(file);
  folder_ = file.parent_path();
}

bool RunReader::refresh() {
  const bool lines = (reads_lines_ && read_lines()) || read_table(), events = read_events();
  if (lines || events) merge();
  return lines || events;
}

bool RunReader::read_lines() {
  using Change = train::AppendedFile::Change;
  bool any = false;
  for (Change change; (change = lines_.refresh()) != Change::none; any = true) {
    if (change == Change::replaced) {
      from_lines_ = {};
      line_ = skipped_ = first_skipped_ = 0;
      read_ahead_ = false;
    }
    size_t begin = 0;
    for (size_t end; (end = lines_.unread.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (std::exchange(read_ahead_, false) && end == begin) continue;
      ++line_;
      read_line(lines_.unread.substr(begin, end - begin));
    }
    lines_.unread.erase(0, begin);
  }
  return read_last_line() || any;
}

/// A whole object without a line break behind it is a row, too.
bool RunReader::read_last_line() {
  if (!nlohmann::json::accept(standard_json(lines_.unread)) || !lines_.unread.ends_with('}')) return false;
  ++line_;
  read_line(std::exchange(lines_.unread, ""));
  return read_ahead_ = true;
}

void RunReader::read_line(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  using Json = nlohmann::json;
  // Only numbers count: values of many levels, which would overflow the stack, are not built. The names' order is noted
  // beside the object, which sorts them: nlohmann::ordered_json would search a million of them linearly.
  std::vector<std::string> names;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) names.push_back(parsed.get<std::string>());
    return depth <= 1;
  };
  const Json json = Json::parse(standard_json(line), keep, false);
  if (!json.is_object()) {
    if (skipped_++ == 0) first_skipped_ = line_;
    return;
  }
  const auto text = json.find("split");
  const std::string split = text != json.end() && text->is_string() ? text->get<std::string>() : "";
  std::set<std::string_view> done;
  std::vector<std::pair<std::string, double>> row;
  for (const std::string& key : names) {
    const auto found = json.find(key);
    if (found != json.end() && done.insert(key).second && (found->is_number() || found->is_null()))
      row.emplace_back(key, found->is_null() ? CurvePoint::kUnknown : found->get<double>());
  }
  add_row(row, split);
}

void RunReader::add_row(const std::vector<std::pair<std::string, double>>& row, const std::string& split) {
  const auto* const step =
      find_count(row, {"step", "global_step", "trainer/global_step", "_step", "iteration", "iter"});
  const auto* const epoch = find_count(row, {"epoch"});
  const auto* const time = find_count(row, {"time", "timestamp", "_timestamp"});
  CurvePoint point;
  if (epoch) point.epoch = epoch->second;
  if (time) point.time = time->second;
  for (const auto& entry : row) {
    const std::string& key = entry.first;
    if (&entry == step || &entry == time || key == "step" || key == "epoch" || key == "time") continue;
    const std::string name = split.empty() ? key : split_name(key, split);
    if (name.empty()) continue;
    Curve& curve = from_lines_.at(name);
    point.value = entry.second;
    if (step)
      point.step = step->second;
    else
      curve.place(point, static_cast<double>(line_));
    curve.add(point);
  }
}

/// Tables are short, and their programs rewrite them: they are read as a whole when they have changed.
bool RunReader::read_table() {
  std::error_code error;
  const fs::path lines = lines_.path();
  if (reads_lines_ && fs::exists(lines, error)) return false;
  const fs::path file = one_file_ ? lines : table_of(folder_);
  if (file.empty() || !is_table(file)) return false;
  const auto written = fs::last_write_time(file, error);
  if (error || (file == table_ && written == table_written_)) return false;
  table_ = file, table_written_ = written;
  table_problem_.clear();
  try {
    if (file.extension() == ".csv") {
      const data::TextRows table = data::read_text_rows(file);
      from_lines_ = {};
      for (const data::TextRows::Row& table_row : table.rows) {
        const auto& cells = table_row.cells;
        line_ = table_row.line - 1;
        std::vector<std::pair<std::string, double>> row;
        for (size_t i = 0; i < cells.size(); ++i) {
          const std::string text = trimmed(cells[i].value_or(""));
          double value = 0;
          const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
          if (!text.empty() && wrong == std::errc() && end == text.data() + text.size())
            row.emplace_back(column_name(table.header[i]), value);
        }
        add_row(row);
      }
    } else {
      const std::string text = standard_json(read_text(file, "run"));
      check_nesting(text, "run: " + file.string());
      const auto state = nlohmann::json::parse(text, nullptr, false);
      WEFT_CHECK(state.is_object() && state.contains("log_history") && state["log_history"].is_array(), file.string(),
                 ": expected the state of Hugging Face's Trainer (log_history), got another file");
      from_lines_ = {};
      for (const auto& entry : state["log_history"])
        read_line(entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  } catch (const Error& problem) {
    table_problem_ = problem.what();
  }
  return true;
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
  places_.clear();
  for (size_t i = 0; i < curves_.size(); ++i) places_[curves_[i].name] = i;
}

const Curve* RunReader::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &curves_[found->second];
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
  if (!table_problem_.empty()) out.push_back(table_problem_);
  for (const train::EventFile& file : event_files_)
    if (file.damaged())
      out.push_back(file.path().string() + ": damaged, read up to there");
    else if (file.half())
      out.push_back(file.path().string() + ": the last record is half-written");
  return out;
}

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;  // folders below the one that was named

bool is_run(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"metrics.jsonl", "metrics.csv", kState})
    if (fs::is_regular_file(folder / name, error)) return true;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (train::EventFile::is_one(at->path())) return true;
  return false;
}

/// Whole numbers inside names count as numbers; digits after a point are a fraction, which letters order well.
bool comes_before(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  size_t i = 0, j = 0;
  bool in_fraction = false;
  while (i < a.size() && j < b.size()) {
    in_fraction = in_fraction ? digit(a[i]) : i > 1 && a[i - 1] == '.' && digit(a[i - 2]) && digit(a[i]);
    if (digit(a[i]) && digit(b[j]) && !in_fraction) {
      size_t m = i, n = j;
      while (m < a.size() && digit(a[m])) ++m;
      while (n < b.size() && digit(b[n])) ++n;
      while (i < m && a[i] == '0') ++i;
      while (j < n && b[j] == '0') ++j;
      if (m - i != n - j) return m - i < n - j;
      if (const int order = a.compare(i, m - i, b, j, n - j); order != 0) return order < 0;
      i = m, j = n;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

void collect(const fs::path& folder, int deeper, std::vector<fs::path>& out) {
  if (is_run(folder)) out.push_back(folder);
  if (deeper == 0) return;
  std::error_code error;
  std::vector<fs::path> below;
  const size_t before = out.size();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored) && !data::is_hidden(at->path()) &&
        checkpoint_number(at->path()) < 0)
      below.push_back(at->path());
  }
  std::sort(below.begin(), below.end(), [](const fs::path& a, const fs::path& b) {
    return comes_before(a.filename().string(), b.filename().string());
  });
  for (const fs::path& path : below) collect(path, deeper - 1, out);
  if (out.size() == before && !is_run(folder) && !table_of(folder).empty()) out.push_back(folder);
}

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

fs::path table_of(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"metrics.csv", kState})
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  fs::path newest;
  int64_t most = -1;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (const int64_t number = checkpoint_number(at->path()); number > most)
      most = number, newest = at->path() / kState;
  return newest;
}

std::vector<fs::path> find_runs(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return {path};
  std::vector<fs::path> out;
  collect(path, kDeepest, out);
  return out;
}

std::vector<std::pair<std::string, std::string>> read_run_config(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> out;
  std::string key;
  std::error_code ignored;
  const auto lines_of = [&](const char* name) {  // a named pipe would wait for its writer
    return std::ifstream(fs::is_regular_file(folder / name, ignored) ? folder / name : fs::path());
  };
  std::ifstream yaml = lines_of("config.yaml");
  for (std::string line; std::getline(yaml, line);) {
    const bool is_value = line.starts_with("  value:");
    if (is_value)
      out.emplace_back(key, unquoted(trimmed(line.substr(std::string_view("  value:").size()))));
    else if (line.ends_with(':'))
      key = unquoted(line.substr(0, line.size() - 1));
  }
  if (!out.empty()) return out;
  std::ifstream toml = lines_of("config.toml");
  for (std::string line; std::getline(toml, line);) {
    const size_t sign = line.find('=');
    if (sign == std::string::npos || line[0] == '#') continue;
    out.emplace_back(trimmed(line.substr(0, sign)), unquoted(trimmed(line.substr(sign + 1))));
  }
  return out;
}

}  // namespace weft::support
