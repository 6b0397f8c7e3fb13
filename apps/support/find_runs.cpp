// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <fstream>

#include "apps/support/run_reader.h"

namespace weft::support {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;  // folders below the one that was named

bool is_run(const fs::path& folder) {
  std::error_code error;
  if (fs::is_regular_file(folder / "metrics.jsonl", error)) return true;
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
  if (is_run(folder)) {
    out.push_back(folder);
    return;
  }
  if (deeper == 0) return;
  std::error_code error;
  std::vector<fs::path> below;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) below.push_back(at->path());
  }
  std::sort(below.begin(), below.end(), [](const fs::path& a, const fs::path& b) {
    return comes_before(a.filename().string(), b.filename().string());
  });
  for (const fs::path& path : below) collect(path, deeper - 1, out);
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

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
