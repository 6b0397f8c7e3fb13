// SPDX-License-Identifier: Apache-2.0
#include "emulator/report.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

namespace emulator {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Place {
  std::string file;
  int line = 0;
  bool operator<(const Place& other) const { return std::tie(file, line) < std::tie(other.file, other.line); }
};

/// The source lines that a text names, in its order.
std::vector<Place> places_in(const std::string& text) {
  static const std::regex kPlace(R"(([^\s:()<>,;']+\.(?:cu|cuh|h|hpp|cpp|cc|cxx|c|py|inl)):(\d{1,8}))");
  std::vector<Place> places;
  std::set<Place> seen;
  const std::string begin = text.substr(0, 8192);  // std::regex takes stack by the character
  for (std::sregex_iterator match(begin.begin(), begin.end(), kPlace), end; match != end; ++match) {
    Place place{(*match)[1], std::stoi((*match)[2])};
    if (seen.insert(place).second) places.push_back(std::move(place));
  }
  return places;
}

/// A path in a URI (RFC 3986).
std::string encoded(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::strchr("-._~/", c);
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += plain ? std::string(1, c) : code;
  }
  return out;
}

json location(const Place& place) {
  const fs::path file = fs::path(place.file).lexically_normal();
  const fs::path relative = file.is_absolute() ? file.lexically_relative(fs::current_path()) : file;
  const bool inside = !relative.empty() && *relative.begin() != "..";
  const json uri = {{"uri", inside ? encoded(relative.generic_string()) : "file://" + encoded(file.generic_string())}};
  return {{"physicalLocation", {{"artifactLocation", uri}, {"region", {{"startLine", std::max(place.line, 1)}}}}}};
}

std::string sarif(const std::vector<Reported>& findings) {
  json rules = json::array(), results = json::array();
  std::set<std::string> kinds;
  for (const Reported& one : findings) {
    if (kinds.insert(one.kind).second) rules.push_back({{"id", one.kind}, {"shortDescription", {{"text", one.kind}}}});
    json result = {{"ruleId", one.kind}, {"level", "error"}, {"message", {{"text", one.text}}}};
    const std::vector<Place> places = places_in(one.text);
    if (!places.empty()) result["locations"] = json::array({location(places[0])});
    for (size_t i = 1; i < places.size(); ++i) result["relatedLocations"].push_back(location(places[i]));
    results.push_back(std::move(result));
  }
  const json driver = {{"name", "weft-emulate"}, {"rules", rules}};
  return json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
              {"version", "2.1.0"},
              {"runs", json::array({json{{"tool", {{"driver", driver}}}, {"results", results}}})}}
      .dump(2, ' ', false, json::error_handler_t::replace);
}

/// XML's text; characters that no XML may hold become '?'.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
      out += '?';
    else
      out += c;
  }
  return out;
}

std::string junit(const std::string& program, const std::vector<Reported>& findings) {
  const std::string counts = "tests=\"" + std::to_string(std::max<size_t>(findings.size(), 1)) + "\" failures=\"" +
                             std::to_string(findings.size()) + "\"";
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"weft-emulate\" " + counts + ">\n";
  if (findings.empty()) out += "<testcase classname=\"" + escaped(program) + "\" name=\"no finding\"/>\n";
  for (const Reported& one : findings) {
    const std::vector<Place> places = places_in(one.text);
    const std::string at = places.empty() ? "" : " " + places[0].file + ":" + std::to_string(places[0].line);
    out += "<testcase classname=\"" + escaped(program) + "\" name=\"" + escaped(one.kind + at) +
           "\"><failure message=\"" + escaped(one.kind) + "\">" + escaped(one.text) + "</failure></testcase>\n";
  }
  return out + "</testsuite>\n</testsuites>\n";
}

}  // namespace

std::vector<Reported> read_reported(const fs::path& lines) {
  std::vector<Reported> findings;
  std::ifstream file(lines);
  for (std::string line; std::getline(file, line);) {
    const json one = json::parse(line, nullptr, false);
    if (one.is_object())
      findings.push_back({one.value("kind", ""), one.value("text", "")});  // a killed process may leave half a line
  }
  return findings;
}

bool is_report_name(const fs::path& name) {
  const std::string end = name.extension().string();
  return end == ".sarif" || end == ".xml" || end == ".json";
}

std::string report_text(const fs::path& name, const std::string& program, const std::vector<Reported>& findings) {
  if (name.extension() == ".sarif") return sarif(findings) + "\n";
  if (name.extension() == ".xml") return junit(program, findings);
  json all = json::array();
  for (const Reported& one : findings) all.push_back({{"kind", one.kind}, {"text", one.text}});
  return json{{"program", program}, {"findings", all}}.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace emulator
